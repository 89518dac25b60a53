"""The writes on a session's row: put, reset, delete."""

from __future__ import annotations

from ..folds import Fold, put_session, set_session, to_record
from ..records import SessionRecord
from ..writes import DeleteSession, PutSession, ResetSession
from .chain import delete_events
from .folds import load_one, save
from .gateways import host_address
from .transaction import Transaction


def put(tx: Transaction, write: PutSession) -> SessionRecord:
    """Create the row, or change what the draft gives."""
    fold = load_one(tx.connection, write.address)
    row = put_session(tx, fold, write.session, write.now_ms)
    save(tx.connection, [fold])
    if write.hosts:
        host_address(tx, write.address)
    return to_record(fold, row)


def reset(tx: Transaction, write: ResetSession) -> SessionRecord | None:
    """Give the session a new id, and let it forget what it watched (rule 3.5)."""
    fold = load_one(tx.connection, write.address)
    if fold.session is None:
        return None
    row = set_session(fold, fold.session._replace(session_id=tx.new_session_id(), updated_at=write.now_ms))
    save(tx.connection, [fold])
    tx.connection.execute("DELETE FROM cursors WHERE watcher_id = ?", (fold.head_id,))
    return to_record(fold, row)


def delete(tx: Transaction, write: DeleteSession) -> bool:
    """Remove everything but the head, which says from now on that all before it is gone (rule 1.11)."""
    fold = load_one(tx.connection, write.address)
    if not fold.head_id:
        return False
    _remove_all(tx, fold)
    if fold.session is None:
        return False
    fold.pruned_max_sequence, fold.owed, fold.deleted_at, fold.head_changed = fold.last_sequence, None, write.now_ms, True
    save(tx.connection, [fold])
    return True


def _remove_all(tx: Transaction, fold: Fold) -> None:
    delete_events(tx.connection, fold.head_id, fold.last_sequence)
    for table, column in (("sessions", "head_id"), ("links", "head_id"), ("cursors", "watcher_id"), ("cursors", "target_id")):
        tx.connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (fold.head_id,))
