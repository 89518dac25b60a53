"""Opening notices: with the event as far as the transaction's budget reaches, what is left in slices later.

What is left is kept in the target's head as owed, in the event's own transaction, so that a crash loses none of it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..folds import Fold
from ..heads import NOBODY, Owed, first_material, owe, owed_pin
from ..pairs import OPENABLE, PAIR_COLUMNS, Pair, PairWrite, write_of
from ..positions import open_at
from ..records import Address, Opened
from ..writes import OpenOwed
from .folds import save_heads
from .pairs import put_pairs
from .transaction import Transaction

_CLEAN = (
    "SELECT c.target_id, c.watcher_id, c.last_seen, w.session_key FROM json_each(?) wanted CROSS JOIN cursors c INDEXED BY cursors_clean "
    "ON c.target_id = wanted.value AND (c.notified <= c.last_seen) = 1 CROSS JOIN heads w ON w.head_id = c.watcher_id LIMIT ?"
)


def open_fresh(tx: Transaction, folds: Iterable[Fold], now_ms: int) -> bool:
    """Open the notices that the folds' fresh events call for (rule 4.3), or owe them; gives whether some are owed."""
    touched = {fold.head_id: fold for fold in folds if fold.fresh and fold.owed is None and not fold.all_open}
    if not touched:
        return False
    clean = tx.connection.execute(_CLEAN, (json.dumps(list(touched)), tx.openings_left + 1)).fetchall()
    _open_clean(tx, touched, clean[: tx.openings_left], now_ms)
    if len(clean) > tx.openings_left:
        tx.openings_left = 0
        _owe_all(tx.connection, list(touched.values()))
        return True
    tx.openings_left -= len(clean)
    return False


def _open_clean(tx: Transaction, touched: dict[int, Fold], clean: Sequence[tuple[int, int, int, str]], now_ms: int) -> None:
    writes = []
    for fold in touched.values():
        fold.all_open = True
    for target_id, watcher_id, last_seen, watcher in clean:
        fold = touched[target_id]
        pin = first_material(fold.fresh, watcher, last_seen)
        if pin is None:
            fold.all_open = False
        else:
            writes.append(PairWrite(watcher_id, target_id, last_seen, pin, now_ms))
            tx.opened.append(Opened(watcher, fold.address))
    put_pairs(tx.connection, writes)


def _owe_all(connection: sqlite3.Connection, folds: Sequence[Fold]) -> None:
    """All of them, also those that were done in time: `open_owed` finds nothing there and clears them."""
    for fold in folds:
        fold.all_open = False
        for event in fold.fresh:
            fold.owed = owe(fold.owed, event)
    save_heads(connection, folds)


class _Debtor(NamedTuple):
    head_id: int
    address: Address
    last_sequence: int
    owed: Owed


_DEBTORS = (
    "SELECT head_id, session_key, agent_id, last_sequence, owed_actor, owed_sequence, owed_other_sequence "
    "FROM heads INDEXED BY heads_owed WHERE owed_sequence IS NOT NULL"
)


def open_owed(tx: Transaction, write: OpenOwed) -> int:
    """Open what is owed: a slice of it, or all that one watcher is waiting for."""
    if write.watcher is not None:
        return _open_owed_to(tx, write.watcher, write.now_ms)
    opened = 0
    for debtor in _debtors(tx.connection, write.limit):
        opened += _open_slice(tx, debtor, write.limit - opened, write.now_ms)
        if opened >= write.limit:
            break
    return opened


def _debtors(connection: sqlite3.Connection, limit: int) -> list[_Debtor]:
    rows = connection.execute(f"{_DEBTORS} ORDER BY owed_sequence LIMIT ?", (limit,)).fetchall()
    return [_Debtor(row[0], Address(row[1], row[2]), row[3], Owed(*row[4:7])) for row in rows]


_SLICE = (
    f"SELECT {PAIR_COLUMNS} FROM heads t CROSS JOIN cursors c INDEXED BY cursors_clean ON c.target_id = t.head_id "
    "AND (c.notified <= c.last_seen) = 1 CROSS JOIN heads w ON w.head_id = c.watcher_id "
    f"WHERE t.head_id = ? AND {OPENABLE} LIMIT ?"
)


def _open_slice(tx: Transaction, debtor: _Debtor, limit: int, now_ms: int) -> int:
    pairs = [Pair.of(row) for row in tx.connection.execute(_SLICE, (debtor.head_id, limit + 1))]
    _open_pairs(tx, [(debtor, pair) for pair in pairs[:limit]], now_ms)
    if len(pairs) <= limit:
        tx.connection.execute(
            "UPDATE heads SET owed_actor = NULL, owed_sequence = NULL, owed_other_sequence = NULL WHERE head_id = ?", (debtor.head_id,)
        )
    return min(len(pairs), limit)


_OWED_TO = (
    f"SELECT {PAIR_COLUMNS}, t.last_sequence, t.owed_actor, t.owed_sequence, t.owed_other_sequence FROM heads t INDEXED BY heads_owed "
    "CROSS JOIN heads w ON w.session_key = ? CROSS JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id "
    f"WHERE t.owed_sequence IS NOT NULL AND {OPENABLE}"
)


def _owed_to(connection: sqlite3.Connection, watcher: str) -> list[tuple[_Debtor, Pair]]:
    found = []
    for row in connection.execute(_OWED_TO, (watcher,)):
        pair = Pair.of(row[:12])
        found.append((_Debtor(pair.target_id, pair.target, row[12], Owed(*row[13:16])), pair))
    return found


def owed_pairs(connection: sqlite3.Connection, watcher: str) -> list[Pair]:
    """The watcher's pairs to which an opening is owed."""
    return [pair for _, pair in _owed_to(connection, watcher)]


def _open_owed_to(tx: Transaction, watcher: str, now_ms: int) -> int:
    found = _owed_to(tx.connection, watcher)
    _open_pairs(tx, found, now_ms)
    return len(found)


def _open_pairs(tx: Transaction, owed: Sequence[tuple[_Debtor, Pair]], now_ms: int) -> None:
    put_pairs(tx.connection, [write_of(pair, open_at(pair.positions, _pin(tx.connection, debtor, pair)), now_ms) for debtor, pair in owed])
    tx.opened.extend(pair.opened for _, pair in owed)


def _pin(connection: sqlite3.Connection, debtor: _Debtor, pair: Pair) -> int:
    """The first material event after last seen; where it is pruned, the last one, which is never gone from the head."""
    last_seen = pair.positions.last_seen
    known = owed_pin(debtor.owed, pair.watcher, last_seen)
    if known is not None:
        return known
    return _walk_to_first_material(connection, debtor.last_sequence, pair.watcher, last_seen) or pair.positions.material


_WALK = f"""
WITH RECURSIVE chain(sequence, previous, material) AS (
    SELECT e.sequence, e.previous, e.notifies AND (e.actor_type <> 'agent' OR coalesce(e.actor_id, '{NOBODY}') <> :watcher)
    FROM events e WHERE e.sequence = :start
    UNION ALL
    SELECT e.sequence, e.previous, e.notifies AND (e.actor_type <> 'agent' OR coalesce(e.actor_id, '{NOBODY}') <> :watcher)
    FROM chain CROSS JOIN events e ON e.sequence = chain.previous WHERE chain.previous > :after)
SELECT min(sequence) FROM chain WHERE material"""


def _walk_to_first_material(connection: sqlite3.Connection, last_sequence: int, watcher: str, last_seen: int) -> int | None:
    """Rare: only for a pair that was opened, acknowledged and touched again, all while its target owed openings to others."""
    found: int | None = connection.execute(_WALK, {"start": last_sequence, "after": last_seen, "watcher": watcher}).fetchone()[0]
    return found
