"""Making a failing history small: whatever it fails without is left out. Deterministic, like everything that it plays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from ..disk import Disk
from .histories import History
from .trial import Outcome, play

T = TypeVar("T")

PLAYS_MAX: Final = 600


@dataclass(frozen=True, slots=True)
class Shrunk:
    """The smallest history that was found, and what it comes to, with its trace."""

    history: History
    outcome: Outcome
    plays: int


def shrink(history: History, rule: str, disk: Disk, *, plays_max: int = PLAYS_MAX) -> Shrunk:
    """Leave out faults, then operations, as long as the same rule is broken."""
    plays = 0

    def fails(candidate: History) -> bool:
        nonlocal plays
        plays += 1
        return plays <= plays_max and play(candidate, disk).rule == rule

    before = None
    while history != before:
        before = history
        history = _with_fewer_faults(history, fails)
        history = _with_fewer_operations(history, fails)
    return Shrunk(history, play(history, disk, traced=True), plays)


def _with_fewer_faults(history: History, fails: Callable[[History], bool]) -> History:
    return replace(history, faults=_fewer(history.faults, lambda faults: fails(replace(history, faults=faults))))


def _with_fewer_operations(history: History, fails: Callable[[History], bool]) -> History:
    return replace(history, operations=_fewer(history.operations, lambda operations: fails(replace(history, operations=operations))))


def _fewer(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Leave out halves, quarters, ..., and at last single items."""
    size = len(items)
    while size:
        for start in _starts(items, size):
            left = (*items[:start], *items[start + size :])
            if len(left) < len(items) and fails(left):
                items = left
        size = size // 2 if size > 1 else 0
    return items


def _starts(items: Sequence[T], size: int) -> Iterator[int]:
    """From the end on, since what comes late depends on what came before."""
    yield from range(max(0, len(items) - size), -1, -size)
