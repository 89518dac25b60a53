"""The state that is to come, as the oracle works it out: what is expected of cursors, heads and rows, beside the state before. Pure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .durable import Address, Change, Cursor, Event, Head, Pair

NEW_ID: Final = ""
"""A session id that was never seen before."""


class Position(NamedTuple):
    """A cursor as it is expected."""

    last_seen: int
    notified: int
    renewed_from: int
    renewed_to: int

    @classmethod
    def of(cls, cursor: Cursor) -> Position:
        """As it is."""
        return cls(cursor.last_seen, cursor.notified, cursor.renewed_at, cursor.renewed_at)

    @property
    def is_open(self) -> bool:
        """Whether a notice is pending on it."""
        return self.notified > self.last_seen


class ExpectedRow(NamedTuple):
    """A session's row as it is expected."""

    session_id: str
    parent: str | None
    label: str | None


News = dict[str | None, int]
"""The last notifying sequence by actor: an agent's key, or None for everybody else (rule 4.6)."""


@dataclass(slots=True)
class Draft:
    """The state after some effects, as far as it differs from the state before."""

    change: Change
    news_before: dict[Address, News]
    first: Mapping[tuple[Address, str, str], Event]
    """The log before, by dedupe key."""
    cursors: dict[Pair, Position | None] = field(default_factory=dict)
    heads: dict[Address, Head] = field(default_factory=dict)
    rows: dict[Address, ExpectedRow | None] = field(default_factory=dict)
    news: dict[Address, News] = field(default_factory=dict)
    explained: int = 0
    """How many of the new events are."""
    deleted: frozenset[Address] = frozenset()
    """Sessions whose events so far are gone."""

    def copy(self) -> Draft:
        """To go on from, in another direction."""
        parts = (dict(self.cursors), dict(self.heads), dict(self.rows), dict(self.news))
        return Draft(self.change, self.news_before, self.first, *parts, self.explained, self.deleted)

    def cursor(self, pair: Pair) -> Position | None:
        """The cursor, if there is one; an opening that is owed counts as made, and renews whenever it is made (rule 1.10)."""
        if pair in self.cursors:
            return self.cursors[pair]
        before = self.change.before.cursors.get(pair)
        if before is not None and pair in self.change.before.owed:
            return Position(before.last_seen, self.change.before.owed[pair], 0, sys.maxsize)
        return None if before is None else Position.of(before)

    def cursors_where(self, watcher: str | None = None, target: Address | None = None) -> Iterator[tuple[Pair, Position]]:
        """All cursors of a watcher, or on a target."""
        for pair in [*self.change.before.cursors, *(pair for pair in self.cursors if pair not in self.change.before.cursors)]:
            if (watcher is None or pair[0] == watcher) and (target is None or pair[1] == target):
                position = self.cursor(pair)
                if position is not None:
                    yield pair, position

    def head(self, address: Address) -> Head:
        """The head, of zeros where there is none."""
        return self.heads.get(address) or self.change.before.heads.get(address) or Head(0, 0)

    def row(self, address: Address) -> ExpectedRow | None:
        """The session's row, if there is one."""
        if address in self.rows:
            return self.rows[address]
        before = self.change.before.rows.get(address)
        return None if before is None else ExpectedRow(*before)

    def ensure(self, address: Address) -> ExpectedRow:
        """The session's row, made if need be."""
        row = self.row(address)
        if row is None:
            row = self.rows[address] = ExpectedRow(NEW_ID, None, None)
        return row

    def news_of(self, address: Address) -> News:
        """The last notifying sequences of a session."""
        return self.news.get(address) or self.news_before.get(address) or {}

    def material(self, pair: Pair, last_seen: int) -> int:
        """The last change by another actor, at least what was seen (rule 4.6)."""
        watcher, target = pair
        return max([last_seen, *(sequence for actor, sequence in self.news_of(target).items() if actor != watcher)])

    def take(self, fits: Callable[[Event], bool]) -> Event | None:
        """The next new event, if it is what the operation records."""
        new = self.change.new
        if self.explained < len(new) and fits(new[self.explained]):
            self.explained += 1
            return new[self.explained - 1]
        return None

    def holds(self, address: Address, kind: str, dedupe_key: str) -> bool:
        """Whether an event with the dedupe key is kept (rule 1.6)."""
        key = (address, kind, dedupe_key)
        before = address not in self.deleted and key in self.first
        return before or any((event.address, event.kind, event.dedupe_key) == key for event in self.change.new[: self.explained])
