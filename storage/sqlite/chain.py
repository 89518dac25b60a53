"""Reading one session's events along its chain.

The chain leads backwards, and a reader wants what comes after a version. So every 64th event of a session is a milepost: the right
milepost, found by its index, is the place from which to walk back, over no more links than there are events to give, and 63.
Where the log has not much else between those events, to scan it up to that milepost is faster than the walk.
"""

from __future__ import annotations

import sqlite3

from ..events import EVENT_COLUMNS
from ..records import Address, EventRow, StateEvent, to_event

MILEPOST_EVERY = 64
SCANNED_PER_LINK = 20
"""A row that is passed over takes less than a twentieth of the time of a link."""

_WALK = """
WITH RECURSIVE chain(sequence, previous) AS (
    SELECT sequence, previous FROM events WHERE sequence = :start
    UNION ALL
    SELECT e.sequence, e.previous FROM chain CROSS JOIN events e ON e.sequence = chain.previous WHERE chain.previous > :after
    LIMIT :links)
"""
_AFTER = (
    f"{_WALK} SELECT {EVENT_COLUMNS} FROM chain CROSS JOIN events e ON e.sequence = chain.sequence ORDER BY chain.sequence LIMIT :limit"
)
_SCAN = (
    f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.sequence > :after AND e.sequence <= :start AND e.head_id = :head "
    "ORDER BY e.sequence LIMIT :limit"
)
_FIRST = f"{_WALK} SELECT min(sequence) FROM chain"
_SCAN_FIRST = "SELECT min(sequence) FROM events WHERE sequence > :after AND sequence <= :start AND head_id = :head"
_DELETE = f"{_WALK} DELETE FROM events WHERE sequence IN (SELECT sequence FROM chain)"

_MILEPOST = "SELECT sequence FROM mileposts WHERE head_id = ? AND sequence > ? ORDER BY sequence LIMIT 1 OFFSET ?"


def events_after(connection: sqlite3.Connection, head_id: int, last_sequence: int, after: int, limit: int) -> tuple[EventRow, ...]:
    """The first `limit` events after the sequence `after`, ascending."""
    if after >= last_sequence:
        return ()
    start = _milepost(connection, head_id, after, mileposts=-(-limit // MILEPOST_EVERY)) or last_sequence
    is_near = start - after <= SCANNED_PER_LINK * (limit + MILEPOST_EVERY)
    bounds = {"start": start, "after": after, "links": -1, "limit": limit, "head": head_id}
    return tuple(connection.execute(_SCAN if is_near else _AFTER, bounds))


def newest_events(connection: sqlite3.Connection, address: Address, last_sequence: int, limit: int) -> tuple[StateEvent, ...]:
    """The last `limit` events, ascending."""
    rows = connection.execute(_AFTER, {"start": last_sequence, "after": 0, "links": limit, "limit": limit})
    return tuple(to_event(address, row) for row in rows)


def earliest_sequence(connection: sqlite3.Connection, head_id: int, last_sequence: int, pruned: int) -> int | None:
    """The smallest sequence kept, which is above the highest that was pruned; None where no event is kept."""
    start = _milepost(connection, head_id, pruned, mileposts=0) or last_sequence
    is_near = start - pruned <= SCANNED_PER_LINK * MILEPOST_EVERY
    bounds = {"start": start, "after": pruned, "links": -1, "head": head_id}
    found: int | None = connection.execute(_SCAN_FIRST if is_near else _FIRST, bounds).fetchone()[0]
    return found


def delete_events(connection: sqlite3.Connection, head_id: int, last_sequence: int) -> None:
    """Remove all of a session's events."""
    connection.execute(_DELETE, {"start": last_sequence, "after": 0, "links": -1})
    connection.execute("DELETE FROM mileposts WHERE head_id = ?", (head_id,))


def _milepost(connection: sqlite3.Connection, head_id: int, after: int, *, mileposts: int) -> int | None:
    """The milepost that has `mileposts` others of the session between itself and `after`; None if there are fewer."""
    row = connection.execute(_MILEPOST, (head_id, after, mileposts)).fetchone()
    return None if row is None else row[0]
