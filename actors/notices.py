"""What a watcher is shown of its cursors: notices and watches, derived from the three positions alone.

Whether a pair is pending is never stored: it is pending while its material position is beyond what was last seen (rule 4.11).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..storage.records import Cursor
from .keys import is_qualified
from .summaries import Language

_EN = 'Session "{target}" was changed by another actor. Reconcile before acting: {call}.'
_JA = 'セッション "{target}" が変更されました（別のアクター）。行動する前に調整してください: {call}.'


@dataclass(frozen=True, slots=True)
class Notice:
    """The one line that tells a watcher that a target changed."""

    watcher: str
    target: str
    target_agent_id: str
    changes_since: int
    """What the watcher has seen of the target: the state version to ask for changes after."""
    text: str
    notified: int
    """The sequence that the notice is pinned at; with `changes_since` it tells this notice from any other (rule 4.5)."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One watcher's cursor on one target."""

    target: str
    target_agent_id: str
    last_seen: int
    notified: int
    material: int
    pending: bool
    """Whether a notice is pending, one that an open turn has taken included."""


def notice(cursor: Cursor, language: Language) -> Notice:
    """The notice of a pending cursor: the same for as long as it is pending, since neither position in it moves (rule 4.1)."""
    key, agent_id = cursor.target
    last_seen = cursor.positions.last_seen
    text = notice_text(key, None if is_qualified(key) else agent_id, last_seen, language)
    return Notice(cursor.watcher, key, agent_id, last_seen, text, cursor.positions.notified)


def notice_text(target: str, agent_id: str | None, changes_since: int, language: Language) -> str:
    """A notice's text (rule 4.2); `agent_id` only for a target without prefix.

    The agent id stands in the call, where the call needs it, and not where the session is only mentioned: what follows
    "session_status" can be copied as it is.
    """
    named = f'"{target}"' if agent_id is None else f'"{target}" agentId "{agent_id}"'
    call = f"session_status sessionKey {named} changesSince {changes_since}"
    return (_JA if language == "ja" else _EN).format(target=target, call=call)


def watch(cursor: Cursor) -> Watch:
    """A cursor as `Gateway.watches` lists it."""
    return Watch(*cursor.target, *cursor.positions, cursor.positions.material > cursor.positions.last_seen)
