"""A history of the store on a recording disk: what was committed when, and what the database held after each commit."""

from __future__ import annotations

import itertools
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kizuki.storage.records import PendingRead
from kizuki.storage.sqlite import files, links, reads
from kizuki.storage.sqlite.apply import apply
from kizuki.storage.sqlite.gateways import register
from kizuki.storage.sqlite.known import KnownFolds
from kizuki.storage.sqlite.presence import Presence
from kizuki.storage.sqlite.transaction import OPENINGS_MAX, Transaction, transact
from kizuki.storage.writes import Commit, Write
from tests.power.adapter import Adapter, as_sqlite3
from tests.power.recorder import Journal, Operation, RecordingVFS
from tests.power.writing import SESSIONS, Known, batch, tell
from tests.storage.model import Model, shown_of
from tests.storage.writing import NOW

Dump = dict[str, list[tuple[Any, ...]]]
"""Every row of every table."""

DATABASE = "state.db"
BUSY_S = 1.0


@dataclass(frozen=True)
class Committed:
    """One transaction: what it was asked for, and between which operations of the disk it ran."""

    writes: tuple[Write, ...]
    openings: int
    """How many notices it might open for its events."""
    first_id: int
    """The number of the first session id that it could give out."""
    started: int
    acknowledged: int
    """How many operations there were when it was begun, and when the caller was told that it is committed."""
    dump: Dump
    """What the database held then, which the model of the rules has agreed to."""


@dataclass
class History:
    """All of it."""

    presence: Presence
    operations: list[Operation]
    empty: Dump
    """What a database holds in which nothing was ever committed."""
    commits: list[Committed] = field(default_factory=list)
    reopened: int = 0

    def dump(self, commits: int) -> Dump:
        """What the database held after so many commits."""
        return self.commits[commits - 1].dump if commits else self.empty

    def allowed(self, operations: int) -> range:
        """How many commits a database may hold after so many operations: all that were acknowledged, and none that was not begun."""
        acknowledged = sum(commit.acknowledged <= operations for commit in self.commits)
        started = sum(commit.started <= operations for commit in self.commits)
        return range(acknowledged, started + 1)


def dump_of(connection: sqlite3.Connection) -> Dump:
    """Read every table."""
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in tables}


def commit_on(
    connection: sqlite3.Connection, presence: Presence, known: KnownFolds, writes: Sequence[Write], first_id: int, openings: int
) -> tuple[Commit, int]:
    """Commit the writes as the store does, with session ids that are counted; gives the next one's number, too."""
    ids = itertools.count(first_id)

    def work() -> Commit:
        folds = known.take(connection)
        transaction = Transaction(connection, lambda: f"session-{next(ids)}", presence, openings_left=openings)
        done = apply(transaction, writes, folds)
        known.give_back(folds)
        return done

    return transact(connection, work, BUSY_S), next(ids)


@contextmanager
def recorded(
    folder: Path,
    seed: int,
    *,
    commits: int,
    synchronous: str = "full",
    drops_syncs: bool = False,
    connect: Callable[[Path, str], Adapter] = Adapter,
) -> Iterator[History]:
    """The history of a seed. Its gateway counts as alive for as long as the context lasts."""
    journal = Journal(drops_syncs=drops_syncs)
    name = f"recording-{folder.name}-{seed}"
    vfs = RecordingVFS(name, journal)
    presence = Presence(folder / DATABASE)
    try:
        player = _Player(folder / DATABASE, seed, lambda path: connect(path, name), synchronous, presence, journal)
        yield player.play(commits)
    finally:
        presence.give_up()
        vfs.unregister()


class _Player:
    """Plays one."""

    def __init__(
        self, path: Path, seed: int, connect: Callable[[Path], Adapter], synchronous: str, presence: Presence, journal: Journal
    ) -> None:
        self._path, self._connect, self._synchronous, self._presence, self._journal = path, connect, synchronous, presence, journal
        self._chance = random.Random(seed)
        self._owes = self._chance.random() < 0.5
        """Whether its transactions open so few notices that some are owed for a while."""
        self._model = Model()
        self._shown: dict[str, list[Any]] = {}
        self._known = KnownFolds()
        self._next_id = 1
        self._connection = self._open()
        self._reader: Adapter | None = None
        self._history = History(presence, journal.operations, dump_of(self._connection))

    def play(self, commits: int) -> History:
        """So many commits, and what comes between them."""
        with closing(self):
            self._register()
            while len(self._history.commits) < commits:
                self._commit()
                self._between()
        return self._history

    def close(self) -> None:
        """Close the connections, which checkpoints."""
        self._release_reader()
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        """As the store opens a file, but for the file system, and checkpoints that come much sooner."""
        connection = as_sqlite3(self._connect(self._path))
        files._prepare_for_writing(connection, self._synchronous)
        connection.execute(f"PRAGMA wal_autocheckpoint = {self._chance.choice((8, 30, 1000))}")
        return connection

    def _register(self) -> None:
        """The first commit is the gateway's own."""
        started = len(self._journal.operations)
        transact(self._connection, lambda: register(self._connection, self._presence, NOW), BUSY_S)
        self._note((), OPENINGS_MAX, 0, started)

    def _commit(self) -> None:
        writes = tuple(batch(self._chance, Known(self._shown, links.read(self._connection, False), not self._owes)))
        openings, first_id = self._chance.choice((1, 2)) if self._owes else OPENINGS_MAX, self._next_id
        started = len(self._journal.operations)
        done, self._next_id = commit_on(self._connection, self._presence, self._known, writes, first_id, openings)
        self._note(writes, openings, first_id, started)
        tell(self._model, writes, done)
        self._model.check_cursors(reads.cursors(self._connection, None), owed=done.owed)
        self._check_events()
        self._look()

    def _note(self, writes: tuple[Write, ...], openings: int, first_id: int, started: int) -> None:
        acknowledged = len(self._journal.operations)
        self._history.commits.append(Committed(writes, openings, first_id, started, acknowledged, dump_of(self._connection)))

    def _check_events(self) -> None:
        for address in SESSIONS:
            read = reads.status(self._connection, address, 0, 1000)
            assert (read is not None) == (address in self._model.parents)
            if read is not None:
                assert list(read.events) == self._model.events(address, 0)
                assert read.session.version == self._model.version(address)
                assert read.pruned_max_sequence == self._model.pruned.get(address, 0)

    def _look(self) -> None:
        for address in SESSIONS:
            read: PendingRead = reads.pending(self._connection, self._presence, address.session_key, None, ())
            known = self._shown.setdefault(address.session_key, [])
            known[:0] = [shown for shown in map(shown_of, read.cursors) if shown not in known]

    def _between(self) -> None:
        match self._chance.randrange(12):
            case 0:
                self._checkpoint()
            case 1:
                self._reopen()
            case 2:
                self._hold_reader()
            case 3 | 4:
                self._release_reader()

    def _checkpoint(self) -> None:
        self._connection.execute("PRAGMA busy_timeout = 0")
        self._connection.execute(f"PRAGMA wal_checkpoint({self._chance.choice(('PASSIVE', 'FULL', 'RESTART', 'TRUNCATE'))})")

    def _reopen(self) -> None:
        self.close()
        self._connection, self._known = self._open(), KnownFolds()
        self._history.reopened += 1

    def _hold_reader(self) -> None:
        """One who reads an old state keeps a checkpoint from its end, and the log from beginning anew."""
        self._release_reader()
        self._reader = self._connect(self._path)
        self._reader.execute("BEGIN")
        self._reader.execute("SELECT count(*) FROM heads")

    def _release_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
