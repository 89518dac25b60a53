"""One of several hosts on one database: `python -m tests.processes.host DATABASE JOURNAL NUMBER PROCESSES EVENTS SEED`.

DATABASE is whatever `open_gateway` takes. The host opens its share of the watchers; after a line on its standard input it records its
share of the events, on all targets. It runs turns when it is woken, and now and then one of any watcher, wherever that is hosted; and it
follows every target's log. It ends when its standard input does. What it saw goes to the journal, a line at a time with the machine's
monotonic time, in one write each, so that the journal holds all that was told before a kill. Started again with the same journal it
goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import structlog

from kizuki.actors import Gateway, GatewayConfig, KizukiError, Notice, StateEvent, Turn, open_gateway

TARGETS = tuple(f"agent:main:subagent:t{number}" for number in range(8))
WATCHERS = tuple(f"agent:main:w{number}" for number in range(16))
TARGETS_EACH = 4
PRODUCERS = 4
READ_EVERY_S = 0.02
ROAM_EVERY_S = 0.05
AGAIN_S = 0.05
CONFIG = GatewayConfig(wake_coalesce_s=0.02, retention_rows=1_000_000)


def watched(watcher: str) -> tuple[str, ...]:
    """The targets that a watcher watches: each target has as many watchers."""
    first = WATCHERS.index(watcher)
    return tuple(TARGETS[(first + number) % len(TARGETS)] for number in range(TARGETS_EACH))


class BodyError(Exception):
    """What a turn raises now and then."""


class Journal:
    """Lines of JSON, appended."""

    def __init__(self, path: Path) -> None:
        self.recorded = sum(b'"recorded"' in line for line in path.read_bytes().splitlines()) if path.exists() else 0
        """Events told as recorded by the processes before this one."""
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, what: str, **values: Any) -> None:
        """One line, in one write. A line that a kill tore is ended by the newline in front."""
        line = json.dumps({"what": what, "at": time.monotonic_ns()} | values)
        os.write(self._file, f"\n{line}\n".encode())

    def notices(self, what: str, notices: Iterable[Notice]) -> None:
        """What is in a turn from now on, or was acknowledged, or is not in the turn from now on."""
        rows = [(notice.watcher, notice.target, notice.changes_since, notice.notified) for notice in notices]
        if rows:
            self.write(what, notices=rows)


class Host:
    """What one process does with its gateway. A database that is away for a while is waited for."""

    def __init__(self, journal: Journal, number: int, processes: int, dice: random.Random) -> None:
        self._journal = journal
        self._own = WATCHERS[number::processes]
        self._dice = dice
        self._woken: asyncio.Queue[str] = asyncio.Queue()
        self._stopping = asyncio.Event()

    def wake(self, key: str, reasons: tuple[str, ...]) -> None:
        """The gateway's callback: the turn comes later."""
        self._woken.put_nowait(key)

    async def run(self, gateway: Gateway, events: int) -> None:
        """Until standard input ends; what was recorded by then is read to its end."""
        await self._begin(gateway)
        self._journal.write("started")
        print("ready", flush=True)  # noqa: T201
        await asyncio.to_thread(sys.stdin.readline)
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(self._read(gateway, target)) for target in TARGETS]
            others = [group.create_task(self._serve(gateway)), group.create_task(self._serve(gateway))]
            others += [group.create_task(self._roam(gateway)), group.create_task(self._record_all(gateway, events))]
            await asyncio.to_thread(sys.stdin.read)
            for task in others:
                task.cancel()
            self._stopping.set()
            await asyncio.wait(readers)

    async def _begin(self, gateway: Gateway) -> None:
        for watcher in self._own:
            await _until_it_works(lambda watcher=watcher: gateway.open_session(watcher))
            for target in watched(watcher):
                await _until_it_works(lambda watcher=watcher, target=target: gateway.watch(watcher, target))

    async def _record_all(self, gateway: Gateway, events: int) -> None:
        left = iter(range(self._journal.recorded, events))
        await asyncio.gather(*(self._record(gateway, left) for _ in range(PRODUCERS)))
        print("recorded", flush=True)  # noqa: T201

    async def _record(self, gateway: Gateway, left: Iterable[int]) -> None:
        for _ in left:
            event = None
            while event is None:
                event = await self._human_message(gateway)
            self._journal.write("recorded", target=event.session_key, sequence=event.sequence)

    async def _human_message(self, gateway: Gateway) -> StateEvent | None:
        event = await gateway.human_message(self._dice.choice(TARGETS), channel="telegram")
        if event is None:
            await asyncio.sleep(AGAIN_S)
        return event

    async def _read(self, gateway: Gateway, target: str) -> None:
        """Follow the target's log from its beginning, a page at a time."""
        since = 0
        while True:
            stopping = self._stopping.is_set()
            with contextlib.suppress(KizukiError):
                changes = (await gateway.session_status(target, changes_since=since))["stateChanges"]
                found = [event["sequence"] for event in changes["events"]]
                if found:
                    self._journal.write("read", target=target, sequences=found)
                    since = found[-1]
                if stopping and not changes["truncated"]:
                    return
            await asyncio.sleep(0 if stopping else READ_EVERY_S)

    async def _serve(self, gateway: Gateway) -> None:
        while True:
            await self._turn(gateway, await self._woken.get(), 20)

    async def _roam(self, gateway: Gateway) -> None:
        while True:
            await asyncio.sleep(self._dice.random() * 2 * ROAM_EVERY_S)
            await self._turn(gateway, self._dice.choice(WATCHERS), 2)

    async def _turn(self, gateway: Gateway, watcher: str, notices_max: int) -> None:
        """One turn of one of three kinds. One that cannot be taken is woken for again by the gateway, or by whoever hosts the watcher."""
        try:
            async with gateway.turn(watcher, notices_max=notices_max) as turn, self._shown(turn):
                await asyncio.sleep(self._dice.random() * 0.01)
                await self._body(turn)
        except BodyError:
            pass
        except KizukiError:
            await asyncio.sleep(AGAIN_S)
            self._woken.put_nowait(watcher)

    async def _body(self, turn: Turn) -> None:
        match self._dice.randrange(4):
            case 0:
                raise BodyError
            case 1 | 2:
                await turn.acknowledge()
                self._journal.notices("acknowledged", turn.notices)

    @contextlib.asynccontextmanager
    async def _shown(self, turn: Turn) -> AsyncIterator[None]:
        self._journal.notices("shown", turn.notices)
        try:
            yield
        finally:
            self._journal.notices("over", turn.notices)


async def _until_it_works(call: Any) -> None:
    while True:
        try:
            await call()
        except KizukiError:
            await asyncio.sleep(AGAIN_S)
        else:
            return


async def run(database: str, journal: Journal, number: int, processes: int, events: int, seed: int) -> None:
    """See the module."""
    host = Host(journal, number, processes, random.Random(seed))
    async with open_gateway(database, config=CONFIG, wake=host.wake) as gateway:
        await host.run(gateway, events)


def main(arguments: list[str]) -> None:
    """See the module."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40), logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    database, journal, *numbers = arguments
    number, processes, events, seed = map(int, numbers)
    asyncio.run(run(database, Journal(Path(journal)), number, processes, events, seed))


if __name__ == "__main__":
    main(sys.argv[1:])
