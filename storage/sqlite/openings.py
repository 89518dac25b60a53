"""Opening notices: with the event as far as the transaction's budget reaches, what is left in slices later.

What is left is kept in the target's head as owed, in the event's own transaction, so that a crash loses none of it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..folds import Fold
from ..heads import NOBODY, Latest, Owed, first_material, latest_by_another, opened_at_once, openings_at_once, owe, owed_pin
from ..pairs import OPENABLE, PAIR_COLUMNS, Pair, PairWrite
from ..records import Address, Opened
from ..rows import Row
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
    limit = openings_at_once(len(touched), tx.openings_left)
    clean = tx.connection.execute(_CLEAN, (json.dumps(list(touched)), limit + 1)).fetchall()
    opening = clean[: opened_at_once(len(clean), limit)]
    tx.openings_left -= len(opening)
    _open_clean(tx, touched, opening, now_ms)
    if len(clean) <= limit:
        return False
    _owe_all(tx.connection, list(touched.values()))
    return True


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
    latest: Latest
    owed: Owed


_DEBTOR_COLUMNS = (
    "t.head_id, t.session_key, t.agent_id, t.last_sequence, t.latest_actor, t.latest_sequence, t.other_actor, t.other_sequence, "
    "t.owed_actor, t.owed_sequence, t.owed_other_sequence"
)


def _debtor(row: Row) -> _Debtor:
    return _Debtor(row[0], Address(row[1], row[2]), row[3], Latest(*row[4:8]), Owed(*row[8:11]))


_CleanPair = tuple[int, int, str]
"""A clean pair of a known target: the watcher's head, last seen, and the watcher."""


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


_DEBTORS = f"SELECT {_DEBTOR_COLUMNS} FROM heads t INDEXED BY heads_owed WHERE t.owed_sequence IS NOT NULL ORDER BY t.owed_sequence LIMIT ?"


def _debtors(connection: sqlite3.Connection, limit: int) -> list[_Debtor]:
    return [_debtor(row) for row in connection.execute(_DEBTORS, (limit,))]


_SLICE = (
    "SELECT c.watcher_id, c.last_seen, w.session_key FROM heads t CROSS JOIN cursors c INDEXED BY cursors_clean "
    "ON c.target_id = t.head_id AND (c.notified <= c.last_seen) = 1 CROSS JOIN heads w ON w.head_id = c.watcher_id "
    f"WHERE t.head_id = ? AND {OPENABLE} LIMIT ?"
)


def _open_slice(tx: Transaction, debtor: _Debtor, limit: int, now_ms: int) -> int:
    clean = tx.connection.execute(_SLICE, (debtor.head_id, limit + 1)).fetchall()
    _open_pairs(tx, debtor, clean[:limit], now_ms)
    if len(clean) <= limit:
        tx.connection.execute(
            "UPDATE heads SET owed_actor = NULL, owed_sequence = NULL, owed_other_sequence = NULL WHERE head_id = ?", (debtor.head_id,)
        )
    return min(len(clean), limit)


_OWED_TO = (
    "FROM heads t INDEXED BY heads_owed CROSS JOIN heads w ON w.session_key = ? "
    "CROSS JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id "
    f"WHERE t.owed_sequence IS NOT NULL AND {OPENABLE}"
)


def owes(connection: sqlite3.Connection, watcher: str) -> bool:
    """Whether openings are owed to the watcher. As a rule no head owes anything, and the index is empty."""
    return bool(connection.execute(f"SELECT EXISTS (SELECT 1 {_OWED_TO})", (watcher,)).fetchone()[0])


def owed_pairs(connection: sqlite3.Connection, watcher: str) -> list[Pair]:
    """The watcher's pairs to which an opening is owed."""
    return [Pair.of(row) for row in connection.execute(f"SELECT {PAIR_COLUMNS} {_OWED_TO}", (watcher,))]


def _open_owed_to(tx: Transaction, watcher: str, now_ms: int) -> int:
    rows = tx.connection.execute(f"SELECT {_DEBTOR_COLUMNS}, c.watcher_id, c.last_seen {_OWED_TO}", (watcher,)).fetchall()
    for row in rows:
        _open_pairs(tx, _debtor(row), [(row[11], row[12], watcher)], now_ms)
    return len(rows)


def _open_pairs(tx: Transaction, debtor: _Debtor, clean: Sequence[_CleanPair], now_ms: int) -> None:
    """There may be a hundred thousand of them, so nothing is made of a pair but its row and what is told of it."""
    head_id, address, _, _, owed = debtor
    writes = []
    for watcher_id, last_seen, watcher in clean:
        pin = owed_pin(owed, watcher, last_seen) or _later_pin(tx.connection, debtor, watcher, last_seen)
        writes.append(PairWrite(watcher_id, head_id, last_seen, pin, now_ms))
        tx.opened.append(Opened(watcher, address))
    put_pairs(tx.connection, writes)


def _later_pin(connection: sqlite3.Connection, debtor: _Debtor, watcher: str, last_seen: int) -> int:
    """The first material event after last seen; where it is pruned, the last one, which is never gone from the head."""
    first = _walk_to_first_material(connection, debtor.last_sequence, watcher, last_seen)
    return first or latest_by_another(debtor.latest, watcher)


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
