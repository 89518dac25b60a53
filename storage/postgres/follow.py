"""Following the log of all sessions, where an event may become visible behind one with a higher sequence: see `following`."""

from __future__ import annotations

from ..events import EVENT_COLUMNS
from ..following import advanced, cut_short
from ..pairs import PAIR_COLUMNS, Pair
from ..records import Address, Cursor, Followed, LogPosition, to_event
from .line import Database

BEHIND_MAX = 10_000
"""How far behind the newest one an event may be that becomes visible only after somebody began to follow."""

_AFTER = (
    f"SELECT h.session_key, h.agent_id, {EVENT_COLUMNS} FROM events e JOIN heads h ON h.head_id = e.head_id "
    "WHERE e.sequence > $1 AND e.sequence <> ALL ($2::bigint[]) ORDER BY e.sequence LIMIT $3"
)
_OPENED = (
    f"SELECT {PAIR_COLUMNS} FROM (SELECT * FROM cursors WHERE notified > last_seen LIMIT $1) c "
    "JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id "
    "ORDER BY w.session_key, t.session_key, t.agent_id"
)
_NEWEST = "SELECT sequence FROM events ORDER BY sequence DESC LIMIT $1"
# A transaction that writes holds the lock of its own id until it has ended; locking a head, before a sequence is taken, is a write.
_RUNNING = "SELECT transactionid::text FROM pg_locks WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted"


async def follow(connection: Database, position: LogPosition | None, events_max: int, opened_max: int) -> Followed:
    """What is new, as `Store.follow` says."""
    opened = await _opened(connection, opened_max)
    if position is None:
        return Followed((), more=False, position=await _now(connection), opened=opened)
    rows = await connection.fetch(_AFTER, position.settled, sorted(position.given), events_max + 1)
    # Asked for behind the events: the snapshot is that of the transaction, and the locks are those of this very moment.
    running = await _running(connection)
    more = len(rows) > events_max
    events = tuple(to_event(Address(row[0], row[1]), tuple(row)[2:]) for row in rows[:events_max])
    after, missed = cut_short(advanced(position, [event.sequence for event in events], running, more=more))
    return Followed(events, more, after, opened, missed)


async def _now(connection: Database) -> LogPosition:
    newest = [row[0] for row in await connection.fetch(_NEWEST, BEHIND_MAX)]
    if not newest:
        return LogPosition(0)
    settled = newest[-1] - 1 if len(newest) == BEHIND_MAX else 0
    return LogPosition(settled, frozenset(newest), newest[0], await _running(connection))


async def _running(connection: Database) -> frozenset[str]:
    return frozenset(row[0] for row in await connection.fetch(_RUNNING))


async def _opened(connection: Database, opened_max: int) -> tuple[Cursor, ...] | None:
    rows = await connection.fetch(_OPENED, opened_max + 1)
    return None if len(rows) > opened_max else tuple(Pair.of(tuple(row)).cursor for row in rows)
