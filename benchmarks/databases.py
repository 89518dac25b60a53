"""What the gateway is compared with: plain `sqlite3` on a file of its own, in write-ahead logging, `synchronous=FULL`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from kizuki.storage.migrate import load_migrations, migrate

SESSION_ID = "0b0e7a52-6a5f-4b0e-9a35-0f0a8d1c2b3e"
NOW_MS = 1_767_225_600_000

_SAME_TABLE = (
    "INSERT INTO events (head_id, previous, kind, notifies, actor_type, actor_id, run_id, session_id, occurred_at, recorded_at, "
    "dedupe_key, summary, payload_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_TEXT_KEYS = """
CREATE TABLE text_events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT NOT NULL, agent_id TEXT NOT NULL, kind TEXT NOT NULL,
    notifies INTEGER NOT NULL, actor_type TEXT NOT NULL, actor_id TEXT, run_id TEXT, session_id TEXT NOT NULL,
    occurred_at INTEGER NOT NULL, recorded_at INTEGER NOT NULL, dedupe_key TEXT, summary TEXT NOT NULL, payload_json TEXT);
CREATE INDEX text_events_session ON text_events (session_key, agent_id, sequence);
CREATE UNIQUE INDEX text_events_dedupe ON text_events (session_key, agent_id, kind, dedupe_key) WHERE dedupe_key IS NOT NULL;
"""
_TEXT_TABLE = _SAME_TABLE.replace("events (head_id, previous", "text_events (session_key, agent_id")

Row = tuple[object, ...]


class RawDatabase:
    """The same rows, written by hand."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def same_table(self, keys: Sequence[str], batches: int) -> list[float]:
        """Seconds of each commit of one event for each session into the table that the gateway uses, with its index."""
        rest = ("human_direct_message", 1, "human", None, None, SESSION_ID, NOW_MS, NOW_MS, None, "human message via telegram", None)
        return self._insert(_SAME_TABLE, [(number, number, *rest) for number, _ in enumerate(keys)], batches)

    def text_table(self, keys: Sequence[str], batches: int) -> list[float]:
        """The same into a table that names the session in each row, with the text index that finds a session's events."""
        rest = ("human_direct_message", 1, "human", None, None, SESSION_ID, NOW_MS, NOW_MS, None, "human message via telegram", None)
        return self._insert(_TEXT_TABLE, [(key, "main", *rest) for key in keys], batches)

    def delta(self, key: str, since: int, limit: int) -> list[Row]:
        """One session's rows after a sequence, from the table with the index."""
        sql = (
            "SELECT sequence, kind, actor_type, actor_id, run_id, occurred_at, summary, payload_json FROM text_events "
            "WHERE session_key = ? AND agent_id = 'main' AND sequence > ? ORDER BY sequence LIMIT ?"
        )
        return self._connection.execute(sql, (key, since, limit)).fetchall()

    def _insert(self, sql: str, rows: Sequence[Row], batches: int) -> list[float]:
        return [self._commit_s(sql, rows) for _ in range(batches)]

    def _commit_s(self, sql: str, rows: Sequence[Row]) -> float:
        began = perf_counter()
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(sql, rows)
        self._connection.execute("COMMIT")
        return perf_counter() - began


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for databases, gone afterwards."""
    with TemporaryDirectory(prefix="kizuki-bench-") as name:
        yield Path(name)


@contextmanager
def raw_database(path: Path) -> Iterator[RawDatabase]:
    """A database to write to by hand."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)  # Some commits are made in a thread.
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        migrate(connection, load_migrations())
        connection.executescript(_TEXT_KEYS)
        yield RawDatabase(connection)
    finally:
        connection.close()
