"""The real SQLite code on virtual time: the same functions that run on a connection's thread run here as steps of the process's loop.

What the thread is to a real store is kept. A function is handed over, starts at a later step, and is answered at a step later still;
between commit and answer others see what was committed, and the process can die. One connection runs one function at a time, in their
order.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Final, Literal, ParamSpec, Protocol, TypeVar, cast

from ...storage.records import Neighbours
from ...storage.runner import Runner
from ...storage.sqlite.store import SqliteStore
from ...storage.sqlite.writer_lock import WriterLock
from ...storage.writes import Commit, OpenOwed, TakeHints, Write
from .disk import Connections
from .faults import CommitFails
from .presence import SimulatedPresence

P = ParamSpec("P")
T = TypeVar("T")

BETWEEN_COMMIT_AND_REPLY: Final = "between commit and reply"
"""How a process died that nobody was answered by, of what is committed."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one function that was handed over."""

    before_s: float = 0.0
    """Until it starts."""
    after_s: float = 0.0
    """From its end to its answer."""
    fails: CommitFails | None = None
    crash: Literal["before", "after"] | None = None
    """The process dies instead of running it, or of being answered."""


class StoreHooks(Protocol):
    """What a store asks the world, and tells it."""

    def fate_of_write(self) -> Fate: ...

    def fate_of_read(self) -> Fate: ...

    def committed(self, writes: Sequence[Write], commit: Commit) -> None:
        """The transaction has taken effect; nobody has been answered."""
        ...

    def wrote(self) -> None:
        """The transaction is over, whatever became of it."""
        ...

    def crash(self, why: str) -> None: ...

    def hides_hints(self) -> bool:
        """Whether the gateway sees no hints at this look."""
        ...

    def loses_hints(self) -> bool:
        """Whether the hints that were just taken are lost."""
        ...


@dataclass(slots=True)
class _Hop:
    future: asyncio.Future[Any]
    function: Callable[[sqlite3.Connection], Any]
    fate: Fate
    written: Callable[[Any], None] | None


class InlineRunner(Runner):
    """See `Runner`. `run_whole` counts as a write, `run` as a read."""

    def __init__(self, connection: sqlite3.Connection, hooks: StoreHooks) -> None:
        self._connection = connection
        self._hooks = hooks
        self._line: deque[_Hop] = deque()
        self._fate: Callable[[], Fate] = hooks.fate_of_read
        self._closed = False
        self.written: Callable[[Any], None] | None = None
        """Told of the result of the function that is handed over next, when it has run."""

    async def run_whole(self, function: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._fate = self._hooks.fate_of_write
        return await super().run_whole(function, *args, **kwargs)

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    def hand_over(self, function: Callable[[sqlite3.Connection], T], answer: asyncio.Future[T]) -> None:
        if self._closed:
            raise ValueError("Connection closed")
        hop = _Hop(answer, function, self._fate(), self.written)
        self._fate, self.written = self._hooks.fate_of_read, None
        self._line.append(hop)
        if len(self._line) == 1:
            self._begin(hop)

    async def close(self) -> None:
        """Take no more functions."""
        self._closed = True

    def _begin(self, hop: _Hop) -> None:
        _after(hop.fate.before_s, self._execute)

    def _execute(self) -> None:
        hop = self._line[0]
        if hop.fate.crash == "before":
            self._hooks.crash("before its commit")
            return
        result, error = self._run(hop)
        if hop.written is not None:
            if error is None:
                hop.written(result)
            self._hooks.wrote()
        if hop.fate.crash == "after":
            self._hooks.crash(BETWEEN_COMMIT_AND_REPLY)
            return
        _after(hop.fate.after_s, self._answer, result, error)

    def _run(self, hop: _Hop) -> tuple[Any, BaseException | None]:
        try:
            return hop.function(self._seen(hop.fate)), None
        except Exception as error:  # noqa: BLE001 - it is the caller's, who gets it as an answer
            return None, error

    def _seen(self, fate: Fate) -> sqlite3.Connection:
        return self._connection if fate.fails is None else cast(sqlite3.Connection, _Failing(self._connection, fate.fails))

    def _answer(self, result: Any, error: BaseException | None) -> None:
        hop = self._line.popleft()
        if not hop.future.done():
            if error is None:
                hop.future.set_result(result)
            else:
                hop.future.set_exception(error)
        if self._line:
            self._begin(self._line[0])


def _after(delay_s: float, callback: Callable[..., None], *args: Any) -> None:
    loop = asyncio.get_running_loop()
    if delay_s:
        loop.call_later(delay_s, callback, *args)
    else:
        loop.call_soon(callback, *args)


class SimulatedStore(SqliteStore):
    """The SQLite store of one simulated gateway."""

    def __init__(
        self,
        connections: Connections,
        presence: SimulatedPresence,
        hooks: StoreHooks,
        new_session_id: Callable[[], str],
        left: AsyncExitStack,
        openings_max: int,
    ) -> None:
        self.openings_max = openings_max
        self._runner = InlineRunner(connections.writer, hooks)
        readers = [InlineRunner(connections.reader, hooks) for _ in range(2)]
        # All processes are in this one, and write one after the other: there is no checkpoint beside a commit to be kept out.
        lock = WriterLock(presence.nowhere, needed=False)
        super().__init__(self._runner, readers, presence, lock, new_session_id, left)
        self._hooks = hooks
        for runner in (self._runner, *readers):
            left.push_async_callback(runner.close)
        left.push_async_callback(self._runner.run, _give_up, presence)

    async def commit(self, writes: Sequence[Write], *, busy_timeout_s: float) -> Commit:
        writes = [self._sliced(write) for write in writes]
        self._runner.written = lambda commit: self._hooks.committed(writes, commit)
        commit = await super().commit(writes, busy_timeout_s=busy_timeout_s)
        if any(isinstance(write, TakeHints) for write in writes) and self._hooks.loses_hints():
            kept = (() if isinstance(write, TakeHints) else result for write, result in zip(writes, commit.results, strict=True))
            return replace(commit, results=tuple(kept))
        return commit

    def _sliced(self, write: Write) -> Write:
        """What is owed is opened in slices that are no larger than what a commit opens."""
        return replace(write, limit=self.openings_max) if isinstance(write, OpenOwed) and write.watcher is None else write

    async def neighbours(self) -> Neighbours:
        seen = await super().neighbours()
        return replace(seen, hinted=False) if self._hooks.hides_hints() else seen


def _give_up(_connection: sqlite3.Connection, presence: SimulatedPresence) -> None:
    presence.give_up()


class _Failing:
    """The connection, as a function sees it that is to fail: one statement does as SQLite would, and the rollback after it works."""

    def __init__(self, connection: sqlite3.Connection, fault: CommitFails) -> None:
        self._connection = connection
        self._fault = fault
        self._statements = 0
        self._failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        self._pass(sql)
        return self._connection.execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        self._pass(sql)
        return self._connection.executemany(sql, *args)

    def _pass(self, sql: str) -> None:
        if self._failed or sql.startswith(("PRAGMA", "ROLLBACK")):
            return
        self._statements += 1
        if self._is_due(sql):
            self._failed = True
            self._fail(sql)

    def _is_due(self, sql: str) -> bool:
        match self._fault.how:
            case "locked":
                return True  # BEGIN IMMEDIATE is the first
            case "disk":
                return self._statements >= self._fault.statement or sql == "COMMIT"
            case _:
                return sql == "COMMIT"

    def _fail(self, sql: str) -> None:
        if self._fault.how == "committed":
            self._connection.execute(sql)
        elif self._fault.how == "rolled_back":
            self._connection.execute("ROLLBACK")
        locked = self._fault.how == "locked"
        error = sqlite3.OperationalError("database is locked" if locked else "disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY if locked else sqlite3.SQLITE_IOERR
        raise error
