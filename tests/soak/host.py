"""One of the hosts of a soak: `python -m tests.soak.host DATABASE TRANSCRIPTS NUMBER SEED RATE`, until its standard input ends.

It does a mixture of everything that hosts do, RATE calls a second, on sessions whose number is bounded, so that whatever goes on growing
is a leak. Each second it says in a line of JSON what it has done so far and how much memory it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import structlog

from kizuki.actors import Actor, Dispatched, Gateway, GatewayConfig, KizukiError, Turn, open_gateway
from kizuki.actors.upstream.catalog import ThreadNotFound
from kizuki.actors.upstream.files.catalog import FileCatalog
from kizuki.actors.upstream.formats.formats import CLAUDE

MANAGERS = tuple(f"agent:main:m{number}" for number in range(20))
CHILDREN = tuple(f"agent:main:subagent:c{number}" for number in range(400))
THREADS = tuple(f"thread-{number}" for number in range(20))
TRANSCRIPT_MAX_BYTES = 40_000
"""A transcript that is larger goes, and comes back as a new one."""
WORKERS = 16
CONFIG = GatewayConfig(
    retention_rows=5_000, prune_interval_s=5.0, upstream_first_s=1.0, upstream_interval_s=2.0, idle_actor_s=10.0, busy_timeout_s=10.0
)

Call = Callable[["Host"], Awaitable[object]]


class BodyError(Exception):
    """What a turn raises now and then."""


class Host:
    """What one process does with its gateway."""

    def __init__(self, gateway: Gateway, transcripts: Path, dice: random.Random, woken: asyncio.Queue[str]) -> None:
        self.gateway, self.dice = gateway, dice
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._transcripts = transcripts
        self._woken = woken
        self._runs = 0

    async def load(self, rate: float) -> None:
        """So many calls a second, and a turn for whoever is woken."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work(WORKERS / rate))
            group.create_task(self._serve())

    async def _work(self, pause_s: float) -> None:
        names, weights = zip(*((call, weight) for call, weight in _CALLS.items()), strict=True)
        while True:
            await self._call(self.dice.choices(names, weights)[0])
            await asyncio.sleep(pause_s * 2 * self.dice.random())

    async def _call(self, call: Call) -> None:
        await self._counted(call.__name__.removeprefix("_"), call(self))

    async def _counted(self, name: str, answer: Awaitable[object]) -> None:
        try:
            await answer
            self.done[name] += 1
        except (KizukiError, ThreadNotFound) as error:
            self.refused[f"{name}: {type(error).__name__}"] += 1

    async def _serve(self) -> None:
        while True:
            watcher = await self._woken.get()
            await self._counted("woken", _turn_of(self, watcher))

    def run_id(self) -> str:
        """Another one each time."""
        self._runs += 1
        return f"run-{os.getpid()}-{self._runs}"

    def transcript(self) -> Path:
        """The file of one of the threads."""
        return self._transcripts / f"{self.dice.choice(THREADS)}.jsonl"

    def manager(self) -> str:
        """One of those who watch."""
        return self.dice.choice(MANAGERS)

    def child(self) -> str:
        """One of those who are watched."""
        return self.dice.choice(CHILDREN)


async def _spawn(host: Host) -> object:
    return await host.gateway.spawn(host.manager(), host.child(), run_id=host.run_id(), runtime=host.dice.choice(("subagent", "acp")))


async def _human_message(host: Host) -> object:
    return await host.gateway.human_message(host.child(), channel="telegram", dedupe_key=host.run_id())


async def _goal_changed(host: Host) -> object:
    actor = host.dice.choice((Actor.human("ada"), Actor.agent(host.manager())))
    return await host.gateway.goal_changed(host.child(), host.dice.choice(("created", "updated", "cleared")), actor=actor)


async def _run(host: Host) -> object:
    key, run_id = host.child(), host.run_id()
    await host.gateway.run_started(key, run_id)
    return await host.gateway.run_ended(key, run_id=run_id, outcome=host.dice.choice(("ok", "error", "timeout", "cancelled")))


async def _compacted(host: Host) -> object:
    return await host.gateway.compacted(host.child(), operation_id=host.run_id())


async def _turn(host: Host) -> object:
    return await _turn_of(host, host.manager())


async def _turn_of(host: Host, watcher: str) -> object:
    with contextlib.suppress(BodyError):
        async with host.gateway.turn(watcher) as turn:
            await _body(host, turn)
    return None


async def _body(host: Host, turn: Turn) -> None:
    for notice in turn.notices[:3]:
        await host.gateway.session_status(notice.target, changes_since=notice.changes_since)
    match host.dice.randrange(10):
        case 0:
            raise BodyError
        case 1 | 2:
            await turn.acknowledge()


async def _acknowledge(host: Host) -> object:
    watcher = host.manager()
    return await host.gateway.acknowledge(watcher, (await host.gateway.pending(watcher))[:5])


async def _drain(host: Host) -> object:
    return await host.gateway.drain(host.manager())


async def _watch(host: Host) -> object:
    return await host.gateway.watch(host.manager(), host.child())


async def _unwatch(host: Host) -> object:
    return await host.gateway.unwatch(host.manager(), host.child())


async def _reset(host: Host) -> object:
    return await host.gateway.reset_session(host.child())


async def _delete(host: Host) -> object:
    return await host.gateway.delete_session(host.dice.choice((host.child(), host.child(), host.manager())))


async def _send(host: Host) -> object:
    return await host.gateway.sessions_send(host.manager(), host.child(), "how far are you?", watch=host.dice.random() < 0.3, timeout_s=0)


async def _list(host: Host) -> object:
    return await host.gateway.sessions_list(limit=20, kind="subagent", with_total=True)


async def _adopt(host: Host) -> object:
    session = await host.gateway.adopt("claude", host.transcript().stem)
    return await host.gateway.watch(host.manager(), session.key)


async def _type(host: Host) -> object:
    """A person types into a tool's session; one that has become large goes, and comes back as a new one."""
    return await asyncio.to_thread(_typed, host.transcript(), host.run_id())


def _typed(path: Path, identity: str) -> None:
    if path.exists() and path.stat().st_size > TRANSCRIPT_MAX_BYTES:
        path.unlink()
        return
    said = {
        "type": "user",
        "uuid": identity,
        "origin": {"kind": "human"},
        "promptSource": "typed",
        "message": {"content": "rename it " * 40},
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")


_CALLS: dict[Call, int] = {
    _spawn: 8,
    _human_message: 30,
    _goal_changed: 6,
    _run: 6,
    _compacted: 2,
    _turn: 12,
    _acknowledge: 5,
    _drain: 3,
    _watch: 6,
    _unwatch: 4,
    _reset: 1,
    _delete: 1,
    _send: 3,
    _list: 3,
    _adopt: 2,
    _type: 8,
}


def memory_bytes() -> int:
    """What this process has in memory now."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        told = subprocess.run(["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True)
        return int(told.stdout) * 1024


async def _tell(host: Host) -> None:
    """A line each second."""
    while True:
        statistics = asdict(await host.gateway.statistics())
        line: dict[str, Any] = {
            "rss_bytes": await asyncio.to_thread(memory_bytes),
            "python_blocks": sys.getallocatedblocks(),
            "tasks": len(asyncio.all_tasks()),
            "statistics": statistics,
            "done": dict(host.done),
            "refused": dict(host.refused),
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        await asyncio.sleep(1)


async def run(database: str, transcripts: Path, number: int, seed: int, rate: float) -> None:
    """See the module."""
    woken: asyncio.Queue[str] = asyncio.Queue(maxsize=100)

    def wake(key: str, _reasons: tuple[str, ...]) -> bool:
        if woken.full():
            return False
        woken.put_nowait(key)
        return True

    async def dispatch(_sender: str, key: str, _message: str) -> Dispatched:
        return Dispatched(session_key=key)

    catalog = FileCatalog(CLAUDE, [transcripts.parent])
    async with open_gateway(database, config=CONFIG, dispatch=dispatch, wake=wake, catalogs=[catalog]) as gateway:
        host = Host(gateway, transcripts, random.Random(seed + number), woken)
        for manager in MANAGERS[number::2]:
            await gateway.open_session(manager)
        tasks = [asyncio.create_task(host.load(rate)), asyncio.create_task(_tell(host))]
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        finished, _ = await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in finished:
            task.result()


def main(arguments: list[str]) -> None:
    """See the module."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50), logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    database, transcripts, number, seed, rate = arguments
    asyncio.run(run(database, Path(transcripts), int(number), int(seed), float(rate)))


if __name__ == "__main__":
    main(sys.argv[1:])
