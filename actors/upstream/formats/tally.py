"""Counting the verdicts on rows, in bounded memory."""

from __future__ import annotations

from collections import Counter

from .rows import Classified, RowClass

SHAPES_MAX = 100
OTHER_SHAPES = "other shapes"


class Tally:
    """How many rows there were of each class, and of each unknown shape."""

    def __init__(self) -> None:
        self.classes: Counter[RowClass] = Counter()
        self.shapes: Counter[str] = Counter()
        """At most `SHAPES_MAX` of them by name; the rest are counted together as `OTHER_SHAPES`."""

    def add(self, classified: Classified) -> None:
        """Count one verdict."""
        self.classes[classified.row_class] += 1
        if classified.shape is not None:
            self.shapes[self._name(classified.shape)] += 1

    def _name(self, shape: str) -> str:
        return shape if shape in self.shapes or len(self.shapes) < SHAPES_MAX else OTHER_SHAPES
