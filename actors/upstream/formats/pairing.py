"""Counting once what rows of several kinds tell of."""

from __future__ import annotations

from dataclasses import dataclass

TOGETHER_MS = 1_000
"""Rows that tell of the same thing in other words are written within this time."""
TOLD_MAX = 100


@dataclass(frozen=True, slots=True)
class _Thing:
    key: str
    kinds: frozenset[str]
    """The kinds of rows that told of it."""
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Told:
    """What was told of lately, and by which kinds of rows.

    A kind tells of a thing once. So a row tells of what another kind told of before if that has the same key, or else was told
    at about the same time; if every such thing was told of by its own kind already, it is news.
    """

    things: tuple[_Thing, ...] = ()

    def is_news(self, kind: str, key: str, at_ms: int | None) -> bool:
        """Whether a row of this kind tells of something new."""
        return self._before(kind, key, at_ms) is None

    def after(self, kind: str, key: str, at_ms: int | None) -> Told:
        """With this row told."""
        before = self._before(kind, key, at_ms)
        if before is None:
            return Told((*self.things, _Thing(key, frozenset({kind}), at_ms))[-TOLD_MAX:])
        now = _Thing(before.key, before.kinds | {kind}, before.at_ms)
        return Told(tuple(now if thing is before else thing for thing in self.things))

    def _before(self, kind: str, key: str, at_ms: int | None) -> _Thing | None:
        open_things = [thing for thing in self.things if kind not in thing.kinds]
        same = next((thing for thing in open_things if thing.key == key), None)
        return same or next((thing for thing in open_things if _together(thing.at_ms, at_ms)), None)


def _together(one_ms: int | None, other_ms: int | None) -> bool:
    return one_ms is not None and other_ms is not None and abs(one_ms - other_ms) <= TOGETHER_MS
