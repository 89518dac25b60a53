"""Slices of housekeeping: pruning events, expiring cursors and the heads of deleted sessions. Several gateways may be at it at once."""

from __future__ import annotations

from ..records import Address
from ..writes import ExpireCursors, ExpireHeads, PruneEvents, Swept
from .folds import save_changed
from .line import Database
from .transaction import Transaction

_EVERYTHING = 2**63 - 1
_LAST_CURSOR = (
    "SELECT watcher_id, target_id FROM cursors WHERE (watcher_id, target_id) > ($1, $2) ORDER BY watcher_id, target_id LIMIT 1 OFFSET $3"
)
# A cursor that somebody is about to change is being renewed, or goes anyway.
_EXPIRE = (
    "DELETE FROM cursors d USING (SELECT watcher_id, target_id FROM cursors WHERE (watcher_id, target_id) > ($1, $2) "
    "AND (watcher_id, target_id) <= ($3, $4) AND renewed_at < $5 ORDER BY target_id, watcher_id FOR UPDATE SKIP LOCKED) v "
    "WHERE d.watcher_id = v.watcher_id AND d.target_id = v.target_id RETURNING 1"
)


async def expire_cursors(tx: Transaction, write: ExpireCursors) -> Swept:
    """Remove cursors that were not renewed in time (rule 3.5)."""
    after = write.after or (0, 0)
    row = await tx.connection.fetchrow(_LAST_CURSOR, *after, write.limit - 1)
    last = None if row is None else (row[0], row[1])
    tx.cursors_removed = True
    removed = await tx.connection.fetch(_EXPIRE, *after, *(last or (_EVERYTHING, _EVERYTHING)), write.before_ms)
    return Swept(len(removed), last)


_DOOMED = "sequence > $1 AND sequence <= $2 AND (sequence <= $3 OR recorded_at < $4) AND head_id = ANY($5::bigint[])"
_TOPS = f"SELECT head_id, max(sequence) FROM events WHERE {_DOOMED} GROUP BY head_id"
_PRUNE = f"WITH gone AS (DELETE FROM events WHERE {_DOOMED} RETURNING 1) SELECT count(*) FROM gone"


async def prune_events(tx: Transaction, write: PruneEvents) -> Swept:
    """Remove what is too old or too much; the heads' pruned marks are raised first (rule 6.1). Only of sessions whose heads are locked: an
    event that appears after those were looked up is left for the next sweep."""
    last = await _last_of_slice(tx.connection, write)
    folds = {fold.head_id: fold for fold in tx.folds.values()}
    surplus = await _surplus(tx.connection, write.keep_rows)
    bounds = (write.after, _EVERYTHING if last is None else last, surplus, write.before_ms, list(folds))
    for head_id, top in await tx.connection.fetch(_TOPS, *bounds):
        folds[head_id].pruned_max_sequence = max(folds[head_id].pruned_max_sequence, top)
        folds[head_id].head_changed = True
    await save_changed(tx.connection, folds.values())
    return Swept(await tx.connection.fetchval(_PRUNE, *bounds), last)


async def _last_of_slice(connection: Database, write: PruneEvents) -> int | None:
    sql = "SELECT sequence FROM events WHERE sequence > $1 ORDER BY sequence LIMIT 1 OFFSET $2"
    last: int | None = await connection.fetchval(sql, write.after, write.limit - 1)
    return last


async def _surplus(connection: Database, keep_rows: int) -> int:
    """The newest sequence beyond the rows to keep; 0 if there are no more rows than that."""
    first, last = await connection.fetchrow("SELECT min(sequence), max(sequence) FROM events") or (None, None)
    if first is None or last - first < keep_rows:  # cheap, and the usual case
        return 0
    found: int | None = await connection.fetchval("SELECT sequence FROM events ORDER BY sequence DESC LIMIT 1 OFFSET $1", keep_rows)
    return found or 0


_EXPIRE_HEADS = (
    "DELETE FROM heads h WHERE h.head_id = ANY($1::bigint[]) AND h.deleted_at < $2 "
    "AND NOT EXISTS (SELECT 1 FROM cursors c WHERE c.watcher_id = h.head_id) "
    "AND NOT EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = h.head_id) RETURNING h.session_key, h.agent_id"
)


async def expire_heads(tx: Transaction, write: ExpireHeads) -> Swept:
    """Forget sessions deleted long ago (rule 1.11), except where a cursor still refers to one."""
    candidates = [fold.head_id for fold in tx.folds.values() if fold.deleted_at is not None]
    removed = await tx.connection.fetch(_EXPIRE_HEADS, candidates, write.before_ms)
    for row in removed:
        del tx.folds[Address(*row)]
    return Swept(len(removed), 0 if len(removed) == write.limit else None)
