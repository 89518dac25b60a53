"""Opening notices: with the event as far as the transaction's budget reaches, what is left in slices later.

What is left is kept in the target's head as owed, in the event's own transaction, so that a crash loses none of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..folds import Fold
from ..heads import NOBODY, first_material, opened_at_once, openings_at_once, owe, owed_pin
from ..pairs import OPENABLE, PAIR_COLUMNS, Pair, PairWrite, write_of
from ..positions import open_at
from ..records import Opened
from ..writes import OpenOwed
from .folds import save_changed
from .line import Database
from .pairs import move_pairs
from .transaction import Transaction


def clean_pairs(start: int) -> str:
    """The query for the clean pairs of targets, whose ids are the parameter `start`, at most as many as the one after it says."""
    return (
        "SELECT c.target_id, c.watcher_id, c.last_seen, w.session_key, w.host FROM cursors c JOIN heads w ON w.head_id = c.watcher_id "
        f"WHERE c.target_id = ANY(${start}::bigint[]) AND c.notified <= c.last_seen "
        f"ORDER BY c.target_id, c.watcher_id LIMIT ${start + 1} FOR UPDATE OF c"
    )


def opening_folds(folds: Iterable[Fold]) -> list[Fold]:
    """Those whose fresh events may open notices: not where openings are owed already, which they would overtake."""
    return [fold for fold in folds if fold.fresh and fold.owed is None]


async def open_fresh(tx: Transaction, folds: Sequence[Fold], clean: Sequence[Iterable[Any]], now_ms: int) -> None:
    """Open the notices that the folds' fresh events call for (rule 4.3) on the clean pairs, or owe them."""
    limit = openings_at_once(len(folds), tx.openings_left)
    opening = clean[: opened_at_once(len(clean), limit)]
    tx.openings_left -= len(opening)
    await _open_clean(tx, {fold.head_id: fold for fold in folds}, opening, now_ms)
    if len(clean) > limit:
        await _owe_all(tx.connection, folds)


async def _open_clean(tx: Transaction, touched: dict[int, Fold], clean: Sequence[Iterable[Any]], now_ms: int) -> None:
    writes = []
    for target_id, watcher_id, last_seen, watcher, host in clean:
        fold = touched[target_id]
        pin = first_material(fold.fresh, watcher, last_seen)
        if pin is not None:
            writes.append(PairWrite(watcher_id, target_id, last_seen, pin, now_ms))
            tx.opened.append(Opened(watcher, fold.address))
            tx.hosts.setdefault(watcher, host)
    await move_pairs(tx.connection, writes)


async def _owe_all(connection: Database, folds: Sequence[Fold]) -> None:
    """All of them, also those that were done in time: `open_owed` finds nothing there and clears them."""
    for fold in folds:
        for event in fold.fresh:
            fold.owed = owe(fold.owed, event)
        fold.head_changed = True
    await save_changed(connection, folds)


class Debt(NamedTuple):
    """A pair, and the head that owes its opening."""

    debtor: Fold
    pair: Pair


async def open_owed(tx: Transaction, write: OpenOwed) -> int:
    """Open what is owed: a slice of it, or all that one watcher is waiting for."""
    if not any(fold.owed is not None for fold in tx.folds.values()):
        return 0
    if write.watcher is not None:
        debts = await _owed_to(tx, write.watcher)
        await _open(tx, debts, write.now_ms)
        return len(debts)
    debtors = sorted((fold for fold in tx.folds.values() if fold.owed is not None), key=_owed_sequence)
    opened = 0
    for debtor in debtors:
        opened += await _open_slice(tx, debtor, write.limit - opened, write.now_ms)
        if opened >= write.limit:
            break
    return opened


def _owed_sequence(fold: Fold) -> int:
    return fold.owed.sequence if fold.owed is not None else 0


_SLICE = (
    f"SELECT {PAIR_COLUMNS} FROM heads t JOIN cursors c ON c.target_id = t.head_id JOIN heads w ON w.head_id = c.watcher_id "
    f"WHERE t.head_id = $1 AND {OPENABLE} ORDER BY c.target_id, c.watcher_id LIMIT $2 FOR UPDATE OF c"
)


async def _open_slice(tx: Transaction, debtor: Fold, limit: int, now_ms: int) -> int:
    pairs = [Pair.of(tuple(row)) for row in await tx.connection.fetch(_SLICE, debtor.head_id, limit + 1)]
    await _open(tx, [Debt(debtor, pair) for pair in pairs[:limit]], now_ms)
    if len(pairs) <= limit:
        debtor.owed, debtor.head_changed = None, True
        await save_changed(tx.connection, [debtor])
    return min(len(pairs), limit)


_OF_DEBTORS = (
    "FROM heads w JOIN cursors c ON c.watcher_id = w.head_id JOIN heads t ON t.head_id = c.target_id "
    f"WHERE w.session_key = $1 AND t.owed_sequence IS NOT NULL AND {OPENABLE}"
)
_OWED_TO = f"SELECT {PAIR_COLUMNS} {_OF_DEBTORS} ORDER BY c.target_id, c.watcher_id FOR UPDATE OF c"


async def owes(connection: Database, watcher: str) -> bool:
    """Whether openings are owed to the watcher."""
    return bool(await connection.fetchval(f"SELECT EXISTS (SELECT 1 {_OF_DEBTORS})", watcher))


async def owed_pairs(tx: Transaction, watcher: str) -> list[Pair]:
    """The watcher's pairs to which an opening is owed."""
    return [pair for _, pair in await _owed_to(tx, watcher)]


async def _owed_to(tx: Transaction, watcher: str) -> list[Debt]:
    pairs = [Pair.of(tuple(row)) for row in await tx.connection.fetch(_OWED_TO, watcher)]
    # A target that began to owe after the locks were looked up is left for the next time.
    return [Debt(tx.folds[pair.target], pair) for pair in pairs if pair.target in tx.folds]


async def _open(tx: Transaction, debts: Sequence[Debt], now_ms: int) -> None:
    writes = [write_of(pair, open_at(pair.positions, await _pin(tx.connection, debtor, pair)), now_ms) for debtor, pair in debts]
    await move_pairs(tx.connection, writes)
    tx.opened.extend(pair.opened for _, pair in debts)


async def _pin(connection: Database, debtor: Fold, pair: Pair) -> int:
    """The first material event after last seen; where it is pruned, the last one, which is never gone from the head."""
    last_seen = pair.positions.last_seen
    known = None if debtor.owed is None else owed_pin(debtor.owed, pair.watcher, last_seen)
    if known is not None:
        return known
    found: int | None = await connection.fetchval(_FIRST_MATERIAL, debtor.head_id, last_seen, pair.watcher)
    return found or pair.positions.material


_FIRST_MATERIAL = (
    "SELECT min(sequence) FROM events WHERE head_id = $1 AND sequence > $2 AND notifies "
    f"AND (actor_type <> 'agent' OR coalesce(actor_id, '{NOBODY}') <> $3)"
)
"""Rarely asked: only for a pair that was opened, acknowledged and touched again, all while its target owed openings to others."""
