"""Slices of housekeeping: pruning events, expiring cursors and the heads of deleted sessions."""

from __future__ import annotations

import sqlite3

from ..writes import ExpireCursors, ExpireHeads, PruneEvents, Swept
from .transaction import Transaction

_LAST_CURSOR = (
    "SELECT watcher_id, target_id FROM cursors WHERE (watcher_id, target_id) > (?, ?) ORDER BY watcher_id, target_id LIMIT 1 OFFSET ?"
)
_EXPIRE = "DELETE FROM cursors WHERE (watcher_id, target_id) > (?, ?) AND (watcher_id, target_id) <= (?, ?) AND renewed_at < ?"
_EVERYTHING = (2**63 - 1, 2**63 - 1)
_FIRST_EXPIRED = (
    "SELECT watcher_id, target_id - 1 FROM cursors WHERE (watcher_id, target_id) > (?, ?) AND (watcher_id, target_id) <= (?, ?) "
    "AND renewed_at < ? ORDER BY watcher_id, target_id LIMIT 1"
)
PASSED_OVER_MAX = 100_000
"""How many cursors a slice passes over until it finds an expired one: a start has to look at all of them, and few have expired. An index on
the time would find them at once, but it would double what the database does to open a notice."""


def expire_cursors(tx: Transaction, write: ExpireCursors) -> Swept:
    """Remove cursors that were not renewed in time (rule 3.5)."""
    after = write.after or (0, 0)
    last = tx.connection.execute(_LAST_CURSOR, (*after, PASSED_OVER_MAX - 1)).fetchone()
    found = tx.connection.execute(_FIRST_EXPIRED, (*after, *(last or _EVERYTHING), write.before_ms)).fetchone()
    return Swept(0, last) if found is None else _expire(tx, write, found)


def _expire(tx: Transaction, write: ExpireCursors, after: tuple[int, int]) -> Swept:
    last = tx.connection.execute(_LAST_CURSOR, (*after, write.limit - 1)).fetchone()
    removed = tx.connection.execute(_EXPIRE, (*after, *(last or _EVERYTHING), write.before_ms))
    return Swept(removed.rowcount, last)


_DOOMED = "sequence > :after AND sequence <= :last AND (sequence <= :surplus OR recorded_at < :before)"
_TOPS = f"SELECT head_id, max(sequence) FROM events WHERE {_DOOMED} GROUP BY head_id"


def prune_events(tx: Transaction, write: PruneEvents) -> Swept:
    """Remove what is too old or too much; the heads' pruned marks are raised first (rule 6.1)."""
    last = _last_of_slice(tx.connection, write)
    bounds = {
        "after": write.after,
        "last": _EVERYTHING[0] if last is None else last,
        "surplus": _surplus(tx.connection, write.keep_rows),
        "before": write.before_ms,
    }
    tops = tx.connection.execute(_TOPS, bounds).fetchall()
    _raise_pruned_marks(tx.connection, tops)
    return Swept(tx.connection.execute(f"DELETE FROM events WHERE {_DOOMED}", bounds).rowcount, last)


def _last_of_slice(connection: sqlite3.Connection, write: PruneEvents) -> int | None:
    sql = "SELECT sequence FROM events WHERE sequence > ? ORDER BY sequence LIMIT 1 OFFSET ?"
    row = connection.execute(sql, (write.after, write.limit - 1)).fetchone()
    return None if row is None else row[0]


def _surplus(connection: sqlite3.Connection, keep_rows: int) -> int:
    """The newest sequence beyond the rows to keep; 0 if there are no more rows than that."""
    first, last = connection.execute("SELECT (SELECT min(sequence) FROM events), (SELECT max(sequence) FROM events)").fetchone()
    if first is None or last - first < keep_rows:  # cheap, and the usual case
        return 0
    row = connection.execute("SELECT sequence FROM events ORDER BY sequence DESC LIMIT 1 OFFSET ?", (keep_rows,)).fetchone()
    return 0 if row is None else row[0]


def _raise_pruned_marks(connection: sqlite3.Connection, tops: list[tuple[int, int]]) -> None:
    marks = [{"head": head_id, "top": top} for head_id, top in tops]
    connection.executemany("UPDATE heads SET pruned_max_sequence = max(pruned_max_sequence, :top) WHERE head_id = :head", marks)
    connection.executemany("DELETE FROM mileposts WHERE head_id = :head AND sequence <= :top", marks)


_EXPIRE_HEADS = """
DELETE FROM heads WHERE head_id IN (
    SELECT h.head_id FROM heads h WHERE h.deleted_at < ?
    AND NOT EXISTS (SELECT 1 FROM cursors c WHERE c.watcher_id = h.head_id)
    AND NOT EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = h.head_id)
    LIMIT ?)"""


def expire_heads(tx: Transaction, write: ExpireHeads) -> Swept:
    """Forget sessions deleted long ago (rule 1.11), except where a cursor still refers to one."""
    removed = tx.connection.execute(_EXPIRE_HEADS, (write.before_ms, write.limit)).rowcount
    return Swept(removed, 0 if removed == write.limit else None)
