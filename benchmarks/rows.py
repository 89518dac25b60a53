"""What a benchmark says: one row for each thing measured, a ratio to a baseline of the same run wherever there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value. What is None does not apply."""

    suite: str
    name: str
    value: float
    unit: str
    baseline: float | None = None
    """In the same unit, measured in turns with the value."""
    ratio: float | None = None
    """Value by baseline: the median over the repetitions, each of which has both."""
    target: str | None = None
    """What is promised, for reading."""
    ok: bool = True
    """Whether the target is met."""


def paired(suite: str, name: str, unit: str, values: Sequence[float], baselines: Sequence[float]) -> Row:
    """A row of repetitions that each measured the value and the baseline, one right after the other."""
    ratio = median(value / baseline for value, baseline in zip(values, baselines, strict=True))
    return Row(suite, name, median(values), unit, median(baselines), ratio)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
