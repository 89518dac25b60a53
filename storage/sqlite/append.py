"""Recording a run of events in bulk. Order within the run matters everywhere: each event sees what those before it did."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..heads import Notifying, actor_name, material, merge
from ..positions import is_open, is_pending, seed
from ..records import Address, Positions, StateEvent
from ..writes import Append
from .chain import MILEPOST_EVERY
from .events import EVENT_COLUMNS, INSERT_EVENTS, payload_json, to_event
from .folds import Fold, intern, load, put_session, save
from .openings import note_owed, open_fresh
from .pairs import PairWrite, put_pairs
from .transaction import Transaction
from .values import Row, run_rows, select_wanted

DedupeKey = tuple[Address, str, str]


@dataclass(slots=True)
class _Run:
    """What the events of one run share."""

    tx: Transaction
    folds: dict[Address, Fold]
    first: dict[DedupeKey, StateEvent]
    """What a repeated dedupe key gives."""
    seeded: dict[tuple[Address, Address], PairWrite]
    """The cursors that the run may seed, as they are now."""
    last_sequence: int
    touched: dict[int, Fold] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    mileposts: list[Row] = field(default_factory=list)
    seeds: dict[tuple[int, int], PairWrite] = field(default_factory=dict)


def append_all(tx: Transaction, appends: Sequence[Append], known: dict[Address, Fold]) -> list[StateEvent | None]:
    """Record the events, and open what they call for. Results as `Append` says. What is in `known` need not be read, and what was read
    is in it afterwards."""
    run = _begin(tx, appends, known)
    results = [_append(run, append) for append in appends]
    _write(run)
    open_fresh(tx, run.touched.values(), max(append.recorded_at_ms for append in appends))
    for fold in run.touched.values():
        fold.fresh.clear()
    return results


def _begin(tx: Transaction, appends: Sequence[Append], known: dict[Address, Fold]) -> _Run:
    addresses = {append.target for append in appends}
    addresses.update(append.seeds for append in appends if append.seeds is not None)
    known.update(load(tx.connection, [address for address in addresses if address not in known]))
    folds = {address: known[address] for address in addresses}
    _look_for_watchers(tx.connection, appends, folds)
    return _Run(tx, folds, _repeats(tx.connection, appends, folds), _seedable(tx.connection, appends, folds), tx.last_sequence())


_REPEATS = (
    f"SELECT wanted.session_key, wanted.agent_id, e.dedupe_key, {EVENT_COLUMNS} FROM wanted CROSS JOIN events e INDEXED BY events_dedupe "
    "ON e.head_id = wanted.head_id AND e.kind = wanted.kind AND e.dedupe_key = wanted.dedupe_key AND e.dedupe_key IS NOT NULL"
)


def _repeats(connection: sqlite3.Connection, appends: Sequence[Append], folds: dict[Address, Fold]) -> dict[DedupeKey, StateEvent]:
    wanted = {
        (folds[append.target].head_id, *append.target, append.kind, append.dedupe_key)
        for append in appends
        if append.dedupe_key and folds[append.target].head_id
    }
    found = {}
    columns = "head_id, session_key, agent_id, kind, dedupe_key"
    for key, agent, dedupe_key, *row in select_wanted(connection, columns, list(wanted), _REPEATS):
        event = to_event(Address(key, agent), tuple(row))
        found[Address(key, agent), event.kind, dedupe_key] = event
    return found


_WATCHED = "SELECT session_key, agent_id FROM wanted WHERE EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = wanted.head_id)"


def _look_for_watchers(connection: sqlite3.Connection, appends: Sequence[Append], folds: dict[Address, Fold]) -> None:
    asked = {append.target for append in appends if append.only_if_watched and not folds[append.target].watched}
    wanted = [(folds[address].head_id, *address) for address in asked if folds[address].head_id]
    for row in select_wanted(connection, "head_id, session_key, agent_id", wanted, _WATCHED):
        folds[Address(*row)].watched = True


_SEEDABLE = (
    "SELECT c.watcher_id, c.target_id, c.last_seen, c.notified, c.renewed_at FROM wanted CROSS JOIN cursors c "
    "ON c.watcher_id = wanted.watcher_id AND c.target_id = wanted.target_id"
)


def _seedable(
    connection: sqlite3.Connection, appends: Sequence[Append], folds: dict[Address, Fold]
) -> dict[tuple[Address, Address], PairWrite]:
    pairs = {
        (folds[append.seeds].head_id, folds[append.target].head_id): (append.seeds, append.target)
        for append in appends
        if append.seeds is not None
    }
    rows = select_wanted(connection, "watcher_id, target_id", [ids for ids in pairs if all(ids)], _SEEDABLE)
    return {pairs[row[0], row[1]]: PairWrite(*row) for row in rows}


def _append(run: _Run, append: Append) -> StateEvent | None:
    key = (append.target, append.kind, append.dedupe_key) if append.dedupe_key else None
    if key is not None and key in run.first:
        return run.first[key]
    fold = run.folds[append.target]
    if append.only_if_watched and not _is_watched(fold, append):
        put_session(run.tx, fold, append.session, append.recorded_at_ms)
        return None
    event = _record(run, fold, append)
    if key is not None:
        run.first[key] = event
    return event


def _is_watched(fold: Fold, append: Append) -> bool:
    has_parent = append.session.parent is not None or (fold.session is not None and fold.session.parent is not None)
    return has_parent or fold.watched


def _record(run: _Run, fold: Fold, append: Append) -> StateEvent:
    session_id = put_session(run.tx, fold, append.session, append.recorded_at_ms).session_id
    run.last_sequence = sequence = run.last_sequence + 1
    run.rows.append(_event_row(fold, append, sequence, session_id, max(append.recorded_at_ms, fold.recorded_at)))
    _advance(run, fold, append, sequence)
    key, agent = append.target
    return StateEvent(
        sequence, key, agent, session_id, append.kind, append.actor_type, append.actor_id, append.run_id, append.occurred_at_ms,
        append.summary, append.payload,
    )  # fmt: skip


def _event_row(fold: Fold, append: Append, sequence: int, session_id: str, recorded_at: int) -> Row:
    return (
        sequence, fold.head_id, fold.last_sequence, append.kind, append.notifies, append.actor_type, append.actor_id, append.run_id,
        session_id, append.occurred_at_ms, recorded_at, append.dedupe_key or None, append.summary, payload_json(append.payload),
    )  # fmt: skip


def _advance(run: _Run, fold: Fold, append: Append, sequence: int) -> None:
    fold.last_sequence = sequence
    fold.recorded_at = max(append.recorded_at_ms, fold.recorded_at)
    fold.event_count += 1
    fold.head_moved = True
    run.touched[fold.head_id] = fold
    if fold.event_count % MILEPOST_EVERY == 0:
        run.mileposts.append((fold.head_id, sequence))
    if append.seeds is not None:
        _seed(run, fold, append, append.seeds)
    if append.notifies:
        _notify(fold, Notifying(sequence, actor_name(append.actor_type, append.actor_id)))


def _seed(run: _Run, fold: Fold, append: Append, watcher: Address) -> None:
    """Seed the cursor at this event, or keep what is pending on it, opened or not (rule 3.1)."""
    present = run.seeded.get((watcher, append.target))
    if present is None or not _has_pending(fold, watcher, present):
        seen = seed(fold.last_sequence)
        watcher_id = intern(run.tx, run.folds[watcher])
        present = PairWrite(watcher_id, fold.head_id, seen.last_seen, seen.notified, append.recorded_at_ms)
    present = present._replace(renewed_at=append.recorded_at_ms)
    run.seeded[watcher, append.target] = run.seeds[present.watcher_id, present.target_id] = present
    fold.watched = True


def _has_pending(fold: Fold, watcher: Address, present: PairWrite) -> bool:
    beyond = material(fold.latest, watcher.session_key, present.last_seen)
    positions = Positions(present.last_seen, present.notified, beyond)
    return is_open(positions) or is_pending(positions)


def _notify(fold: Fold, event: Notifying) -> None:
    fold.latest = merge(fold.latest, event)
    fold.fresh.append(event)
    note_owed(fold, event)


def _write(run: _Run) -> None:
    run.tx.recorded += len(run.rows)
    connection = run.tx.connection
    save(connection, run.folds.values())
    run_rows(connection, INSERT_EVENTS, run.rows)
    run_rows(connection, "INSERT INTO mileposts (head_id, sequence)", run.mileposts)
    put_pairs(connection, run.seeds.values())
