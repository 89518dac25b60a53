"""Examining a database file for faults, without changing it: what `kizuki doctor` reads.

The questions are asked in plain SQL over the tables, not through the code that wrote them, so that a fault in that code is not
repeated here.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ..migrate import load_migrations, schema_version
from ..records import Neighbours, StoreStatistics
from . import reads
from .gateways import neighbours
from .presence import Presence
from .transaction import store_error

INTEGRITY_LINES_MAX: Final = 20


class Invariant(NamedTuple):
    """Something that is true of every database, and the query that counts where it is not."""

    name: str
    counts_faults: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found in one file."""

    schema_version: int
    schema_newest: int
    journal_mode: str
    integrity: tuple[str, ...]
    """SQLite's complaints; empty where it has none."""
    statistics: StoreStatistics | None
    """None, like the next three, where the schema is not the newest: then the tables are not looked at."""
    owed: int | None
    """Sessions whose openings are still owed."""
    unopened: int | None
    """Pending pairs without an open notice; a start opens them."""
    gateways: Neighbours | None
    broken: tuple[tuple[str, int], ...]
    """The names of the invariants that do not hold, and in how many places."""
    wal_bytes: int


INVARIANTS: Final = (
    Invariant(
        "last seen <= notified <= material in every cursor",
        "SELECT count(*) FROM session_watch_positions "
        "WHERE last_seen_sequence > notified_sequence OR notified_sequence > material_sequence",
    ),
    Invariant(
        "no cursor has seen more than its target's head says",
        "SELECT count(*) FROM cursors c JOIN heads t ON t.head_id = c.target_id WHERE c.notified > t.last_sequence",
    ),
    Invariant(
        "every cursor belongs to two heads",
        "SELECT count(*) FROM cursors WHERE watcher_id NOT IN (SELECT head_id FROM heads) OR target_id NOT IN (SELECT head_id FROM heads)",
    ),
    Invariant(
        "every claim is on an open notice",
        "SELECT count(*) FROM cursors WHERE claimed_by IS NOT NULL AND notified <= last_seen",
    ),
    Invariant("every session has a head", "SELECT count(*) FROM sessions WHERE head_id NOT IN (SELECT head_id FROM heads)"),
    Invariant("every link belongs to a session", "SELECT count(*) FROM links WHERE head_id NOT IN (SELECT head_id FROM sessions)"),
    Invariant("every event belongs to a head", "SELECT count(*) FROM events WHERE head_id NOT IN (SELECT head_id FROM heads)"),
    Invariant(
        "every head stands at its session's last event",
        "SELECT count(*) FROM heads h WHERE h.last_sequence <> max(h.pruned_max_sequence, "
        "coalesce((SELECT max(e.sequence) FROM events e WHERE e.head_id = h.head_id), 0))",
    ),
    Invariant("no pruned mark is above its head", "SELECT count(*) FROM heads WHERE pruned_max_sequence > last_sequence"),
    Invariant(
        "every head knows its latest notifying event",
        "SELECT count(*) FROM heads h WHERE h.latest_sequence > h.last_sequence OR h.other_sequence > h.latest_sequence "
        "OR h.latest_sequence < coalesce((SELECT max(e.sequence) FROM events e WHERE e.head_id = h.head_id AND e.notifies), 0)",
    ),
    Invariant(
        "each session's events form one chain",
        "SELECT count(*) FROM (SELECT e.previous, lag(e.sequence) OVER (PARTITION BY e.head_id ORDER BY e.sequence) AS before, "
        "h.pruned_max_sequence AS pruned FROM events e JOIN heads h ON h.head_id = e.head_id) "
        "WHERE CASE WHEN previous > pruned OR before > pruned THEN previous IS NOT before ELSE 0 END",
    ),
    Invariant(
        "every milepost is an event of its session",
        "SELECT count(*) FROM mileposts m WHERE NOT EXISTS "
        "(SELECT 1 FROM events e WHERE e.sequence = m.sequence AND e.head_id = m.head_id)",
    ),
    Invariant(
        "no sequence is above the last one given out",
        "SELECT count(*) FROM heads WHERE last_sequence > (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events')",
    ),
)

_OWED = "SELECT count(*) FROM heads WHERE owed_sequence IS NOT NULL"
_UNOPENED = (
    "SELECT count(*) FROM session_watch_positions WHERE material_sequence > last_seen_sequence AND notified_sequence <= last_seen_sequence"
)


def examine(path: Path) -> Examination:
    """Examine the database at `path`; blocks, for seconds where it is large. `StoreError` if it cannot be read or is not ours."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
            return _examine(connection, path)
    except sqlite3.Error as error:
        raise store_error(error) from error


def _examine(connection: sqlite3.Connection, path: Path) -> Examination:
    connection.execute("PRAGMA query_only = on")
    connection.execute("PRAGMA busy_timeout = 5000")
    connection.execute("BEGIN")  # one state for all the questions
    version, newest = schema_version(connection), load_migrations()[-1].version
    current = version == newest
    return Examination(
        schema_version=version,
        schema_newest=newest,
        journal_mode=str(_one(connection, "PRAGMA journal_mode")),
        integrity=_integrity(connection),
        statistics=reads.statistics(connection) if current else None,
        owed=_one(connection, _OWED) if current else None,
        unopened=_one(connection, _UNOPENED) if current else None,
        gateways=neighbours(connection, Presence(path)) if current else None,
        broken=_broken(connection) if current else (),
        wal_bytes=_size(path.with_name(f"{path.name}-wal")),
    )


def _integrity(connection: sqlite3.Connection) -> tuple[str, ...]:
    try:
        lines = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({INTEGRITY_LINES_MAX})")]
    except sqlite3.DatabaseError as error:
        return (str(error),)
    return () if lines == ["ok"] else tuple(lines)


def _broken(connection: sqlite3.Connection) -> tuple[tuple[str, int], ...]:
    counted = ((invariant.name, _one(connection, invariant.counts_faults)) for invariant in INVARIANTS)
    return tuple((name, faults) for name, faults in counted if faults)


def _one(connection: sqlite3.Connection, sql: str) -> int:
    value: int = connection.execute(sql).fetchone()[0]
    return value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
