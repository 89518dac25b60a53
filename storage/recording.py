"""Recording a run of events in memory: what each gives, and what the database is to hold afterwards. Pure, and the same for every
database.

Order within the run matters everywhere: each event sees what those before it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .events import payload_json
from .folds import Fold, NewIds, intern, put_session
from .heads import Notifying, actor_name, material, merge, owe
from .pairs import PairWrite
from .positions import is_open, is_pending, seed
from .records import Address, Positions, StateEvent, state_event
from .rows import Row
from .writes import Append

DedupeKey = tuple[Address, str, str]

ROW_COLUMNS = (
    "sequence, head_id, previous, kind, notifies, actor_type, actor_id, run_id, session_id, occurred_at, recorded_at, dedupe_key, "
    "summary, payload_json"
)
"""What `event_row` gives; `previous` is the session's event before this one, 0 for none."""


def event_row(fold: Fold, append: Append, sequence: int, session_id: str) -> Row:
    """The row of an event of which the fold has the time of recording, and no more yet."""
    return (
        sequence, fold.head_id, fold.last_sequence, append.kind, append.notifies, append.actor_type, append.actor_id, append.run_id,
        session_id, append.occurred_at_ms, fold.recorded_at, append.dedupe_key or None, append.summary, payload_json(append.payload),
    )  # fmt: skip


@dataclass(slots=True)
class Run:
    """What the events of one run share."""

    ids: NewIds
    folds: dict[Address, Fold]
    first: dict[DedupeKey, StateEvent]
    """What a repeated dedupe key gives."""
    seeded: dict[tuple[Address, Address], PairWrite]
    """The cursors that the run may seed, as they are now."""
    sequences: Iterator[int]
    """Where new sequences come from, ascending; one is taken for each event that is recorded."""
    as_row: Callable[[Fold, Append, int, str], Row] = event_row
    """Makes what `rows` holds, in the order of `ROW_COLUMNS`."""
    touched: dict[int, Fold] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    seeds: dict[tuple[int, int], PairWrite] = field(default_factory=dict)


def addresses(appends: Iterable[Append]) -> set[Address]:
    """The sessions that the events concern."""
    found = {append.target for append in appends}
    found.update(append.seeds for append in appends if append.seeds is not None)
    return found


def record_all(run: Run, appends: Sequence[Append]) -> list[StateEvent | None]:
    """Record the events. Results as `Append` says."""
    return [_append(run, append) for append in appends]


def note_owed(fold: Fold, event: Notifying) -> None:
    """An event on a head that owes openings already opens nothing by itself: it would overtake them."""
    if fold.owed is not None:
        fold.owed = owe(fold.owed, event)
        fold.head_changed = True


def _append(run: Run, append: Append) -> StateEvent | None:
    key = (append.target, append.kind, append.dedupe_key) if append.dedupe_key else None
    if key is not None and key in run.first:
        return run.first[key]
    fold = run.folds[append.target]
    if append.only_if_watched and not fold.watched and not _has_parent(fold, append):
        put_session(run.ids, fold, append.session, append.recorded_at_ms)
        return None
    event = _record(run, fold, append)
    if key is not None:
        run.first[key] = event
    return event


def _has_parent(fold: Fold, append: Append) -> bool:
    return append.session.parent is not None or (fold.session is not None and fold.session.parent is not None)


def _record(run: Run, fold: Fold, append: Append) -> StateEvent:
    session_id = put_session(run.ids, fold, append.session, append.recorded_at_ms).session_id
    sequence = next(run.sequences)
    fold.recorded_at = max(fold.recorded_at, append.recorded_at_ms)
    run.rows.append(run.as_row(fold, append, sequence, session_id))
    _advance(run, fold, append, sequence)
    key, agent = append.target
    return state_event(
        sequence, key, agent, session_id, append.kind, append.actor_type, append.actor_id, append.run_id, append.occurred_at_ms,
        append.summary, append.payload,
    )  # fmt: skip


def _advance(run: Run, fold: Fold, append: Append, sequence: int) -> None:
    fold.last_sequence = sequence
    fold.head_moved = True
    run.touched[fold.head_id] = fold
    if append.seeds is not None:
        _seed(run, fold, append, append.seeds)
    if append.notifies:
        _notify(fold, Notifying(sequence, actor_name(append.actor_type, append.actor_id)))


def _seed(run: Run, fold: Fold, append: Append, watcher: Address) -> None:
    """Seed the cursor at this event, or keep what is pending on it, opened or not (rule 3.1)."""
    present = run.seeded.get((watcher, append.target))
    if present is None or not _has_pending(fold, watcher, present):
        seen = seed(fold.last_sequence)
        watcher_id = intern(run.ids, run.folds[watcher])
        present = PairWrite(watcher_id, fold.head_id, seen.last_seen, seen.notified, append.recorded_at_ms)
    present = present._replace(renewed_at=append.recorded_at_ms)
    run.seeded[watcher, append.target] = run.seeds[present.watcher_id, present.target_id] = present
    fold.watched, fold.all_open = True, False


def _has_pending(fold: Fold, watcher: Address, present: PairWrite) -> bool:
    beyond = material(fold.latest, watcher.session_key, present.last_seen)
    positions = Positions(present.last_seen, present.notified, beyond)
    return is_open(positions) or is_pending(positions)


def _notify(fold: Fold, event: Notifying) -> None:
    fold.latest = merge(fold.latest, event)
    fold.fresh.append(event)
    note_owed(fold, event)
