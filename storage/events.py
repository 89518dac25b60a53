"""Events as rows: how they are written, and how rows become `StateEvent`s. Pure, and the same for every database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial

from .records import Address, EventRow, StateEvent, state_event
from .rows import Row

EVENT_COLUMNS = "e.sequence, e.session_id, e.kind, e.actor_type, e.actor_id, e.run_id, e.occurred_at, e.summary, e.payload_json"
"""What `to_event` and `event_rows` take, of a table named e: the fields of an `EventRow`, in their order."""

_event_row = partial(tuple.__new__, EventRow)


def to_event(address: Address, row: Row) -> StateEvent:
    """The event in a row of `EVENT_COLUMNS`."""
    sequence, session_id, kind, actor_type, actor_id, run_id, occurred_at, summary, payload = row
    key, agent = address
    content = None if payload is None else json.loads(payload)
    return state_event(sequence, key, agent, session_id, kind, actor_type, actor_id, run_id, occurred_at, summary, content)


def event_rows(rows: Iterable[Iterable[object]]) -> tuple[EventRow, ...]:
    """Rows of `EVENT_COLUMNS` by their names."""
    return tuple(map(_event_row, rows))


def payload_json(payload: Mapping[str, object] | None) -> str | None:
    """The payload as it is stored."""
    return None if payload is None else json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"))
