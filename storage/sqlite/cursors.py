"""The writes on cursors: watch, unwatch, acknowledge, replay."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from ..folds import intern, put_session
from ..pairs import LATEST_BY_ANOTHER, PAIR_COLUMNS, Pair, PairWrite, write_of
from ..positions import acknowledge, is_open, replay, seed
from ..records import Address, Opened, Shown
from ..rows import Row
from ..writes import Acknowledge, Acknowledged, Replay, Replayed, Unwatch, Watch
from .folds import load, save
from .gateways import is_elsewhere, living_others
from .openings import owed_pairs
from .pairs import put_pairs
from .transaction import Transaction
from .values import select_wanted


def watch(tx: Transaction, write: Watch) -> bool:
    """Seed a cursor at the target's state version, or renew the one that is there (rule 3.2)."""
    folds = load(tx.connection, [write.watcher, write.target])
    watcher, target = folds[write.watcher], folds[write.target]
    put_session(tx, watcher, write.watcher_session, write.now_ms)
    put_session(tx, target, write.target_session, write.now_ms)
    save(tx.connection, folds.values())
    seen = seed(target.last_sequence)
    tx.connection.execute(
        "INSERT INTO cursors (watcher_id, target_id, last_seen, notified, renewed_at) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (watcher_id, target_id) DO UPDATE SET renewed_at = excluded.renewed_at",
        PairWrite(intern(tx, watcher), intern(tx, target), seen.last_seen, seen.notified, write.now_ms),
    )
    return True


def unwatch(tx: Transaction, write: Unwatch) -> bool:
    """Remove a cursor (rule 3.4)."""
    removed = tx.connection.execute(
        "DELETE FROM cursors WHERE target_id = (SELECT head_id FROM heads WHERE session_key = ? AND agent_id = ?) "
        "AND watcher_id IN (SELECT head_id FROM heads WHERE session_key = ?)",
        (*write.target, write.watcher),
    )
    return removed.rowcount > 0


_SHOWN = (
    f"SELECT {PAIR_COLUMNS} FROM wanted CROSS JOIN heads t ON t.session_key = wanted.session_key AND t.agent_id = wanted.agent_id "
    "CROSS JOIN heads w ON w.session_key = ? CROSS JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id"
)


def acknowledge_all(tx: Transaction, write: Acknowledge) -> Acknowledged:
    """Acknowledge each notice whose cursor still has the positions that were shown (rule 4.5)."""
    wanted = list(dict.fromkeys(shown.target for shown in write.shown))
    rows = select_wanted(tx.connection, "session_key, agent_id", wanted, _SHOWN, write.watcher)
    pairs = {pair.target: pair for pair in map(Pair.of, rows)}
    applied = []
    for shown in write.shown:
        moved = _acknowledged(pairs.get(shown.target), shown)
        if moved is not None:
            pairs[shown.target] = moved
            applied.append(shown)
    changed = [pairs[target] for target in dict.fromkeys(shown.target for shown in applied)]
    put_pairs(tx.connection, [write_of(pair, pair.positions, write.now_ms) for pair in changed])
    reopened = [pair for pair in changed if is_open(pair.positions)]
    tx.opened.extend(pair.opened for pair in reopened)
    return Acknowledged(tuple(applied), tuple(pair.target for pair in reopened))


def _acknowledged(pair: Pair | None, shown: Shown) -> Pair | None:
    positions = None if pair is None else acknowledge(pair.positions, shown.last_seen, shown.notified)
    return None if pair is None or positions is None else pair._replace(positions=positions)


_OPEN = (
    f"SELECT {PAIR_COLUMNS}, c.notified <> {LATEST_BY_ANOTHER} FROM cursors c INDEXED BY cursors_open "
    "CROSS JOIN heads w ON w.head_id = c.watcher_id CROSS JOIN heads t ON t.head_id = c.target_id "
    "LEFT JOIN sessions s ON s.head_id = c.watcher_id WHERE c.notified > c.last_seen AND c.renewed_at >= :renewed_from "
    "AND (s.host IS NULL OR s.host = :me) AND (c.claimed_by IS NULL OR c.claimed_by NOT IN (SELECT value FROM json_each(:living)))"
)
"""The pairs with a notice that are ours to replay; behind the columns of the pair, whether its pin is elsewhere than at material."""
_SLICE = (
    f"{_OPEN} AND c.watcher_id >= :watcher AND (c.watcher_id > :watcher OR c.target_id > :target) "
    "ORDER BY c.watcher_id, c.target_id LIMIT :limit"
)
_OF_WATCHER = f"{_OPEN} AND c.watcher_id IN (SELECT head_id FROM heads WHERE session_key = :watcher)"


def replay_pairs(tx: Transaction, write: Replay) -> Replayed:
    """Pin what is pending at its material position (rule 4.11): all pairs of one watcher, or a slice of all pairs."""
    if write.watcher is not None:
        _replay_watcher(tx, write, write.watcher)
        return Replayed(None)
    if write.after is None:
        _move_owed_pins(tx.connection)
    watcher_id, target_id = write.after or (0, 0)
    slice_ = {**_ours(tx, write), "watcher": watcher_id, "target": target_id, "limit": write.limit}
    found = tx.connection.execute(_SLICE, slice_).fetchall()
    _replay(tx, [row for row in found if row[2] not in write.done])
    return Replayed(found[-1][:2] if len(found) == write.limit else None)


def _replay_watcher(tx: Transaction, write: Replay, watcher: str) -> None:
    if not is_elsewhere(tx.connection, tx.presence, watcher):
        owed = [pair for pair in owed_pairs(tx.connection, watcher) if pair.renewed_at >= write.renewed_from_ms]
        _replay(tx, tx.connection.execute(_OF_WATCHER, {**_ours(tx, write), "watcher": watcher}).fetchall())
        _move_pins(tx, owed)
        tx.opened.extend(pair.opened for pair in owed)


def _ours(tx: Transaction, write: Replay) -> dict[str, object]:
    living = json.dumps(living_others(tx.connection, tx.presence))
    return {"me": tx.presence.gateway_id, "living": living, "renewed_from": write.renewed_from_ms}


def _replay(tx: Transaction, found: Sequence[Row]) -> None:
    """Most pairs are pinned where they should be: of those nothing is made but what is told, since a start may find a million."""
    _move_pins(tx, [Pair.of(row[:-1]) for row in found if row[-1]])
    tx.opened.extend([Opened(row[2], Address(row[3], row[4])) for row in found])


def _move_pins(tx: Transaction, pairs: Sequence[Pair]) -> None:
    """A replay is no opening: the cursors' expiry stays."""
    moved = [(pair, positions) for pair in pairs if (positions := replay(pair.positions)) != pair.positions]
    put_pairs(tx.connection, [write_of(pair, positions, pair.renewed_at) for pair, positions in moved])


_MOVE_OWED = (
    "UPDATE heads SET owed_actor = latest_actor, owed_sequence = latest_sequence, owed_other_sequence = nullif(other_sequence, 0) "
    "WHERE owed_sequence IS NOT NULL"
)


def _move_owed_pins(connection: sqlite3.Connection) -> None:
    """In the database what `heads.Owed` would be, were it noted at the latest event instead of the first."""
    connection.execute(_MOVE_OWED)
