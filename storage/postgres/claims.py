"""Claims: which notices are in an open turn, over all gateways (rule 8.3). Each is in the row of the cursor whose notice it is on.

A claim is set and voided by statements that name the notice, under the lock of the watcher's head, so that no two gateways have one notice.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Address, Cursor, Opened, PendingRead, Shown
from ..writes import OpenOwed, Reclaim, Release, TakeNotices
from . import reads
from .arrays import columns, unnest
from .gateways import OTHERS, host, put_hints
from .openings import open_owed
from .transaction import Transaction


async def take(tx: Transaction, write: TakeNotices) -> PendingRead:
    """Claim what the turn is to show, and become the watcher's host."""
    await open_owed(tx, OpenOwed(write.now_ms, 0, write.watcher))
    found, total = await reads.open_notices(tx.connection, tx.gateway_id, write.watcher, write.limit, write.excluding)
    exists = any(fold.session is not None for address, fold in tx.folds.items() if address.session_key == write.watcher)
    if not tx.gateway_id or not exists:
        return PendingRead(exists, found, total, tx.hosts.get(write.watcher) is not None)
    await host(tx, write.watcher)
    claimed = set(await _claim(tx, write.watcher, [_shown(cursor) for cursor in found]))
    return PendingRead(exists, tuple(cursor for cursor in found if _shown(cursor) in claimed), total)


def _shown(cursor: Cursor) -> Shown:
    return Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified)


_NOTICES = f"{unnest('text text bigint bigint', start=3)} AS v(session_key, agent_id, last_seen, notified)"
_CLAIM = (
    f"WITH wanted AS (SELECT c.watcher_id, c.target_id, t.session_key, t.agent_id FROM {_NOTICES} "
    "JOIN heads t ON t.session_key = v.session_key AND t.agent_id = v.agent_id JOIN heads w ON w.session_key = $2 "
    "JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id WHERE c.last_seen = v.last_seen AND c.notified = v.notified "
    f"AND (c.claimed_by IS NULL OR c.claimed_by <> ALL ({OTHERS})) ORDER BY c.target_id, c.watcher_id FOR UPDATE OF c) "
    "UPDATE cursors c SET claimed_by = $1 FROM wanted v WHERE c.watcher_id = v.watcher_id AND c.target_id = v.target_id "
    "RETURNING v.session_key, v.agent_id, c.last_seen, c.notified"
)


async def _claim(tx: Transaction, watcher: str, notices: Sequence[Shown]) -> list[Shown]:
    """Claim those that are still there and nobody else's; which they are."""
    if not notices:
        return []
    rows = [(*shown.target, shown.last_seen, shown.notified) for shown in notices]
    claimed = await tx.connection.fetch(_CLAIM, tx.gateway_id, watcher, *columns(rows, 4))
    return [Shown(Address(row[0], row[1]), row[2], row[3]) for row in claimed]


_RELEASE = (
    "WITH held AS (SELECT c.watcher_id, c.target_id, t.session_key, t.agent_id FROM cursors c JOIN heads w ON w.head_id = c.watcher_id "
    "JOIN heads t ON t.head_id = c.target_id WHERE c.claimed_by = $1 AND w.session_key = $2 "
    f"AND (t.session_key, t.agent_id, c.last_seen, c.notified) NOT IN (SELECT * FROM {_NOTICES}) "
    "ORDER BY c.target_id, c.watcher_id FOR UPDATE OF c) "
    "UPDATE cursors c SET claimed_by = NULL FROM held v WHERE c.watcher_id = v.watcher_id AND c.target_id = v.target_id "
    "RETURNING v.session_key, v.agent_id"
)


async def release(tx: Transaction, write: Release) -> int:
    """Void the claims that no turn of this gateway holds any more; the watcher's host, if it is another, is hinted."""
    kept = [(*shown.target, shown.last_seen, shown.notified) for shown in write.kept]
    rows = await tx.connection.fetch(_RELEASE, tx.gateway_id, write.watcher, *columns(kept, 4))
    host_id = tx.hosts.get(write.watcher)
    if host_id is not None and host_id != tx.gateway_id:
        await put_hints(tx, [(host_id, Opened(write.watcher, Address(*row))) for row in rows], write.now_ms)
    return len(rows)


async def reclaim(tx: Transaction, write: Reclaim) -> tuple[Shown, ...]:
    """Claim anew what is still there and nobody else's."""
    return tuple(await _claim(tx, write.watcher, write.shown))
