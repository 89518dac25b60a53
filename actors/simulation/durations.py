"""Durations as a scenario writes them: `90s`, `1h 30m`, and ranges such as `2m..5m`. Pure."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Final

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_WHOLE: Final = re.compile(rf"{_PART.pattern}(?: ?{_PART.pattern})*", re.ASCII)
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
LONGEST_S: Final = 30 * 86_400.0
ALLOWED: Final = "write a duration such as 90s, 5m or 1h 30m (ms, s, m, h, d), at most 30d"
ALLOWED_SPAN: Final = f"{ALLOWED}, or a range such as 2m..5m"


@dataclass(frozen=True, slots=True)
class Span:
    """How long something takes: anything from `low_s` to `high_s`, each as likely as the other."""

    low_s: float
    high_s: float

    def draw(self, rng: random.Random) -> float:
        """One length of it, in whole milliseconds, so that it is written down as it is."""
        return round(rng.uniform(self.low_s, self.high_s), 3)


def parse_duration(text: str) -> float:
    """The seconds of a duration. Raises `ValueError`."""
    text = text.strip()
    if len(text) > 64 or _WHOLE.fullmatch(text) is None:
        raise ValueError(text)
    seconds = round(sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text)), 3)
    if seconds > LONGEST_S:
        raise ValueError(text)
    return seconds


def parse_span(text: str) -> Span:
    """The span of a duration, or of a range of them. Raises `ValueError`."""
    low, dots, high = text.partition("..")
    low_s = parse_duration(low)
    span = Span(low_s, parse_duration(high) if dots else low_s)
    if span.high_s < span.low_s:
        raise ValueError(text)
    return span


def duration_text(seconds: float) -> str:
    """A duration for people, in at most two units."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f}ms"
    if seconds < 60:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    whole = round(seconds)
    for unit, name, smaller, smaller_name in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= unit:
            rest = whole % unit // smaller
            return f"{whole // unit}{name}" + (f" {rest}{smaller_name}" if rest else "")
    return f"{whole}s"
