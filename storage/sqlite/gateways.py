"""The gateways on one database: registering, looking at the others, hosting, hints, and taking over from a dead one (rule 8.2)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from ..records import Address, Hint, Neighbours, Opened
from ..writes import PAIRS_TOLD_MAX, TakeHints, TakenOver, TakeOver
from .presence import Presence
from .transaction import Transaction
from .values import run_rows, select_wanted


def register(connection: sqlite3.Connection, presence: Presence, now_ms: int) -> int:
    """Take a number and its lock, in a write transaction: nobody sees the row before the lock is held."""
    gateway_id = connection.execute("INSERT INTO gateways (started_at) VALUES (?) RETURNING gateway_id", (now_ms,)).fetchone()[0]
    presence.appear(gateway_id)
    return int(gateway_id)


def neighbours(connection: sqlite3.Connection, presence: Presence) -> Neighbours:
    """As `Store.neighbours` says."""
    me = presence.gateway_id
    registered = [row[0] for row in connection.execute("SELECT gateway_id FROM gateways ORDER BY gateway_id")]
    living = tuple(other for other in registered if other != me and presence.is_alive(other))
    dead = tuple(other for other in registered if other != me and other not in living)
    hinted = connection.execute("SELECT EXISTS (SELECT 1 FROM hints WHERE gateway_id = ?)", (me,)).fetchone()[0]
    return Neighbours(me in registered, living, dead, bool(hinted))


def living_others(connection: sqlite3.Connection, presence: Presence) -> list[int]:
    """The other gateways that are alive."""
    others = connection.execute("SELECT gateway_id FROM gateways WHERE gateway_id <> ?", (presence.gateway_id,))
    return [row[0] for row in others if presence.is_alive(row[0])]


_HOST = "UPDATE sessions SET host = :me WHERE session_key = :key AND host IS NOT :me"
_HOST_OF = "SELECT max(host) FROM sessions WHERE session_key = ?"


def host(tx: Transaction, watcher: str) -> None:
    """Become the watcher's host, as whoever has its turn does. Nothing is written where nothing changes."""
    tx.connection.execute(_HOST, {"me": tx.presence.gateway_id, "key": watcher})


def host_of(connection: sqlite3.Connection, watcher: str) -> int | None:
    """The gateway that hosts the session."""
    found: int | None = connection.execute(_HOST_OF, (watcher,)).fetchone()[0]
    return found


def is_elsewhere(connection: sqlite3.Connection, presence: Presence, watcher: str) -> bool:
    """Whether another gateway hosts the session."""
    return host_of(connection, watcher) not in (None, presence.gateway_id)


def host_address(tx: Transaction, address: Address) -> None:
    """Become the session's host; what it has pending is told if another gateway was, or was told of it while nobody was (rule 8.2)."""
    me = tx.presence.gateway_id
    before = tx.connection.execute("SELECT host, head_id FROM sessions WHERE session_key = ? AND agent_id = ?", address).fetchone()
    if not me or before is None or before[0] == me:
        return
    tx.connection.execute("UPDATE sessions SET host = ? WHERE head_id = ?", (me, before[1]))
    if before[0] is not None or has_others(tx):
        tx.opened.extend(_pending_of(tx, [before[1]]))


_PENDING = (
    "SELECT w.session_key, t.session_key, t.agent_id FROM cursors c INDEXED BY cursors_open CROSS JOIN heads w ON w.head_id = c.watcher_id "
    "CROSS JOIN heads t ON t.head_id = c.target_id WHERE c.watcher_id = ? AND c.notified > c.last_seen "
    "AND coalesce(c.claimed_by, 0) NOT IN (SELECT gateway_id FROM gateways WHERE gateway_id <> ?) ORDER BY c.notified LIMIT ?"
)


def _pending_of(tx: Transaction, head_ids: Iterable[int]) -> Iterator[Opened]:
    """What the watchers have pending. Notices claimed by a gateway that is dead and not taken over yet are passed over: whoever takes over
    tells of those."""
    for head_id in head_ids:
        rows = tx.connection.execute(_PENDING, (head_id, tx.presence.gateway_id, PAIRS_TOLD_MAX))
        yield from (Opened(row[0], Address(row[1], row[2])) for row in rows)


_ELSEWHERE = "SELECT s.session_key, s.host FROM wanted CROSS JOIN sessions s ON s.session_key = wanted.session_key WHERE s.host <> ?"


def told_here(tx: Transaction, now_ms: int) -> tuple[Opened, ...]:
    """Divide the pairs that the transaction opened, where there are other gateways: ours are given, the others become hints for their
    watchers' hosts."""
    pairs = tuple(tx.opened)
    watchers = [(watcher,) for watcher in dict.fromkeys(watcher for watcher, _ in pairs)]
    hosts: dict[str, int] = dict(select_wanted(tx.connection, "session_key", watchers, _ELSEWHERE, tx.presence.gateway_id))
    put_hints(tx, [(hosts[pair.watcher], pair) for pair in pairs if pair.watcher in hosts], now_ms)
    return tuple(pair for pair in pairs if pair.watcher not in hosts)


def has_others(tx: Transaction) -> bool:
    """Whether other gateways are registered, dead or alive."""
    sql = "SELECT EXISTS (SELECT 1 FROM gateways WHERE gateway_id <> ?)"
    return bool(tx.connection.execute(sql, (tx.presence.gateway_id,)).fetchone()[0])


_IDS = (
    "SELECT wanted.gateway_id, w.head_id, t.head_id FROM wanted CROSS JOIN heads w ON w.session_key = wanted.watcher "
    "CROSS JOIN heads t ON t.session_key = wanted.session_key AND t.agent_id = wanted.agent_id"
)


def put_hints(tx: Transaction, hints: Sequence[tuple[int, Opened]], now_ms: int) -> None:
    """Leave word for other gateways, once for each pair."""
    wanted = [(gateway_id, watcher, *target) for gateway_id, (watcher, target) in hints]
    rows = [(*ids, now_ms) for ids in select_wanted(tx.connection, "gateway_id, watcher, session_key, agent_id", wanted, _IDS)]
    run_rows(tx.connection, "INSERT OR IGNORE INTO hints (gateway_id, watcher_id, target_id, opened_at)", rows)


_HINTS = (
    "SELECT w.session_key, t.session_key, t.agent_id, h.opened_at, s.host FROM hints h CROSS JOIN heads w ON w.head_id = h.watcher_id "
    "CROSS JOIN heads t ON t.head_id = h.target_id LEFT JOIN sessions s ON s.head_id = h.watcher_id "
    "WHERE h.gateway_id = ? ORDER BY h.opened_at"
)


def take_hints(tx: Transaction, write: TakeHints) -> tuple[Hint, ...]:
    """Take out the hints for this gateway; those whose watcher has moved on follow it."""
    mine = []
    for watcher, key, agent, opened_at, host_id in _take_out(tx.connection, tx.presence.gateway_id):
        pair = Opened(watcher, Address(key, agent))
        if host_id in (None, tx.presence.gateway_id):
            mine.append(Hint(*pair, max(0, write.now_ms - opened_at)))
        else:
            put_hints(tx, [(host_id, pair)], opened_at)
    return tuple(mine)


def _take_out(connection: sqlite3.Connection, gateway_id: int) -> list[tuple[str, str, str, int, int | None]]:
    found = connection.execute(_HINTS, (gateway_id,)).fetchall()
    connection.execute("DELETE FROM hints WHERE gateway_id = ?", (gateway_id,))
    return found


_VOID = "UPDATE cursors SET claimed_by = NULL WHERE claimed_by = ? RETURNING watcher_id, target_id"
_KEYS = (
    "SELECT w.session_key, t.session_key, t.agent_id FROM wanted CROSS JOIN heads w ON w.head_id = wanted.watcher_id "
    "CROSS JOIN heads t ON t.head_id = wanted.target_id"
)


def take_over(tx: Transaction, write: TakeOver) -> TakenOver:
    """Take over from a dead gateway: its claims and hints, and a slice of its sessions."""
    told: list[Opened] = []
    freed = tx.connection.execute(_VOID, (write.dead,)).fetchall()
    left_behind = [row[:3] for row in _take_out(tx.connection, write.dead)]
    sessions = _host_slice(tx, write)
    told.extend(_pending_of(tx, sessions))
    # What it had claimed or not been told of is told to whoever hosts the watcher now.
    for watcher, key, agent in (*select_wanted(tx.connection, "watcher_id, target_id", freed, _KEYS), *left_behind):
        told.append(Opened(watcher, Address(key, agent)))
    tx.opened.extend(dict.fromkeys(told))
    finished = len(sessions) < write.limit
    if finished:
        tx.connection.execute("DELETE FROM gateways WHERE gateway_id = ?", (write.dead,))
        tx.presence.clear_away(write.dead)
    return TakenOver(finished)


_HOST_SLICE = (
    "UPDATE sessions SET host = ? WHERE head_id IN (SELECT head_id FROM sessions INDEXED BY sessions_host WHERE host = ? LIMIT ?) "
    "RETURNING head_id"
)


def _host_slice(tx: Transaction, write: TakeOver) -> list[int]:
    rows = tx.connection.execute(_HOST_SLICE, (tx.presence.gateway_id, write.dead, write.limit)).fetchall()
    return [row[0] for row in rows]
