"""Recording a run of events in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import WriteRefusedError
from ..events import EVENT_COLUMNS, payload_json
from ..folds import Fold
from ..heads import openings_at_once
from ..pairs import PairWrite
from ..recording import ROW_COLUMNS, DedupeKey, Run, addresses, record_all
from ..records import Address, StateEvent, to_event
from ..writes import Append
from .arrays import columns, unnest
from .folds import MOVED_COUNT, move_heads, moved_row, save_changed
from .line import Database
from .openings import clean_pairs, open_fresh, opening_folds
from .pairs import put_pairs
from .transaction import Transaction

INTEGER_MAX = 2**63 - 1


def check(appends: Iterable[Append]) -> None:
    """`WriteRefusedError` for what the server would refuse. It is told before sequences are taken, since they do not come back."""
    try:
        for append in appends:
            _check(append)
    except (TypeError, ValueError) as error:
        raise WriteRefusedError(f"{type(error).__name__}: {error}") from error


def _check(append: Append) -> None:
    draft = append.session
    texts = (append.summary, append.kind, append.actor_type, append.actor_id, append.run_id, append.dedupe_key, draft.session_id)
    text = "".join(filter(None, (*texts, draft.kind, draft.parent, draft.label)))
    if append.payload is not None:
        text += payload_json(append.payload) or ""
    text.encode()
    if "\0" in text:
        raise ValueError("a text holds the character NUL")
    if not -INTEGER_MAX <= append.occurred_at_ms <= INTEGER_MAX or not -INTEGER_MAX <= append.recorded_at_ms <= INTEGER_MAX:
        raise ValueError("a time is too large")


async def append_all(tx: Transaction, appends: Sequence[Append]) -> list[StateEvent | None]:
    """Record the events, and open what they call for. Results as `Append` says."""
    run = await _begin(tx, appends)
    results = record_all(run, appends)
    await _write(tx, run, max(append.recorded_at_ms for append in appends))
    for fold in run.touched.values():
        fold.fresh.clear()
    return results


async def _begin(tx: Transaction, appends: Sequence[Append]) -> Run:
    folds = {address: tx.folds[address] for address in addresses(appends)}
    if tx.cursors_removed:
        await _look_for_watchers(tx.connection, appends, folds)
    first = await _repeats(tx.connection, appends, folds)
    seeded = await _seedable(tx.connection, appends, folds)
    sequences = tx.sequences or iter(await _sequences(tx.connection, _new_at_most(appends, first, folds)))
    return Run(tx, folds, first, seeded, sequences)


async def _sequences(connection: Database, count: int) -> list[int]:
    """So many new ones, ascending. What is not used in the end is a gap."""
    if not count:
        return []
    return [row[0] for row in await connection.fetch("SELECT nextval('event_sequence') FROM generate_series(1, $1)", count)]


def _new_at_most(appends: Sequence[Append], first: dict[DedupeKey, StateEvent], folds: dict[Address, Fold]) -> int:
    """How many of the appends may record an event: what is certain not to is left out."""
    seeds = {append.target for append in appends if append.seeds is not None}
    keys = set(first)
    count = 0
    for append in appends:
        fold = folds[append.target]
        if append.dedupe_key:
            key = (append.target, append.kind, append.dedupe_key)
            if key in keys:
                continue
            if not append.only_if_watched:
                keys.add(key)
        has_parent = append.session.parent is not None or (fold.session is not None and fold.session.parent is not None)
        count += not append.only_if_watched or has_parent or fold.watched or append.target in seeds
    return count


_REPEATS = (
    f"SELECT h.session_key, h.agent_id, e.dedupe_key, {EVENT_COLUMNS} FROM {unnest('bigint text text')} AS v(head_id, kind, dedupe_key) "
    "JOIN events e ON e.head_id = v.head_id AND e.kind = v.kind AND e.dedupe_key = v.dedupe_key AND e.dedupe_key IS NOT NULL "
    "JOIN heads h ON h.head_id = e.head_id"
)


async def _repeats(connection: Database, appends: Sequence[Append], folds: dict[Address, Fold]) -> dict[DedupeKey, StateEvent]:
    wanted = {(folds[append.target].head_id, append.kind, append.dedupe_key) for append in appends if append.dedupe_key}
    rows = await connection.fetch(_REPEATS, *columns(list(wanted), 3)) if wanted else []
    found = {}
    for key, agent, dedupe_key, *row in rows:
        event = to_event(Address(key, agent), tuple(row))
        found[Address(key, agent), event.kind, dedupe_key] = event
    return found


_WATCHED = "SELECT v.head_id FROM unnest($1::bigint[]) AS v(head_id) WHERE EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = v.head_id)"


async def _look_for_watchers(connection: Database, appends: Sequence[Append], folds: dict[Address, Fold]) -> None:
    asked = {append.target for append in appends if append.only_if_watched}
    by_id = {folds[address].head_id: folds[address] for address in asked}
    for fold in by_id.values():
        fold.watched = False
    for row in await connection.fetch(_WATCHED, list(by_id)) if by_id else []:
        by_id[row[0]].watched = True


_SEEDABLE = (
    f"SELECT c.watcher_id, c.target_id, c.last_seen, c.notified, c.renewed_at FROM {unnest('bigint bigint')} AS v(watcher_id, target_id) "
    "JOIN cursors c ON c.watcher_id = v.watcher_id AND c.target_id = v.target_id"
)


async def _seedable(
    connection: Database, appends: Sequence[Append], folds: dict[Address, Fold]
) -> dict[tuple[Address, Address], PairWrite]:
    pairs = {
        (folds[append.seeds].head_id, folds[append.target].head_id): (append.seeds, append.target)
        for append in appends
        if append.seeds is not None
    }
    rows = await connection.fetch(_SEEDABLE, *columns(list(pairs), 2)) if pairs else []
    return {pairs[row[0], row[1]]: PairWrite(*row) for row in rows}


_PREVIOUS = ROW_COLUMNS.split(", ").index("previous")
_TYPES = "bigint bigint text boolean text text text text bigint bigint text text text"
_INSERT = f"INSERT INTO events ({ROW_COLUMNS.replace('previous, ', '')}) SELECT * FROM {unnest(_TYPES)}"
_COUNT = len(_TYPES.split())
_RECORD = f"WITH written AS ({_INSERT}), moved AS ({move_heads(_COUNT + 1)}) {clean_pairs(_COUNT + MOVED_COUNT + 1)}"
"""All in one, since each statement waits for the way there and back."""


async def _write(tx: Transaction, run: Run, now_ms: int) -> None:
    await save_changed(tx.connection, run.folds.values())
    if not run.rows:
        return
    tx.recorded += len(run.rows)
    await put_pairs(tx.connection, run.seeds.values())
    events = columns(run.rows, _COUNT + 1)
    del events[_PREVIOUS]  # Here an index knows which events are a session's.
    moved = columns([moved_row(fold) for fold in run.touched.values() if fold.head_moved], MOVED_COUNT)
    opening = opening_folds(run.touched.values())
    look_for = openings_at_once(len(opening), tx.openings_left) + 1
    clean = await tx.connection.fetch(_RECORD, *events, *moved, [fold.head_id for fold in opening], look_for)
    for fold in run.touched.values():
        fold.head_moved = False
    await open_fresh(tx, opening, clean, now_ms)
