"""The writes on cursors: watch, unwatch, acknowledge, replay."""

from __future__ import annotations

from collections.abc import Sequence

from ..folds import put_session
from ..heads import Owed
from ..pairs import PAIR_COLUMNS, Pair, write_of
from ..positions import acknowledge, is_open, replay, seed
from ..records import Address, Shown
from ..rows import Row
from ..writes import Acknowledge, Acknowledged, Replay, Replayed, Unwatch, Watch
from .arrays import columns
from .folds import save_changed
from .gateways import OTHERS, is_elsewhere
from .openings import owed_pairs
from .pairs import move_pairs
from .transaction import Transaction

_WATCH = (
    "INSERT INTO cursors (watcher_id, target_id, last_seen, notified, renewed_at) VALUES ($1, $2, $3, $4, $5) "
    "ON CONFLICT (watcher_id, target_id) DO UPDATE SET renewed_at = excluded.renewed_at"
)


async def watch(tx: Transaction, write: Watch) -> bool:
    """Seed a cursor at the target's state version, or renew the one that is there (rule 3.2)."""
    watcher, target = tx.folds[write.watcher], tx.folds[write.target]
    put_session(tx, watcher, write.watcher_session, write.now_ms)
    put_session(tx, target, write.target_session, write.now_ms)
    await save_changed(tx.connection, {watcher.head_id: watcher, target.head_id: target}.values())
    target.watched = True
    seen = seed(target.last_sequence)
    await tx.connection.execute(_WATCH, watcher.head_id, target.head_id, seen.last_seen, seen.notified, write.now_ms)
    return True


_UNWATCH = (
    "DELETE FROM cursors WHERE target_id = (SELECT head_id FROM heads WHERE session_key = $1 AND agent_id = $2) "
    "AND watcher_id IN (SELECT head_id FROM heads WHERE session_key = $3) RETURNING 1"
)


async def unwatch(tx: Transaction, write: Unwatch) -> bool:
    """Remove a cursor (rule 3.4)."""
    tx.cursors_removed = True
    return bool(await tx.connection.fetch(_UNWATCH, *write.target, write.watcher))


_SHOWN = (
    f"SELECT {PAIR_COLUMNS} FROM unnest($1::text[], $2::text[]) AS v(session_key, agent_id) "
    "JOIN heads t ON t.session_key = v.session_key AND t.agent_id = v.agent_id "
    "JOIN heads w ON w.session_key = $3 JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id"
)


async def acknowledge_all(tx: Transaction, write: Acknowledge) -> Acknowledged:
    """Acknowledge each notice whose cursor still has the positions that were shown (rule 4.5)."""
    wanted = list(dict.fromkeys(shown.target for shown in write.shown))
    rows = await tx.connection.fetch(_SHOWN, *columns(wanted, 2), write.watcher) if wanted else []
    pairs: dict[Address, Pair] = {pair.target: pair for pair in (Pair.of(tuple(row)) for row in rows)}
    applied = []
    for shown in write.shown:
        moved = _acknowledged(pairs.get(shown.target), shown)
        if moved is not None:
            pairs[shown.target] = moved
            applied.append(shown)
    changed = [pairs[target] for target in dict.fromkeys(shown.target for shown in applied)]
    await move_pairs(tx.connection, [write_of(pair, pair.positions, write.now_ms) for pair in changed])
    reopened = [pair for pair in changed if is_open(pair.positions)]
    tx.opened.extend(pair.opened for pair in reopened)
    return Acknowledged(tuple(applied), tuple(pair.target for pair in reopened))


def _acknowledged(pair: Pair | None, shown: Shown) -> Pair | None:
    positions = None if pair is None else acknowledge(pair.positions, shown.last_seen, shown.notified)
    return None if pair is None or positions is None else pair._replace(positions=positions)


_OPEN = (
    f"SELECT {PAIR_COLUMNS} FROM cursors c JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id "
    f"WHERE c.notified > c.last_seen AND coalesce(w.host, $1) = $1 AND (c.claimed_by IS NULL OR c.claimed_by <> ALL ({OTHERS}))"
    " AND c.renewed_at >= $2"
)
_SLICE = f"{_OPEN} AND (c.watcher_id, c.target_id) > ($3, $4) ORDER BY c.watcher_id, c.target_id LIMIT $5"
_OF_WATCHER = f"{_OPEN} AND w.session_key = $3"
REPLAYED_TARGETS = f"SELECT s.target_id FROM ({_SLICE}) s"
"""What the heads are locked of, before a slice is replayed."""


async def replay_pairs(tx: Transaction, write: Replay) -> Replayed:
    """Pin what is pending at its material position (rule 4.11): all pairs of one watcher, or a slice of all pairs."""
    if write.watcher is not None:
        await _replay_watcher(tx, write, write.watcher)
        return Replayed(None)
    if write.after is None:
        await _move_owed_pins(tx)
    rows = await tx.connection.fetch(_SLICE, *replayed_slice(tx.gateway_id, write))
    pairs = [Pair.of(tuple(row)) for row in rows]
    await _replay(tx, [pair for pair in pairs if pair.watcher not in write.done])
    return Replayed((pairs[-1].watcher_id, pairs[-1].target_id) if len(pairs) == write.limit else None)


def replayed_slice(gateway_id: int, write: Replay) -> Row:
    """The parameters of a slice, and of `REPLAYED_TARGETS`."""
    return (gateway_id, write.renewed_from_ms, *(write.after or (0, 0)), write.limit)


async def _replay_watcher(tx: Transaction, write: Replay, watcher: str) -> None:
    if not await is_elsewhere(tx.connection, tx.gateway_id, watcher):
        rows = await tx.connection.fetch(_OF_WATCHER, tx.gateway_id, write.renewed_from_ms, watcher)
        owed = [pair for pair in await owed_pairs(tx, watcher) if pair.renewed_at >= write.renewed_from_ms]
        await _replay(tx, [Pair.of(tuple(row)) for row in rows] + owed)


async def _replay(tx: Transaction, pairs: Sequence[Pair]) -> None:
    """A replay is no opening: the cursors' expiry stays. A target that is not locked has opened after the locks were looked up: its notice
    is pinned well, and is told all the same."""
    locked = [pair for pair in pairs if pair.target in tx.folds]
    await move_pairs(tx.connection, [write_of(pair, replay(pair.positions), pair.renewed_at) for pair in locked])
    tx.opened.extend(pair.opened for pair in pairs)


async def _move_owed_pins(tx: Transaction) -> None:
    """Have each head owe as if that had been noted at its latest event instead of the first."""
    owing = [fold for fold in tx.folds.values() if fold.owed is not None]
    for fold in owing:
        fold.owed = Owed(fold.latest.actor or "", fold.latest.sequence, fold.latest.other_sequence or None)
        fold.head_changed = True
    await save_changed(tx.connection, owing)
