"""What a store remembers of the heads from one transaction to the next, so that busy sessions need not be read again for each.

It is the database's state as of this connection's last commit. So it is dropped whenever it might not be: by every write but an
append, since those change heads and cursors with statements of their own; by a transaction that fails; and when another connection has
committed, which SQLite's `data_version` tells.
"""

from __future__ import annotations

import sqlite3

from ..folds import Fold
from ..records import Address

KNOWN_MAX = 4_096


class Known(dict[Address, Fold]):
    """Folds by address, and what else need not be read again."""

    last_sequence: int | None = None
    """The highest ever given out; None: not known."""
    owed: bool | None = None
    """Whether openings are owed, to whomever; None: not known."""
    others: bool | None = None
    """Whether other gateways are registered; None: not known."""

    def forget(self) -> None:
        """Know nothing any more."""
        self.clear()
        self.last_sequence = self.owed = self.others = None


class KnownFolds:
    """What the last appends left behind."""

    def __init__(self) -> None:
        self._folds = Known()
        self._data_version: int | None = None

    def take(self, connection: sqlite3.Connection) -> Known:
        """All of them, for the write transaction that has begun; they are given back when it is committed, or lost with it."""
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        folds, self._folds = self._folds, Known()
        if version == self._data_version:
            return folds
        self._data_version = version
        return Known()

    def give_back(self, folds: Known) -> None:
        """Keep what a committed transaction knows, unless it has become too much."""
        self._folds = folds if len(folds) <= KNOWN_MAX else Known()
