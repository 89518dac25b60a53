"""A host under load that is going to be killed: `python -m tests.crash.host DATABASE JOURNAL SEED [DIE]`.

What the gateway told it goes to the journal, a line at a time, with one write each, so that the journal holds all that was told before the
moment of the kill. `after:N` as DIE kills the process right after its N-th COMMIT has taken effect, before anybody has been answered;
`before:N` right before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import random
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import structlog

from kizuki.actors import Actor, Gateway, GatewayConfig, Notice, UnknownSession, open_gateway

MAIN = "agent:main:main"
OPS = "agent:ops:main"
LEAD = "agent:main:subagent:lead"
WATCHERS = (MAIN, OPS, LEAD)
TARGETS = tuple(f"agent:main:subagent:{number}" for number in range(12))
STEADY = TARGETS[:6]
"""What the second watcher watches from the first start on, without a break, so that all it has not seen can be told."""
PRODUCERS = 8
CONFIG = GatewayConfig(retention_rows=3_000)


class Journal:
    """Lines of JSON, appended."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, what: str, **values: Any) -> None:
        """One line, in one write."""
        os.write(self._file, (json.dumps({"what": what} | values) + "\n").encode())

    def notices(self, what: str, notices: Iterable[Notice]) -> None:
        """What was shown, or acknowledged."""
        rows = [(notice.watcher, notice.target, notice.changes_since, notice.notified) for notice in notices]
        if rows:
            self.write(what, notices=rows)


class BodyError(Exception):
    """What a turn raises now and then."""


async def produce(gateway: Gateway, journal: Journal, dice: random.Random, number: int) -> None:
    """Record events without end."""
    count = 0
    while True:
        count += 1
        target = dice.choice(TARGETS)
        event = await _recording(gateway, dice, target, f"{number}.{count}.{dice.random()}")
        if event is not None:
            journal.write("recorded", target=event.session_key, sequence=event.sequence)


def _recording(gateway: Gateway, dice: random.Random, target: str, unique: str) -> Awaitable[Any]:
    match dice.randrange(8):
        case 0:
            return gateway.goal_changed(target, "updated", actor=Actor.agent(dice.choice(WATCHERS)))
        case 1:
            return gateway.run_ended(target, run_id=unique, outcome="ok")
        case 2:
            return gateway.spawn(dice.choice((MAIN, LEAD)), target, run_id=unique)
        case 3:
            return gateway.human_message(target, channel="web", dedupe_key=str(dice.randrange(50)))
        case _:
            return gateway.human_message(target, channel="telegram")


async def serve(gateway: Gateway, journal: Journal, dice: random.Random, watcher: str) -> None:
    """Run one turn of the watcher after the other, of every kind."""
    kinds = (turn, turn, failing_turn, early_turn, drain, acknowledge)
    while True:
        with contextlib.suppress(BodyError, UnknownSession):
            await dice.choice(kinds)(gateway, journal, watcher)
        await asyncio.sleep(dice.random() * 0.01)


async def turn(gateway: Gateway, journal: Journal, watcher: str) -> None:
    async with gateway.turn(watcher) as current:
        journal.notices("shown", current.notices)
        await asyncio.sleep(0)
    journal.notices("acknowledged", current.notices)


async def failing_turn(gateway: Gateway, journal: Journal, watcher: str) -> None:
    async with gateway.turn(watcher) as current:
        journal.notices("shown", current.notices)
        raise BodyError


async def early_turn(gateway: Gateway, journal: Journal, watcher: str) -> None:
    async with gateway.turn(watcher, notices_max=2) as current:
        journal.notices("shown", current.notices)
        await current.acknowledge()
        journal.notices("acknowledged", current.notices)
        raise BodyError


async def drain(gateway: Gateway, journal: Journal, watcher: str) -> None:
    journal.write("drains", watcher=watcher)
    notices = await gateway.drain(watcher, notices_max=3)
    journal.notices("shown", notices)
    journal.notices("acknowledged", notices)
    journal.write("drained", watcher=watcher)


async def acknowledge(gateway: Gateway, journal: Journal, watcher: str) -> None:
    notices = await gateway.pending(watcher)
    journal.notices("shown", notices)
    if await gateway.acknowledge(watcher, notices) == len(notices):
        journal.notices("acknowledged", notices)


async def churn(gateway: Gateway, dice: random.Random) -> None:
    """What else happens to sessions; the steady pairs are left alone."""
    while True:
        await asyncio.sleep(dice.random() * 0.05)
        target = dice.choice(TARGETS[len(STEADY) :])
        match dice.randrange(6):
            case 0:
                await gateway.unwatch(dice.choice((MAIN, LEAD)), target)
            case 1:
                await gateway.delete_session(target)
            case 2:
                await gateway.reset_session(LEAD)
            case 3:
                await gateway.prune()
            case _:
                await gateway.watch(dice.choice((MAIN, LEAD)), dice.choice(TARGETS))


async def begin(gateway: Gateway, journal: Journal) -> None:
    """Everybody there, the steady pairs watched; where their cursors stand is written down."""
    for watcher in WATCHERS:
        await gateway.open_session(watcher)
    for target in STEADY:
        await gateway.watch(OPS, target)
    for watch in await gateway.watches(OPS):
        journal.write("watches", watcher=OPS, target=watch.target, last_seen=watch.last_seen)


async def run(database: Path, journal: Journal, seed: int) -> None:
    """Until killed."""
    dice = random.Random(seed)

    def wake(key: str, reasons: tuple[str, ...]) -> bool:
        return dice.random() < 0.5

    async with open_gateway(database, config=CONFIG, wake=wake) as gateway, asyncio.TaskGroup() as group:
        await begin(gateway, journal)
        print("ready", flush=True)  # noqa: T201
        for number in range(PRODUCERS):
            group.create_task(produce(gateway, journal, dice, number))
        for watcher in WATCHERS:
            group.create_task(serve(gateway, journal, dice, watcher))
        group.create_task(churn(gateway, dice))


class DyingConnection(sqlite3.Connection):
    """A connection that kills its process at a COMMIT."""

    moment = ""
    commits_left = 0

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql != "COMMIT":
            return super().execute(sql, *args)
        DyingConnection.commits_left -= 1
        self._die_at("before")
        result = super().execute(sql, *args)
        self._die_at("after")
        return result

    def _die_at(self, moment: str) -> None:
        if self.commits_left == 0 and self.moment == moment:
            os.kill(os.getpid(), signal.SIGKILL)


def die(order: str) -> None:
    """Let the process die as ordered."""
    moment, _, commits = order.partition(":")
    DyingConnection.moment, DyingConnection.commits_left = moment, int(commits)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    sqlite3.connect = functools.partial(connect, factory=DyingConnection)  # type: ignore[assignment]


def main(arguments: list[str]) -> None:
    """See the module."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40), logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    if len(arguments) > 3:
        die(arguments[3])
    asyncio.run(run(Path(arguments[0]), Journal(Path(arguments[1])), int(arguments[2])))


if __name__ == "__main__":
    main(sys.argv[1:])
