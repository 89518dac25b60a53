"""Recording a run of events in bulk."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import count

from ..events import EVENT_COLUMNS, payload_json
from ..folds import Fold
from ..pairs import PairWrite
from ..recording import ROW_COLUMNS, DedupeKey, Run, addresses, record_all
from ..records import Address, StateEvent, to_event
from ..rows import Row
from ..writes import Append
from .chain import MILEPOST_EVERY
from .folds import load, save
from .known import Known
from .openings import open_fresh
from .pairs import put_pairs
from .transaction import Transaction
from .values import run_rows, select_wanted


def append_all(tx: Transaction, appends: Sequence[Append], known: Known) -> list[StateEvent | None]:
    """Record the events, and open what they call for. Results as `Append` says. What is in `known` need not be read, and what was read
    is in it afterwards."""
    run = _begin(tx, appends, known)
    results = record_all(run, appends)
    _write(tx, run)
    known.last_sequence = next(run.sequences) - 1
    if open_fresh(tx, run.touched.values(), max(append.recorded_at_ms for append in appends)):
        known.owed = True
    for fold in run.touched.values():
        fold.fresh.clear()
    return results


def _begin(tx: Transaction, appends: Sequence[Append], known: Known) -> Run:
    concerned = addresses(appends)
    known.update(load(tx.connection, [address for address in concerned if address not in known]))
    folds = {address: known[address] for address in concerned}
    last = tx.last_sequence() if known.last_sequence is None else known.last_sequence
    repeats, seedable = _repeats(tx.connection, appends, folds), _seedable(tx.connection, appends, folds)
    return Run(tx, folds, repeats, seedable, count(last + 1), _event_row)


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


_INSERT = f"INSERT INTO events ({ROW_COLUMNS})"
# None of the texts that may be missing is ever blank.
_VALUES = "(?, ?, ?, ?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?, ?, nullif(?, ''), ?, nullif(?, ''))"


def _event_row(fold: Fold, append: Append, sequence: int, session_id: str) -> Row:
    """The row with nothing in it that `sqlite3` would have to adapt. A tuple is taken apart in less time than its fields are looked up."""
    _, _, kind, notifies, actor_type, actor_id, run_id, occurred_at, _, summary, payload, dedupe_key, _, _ = append
    return (
        sequence, fold.head_id, fold.last_sequence, kind, int(notifies), actor_type, actor_id or "", run_id or "", session_id, occurred_at,
        fold.recorded_at, dedupe_key or "", summary, "" if payload is None else payload_json(payload),
    )  # fmt: skip


def _write(tx: Transaction, run: Run) -> None:
    tx.recorded += len(run.rows)
    mileposts = _count(run)
    save(tx.connection, run.folds.values())
    run_rows(tx.connection, _INSERT, run.rows, values=_VALUES)
    run_rows(tx.connection, "INSERT INTO mileposts (head_id, sequence)", mileposts)
    put_pairs(tx.connection, run.seeds.values())


def _count(run: Run) -> list[Row]:
    """Count each session's events, and give its mileposts among the new ones."""
    mileposts = []
    for sequence, head_id, *_ in run.rows:
        fold = run.touched[head_id]
        fold.event_count += 1
        if fold.event_count % MILEPOST_EVERY == 0:
            mileposts.append((head_id, sequence))
    return mileposts
