"""What the documented tables and views say, and how it changes from one write to the next.

The views are read after every write. A write changes little, so what is kept is the whole of cursors, heads and session rows as they were,
and of the events only those that are new or gone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")

Address = tuple[str, str]
"""A session's key and agent."""
Pair = tuple[str, Address]
"""A watcher's key, and its target."""


class Event(NamedTuple):
    """A row of `session_state_events`."""

    sequence: int
    session_key: str
    agent_id: str
    session_id: str
    kind: str
    actor_type: str
    actor_id: str | None
    run_id: str | None
    occurred_at: int
    recorded_at: int
    dedupe_key: str | None
    summary: str
    payload_json: str | None

    @property
    def address(self) -> Address:
        """Whose event it is."""
        return self.session_key, self.agent_id


class Head(NamedTuple):
    """A row of `session_state_heads`."""

    last: int
    pruned: int


class Cursor(NamedTuple):
    """A row of `session_watch_positions`."""

    last_seen: int
    notified: int
    material: int
    renewed_at: int

    @property
    def is_open(self) -> bool:
        """Whether a notice is pending on it."""
        return self.notified > self.last_seen


class Row(NamedTuple):
    """A row of `sessions`."""

    session_id: str
    parent: str | None
    label: str | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything but the events, as it was after some write."""

    number: int = 0
    cursors: Mapping[Pair, Cursor] = field(default_factory=dict)
    heads: Mapping[Address, Head] = field(default_factory=dict)
    rows: Mapping[Address, Row] = field(default_factory=dict)
    owed: Mapping[Pair, int] = field(default_factory=dict)
    """The openings that are still to be made (rule 1.10): where each is to be pinned."""

    def pending(self, watcher: str) -> dict[Address, Cursor]:
        """The watcher's open notices, by target."""
        return {target: cursor for (owner, target), cursor in self.cursors.items() if owner == watcher and cursor.is_open}


@dataclass(frozen=True, slots=True)
class Change:
    """What one write did."""

    before: Snapshot
    after: Snapshot
    new: tuple[Event, ...]
    """Ascending."""
    gone: tuple[Event, ...]
    cursors: frozenset[Pair]
    """Those that are new, gone or moved."""
    heads: frozenset[Address]
    rows: frozenset[Address]


_EVENTS = (
    "SELECT sequence, session_key, agent_id, session_id, kind, actor_type, actor_id, run_id, occurred_at, recorded_at, dedupe_key, "
    "summary, payload_json FROM session_state_events WHERE sequence > ? ORDER BY sequence"
)
_COUNT = "SELECT count(*) FROM events"
_HEADS = "SELECT session_key, agent_id, last_sequence, pruned_max_sequence FROM session_state_heads"
_CURSORS = (
    "SELECT watcher_session_key, target_session_key, target_agent_id, last_seen_sequence, notified_sequence, material_sequence, renewed_at "
    "FROM session_watch_positions"
)
_ROWS = "SELECT session_key, agent_id, session_id, parent, label FROM sessions"


class Durable:
    """Reads the views on a connection of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._raw: tuple[list[tuple[object, ...]], ...] = ([], [], [])
        self.now = Snapshot()
        self.kept: dict[int, Event] = {}
        """The events in the log, by sequence, ascending."""
        self.highest = 0
        """The highest sequence ever seen."""
        self.first: dict[tuple[Address, str, str], Event] = {}
        """The kept events by session, kind and dedupe key."""

    def look(self) -> Change | None:
        """What has changed since the last look; None if nothing has. The log is changed by `keep`."""
        new = tuple(Event(*row) for row in self._connection.execute(_EVENTS, (self.highest,)))
        gone = self._gone(len(new))
        cursors, heads, rows = (self._connection.execute(sql).fetchall() for sql in (_CURSORS, _HEADS, _ROWS))
        raw = (cursors, heads, rows)
        if not new and not gone and raw == self._raw:
            return None
        self._raw, before = raw, self.now
        self.now = Snapshot(
            before.number + 1,
            {(row[0], (row[1], row[2])): Cursor(*row[3:]) for row in cursors},
            {(row[0], row[1]): Head(*row[2:]) for row in heads},
            {(row[0], row[1]): Row(*row[2:]) for row in rows},
            before.owed,
        )
        return Change(
            before,
            self.now,
            new,
            gone,
            _changed(before.cursors, self.now.cursors),
            _changed(before.heads, self.now.heads),
            _changed(before.rows, self.now.rows),
        )

    def keep(self, change: Change, owed: Mapping[Pair, int]) -> None:
        """Take the change of the log in, after which these openings are owed."""
        self.now = replace(self.now, owed=owed)
        for event in change.gone:
            del self.kept[event.sequence]
            if event.dedupe_key is not None:
                self.first.pop((event.address, event.kind, event.dedupe_key), None)
        for event in change.new:
            self.kept[event.sequence] = event
            self.highest = event.sequence
            if event.dedupe_key is not None:
                self.first[event.address, event.kind, event.dedupe_key] = event

    def stored(self) -> dict[int, Event]:
        """The whole log, read anew."""
        return {row[0]: Event(*row) for row in self._connection.execute(_EVENTS, (0,))}

    def _gone(self, new: int) -> tuple[Event, ...]:
        count = self._connection.execute(_COUNT).fetchone()[0]
        if count == len(self.kept) + new:
            return ()
        left = {row[0] for row in self._connection.execute("SELECT sequence FROM session_state_events")}
        return tuple(event for sequence, event in self.kept.items() if sequence not in left)


def _changed(before: Mapping[K, V], after: Mapping[K, V]) -> frozenset[K]:
    if before == after:
        return frozenset()
    return frozenset(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
