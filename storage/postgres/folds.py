"""Reading folds, and writing what has changed of them. Here a head and its session are one row."""

from __future__ import annotations

from collections.abc import Iterable

from ..folds import Fold, SessionRow
from ..heads import Latest, Owed
from ..records import Address
from ..rows import Row
from .arrays import columns, unnest
from .line import Database

FOLD_COLUMNS = (
    "head_id, session_key, agent_id, last_sequence, pruned_max_sequence, recorded_at, latest_actor, latest_sequence, other_actor, "
    "other_sequence, owed_actor, owed_sequence, owed_other_sequence, deleted_at, session_id, kind, parent, label, created_at, updated_at"
)
"""What `to_fold` takes."""


def to_fold(row: Row) -> Fold:
    """The fold in a row of `FOLD_COLUMNS`."""
    owed = Owed(row[10], row[11], row[12]) if row[11] is not None else None
    session = SessionRow(*row[14:20]) if row[14] is not None else None
    return Fold(
        Address(row[1], row[2]), row[0], row[3], row[4], row[5], latest=Latest(*row[6:10]), owed=owed, deleted_at=row[13], session=session
    )


async def load(connection: Database, address: Address) -> Fold:
    """The fold of one address, without locking anything."""
    row = await connection.fetchrow(f"SELECT {FOLD_COLUMNS} FROM heads WHERE session_key = $1 AND agent_id = $2", *address)
    return Fold(address) if row is None else to_fold(tuple(row))


_MOVED = "recorded_at last_sequence latest_actor latest_sequence other_actor other_sequence"
_MOVED_TYPES = "bigint bigint text bigint text bigint"
_CHANGED = f"{_MOVED} pruned_max_sequence owed_actor owed_sequence owed_other_sequence deleted_at"
_CHANGED_TYPES = f"{_MOVED_TYPES} bigint text bigint bigint bigint"
_SESSION = "session_id kind parent label created_at updated_at"
_SESSION_TYPES = "text text text text bigint bigint"


MOVED_COUNT = len(_MOVED.split()) + 1
"""How many parameters `move_heads` has."""


def _update(names: str, types: str, start: int = 1) -> str:
    moves = ", ".join(f"{name} = v.{name}" for name in names.split())
    rows = f"{unnest(f'bigint {types}', start)} AS v(head_id, {', '.join(names.split())})"
    return f"UPDATE heads h SET {moves} FROM {rows} WHERE h.head_id = v.head_id"


def move_heads(start: int) -> str:
    """The statement that writes what events have moved: rows of `moved_row` as columns, in the parameters from `start` on."""
    return _update(_MOVED, _MOVED_TYPES, start)


def moved_row(fold: Fold) -> Row:
    """What events move."""
    return (fold.head_id, fold.recorded_at, fold.last_sequence, *fold.latest)


_CHANGE = _update(f"{_CHANGED} {_SESSION}", f"{_CHANGED_TYPES} {_SESSION_TYPES}")


async def save_changed(connection: Database, folds: Iterable[Fold]) -> None:
    """Write the folds of which more has changed than events move."""
    changed = [fold for fold in folds if fold.head_changed or fold.session_changed]
    if changed:
        rows = [(*moved_row(fold), *_changed(fold), *_session(fold)) for fold in changed]
        await connection.execute(_CHANGE, *columns(rows, len(rows[0])))
    for fold in changed:
        fold.head_changed = fold.head_moved = fold.session_changed = False


def _changed(fold: Fold) -> Row:
    owed = fold.owed if fold.owed is not None else (None, None, None)
    return (fold.pruned_max_sequence, *owed, fold.deleted_at)


def _session(fold: Fold) -> Row:
    return (None,) * 6 if fold.session is None else fold.session
