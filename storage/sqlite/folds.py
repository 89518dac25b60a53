"""Reading folds, and writing what has changed of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from ..folds import Fold, SessionRow
from ..heads import Latest, Owed
from ..records import Address
from ..rows import Row
from .values import run_rows, select_wanted

_HEAD_COLUMNS = (
    "head_id, session_key, agent_id, last_sequence, pruned_max_sequence, recorded_at, event_count, latest_actor, latest_sequence, "
    "other_actor, other_sequence, owed_actor, owed_sequence, owed_other_sequence, deleted_at"
)
_SESSION_COLUMNS = "session_id, kind, parent, label, created_at, updated_at"

_SELECT = (
    f"SELECT {', '.join('h.' + name for name in _HEAD_COLUMNS.split(', '))}, "
    f"{', '.join('s.' + name for name in _SESSION_COLUMNS.split(', '))}, "
    "EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = h.head_id) FROM wanted CROSS JOIN heads h "
    "ON h.session_key = wanted.session_key AND h.agent_id = wanted.agent_id LEFT JOIN sessions s ON s.head_id = h.head_id"
)


def _overwriting(columns: str) -> str:
    return ", ".join(f"{name} = excluded.{name}" for name in columns.split(", "))


_PUT_HEAD = f"INSERT INTO heads ({_HEAD_COLUMNS})"
_ON_HEAD = f"ON CONFLICT (head_id) DO UPDATE SET {_overwriting(_HEAD_COLUMNS.removeprefix('head_id, session_key, agent_id, '))}"
# What an event moves is in no index, and to write that alone takes a third of the time.
_MOVE_HEAD = (
    "UPDATE heads SET last_sequence = v.column2, recorded_at = v.column3, event_count = v.column4, latest_actor = v.column5, "
    "latest_sequence = v.column6, other_actor = CASE WHEN v.column8 > 0 THEN v.column7 END, other_sequence = v.column8 FROM ("
)
_MOVE_HEAD_TO = ") v WHERE heads.head_id = v.column1"
# What a lone producer's event takes; without the table of values it takes a quarter of the time.
_MOVE_ONE_HEAD = f"{_MOVE_HEAD.removesuffix(' FROM (').replace('v.column', '?')} WHERE head_id = ?1"
_PUT_SESSION = f"INSERT INTO sessions (head_id, session_key, agent_id, {_SESSION_COLUMNS})"
_ON_SESSION = f"ON CONFLICT (head_id) DO UPDATE SET {_overwriting(_SESSION_COLUMNS)}"


def load(connection: sqlite3.Connection, addresses: Iterable[Address]) -> dict[Address, Fold]:
    """The folds of the addresses, also of those that the database does not know."""
    folds = {address: Fold(address) for address in addresses}
    for row in select_wanted(connection, "session_key, agent_id", list(folds), _SELECT):
        fold = _from_row(row)
        folds[fold.address] = fold
    return folds


def load_one(connection: sqlite3.Connection, address: Address) -> Fold:
    """The fold of one address."""
    return load(connection, [address])[address]


def _from_row(row: Row) -> Fold:
    owed = Owed(row[11], row[12], row[13]) if row[12] is not None else None
    session = SessionRow(*row[15:21]) if row[15] is not None else None
    address, latest, watched = Address(row[1], row[2]), Latest(*row[7:11]), row[21] == 1
    return Fold(address, row[0], row[3], row[4], row[5], row[6], latest, owed, row[14], session, watched=watched)


def save(connection: sqlite3.Connection, folds: Collection[Fold]) -> None:
    """Write what has changed."""
    save_heads(connection, [fold for fold in folds if fold.head_changed])
    _move_heads(connection, [fold for fold in folds if fold.head_moved])
    _save_sessions(connection, [fold for fold in folds if fold.session_changed])


def save_heads(connection: sqlite3.Connection, folds: Sequence[Fold]) -> None:
    """Write the heads, changed or not."""
    run_rows(connection, _PUT_HEAD, [_head_row(fold) for fold in folds], _ON_HEAD)
    for fold in folds:
        fold.head_changed = fold.head_moved = False


def _move_heads(connection: sqlite3.Connection, folds: Sequence[Fold]) -> None:
    rows = []
    for fold in folds:
        actor, sequence, other_actor, other_sequence = fold.latest
        rows.append(
            (fold.head_id, fold.last_sequence, fold.recorded_at, fold.event_count, actor, sequence, other_actor or "", other_sequence)
        )
    if len(rows) == 1:
        connection.execute(_MOVE_ONE_HEAD, rows[0])
    else:
        run_rows(connection, _MOVE_HEAD, rows, _MOVE_HEAD_TO)
    for fold in folds:
        fold.head_moved = False


def _head_row(fold: Fold) -> Row:
    owed = fold.owed if fold.owed is not None else (None, None, None)
    counts = (fold.last_sequence, fold.pruned_max_sequence, fold.recorded_at, fold.event_count)
    return (fold.head_id, *fold.address, *counts, *fold.latest, *owed, fold.deleted_at)


def _save_sessions(connection: sqlite3.Connection, folds: Sequence[Fold]) -> None:
    rows = [(fold.head_id, *fold.address, *fold.session) for fold in folds if fold.session is not None]
    run_rows(connection, _PUT_SESSION, rows, _ON_SESSION)
    for fold in folds:
        fold.session_changed = False
