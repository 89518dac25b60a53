"""How much a suite measures: sizes and repetitions."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Scale(Enum):
    """From smallest to largest; a suite says its sizes with `pick`."""

    TINY = "tiny"
    """Everything runs once, and nothing that comes out means anything."""
    QUICK = "quick"
    """A first impression, in about a minute for all suites."""
    USUAL = "usual"
    """A few minutes for all suites."""
    FULL = "full"
    """With the sizes of a million."""

    def pick(self, tiny: T, quick: T, usual: T, full: T) -> T:
        """What goes with this scale."""
        return {Scale.TINY: tiny, Scale.QUICK: quick, Scale.USUAL: usual, Scale.FULL: full}[self]
