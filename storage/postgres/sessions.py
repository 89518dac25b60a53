"""The writes on a session's row: put, reset, delete."""

from __future__ import annotations

from ..folds import Fold, put_session, set_session, to_record
from ..records import SessionRecord
from ..writes import DeleteSession, PutSession, ResetSession
from .folds import save_changed
from .gateways import host_session
from .transaction import Transaction


async def put(tx: Transaction, write: PutSession) -> SessionRecord:
    """Create the row, or change what the draft gives."""
    fold = tx.folds[write.address]
    row = put_session(tx, fold, write.session, write.now_ms)
    await save_changed(tx.connection, [fold])
    if write.hosts:
        await host_session(tx, fold.head_id)
    return to_record(fold, row)


_FORGET = (
    "DELETE FROM cursors d USING (SELECT c.watcher_id, c.target_id FROM cursors c WHERE {whose} "
    "ORDER BY c.target_id, c.watcher_id FOR UPDATE) v WHERE d.watcher_id = v.watcher_id AND d.target_id = v.target_id"
)
_FORGET_WATCHED = _FORGET.format(whose="c.watcher_id = $1")
_FORGET_ALL = _FORGET.format(whose="c.watcher_id = $1 OR c.target_id = $1")


async def reset(tx: Transaction, write: ResetSession) -> SessionRecord | None:
    """Give the session a new id, and let it forget what it watched (rule 3.5)."""
    fold = tx.folds.get(write.address)
    if fold is None or fold.session is None:
        return None
    row = set_session(fold, fold.session._replace(session_id=tx.new_session_id(), updated_at=write.now_ms))
    await save_changed(tx.connection, [fold])
    await tx.connection.execute(_FORGET_WATCHED, fold.head_id)
    tx.cursors_removed = True
    return to_record(fold, row)


async def delete(tx: Transaction, write: DeleteSession) -> bool:
    """Remove everything but the head, which says from now on that all before it is gone (rule 1.11)."""
    fold = tx.folds.get(write.address)
    if fold is None:
        return False
    await _remove_all(tx, fold)
    if fold.session is None:
        return False
    fold.pruned_max_sequence, fold.owed, fold.deleted_at = fold.last_sequence, None, write.now_ms
    fold.session, fold.session_changed, fold.watched = None, True, False
    await save_changed(tx.connection, [fold])
    return True


async def _remove_all(tx: Transaction, fold: Fold) -> None:
    await tx.connection.execute("DELETE FROM events WHERE head_id = $1", fold.head_id)
    await tx.connection.execute("DELETE FROM links WHERE head_id = $1", fold.head_id)
    await tx.connection.execute("UPDATE heads SET host = NULL WHERE head_id = $1 AND host IS NOT NULL", fold.head_id)
    await tx.connection.execute(_FORGET_ALL, fold.head_id)
    tx.cursors_removed = True
    tx.hosts.clear()
