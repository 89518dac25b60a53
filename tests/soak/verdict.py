"""Whether what was recorded of a soak has levelled off. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bound:
    """How much a series may grow over the last half of a soak: so many bytes, or this share of its level, whichever is more."""

    growth_bytes: int
    growth_share: float
    most_bytes: int | None = None
    """What it may never exceed."""


BOUNDS = {
    "memory": Bound(6 * MIB, 0.05),
    "wal": Bound(2 * MIB, 0.2, 64 * MIB),
    "database": Bound(1 * MIB, 0.1),
}
"""A write-ahead log has 64 MiB at most, by `journal_size_limit`; unhindered it stays at the 4 MiB of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one series came to."""

    name: str
    first: int
    level: float
    """The median of the last half, in bytes."""
    most: int
    growth: float
    """Over the last half, in bytes, by its slope."""
    allowed: float
    ok: bool

    def __str__(self) -> str:
        values = f"{_mib(self.first)} at first, {_mib(self.level)} in the last half, at most {_mib(self.most)}"
        return f"{'ok  ' if self.ok else 'GROWS'} {self.name}: {values}; grew {_mib(self.growth)} there, {_mib(self.allowed)} are allowed"


def judged(name: str, bound: Bound, moments_s: Sequence[float], values: Sequence[int]) -> Verdict:
    """The verdict on a series: the slope of its last half, and its highest value."""
    half = len(values) // 2
    late, moments = values[half:], moments_s[half:]
    growth = slope(moments, late) * (moments[-1] - moments[0])
    level = median(late)
    allowed = max(float(bound.growth_bytes), bound.growth_share * level)
    within = bound.most_bytes is None or max(values) <= bound.most_bytes
    return Verdict(name, values[0], level, max(values), growth, allowed, ok=growth <= allowed and within)


def slope(moments: Sequence[float], values: Sequence[int]) -> float:
    """The median of the slopes between all pairs of points, which a few high ones do not move (Theil and Sen)."""
    points = list(zip(moments, values, strict=True))
    slopes = [
        (later - earlier) / (at - before)
        for index, (before, earlier) in enumerate(points)
        for at, later in points[index + 1 :]
        if at > before
    ]
    return median(slopes) if slopes else 0.0


def _mib(size: float) -> str:
    return f"{size / MIB:.2f} MiB"
