"""One transaction: all of it or nothing, tried again where that is right, and looked up where its end is not known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import asyncpg

from ..errors import CommitUnknownError
from ..folds import Fold
from ..records import Address, Opened
from .failures import is_collision, is_lost, store_error
from .line import BACKOFF_FIRST_S, Database, Line

T = TypeVar("T")

OPENINGS_MAX = 256
"""How many notices one transaction opens for its events at most, however many sessions they are on; what is beyond it is owed."""
ATTEMPTS_MAX = 10
"""How often a transaction is tried that collides with others."""


class Stale(Exception):
    """What was known from before is not so any more: the transaction is to begin anew."""


@dataclass(slots=True)
class Transaction:
    """What the writes of one transaction share."""

    connection: Database
    new_session_id: Callable[[], str]
    gateway_id: int
    """0: this store is no gateway."""
    folds: dict[Address, Fold]
    """Of all sessions whose heads the transaction has locked: true until it ends, whoever else writes."""
    hosts: dict[str, int | None]
    """The hosts of sessions, as far as they are known, by key."""
    sequences: Iterator[int] | None
    """Those taken with the locks; None: they are taken when it is known how many are needed."""
    openings_left: int
    opened: list[Opened] = field(default_factory=list)
    hinted: set[int] = field(default_factory=set)
    """The gateways that are left word, and so are to be notified after the commit."""
    recorded: int = 0
    """New events."""
    moment_ms: int = 0
    """When its notices were opened."""
    has_others: bool = False
    """Whether other gateways are registered."""
    moved: set[int] = field(default_factory=set)
    """The heads of sessions that this gateway hosts from now on."""
    pending_before: set[Opened] = field(default_factory=set)
    """What those had pending then, as far as the transaction could see."""
    cursors_removed: bool = False
    """Whether what the folds say of being watched may be out of date."""

    def next_head_id(self) -> int:
        """Never asked for: a head has its id from being locked."""
        raise LookupError("a head that was not locked is to be written")


@dataclass(frozen=True, slots=True)
class Worked(Generic[T]):
    """What a transaction has done, but for the commit."""

    result: T
    transaction_id: int | None
    """Under which the server knows it; None if it has written nothing."""


Work = Callable[[Database], Awaitable[Worked[T]]]

_OUTCOME = "SELECT pg_xact_status($1::text::xid8)"


async def transact(line: Line, work: Work[T], *, busy_timeout_s: float) -> T:
    """Run `work` in a write transaction; whatever it raises comes out as a `StoreError`, with nothing applied.

    A connection lost before the commit costs nothing but time: the whole is done again on a new one, for as long as `busy_timeout_s`
    allows. One lost in the commit is asked about on a new one.
    """
    deadline_s = time.monotonic() + busy_timeout_s
    attempts = 0
    while True:
        attempts += 1
        try:
            return await _attempt(line, work, deadline_s)
        except Exception as error:
            again = isinstance(error, Stale) or is_collision(error) or (is_lost(error) and _left_s(deadline_s) > 0)
            if not again or (attempts >= ATTEMPTS_MAX and not is_lost(error)):
                raise store_error(error) from error
        await asyncio.sleep(BACKOFF_FIRST_S if attempts > 1 else 0)


def _left_s(deadline_s: float) -> float:
    return max(0.0, deadline_s - time.monotonic())


async def _attempt(line: Line, work: Work[T], deadline_s: float) -> T:
    async with line.use(within_s=_left_s(deadline_s)) as connection:
        done = await _work(connection, work, deadline_s)
        try:
            await connection.execute("COMMIT")
            return done.result
        except (OSError, EOFError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            connection.terminate()
            failed = error
    await _look(line, done.transaction_id, failed, deadline_s)
    return done.result


async def _work(connection: Database, work: Work[T], deadline_s: float) -> Worked[T]:
    """Everything up to the commit."""
    lock_ms = max(1, round(_left_s(deadline_s) * 1000))
    await connection.execute(f"BEGIN; SET LOCAL lock_timeout = {lock_ms}")
    try:
        return await work(connection)
    except BaseException:
        if not connection.is_closed():
            await connection.execute("ROLLBACK")
        raise


async def _look(line: Line, transaction_id: int | None, failed: Exception, deadline_s: float) -> None:
    """Find out whether the transaction was committed after all. Returns if it was; raises what failed if not.

    That it was not is certain. That it was is not if the server has recovered from a crash in between: what it had not written yet it has
    forgotten, and may have given the number to somebody else.
    """
    if transaction_id is None:
        raise failed
    era = line.era
    try:
        outcome = await _outcome(line, transaction_id, deadline_s)
    except Exception as error:
        raise CommitUnknownError(f"the commit's answer was lost ({failed}), and nothing can be learnt of it: {error}") from error
    if outcome not in ("committed", "in progress"):
        raise failed
    if outcome == "in progress" or line.era != era:
        raise CommitUnknownError(f"the commit's answer was lost ({failed}), and the server is not sure of it: {outcome}")


async def _outcome(line: Line, transaction_id: int, deadline_s: float) -> str | None:
    while True:
        try:
            async with line.use(within_s=_left_s(deadline_s)) as connection:
                outcome: str | None = await connection.fetchval(_OUTCOME, str(transaction_id))
        except asyncpg.InvalidParameterValueError:  # A number that it has never given out, or no longer knows that it has.
            return "aborted"
        except Exception as error:
            if not (is_lost(error) and _left_s(deadline_s)):
                raise
        else:
            if outcome != "in progress" or not _left_s(deadline_s):
                return outcome
        await asyncio.sleep(BACKOFF_FIRST_S)
