"""Which operations explain a change of the durable state, and what is wrong where none do.

Operations under way are tried in every order, fewest first; what is left over may be housekeeping, as far as the rules allow that at this
moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .draft import NEW_ID, Draft, ExpectedRow, News, Position
from .durable import Address, Change, Cursor, Event, Head, Pair, Row
from .effects import Effect
from .violations import Violation

DRAFTS_MAX: Final = 5_000
"""How many orders are tried for one change."""

Problem = tuple[str, str]
"""The rule, and what is wrong."""


@dataclass(slots=True)
class Circumstances:
    """What of the world decides which housekeeping is allowed right now."""

    news: dict[Address, News]
    kept: dict[int, Event]
    """The log before the change."""
    first: Mapping[tuple[Address, str, str], Event]
    """The same by dedupe key."""
    latest_wall_ms: int
    """The latest that the wall clock can have shown to whoever wrote."""
    retained_from_ms: int
    """What is older may be forgotten."""
    retention_rows: int
    openings_max: int
    """How many notices a commit opens before it owes the rest."""
    replaying: bool
    """Whether a gateway has just started, or does not know what it has committed."""
    mentioned: frozenset[Address]
    """Sessions that operations under way create if need be."""
    session_ids: set[str]
    """All that were ever seen."""
    deleted: dict[Address, int]
    """When sessions were deleted, of those whose head is left: the earliest that the wall clock can have shown."""
    in_turns: frozenset[tuple[Pair, int, int]] = field(default_factory=frozenset)
    """Notices in open turns: no replay pins them anew."""


def explain(change: Change, effects: Sequence[Effect], now: Circumstances) -> Draft:
    """The effects that make the change, done to a draft, are marked as done. Raises `Violation`."""
    candidates = [effect for effect in effects if effect.concerns(change)]
    best: list[Problem] = []
    for used, draft in _orders(Draft(change, now.news, now.first), candidates):
        problems = list(_problems(draft, now))
        if not problems:
            _mark(used, Draft(change, now.news, now.first))
            return draft
        if not best or len(problems) < len(best):
            best = problems
    raise Violation(best[0][0], "; ".join(text for _, text in best))


def _mark(used: Sequence[Effect], draft: Draft) -> None:
    """Let the effects keep what they did in the order that explains it all."""
    for effect in used:
        effect.step(draft)
        effect.settle()


def _orders(start: Draft, candidates: Sequence[Effect]) -> Iterator[tuple[list[Effect], Draft]]:
    level: list[tuple[list[Effect], Draft]] = [([], start)]
    tried = 0
    while level:
        following: list[tuple[list[Effect], Draft]] = []
        for used, draft in level:
            yield used, draft
            for effect in candidates:
                if effect in used:
                    continue
                tried += 1
                if tried > DRAFTS_MAX:
                    return
                after = draft.copy()
                if effect.step(after):
                    following.append(([*used, effect], after))
        level = following


def _problems(draft: Draft, now: Circumstances) -> Iterator[Problem]:
    for event in draft.change.new[draft.explained :]:
        yield "1 (nothing invented)", f"nobody asked for {event}"
    yield from _wrong_log(draft, now)
    yield from _wrong_heads(draft, now)
    for pair in sorted(draft.change.cursors | draft.cursors.keys()):
        problem = _wrong_cursor(draft, pair, now)
        if problem:
            yield problem
    for address in sorted(draft.change.rows | draft.rows.keys()):
        problem = _wrong_row(address, draft.row(address), draft.change.after.rows.get(address), now)
        if problem:
            yield problem


# -- the log and heads -------------------------------------------------------------------------------------------------------------


def _wrong_log(draft: Draft, now: Circumstances) -> Iterator[Problem]:
    gone = {event.sequence for event in draft.change.gone}
    for address in draft.deleted:
        left = [event.sequence for event in now.kept.values() if event.address == address and event.sequence not in gone]
        if left:
            yield "1.11", f"{address} was deleted, and its events {left} are left"
    pruned = [event for event in draft.change.gone if event.address not in draft.deleted]
    if not pruned:
        return
    sequences = sorted([*now.kept, *(event.sequence for event in draft.change.new)], reverse=True)
    newest = set(sequences[: now.retention_rows])
    for event in pruned:
        if event.sequence in newest and event.recorded_at >= now.retained_from_ms:
            yield "6.1", f"event {event.sequence} is gone before its time"


def _wrong_heads(draft: Draft, now: Circumstances) -> Iterator[Problem]:
    tops: dict[Address, int] = {}
    for event in draft.change.gone:
        if event.address not in draft.deleted:
            tops[event.address] = max(tops.get(event.address, 0), event.sequence)
    for address in sorted(draft.change.heads | draft.heads.keys() | tops.keys()):
        expected = draft.head(address)
        expected = expected._replace(pruned=max(expected.pruned, tops.get(address, 0)))
        observed = draft.change.after.heads.get(address)
        if observed is None and _may_be_forgotten(address, expected, now):
            continue
        if observed != expected:
            rule = "5.3" if observed is not None and observed.last == expected.last else "1.11"
            yield rule, f"the head of {address} is {observed}, and should be {expected}"


def _may_be_forgotten(address: Address, expected: Head, now: Circumstances) -> bool:
    if expected.last == 0:
        return True
    return address in now.deleted and now.deleted[address] < now.retained_from_ms


# -- cursors -------------------------------------------------------------------------------------------------------------------------


def _wrong_cursor(draft: Draft, pair: Pair, now: Circumstances) -> Problem | None:
    expected, observed = draft.cursor(pair), draft.change.after.cursors.get(pair)
    watcher, target = pair
    name = f"{watcher} on {target}"
    if observed is None:
        if expected is None or expected.renewed_from < now.retained_from_ms:
            return None
        return "3.5", f"the cursor of {name} is gone, and was {expected}"
    if expected is None:
        return "3", f"nobody asked for the cursor {observed} of {name}"
    return _moved_wrongly(draft, pair, expected, observed, now)


def _moved_wrongly(draft: Draft, pair: Pair, expected: Position, observed: Cursor, now: Circumstances) -> Problem | None:
    name = f"{pair[0]} on {pair[1]}: {observed}, expected {tuple(expected)}"
    material = draft.material(pair, expected.last_seen)
    if observed.last_seen != expected.last_seen:
        return "4.5", f"last seen is wrong, {name}"
    if observed.material != material:
        return "4.6", f"material is wrong, it should be {material}, {name}"
    if _is_left_owed(draft, pair, expected, observed, now):
        return None
    if observed.notified != expected.notified and not _replayed(pair, expected, observed, now):
        return ("4.4" if expected.is_open else "4.3"), f"the notice is pinned wrongly, {name}"
    # What opens a notice may be recorded together with what was asked for before the clock jumped back.
    if not expected.renewed_from <= observed.renewed_at <= max(expected.renewed_to, now.latest_wall_ms):
        return "3.5", f"the expiry begins at the wrong moment, {name}"
    return None


def _is_left_owed(draft: Draft, pair: Pair, expected: Position, observed: Cursor, now: Circumstances) -> bool:
    """Rule 1.10: an opening may be owed for a while, where there were more watchers than a commit opens for, or others are owed already."""
    if not expected.is_open or observed.is_open:
        return False
    owed = draft.change.before.owed
    return pair in owed or any(target == pair[1] for _, target in owed) or _watched(draft) > now.openings_max


def _watched(draft: Draft) -> int:
    """How many cursors there are on the sessions that got an event."""
    targets = {event.address for event in draft.change.new}
    return sum(target in targets for _, target in draft.change.before.cursors.keys() | draft.change.after.cursors.keys())


def still_owed(draft: Draft) -> dict[Pair, int]:
    """The openings that are owed after a change that is explained, and where each is to be pinned (rule 4.3)."""
    owed = dict(draft.change.before.owed)
    for pair in draft.change.cursors | draft.cursors.keys():
        expected, observed = draft.cursor(pair), draft.change.after.cursors.get(pair)
        if expected is not None and observed is not None and expected.is_open and not observed.is_open:
            owed[pair] = expected.notified
        else:
            owed.pop(pair, None)
    return owed


def _replayed(pair: Pair, expected: Position, observed: Cursor, now: Circumstances) -> bool:
    """Rule 4.11: after a start what is pending is pinned at its material position."""
    if not now.replaying or not expected.is_open or observed.notified != observed.material:
        return False
    return (pair, expected.last_seen, expected.notified) not in now.in_turns


# -- rows --------------------------------------------------------------------------------------------------------------------------------


def _wrong_row(address: Address, expected: ExpectedRow | None, observed: Row | None, now: Circumstances) -> Problem | None:
    if expected is None and observed is not None:
        made = (
            address in now.mentioned and observed.parent is None and observed.label is None and observed.session_id not in now.session_ids
        )
        return None if made else ("1.11", f"nobody asked for the row {observed} of {address}")
    if expected is None or observed is None:
        return None if expected is None and observed is None else ("1.11", f"the row of {address} is gone")
    if expected.session_id == NEW_ID:
        new = observed.session_id not in now.session_ids
        expected = expected._replace(session_id=observed.session_id if new else NEW_ID)
    return None if expected == tuple(observed) else ("3.5", f"the row of {address} is {observed}, and should be {expected}")
