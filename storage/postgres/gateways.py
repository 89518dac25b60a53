"""The gateways on one database: registering, looking at the others, hosting, hints, and taking over from a dead one (rule 8.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..records import Address, Hint, Opened
from ..writes import PAIRS_TOLD_MAX, TakeHints, TakenOver, TakeOver
from .arrays import columns, unnest
from .line import Database
from .transaction import Transaction

OTHERS = "ARRAY(SELECT g.gateway_id FROM gateways g WHERE NOT g.closed AND g.gateway_id <> $1)"
"""The other gateways whose claims count, where $1 is this one: those that have not said goodbye and have not been taken over."""

_HOST = "UPDATE heads SET host = $1 WHERE session_key = $2 AND session_id IS NOT NULL AND host IS DISTINCT FROM $1 RETURNING head_id"
_HOST_OF = "SELECT max(host) FROM heads WHERE session_key = $1"


async def host(tx: Transaction, watcher: str) -> None:
    """Become the host of a watcher whose heads are locked, as whoever has its turn does. Nothing is written where nothing changes."""
    if tx.hosts.get(watcher) != tx.gateway_id:
        await _note_moved(tx, [row[0] for row in await tx.connection.fetch(_HOST, tx.gateway_id, watcher)])
        tx.hosts[watcher] = tx.gateway_id


async def host_of(connection: Database, watcher: str) -> int | None:
    """The gateway that hosts the session."""
    found: int | None = await connection.fetchval(_HOST_OF, watcher)
    return found


async def is_elsewhere(connection: Database, gateway_id: int, watcher: str) -> bool:
    """Whether another gateway hosts the session."""
    return await host_of(connection, watcher) not in (None, gateway_id)


async def host_session(tx: Transaction, head_id: int) -> None:
    """Become the session's host; what it has pending is told if another gateway was, or was told of it while nobody was (rule 8.2)."""
    if not tx.gateway_id:
        return
    before: int | None = await tx.connection.fetchval("SELECT host FROM heads WHERE head_id = $1", head_id)
    if before == tx.gateway_id:
        return
    await tx.connection.execute("UPDATE heads SET host = $1 WHERE head_id = $2", tx.gateway_id, head_id)
    tx.hosts.clear()
    pending = await _note_moved(tx, [head_id])
    if before is not None or tx.has_others:
        tx.opened.extend(pending)


_PENDING = (
    "SELECT w.session_key, t.session_key, t.agent_id FROM unnest($2::bigint[]) AS v(watcher_id) JOIN heads w ON w.head_id = v.watcher_id "
    "CROSS JOIN LATERAL (SELECT c.target_id, c.notified FROM cursors c WHERE c.watcher_id = v.watcher_id AND c.notified > c.last_seen "
    f"AND (c.claimed_by IS NULL OR c.claimed_by <> ALL ({OTHERS})) ORDER BY c.notified LIMIT $3) c "
    "JOIN heads t ON t.head_id = c.target_id ORDER BY w.head_id, c.notified"
)


async def pending_of(connection: Database, gateway_id: int, head_ids: Sequence[int]) -> list[Opened]:
    """What these have pending as watchers, the first `PAIRS_TOLD_MAX` of each. Claims of gateways that are dead and not taken over yet are
    passed over: whoever takes over tells of those."""
    rows = await connection.fetch(_PENDING, gateway_id, head_ids, PAIRS_TOLD_MAX)
    return [Opened(row[0], Address(row[1], row[2])) for row in rows]


async def _note_moved(tx: Transaction, head_ids: Sequence[int]) -> list[Opened]:
    """Remember what has another host now, and what it has pending as far as can be seen; see `handover`."""
    pending = await pending_of(tx.connection, tx.gateway_id, head_ids) if head_ids else []
    tx.moved.update(head_ids)
    tx.pending_before.update(pending)
    return pending


_HOSTS = "SELECT session_key, max(host) FROM heads WHERE session_key = ANY($1::text[]) GROUP BY session_key"


async def hosts_of(connection: Database, watchers: Collection[str]) -> dict[str, int | None]:
    """The hosts of sessions, by key."""
    return {row[0]: row[1] for row in await connection.fetch(_HOSTS, list(watchers))}


async def told_here(tx: Transaction, now_ms: int) -> tuple[Opened, ...]:
    """Divide the pairs that the transaction opened: ours are given, the others become hints for their watchers' hosts."""
    pairs = tuple(dict.fromkeys(tx.opened))
    unknown = {pair.watcher for pair in pairs} - tx.hosts.keys()
    if unknown:
        tx.hosts.update(await hosts_of(tx.connection, unknown))
    hints = [(number, pair) for pair in pairs if (number := tx.hosts.get(pair.watcher)) not in (None, tx.gateway_id) and number]
    await put_hints(tx, hints, now_ms)
    hinted = {pair for _, pair in hints}
    return tuple(pair for pair in pairs if pair not in hinted)


_PUT_HINTS = (
    "INSERT INTO hints (gateway_id, watcher_id, target_id, opened_at) SELECT DISTINCT v.gateway_id, w.head_id, t.head_id, $5::bigint "
    f"FROM {unnest('integer text text text')} AS v(gateway_id, watcher, session_key, agent_id) JOIN heads w ON w.session_key = v.watcher "
    "JOIN heads t ON t.session_key = v.session_key AND t.agent_id = v.agent_id ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING"
)


async def put_hints(tx: Transaction, hints: Iterable[tuple[int, Opened]], now_ms: int) -> None:
    """Leave word for other gateways, once for each pair."""
    rows = [(gateway_id, watcher, *target) for gateway_id, (watcher, target) in hints]
    if rows:
        await tx.connection.execute(_PUT_HINTS, *columns(rows, 4), now_ms)
        tx.hinted.update(row[0] for row in rows)


_TAKE_OUT = (
    "WITH taken AS (DELETE FROM hints WHERE gateway_id = $1 RETURNING watcher_id, target_id, opened_at) "
    "SELECT w.session_key, t.session_key, t.agent_id, taken.opened_at, w.host FROM taken JOIN heads w ON w.head_id = taken.watcher_id "
    "JOIN heads t ON t.head_id = taken.target_id ORDER BY taken.opened_at"
)


async def take_hints(tx: Transaction, write: TakeHints) -> tuple[Hint, ...]:
    """Take out the hints for this gateway; those whose watcher has moved on follow it."""
    mine = []
    for watcher, key, agent, opened_at, host_id in await tx.connection.fetch(_TAKE_OUT, tx.gateway_id):
        pair = Opened(watcher, Address(key, agent))
        if host_id in (None, tx.gateway_id):
            mine.append(Hint(*pair, max(0, write.now_ms - opened_at)))
        else:
            await put_hints(tx, [(host_id, pair)], opened_at)
    return tuple(mine)


_VOID = (
    "WITH claimed AS (SELECT c.watcher_id, c.target_id FROM cursors c WHERE c.claimed_by = $1 "
    "ORDER BY c.target_id, c.watcher_id FOR UPDATE), "
    "voided AS (UPDATE cursors c SET claimed_by = NULL FROM claimed v WHERE c.watcher_id = v.watcher_id AND c.target_id = v.target_id "
    "RETURNING c.watcher_id, c.target_id) "
    "SELECT w.session_key, t.session_key, t.agent_id FROM voided JOIN heads w ON w.head_id = voided.watcher_id "
    "JOIN heads t ON t.head_id = voided.target_id"
)
_HOST_SLICE = (
    "UPDATE heads SET host = $1 WHERE host = $2 AND head_id IN "
    "(SELECT head_id FROM heads WHERE host = $2 ORDER BY head_id LIMIT $3) RETURNING head_id"
)


async def take_over(tx: Transaction, write: TakeOver) -> TakenOver:
    """Take over from a dead gateway: its claims and hints, and a slice of its sessions."""
    freed = await tx.connection.fetch(_VOID, write.dead)
    left_behind = await tx.connection.fetch(_TAKE_OUT, write.dead)
    sessions = [row[0] for row in await tx.connection.fetch(_HOST_SLICE, tx.gateway_id, write.dead, write.limit)]
    tx.hosts.clear()
    tx.opened.extend(await _note_moved(tx, sessions))
    # What it had claimed or not been told of is told to whoever hosts the watcher now.
    tx.opened.extend(Opened(row[0], Address(row[1], row[2])) for row in (*freed, *left_behind))
    finished = len(sessions) < write.limit
    if finished:
        await tx.connection.execute("DELETE FROM gateways WHERE gateway_id = $1", write.dead)
    return TakenOver(finished)
