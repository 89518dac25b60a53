"""What a benchmark says: one row for each thing measured, a ratio to a baseline of the same run wherever there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median


@dataclass(frozen=True, slots=True)
class Point:
    """Where a row stands in a plot."""

    chart: str
    """The plot's title; rows with the same one share it."""
    x: float
    x_label: str
    line: str = "kizuki"
    beside: str = "baseline"
    """What the line of the baselines is called."""


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
    """Value by baseline: the median over the repetitions, where each of them has both."""
    target: str | None = None
    """What is promised, for reading."""
    ok: bool = True
    """Whether the target is met."""
    point: Point | None = None
    """Its place in a plot."""

    def ratio_at_most(self, most: float) -> Row:
        """Promise it."""
        return replace(self, target=f"ratio <= {most:g}", ok=self.ratio is not None and self.ratio <= most)

    def ratio_at_least(self, least: float) -> Row:
        """Promise it."""
        return replace(self, target=f"ratio >= {least:g}", ok=self.ratio is not None and self.ratio >= least)

    def at_most(self, most: float) -> Row:
        """Promise it of the value."""
        return replace(self, target=f"<= {most:g} {self.unit}", ok=self.value <= most)

    def at_least(self, least: float) -> Row:
        """Promise it of the value."""
        return replace(self, target=f">= {least:,g} {self.unit}", ok=self.value >= least)

    def at(self, chart: str, x: float, x_label: str, *, line: str = "kizuki", beside: str = "baseline") -> Row:
        """Give it a place in a plot."""
        return replace(self, point=Point(chart, x, x_label, line, beside))


def paired(suite: str, name: str, unit: str, values: Sequence[float], baselines: Sequence[float]) -> Row:
    """A row of repetitions that each measured the value and the baseline, one right after the other."""
    ratio = median(value / baseline for value, baseline in zip(values, baselines, strict=True))
    return Row(suite, name, median(values), unit, median(baselines), ratio)


def compared(suite: str, name: str, unit: str, value: float, baseline: float) -> Row:
    """A row of two figures, each already taken over all repetitions, such as a percentile."""
    return Row(suite, name, value, unit, baseline, value / baseline)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
