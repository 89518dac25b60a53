"""What a person is shown: all that there is within bounds, and what is around one session. JSON-ready, in camelCase.

Reading needs a store and nothing else, so a page over a database that was opened read-only shows the same.
"""

from __future__ import annotations

from typing import Any, Final

from ..storage.positions import is_pending
from ..storage.protocol import Store
from ..storage.records import Address, Cursor, LastActor, StateEvent
from .errors import InvalidArgument, UnknownSession
from .notices import notice
from .summaries import Language
from .tools import Status, event_row, parse_limit, session_row

SESSIONS_MAX: Final = 2_000
CURSORS_MAX: Final = 5_000
EVENTS_MAX: Final = 5_000


async def overview(store: Store, status: Status, *, events_max: object, language: Language) -> dict[str, Any]:
    """Sessions, cursors, the newest events, and totals; `hasMore` says of each whether there are others. Raises `InvalidArgument`."""
    limit = _parse_events_max(events_max)
    read = await store.overview(sessions_max=SESSIONS_MAX, cursors_max=CURSORS_MAX, events_max=limit)
    totals = read.totals
    return {
        "sessions": [session_row(session, status) | _last_actor(actor) for session, actor in read.sessions],
        "cursors": [cursor_row(cursor) for cursor in read.cursors],
        "events": [_event_of_session(event, language) for event in read.events],
        "hasMore": {
            "sessions": totals.sessions > len(read.sessions),
            "cursors": totals.cursors > len(read.cursors),
            "events": totals.events > len(read.events),
        },
        "totals": {"sessions": totals.sessions, "events": totals.events, "cursors": totals.cursors, "pending": totals.pending},
        "lastSequence": totals.last_sequence,
    }


async def surroundings(store: Store, status: Status, address: Address, *, limit: object, language: Language) -> dict[str, Any]:
    """One session, who watches it, whom it watches, and the notices that it has pending. Raises `UnknownSession`, `InvalidArgument`."""
    read = await store.surroundings(address, limit=parse_limit(limit))
    if read is None:
        raise UnknownSession(*address)
    pending = [cursor for cursor in read.watching if is_pending(cursor.positions)]
    pending.sort(key=lambda cursor: (cursor.positions.notified, cursor.target))
    return {
        "session": session_row(read.session, status) | _last_actor(read.last_actor),
        "watchers": [cursor_row(cursor) for cursor in read.watchers],
        "watching": [cursor_row(cursor) for cursor in read.watching],
        "notices": [_notice_row(cursor, language) for cursor in pending],
        "hasMore": {"watchers": read.more_watchers, "watching": read.more_watching},
    }


def cursor_row(cursor: Cursor) -> dict[str, Any]:
    """One cursor with its three positions; pending, also while an open turn has the notice."""
    key, agent_id = cursor.target
    last_seen, notified, material = cursor.positions
    return {
        "watcher": cursor.watcher,
        "target": key,
        "targetAgentId": agent_id,
        "lastSeen": last_seen,
        "notified": notified,
        "material": material,
        "pending": is_pending(cursor.positions),
    }


def _notice_row(cursor: Cursor, language: Language) -> dict[str, Any]:
    shown = notice(cursor, language)
    return {"target": shown.target, "targetAgentId": shown.target_agent_id, "changesSince": shown.changes_since, "text": shown.text}


def _last_actor(actor: LastActor | None) -> dict[str, Any]:
    """A type is left out where nothing but the head is left of the event."""
    if actor is None:
        return {}
    given = {"type": actor.actor_type, "id": actor.actor_id, "sequence": actor.sequence}
    return {"lastActor": {name: value for name, value in given.items() if value is not None}}


def _event_of_session(event: StateEvent, language: Language) -> dict[str, Any]:
    return {"sessionKey": event.session_key, "agentId": event.agent_id, **event_row(event, language)}


def _parse_events_max(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= EVENTS_MAX:
        return value
    raise InvalidArgument("events", value, f"it must be an integer from 0 to {EVENTS_MAX}")
