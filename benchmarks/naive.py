"""The same rules in the simplest way that is correct: one commit for each event, which updates the row of every watcher.

It is what the gateway is compared with. One process, one connection, no actors, no wakes, no retention, no upstream; what it does do, it
does by the rules: self-suppression, one notice pinned while it is pending, acknowledging, exact deltas.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_TABLES = """
CREATE TABLE events (sequence INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT NOT NULL, kind TEXT NOT NULL, actor_type TEXT NOT NULL,
    actor_id TEXT, summary TEXT NOT NULL);
CREATE INDEX events_session ON events (session_key, sequence);
CREATE TABLE cursors (watcher TEXT NOT NULL, target TEXT NOT NULL, last_seen INTEGER NOT NULL, notified INTEGER NOT NULL,
    material INTEGER NOT NULL, PRIMARY KEY (watcher, target));
CREATE INDEX cursors_target ON cursors (target);
"""
_INSERT = "INSERT INTO events (session_key, kind, actor_type, actor_id, summary) VALUES (?, ?, ?, ?, ?)"
# A clean pair is pinned at this event; one that is pending keeps its pin, and only its material position moves (rules 4.3 and 4.4).
_MOVE = """
UPDATE cursors SET material = ?1, notified = CASE WHEN notified > last_seen THEN notified ELSE ?1 END
WHERE target = ?2 AND watcher IS NOT ?3
"""
_PENDING = """
SELECT watcher, target, last_seen, notified FROM cursors WHERE watcher = ? AND notified > last_seen ORDER BY notified, target LIMIT ?
"""
# What lies beyond the notice becomes the next one (rule 4.5).
_SEEN = """
UPDATE cursors SET last_seen = notified, notified = material WHERE watcher = ? AND target = ? AND last_seen = ? AND notified = ?
"""


class NaiveNotice(NamedTuple):
    """One pending pair as it was shown."""

    watcher: str
    target: str
    changes_since: int
    notified: int


class Naive:
    """Use it inside `open_naive`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def watch(self, watchers: Iterable[str], target: str) -> None:
        """From the present state on; watching again changes nothing."""
        with self._transaction():
            (version,) = self._connection.execute("SELECT ifnull(max(sequence), 0) FROM events WHERE session_key = ?", (target,)).fetchone()
            rows = ((watcher, target, version, version, version) for watcher in watchers)
            self._connection.executemany("INSERT OR IGNORE INTO cursors VALUES (?, ?, ?, ?, ?)", rows)

    def human_message(self, target: str, channel: str) -> int | None:
        """The event's sequence; None where nobody watches (rule 1.8)."""
        if self._connection.execute("SELECT 1 FROM cursors WHERE target = ? LIMIT 1", (target,)).fetchone() is None:
            return None
        return self._record(target, "human_direct_message", None, f"human message via {channel}")

    def goal_changed(self, target: str, change: str, agent: str | None) -> int:
        """By an agent with this session key, None: a person. The event's sequence."""
        return self._record(target, "goal_changed", agent, f"goal {change}")

    def take(self, watcher: str, limit: int = 20) -> list[NaiveNotice]:
        """What the watcher's next turn is shown."""
        return [NaiveNotice(*row) for row in self._connection.execute(_PENDING, (watcher, limit))]

    def acknowledge(self, notices: Iterable[NaiveNotice]) -> None:
        """Those that are still pending as they were shown."""
        with self._transaction():
            self._connection.executemany(_SEEN, notices)

    def changes(self, target: str, since: int, limit: int = 200) -> list[tuple[int, str]]:
        """(sequence, summary) of the events after a version."""
        sql = "SELECT sequence, summary FROM events WHERE session_key = ? AND sequence > ? ORDER BY sequence LIMIT ?"
        return self._connection.execute(sql, (target, since, limit)).fetchall()

    def _record(self, target: str, kind: str, agent: str | None, summary: str) -> int:
        with self._transaction():
            actor_type = "human" if agent is None else "agent"
            sequence = self._connection.execute(_INSERT, (target, kind, actor_type, agent, summary)).lastrowid
            self._connection.execute(_MOVE, (sequence, target, agent))
        if sequence is None:
            raise RuntimeError("an insert has a row id")
        return sequence

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


@contextmanager
def open_naive(path: Path) -> Iterator[Naive]:
    """On a new file, as durable as the gateway."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.executescript(_TABLES)
        yield Naive(connection)
    finally:
        connection.close()
