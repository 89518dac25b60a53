"""The reads, each a function over one read transaction."""

from __future__ import annotations

import json
import sqlite3
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
from . import chain
from .folds import load_one
from .gateways import is_elsewhere, living_others
from .presence import Presence


def status(connection: sqlite3.Connection, address: Address, changes_since: int | None, limit: int) -> StatusRead | None:
    """One session as `Store.status` says."""
    fold = load_one(connection, address)
    if fold.session is None:
        return None
    rows: tuple[EventRow, ...] = ()
    if changes_since is not None:
        rows = chain.events_after(connection, fold.head_id, fold.last_sequence, changes_since, limit + 1)
    earliest = chain.earliest_sequence(connection, fold.head_id, fold.last_sequence, fold.pruned_max_sequence)
    return StatusRead(to_record(fold, fold.session), fold.pruned_max_sequence, earliest, rows[:limit], len(rows) > limit)


def session_exists(connection: sqlite3.Connection, session_key: str) -> bool:
    """Whether any agent has a session under this key."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM sessions WHERE session_key = ?)", (session_key,)).fetchone()[0])


_SESSIONS = (
    "SELECT s.session_key, s.agent_id, s.session_id, s.kind, s.parent, s.label, s.created_at, s.updated_at, h.recorded_at, h.last_sequence "
    "FROM sessions s {index} CROSS JOIN heads h ON h.head_id = s.head_id"
)
_BEHIND = "s.session_key >= ? AND (s.session_key > ? OR s.agent_id > ?)"


def sessions(
    connection: sqlite3.Connection,
    agent_id: str | None,
    kind: str | None,
    parent: str | None,
    limit: int,
    after: Address | None,
    with_total: bool,
) -> SessionsPage:
    """A page of sessions as `Store.sessions` says."""
    given = {name: value for name, value in (("agent_id", agent_id), ("kind", kind), ("parent", parent)) if value is not None}
    filters = [f"s.{name} = ?" for name in given]
    behind = () if after is None else (after.session_key, *after)
    where = _where(filters + ([] if after is None else [_BEHIND]))
    sql = f"{_SESSIONS.format(index=_index(given))}{where} ORDER BY s.session_key, s.agent_id LIMIT ?"
    rows = connection.execute(sql, (*given.values(), *behind, limit + 1)).fetchall()
    total = None
    if with_total:
        total = connection.execute(f"SELECT count(*) FROM sessions s{_where(filters)}", tuple(given.values())).fetchone()[0]
    return SessionsPage(tuple(map(_to_record, rows[:limit])), len(rows) > limit, total)


def _index(given: Collection[str]) -> str:
    """Which index to walk, since without statistics SQLite would guess: a parent's children are few, an agent's sessions may be all."""
    if "parent" in given:
        return "INDEXED BY sessions_parent"
    names = [name for name in ("agent", "kind") if name in given or f"{name}_id" in given]
    return f"INDEXED BY sessions_{'_'.join(names)}" if names else ""


def _where(terms: list[str]) -> str:
    return f" WHERE {' AND '.join(terms)}" if terms else ""


def _to_record(row: Row) -> SessionRecord:
    return record_of(Address(row[0], row[1]), SessionRow(*row[2:8]), row[8], row[9])


_CURSORS = (
    f"SELECT {PAIR_COLUMNS} FROM heads w CROSS JOIN cursors c ON c.watcher_id = w.head_id CROSS JOIN heads t ON t.head_id = c.target_id "
    "WHERE :watcher IS NULL OR w.session_key = :watcher ORDER BY w.session_key, t.session_key, t.agent_id"
)


def cursors(connection: sqlite3.Connection, watcher: str | None) -> tuple[Cursor, ...]:
    """Cursors as `Store.cursors` says."""
    sql = _CURSORS if watcher is None else _CURSORS.replace(":watcher IS NULL OR ", "")
    return tuple(Pair.of(row).cursor for row in connection.execute(sql, {"watcher": watcher}))


# A key that can watch names its agent, so it has one head; SQLite then reads the index in its order, and sorts nothing.
_OPEN_OF_WATCHER = (
    "FROM cursors c INDEXED BY cursors_open WHERE c.watcher_id = (SELECT head_id FROM heads WHERE session_key = :watcher) "
    "AND c.notified > c.last_seen AND (c.target_id, c.last_seen, c.notified) NOT IN ("
    "SELECT h.head_id, json_extract(x.value, '$[1]'), json_extract(x.value, '$[2]') FROM json_each(:excluding) x "
    "CROSS JOIN heads h ON h.session_key = json_extract(x.value, '$[0][0]') AND h.agent_id = json_extract(x.value, '$[0][1]')) "
    "AND coalesce(c.claimed_by, 0) NOT IN (SELECT value FROM json_each(:living))"
)
_PENDING = (
    f"WITH shown AS (SELECT c.watcher_id, c.target_id {_OPEN_OF_WATCHER} ORDER BY c.notified LIMIT :limit) "
    f"SELECT {PAIR_COLUMNS} FROM shown CROSS JOIN cursors c ON c.watcher_id = shown.watcher_id AND c.target_id = shown.target_id "
    "CROSS JOIN heads w ON w.head_id = c.watcher_id CROSS JOIN heads t ON t.head_id = c.target_id "
    "ORDER BY c.notified, t.session_key, t.agent_id"
)


def pending(
    connection: sqlite3.Connection,
    presence: Presence,
    watcher: str,
    limit: int | None,
    excluding: Collection[Shown],
    *,
    with_total: bool = True,
) -> PendingRead:
    """Opened notices as `Store.pending` says. No two of them share a notified position, since each is the sequence of an event."""
    living = json.dumps(living_others(connection, presence))
    wanted = {"watcher": watcher, "excluding": json.dumps(list(excluding)), "living": living, "limit": -1 if limit is None else limit}
    found = tuple(Pair.of(row).cursor for row in connection.execute(_PENDING, wanted))
    total = len(found)
    if with_total and total == limit:  # There may be more.
        total = connection.execute(f"SELECT count(*) {_OPEN_OF_WATCHER}", wanted).fetchone()[0]
    return PendingRead(session_exists(connection, watcher), found, total, is_elsewhere(connection, presence, watcher))


_NEWEST = (
    f"SELECT h.session_key, h.agent_id, {EVENT_COLUMNS} FROM events e CROSS JOIN heads h ON h.head_id = e.head_id "
    "ORDER BY e.sequence DESC LIMIT ?"
)


def events(connection: sqlite3.Connection, address: Address | None, limit: int) -> tuple[StateEvent, ...]:
    """The newest events as `Store.events` says."""
    if address is not None:
        return chain.newest_events(connection, address, load_one(connection, address).last_sequence, limit)
    rows = connection.execute(_NEWEST, (limit,)).fetchall()
    return tuple(to_event(Address(row[0], row[1]), row[2:]) for row in reversed(rows))


_STATISTICS = (
    "SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM events), (SELECT count(*) FROM cursors), "
    "(SELECT count(*) FROM cursors WHERE notified > last_seen), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0), "
    "(SELECT user_version FROM pragma_user_version), "
    "(SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size)"
)


def statistics(connection: sqlite3.Connection) -> StoreStatistics:
    """Counts over the whole database."""
    return StoreStatistics(*connection.execute(_STATISTICS).fetchone())
