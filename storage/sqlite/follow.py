"""Following the log of all sessions: sequences are committed in their order here, for there is one writer at a time."""

from __future__ import annotations

import sqlite3

from ..events import EVENT_COLUMNS
from ..following import advanced
from ..pairs import PAIR_COLUMNS, Pair
from ..records import Address, Cursor, Followed, LogPosition, to_event

_AFTER = (
    f"SELECT h.session_key, h.agent_id, {EVENT_COLUMNS} FROM events e CROSS JOIN heads h ON h.head_id = e.head_id "
    "WHERE e.sequence > ? ORDER BY e.sequence LIMIT ?"
)
_OPENED = (
    f"SELECT {PAIR_COLUMNS} FROM (SELECT * FROM cursors INDEXED BY cursors_open WHERE notified > last_seen LIMIT ?) c "
    "CROSS JOIN heads w ON w.head_id = c.watcher_id CROSS JOIN heads t ON t.head_id = c.target_id "
    "ORDER BY w.session_key, t.session_key, t.agent_id"
)
_LAST = "SELECT coalesce(max(sequence), 0) FROM events"


def follow(connection: sqlite3.Connection, position: LogPosition | None, events_max: int, opened_max: int) -> Followed:
    """What is new, as `Store.follow` says."""
    opened = _opened(connection, opened_max)
    if position is None:
        return Followed((), more=False, position=LogPosition(connection.execute(_LAST).fetchone()[0]), opened=opened)
    rows = connection.execute(_AFTER, (position.settled, events_max + 1)).fetchall()
    more = len(rows) > events_max
    events = tuple(to_event(Address(row[0], row[1]), row[2:]) for row in rows[:events_max])
    after = advanced(position, [event.sequence for event in events], None, more=more)
    return Followed(events, more, after, opened)


def _opened(connection: sqlite3.Connection, opened_max: int) -> tuple[Cursor, ...] | None:
    rows = connection.execute(_OPENED, (opened_max + 1,)).fetchall()
    return None if len(rows) > opened_max else tuple(Pair.of(row).cursor for row in rows)
