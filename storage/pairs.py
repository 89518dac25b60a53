"""Rows of the table `cursors`: one (watcher, target) pair each, by the ids of their heads. Pure, and the same for every database."""

from __future__ import annotations

from typing import NamedTuple

from .heads import Latest, material
from .records import Address, Cursor, Opened, Positions
from .rows import Row

PAIR_COLUMNS = (
    "c.watcher_id, c.target_id, w.session_key, t.session_key, t.agent_id, c.renewed_at, c.last_seen, c.notified, "
    "t.latest_actor, t.latest_sequence, t.other_actor, t.other_sequence"
)
"""What `Pair.of` takes, 12 of them: of cursors c, the watcher's head w and the target's head t."""

LATEST_BY_ANOTHER = "CASE WHEN t.latest_actor = w.session_key THEN t.other_sequence ELSE t.latest_sequence END"
"""In the database what `heads.latest_by_another` gives."""

OPENABLE = f"c.notified <= c.last_seen AND c.last_seen < {LATEST_BY_ANOTHER}"
"""A clean pair with something material: what an opening is owed to."""


class Pair(NamedTuple):
    """A cursor with all that the cursor machine asks for."""

    watcher_id: int
    target_id: int
    watcher: str
    target: Address
    renewed_at: int
    positions: Positions

    @classmethod
    def of(cls, row: Row) -> Pair:
        """From a row of `PAIR_COLUMNS`."""
        watcher_id, target_id, watcher, key, agent, renewed_at, last_seen, notified, *latest = row
        positions = Positions(last_seen, notified, material(Latest(*latest), watcher, last_seen))
        return cls(watcher_id, target_id, watcher, Address(key, agent), renewed_at, positions)

    @property
    def cursor(self) -> Cursor:
        """The pair as its watcher sees it."""
        return Cursor(self.watcher, self.target, self.positions)

    @property
    def opened(self) -> Opened:
        """The pair as it is told in `Commit.opened`."""
        return Opened(self.watcher, self.target)


class PairWrite(NamedTuple):
    """A row of `cursors`."""

    watcher_id: int
    target_id: int
    last_seen: int
    notified: int
    renewed_at: int


def write_of(pair: Pair, positions: Positions, now_ms: int) -> PairWrite:
    """The row of a pair that moved to other positions."""
    return PairWrite(pair.watcher_id, pair.target_id, positions.last_seen, positions.notified, now_ms)
