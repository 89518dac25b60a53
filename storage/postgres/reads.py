"""The reads, each a function over one read transaction."""

from __future__ import annotations

from collections.abc import Collection

from ..events import EVENT_COLUMNS
from ..folds import SessionRow, record_of, to_record
from ..pairs import PAIR_COLUMNS, Pair
from ..records import (
    Address,
    Cursor,
    EventRow,
    PendingRead,
    SessionRecord,
    SessionsPage,
    Shown,
    StateEvent,
    StatusRead,
    StoreStatistics,
    to_event,
)
from ..rows import Row
from .arrays import columns, unnest
from .folds import load
from .gateways import OTHERS
from .line import Database

_AFTER = f"SELECT {EVENT_COLUMNS} FROM events e WHERE e.head_id = $1 AND e.sequence > $2 ORDER BY e.sequence LIMIT $3"


async def status(connection: Database, address: Address, changes_since: int | None, limit: int) -> StatusRead | None:
    """One session as `Store.status` says."""
    fold = await load(connection, address)
    if fold.session is None:
        return None
    rows: tuple[EventRow, ...] = ()
    if changes_since is not None and changes_since < fold.last_sequence:
        rows = tuple(map(tuple, await connection.fetch(_AFTER, fold.head_id, changes_since, limit + 1)))
    earliest = await connection.fetchval("SELECT min(sequence) FROM events WHERE head_id = $1", fold.head_id)
    return StatusRead(to_record(fold, fold.session), fold.pruned_max_sequence, earliest, rows[:limit], len(rows) > limit)


async def session_exists(connection: Database, session_key: str) -> bool:
    """Whether any agent has a session under this key."""
    return bool(await connection.fetchval("SELECT EXISTS (SELECT 1 FROM sessions WHERE session_key = $1)", session_key))


_SESSIONS = (
    "SELECT session_key, agent_id, session_id, kind, parent, label, created_at, updated_at, recorded_at, last_sequence "
    "FROM heads WHERE session_id IS NOT NULL"
)


async def sessions(
    connection: Database,
    agent_id: str | None,
    kind: str | None,
    parent: str | None,
    limit: int,
    after: Address | None,
    with_total: bool,
) -> SessionsPage:
    """A page of sessions as `Store.sessions` says."""
    given = {name: value for name, value in (("agent_id", agent_id), ("kind", kind), ("parent", parent)) if value is not None}
    where = "".join(f" AND {name} = ${number}" for number, name in enumerate(given, 1))
    count = len(given)
    behind = "" if after is None else f" AND (session_key, agent_id) > (${count + 2}, ${count + 3})"
    sql = f"{_SESSIONS}{where}{behind} ORDER BY session_key, agent_id LIMIT ${count + 1}"
    rows = await connection.fetch(sql, *given.values(), limit + 1, *(after or ()))
    total = None
    if with_total:
        total = await connection.fetchval(f"SELECT count(*) FROM heads WHERE session_id IS NOT NULL{where}", *given.values())
    return SessionsPage(tuple(_to_record(tuple(row)) for row in rows[:limit]), len(rows) > limit, total)


def _to_record(row: Row) -> SessionRecord:
    return record_of(Address(row[0], row[1]), SessionRow(*row[2:8]), row[8], row[9])


_CURSORS = (
    f"SELECT {PAIR_COLUMNS} FROM heads w JOIN cursors c ON c.watcher_id = w.head_id JOIN heads t ON t.head_id = c.target_id "
    "{where}ORDER BY w.session_key, t.session_key, t.agent_id"
)


async def cursors(connection: Database, watcher: str | None) -> tuple[Cursor, ...]:
    """Cursors as `Store.cursors` says."""
    if watcher is None:
        rows = await connection.fetch(_CURSORS.format(where=""))
    else:
        rows = await connection.fetch(_CURSORS.format(where="WHERE w.session_key = $1 "), watcher)
    return tuple(Pair.of(tuple(row)).cursor for row in rows)


_OPEN_OF_WATCHER = (
    "FROM cursors c JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id "
    "WHERE w.session_key = $2 AND c.notified > c.last_seen AND (t.session_key, t.agent_id, c.last_seen, c.notified) NOT IN "
    f"(SELECT * FROM {unnest('text text bigint bigint', start=3)}) AND (c.claimed_by IS NULL OR c.claimed_by <> ALL ({OTHERS}))"
)
_PENDING = f"SELECT {PAIR_COLUMNS}, count(*) OVER () {_OPEN_OF_WATCHER} ORDER BY c.notified, t.session_key, t.agent_id LIMIT $7"
_COUNT = f"SELECT count(*) {_OPEN_OF_WATCHER}"


_WATCHER = "SELECT EXISTS (SELECT 1 FROM sessions WHERE session_key = $1), (SELECT max(host) FROM heads WHERE session_key = $1)"


async def pending(connection: Database, gateway_id: int, watcher: str, limit: int | None, excluding: Collection[Shown]) -> PendingRead:
    """Opened notices as `Store.pending` says."""
    found, total = await open_notices(connection, gateway_id, watcher, limit, excluding)
    exists, host = await connection.fetchrow(_WATCHER, watcher) or (False, None)
    return PendingRead(exists, found, total, host not in (None, gateway_id))


async def open_notices(
    connection: Database, gateway_id: int, watcher: str, limit: int | None, excluding: Collection[Shown]
) -> tuple[tuple[Cursor, ...], int]:
    """The first of the opened notices that no other gateway has claimed, and how many there are."""
    shown = columns([(*shown.target, shown.last_seen, shown.notified) for shown in excluding], 4)
    rows = await connection.fetch(_PENDING, gateway_id, watcher, *shown, limit)
    if not rows:  # Only the rows say how many there are.
        return (), await connection.fetchval(_COUNT, gateway_id, watcher, *shown) if limit == 0 else 0
    return tuple(Pair.of(tuple(row)[:-1]).cursor for row in rows), rows[0][-1]


_NEWEST = (
    f"SELECT h.session_key, h.agent_id, {EVENT_COLUMNS} FROM events e JOIN heads h ON h.head_id = e.head_id "
    "{where}ORDER BY e.sequence DESC LIMIT $1"
)


async def events(connection: Database, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
    """The newest events as `Store.events` says."""
    if address is None:
        rows = await connection.fetch(_NEWEST.format(where=""), limit)
    else:
        rows = await connection.fetch(_NEWEST.format(where="WHERE h.session_key = $2 AND h.agent_id = $3 "), limit, *address)
    return tuple(to_event(Address(row[0], row[1]), tuple(row)[2:]) for row in reversed(rows))


_STATISTICS = (
    "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events), (SELECT count(*) FROM cursors), "
    "(SELECT count(*) FROM cursors WHERE notified > last_seen), "
    "(SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM event_sequence), (SELECT version FROM kizuki_schema), "
    "(SELECT sum(pg_total_relation_size(name::regclass))::bigint "
    "FROM unnest(ARRAY['heads', 'events', 'cursors', 'links', 'gateways', 'hints']) AS name)"
)


async def statistics(connection: Database) -> StoreStatistics:
    """Counts over the whole database."""
    row = await connection.fetchrow(_STATISTICS)
    return StoreStatistics(*(row or ()))
