"""What the session tools answer: JSON-ready dictionaries in camelCase, as a model sees them (rules 5.1 to 5.5).

Reading needs a store and nothing else, so the command line answers the same over a database that it opened read-only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ..storage.protocol import Store
from ..storage.records import Address, EventRow, SessionRecord, SessionsPage, StateEvent, StatusRead
from .errors import InvalidArgument, UnknownSession
from .keys import canonical_agent_id, canonical_key, is_qualified, parse_address
from .summaries import Language, render

LIMIT_MAX: Final = 200
_DIGITS: Final = re.compile(r"[0-9]{1,40}", re.ASCII)
_GAP_HINT: Final[dict[Language, str]] = {
    "en": "Some of the changes after this version are no longer kept: refresh the whole state with sessions_history.",
    "ja": "このバージョン以降の変更の一部はもう保存されていません。sessions_history で状態全体を取得し直してください。",
}

_ReadRow = tuple[int, str, str, str, str | None, str | None, int, str, Mapping[str, object] | None]
"""An `EventRow` whose payload has been read."""

Status = Callable[[Address], str]
"""Gives `idle` or `running` for a session."""


def parse_changes_since(value: object) -> int | None:
    """A version as a tool's caller gives it: a non-negative integer, in JSON `5` or `"5"`; None where none was given."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    raise InvalidArgument("changesSince", value, 'it must be a non-negative integer, 5 or "5"')


def parse_limit(value: object, what: str = "limit") -> int:
    """How many rows a caller wants: 1 to 200."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LIMIT_MAX:
        return value
    raise InvalidArgument(what, value, f"it must be an integer from 1 to {LIMIT_MAX}")


async def session_status(
    store: Store, status: Status, address: Address, *, changes_since: object, limit: object, language: Language
) -> dict[str, Any]:
    """One session, and with `changes_since` the exact delta. Raises `UnknownSession`, `InvalidArgument`, `StoreError`."""
    since = parse_changes_since(changes_since)
    read = await store.status(address, changes_since=since, limit=parse_limit(limit))
    if read is None:
        raise UnknownSession(*address)
    result: dict[str, Any] = {
        "sessionKey": address.session_key,
        "agentId": address.agent_id,
        "sessionId": read.session.session_id,
        "status": status(address),
        "stateVersion": read.session.version,
    }
    if since is not None:
        result["stateChanges"] = _delta(read, since, language)
    return result


async def sessions_list(
    store: Store,
    status: Status,
    *,
    agent_id: object,
    kind: object,
    parent: object,
    limit: object,
    after: object,
    with_total: bool,
) -> dict[str, Any]:
    """A page of sessions, ordered by key; `nextAfter` is what to pass as `after` for the next one."""
    page = await store.sessions(
        agent_id=None if agent_id is None else canonical_agent_id(agent_id),
        kind=_kind(kind),
        parent=None if parent is None else canonical_key(parent),
        limit=parse_limit(limit),
        after=None if after is None else _parse_after(after),
        with_total=with_total,
    )
    return _page(page, status)


def event_row(event: StateEvent, language: Language) -> dict[str, Any]:
    """One event as a tool shows it; what it has nothing to say of is left out."""
    actor = (event.actor_type, event.actor_id)
    row = (event.sequence, event.session_id, event.kind, *actor, event.run_id, event.occurred_at_ms, event.summary, event.payload)
    return event_rows([row], language)[0]


def event_rows(rows: Iterable[EventRow | _ReadRow], language: Language) -> list[dict[str, Any]]:
    """The same of many, from the rows of the database: in one loop, since that is most of what a delta costs its caller's loop."""
    shown: list[dict[str, Any]] = []
    texts: dict[tuple[str, str], str] = {}
    for sequence, _, kind, actor_type, actor_id, run_id, occurred_at, summary, payload in rows:
        text = texts.get((kind, summary))
        if text is None:
            text = texts[kind, summary] = render(kind, summary, language)
        row: dict[str, Any] = {"sequence": sequence, "kind": kind, "actorType": actor_type}
        if actor_id is not None:
            row["actorId"] = actor_id
        if run_id is not None:
            row["runId"] = run_id
        row["occurredAt"] = occurred_at
        row["summary"] = text
        if payload is not None and (content := json.loads(payload) if isinstance(payload, str) else dict(payload)):
            row["payload"] = content
        shown.append(row)
    return shown


def _delta(read: StatusRead, since: int, language: Language) -> dict[str, Any]:
    gap = since < read.pruned_max_sequence
    delta: dict[str, Any] = {
        "events": event_rows(read.rows, language),
        "historyGap": gap,
        "truncated": read.more,
    }
    if read.more:
        delta["nextChangesSince"] = read.rows[-1][0]
    if read.earliest_sequence is not None:
        delta["earliestAvailableSequence"] = read.earliest_sequence
    if gap:
        delta["hint"] = _GAP_HINT[language]
    return delta


def _page(page: SessionsPage, status: Status) -> dict[str, Any]:
    result: dict[str, Any] = {"sessions": [session_row(record, status) for record in page.sessions], "hasMore": page.has_more}
    if page.has_more:
        result["nextAfter"] = _after(page.sessions[-1].address)
    if page.total is not None:
        result["total"] = page.total
    return result


def session_row(record: SessionRecord, status: Status) -> dict[str, Any]:
    """One session as a list shows it; `stateVersion` only once something was recorded (rule 5.5)."""
    row: dict[str, Any] = {
        "sessionKey": record.address.session_key,
        "agentId": record.address.agent_id,
        "sessionId": record.session_id,
        "kind": record.kind,
        "status": status(record.address),
        "updatedAt": record.updated_at_ms,
    }
    optional = {"label": record.label, "parent": record.parent, "stateVersion": record.version or None}
    return row | {name: value for name, value in optional.items() if value is not None}


def _kind(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidArgument("kind", value, "it must be a text such as main or subagent")


def _after(address: Address) -> str:
    """A key without prefix can belong to several agents, so its agent id stands behind it; a key has no white space."""
    return address.session_key if is_qualified(address.session_key) else f"{address.session_key} {address.agent_id}"


def _parse_after(value: object) -> Address:
    if not isinstance(value, str):
        raise InvalidArgument("after", value, "it must be the nextAfter of an earlier answer")
    key, _, agent_id = value.partition(" ")
    if agent_id or is_qualified(canonical_key(key)):
        return parse_address(key, agent_id or None)
    return Address(canonical_key(key), "")
