"""Counting once what rows of several kinds tell of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """How often each kind of row has told of something lately.

    Every kind tells of all of it or of nothing, in the same order, and what is told by one kind follows closely on what is told
    by another. So the n-th telling is news for the kind that comes to it first, and the others repeat it.
    """

    counts: tuple[tuple[str, int], ...] = ()

    def is_news(self, kind: str) -> bool:
        """Whether a row of this kind would tell of something that no other kind has told of."""
        return self._count(kind) >= max((count for _, count in self.counts), default=0)

    def after(self, kind: str) -> Told:
        """With one more row of this kind."""
        others = tuple((other, count) for other, count in self.counts if other != kind)
        return Told((*others, (kind, self._count(kind) + 1)))

    def _count(self, kind: str) -> int:
        return dict(self.counts).get(kind, 0)
