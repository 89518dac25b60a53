"""Processes in a simulated world: what a crash takes with it, and what it leaves."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence

import pytest
import structlog

from kizuki.actors import Gateway, GatewayClosed, GatewayConfig
from kizuki.actors.simulation.disk import Disk
from kizuki.actors.simulation.faults import Fault, WallJump
from kizuki.actors.simulation.loop import Deadlock
from kizuki.actors.simulation.observer import Observer
from kizuki.actors.simulation.process import Host, Process, ProcessCrashed
from kizuki.actors.simulation.world import World
from kizuki.storage.writes import Commit, Write
from tests.simulation.stories import MANAGER, WORKER, message, opened, run, turn


async def long_turn(gateway: Gateway) -> None:
    """A turn that is still open when its process dies."""
    async with gateway.turn(MANAGER):
        await asyncio.sleep(100)


def test_a_crashed_gateway_is_dead_to_the_others_at_once() -> None:
    """Rule 8.2: its lock goes with it, and another gateway takes over its sessions and the notices in its open turns."""

    async def story(world: World) -> tuple[list[str], list[str]]:
        host = Host(wake=lambda process, key, _reasons: process.note(f"woken {key}"))
        one, another = await opened(world, "a", host), await world.start("b", host)
        await one.call(message)
        one.call(long_turn)
        await world.sleep(0.5)
        claimed = await another.call(turn)
        one.crash()
        await world.sleep(1)
        assert any("woken" in line and " b " in line for line in world.trace.lines)
        return claimed, await another.call(turn)

    (claimed, shown), _ = run(story)
    assert claimed == []
    assert len(shown) == 1


def test_the_hosts_code_dies_with_its_process() -> None:
    """No `finally` of a host's open turn runs after a crash, and who waits for it is told."""
    done: list[str] = []

    async def works(gateway: Gateway) -> None:
        try:
            async with gateway.turn(MANAGER):
                await asyncio.sleep(10)
        finally:
            done.append("finally")

    async def story(world: World) -> list[str]:
        process = await opened(world)
        working = process.call(works)
        await world.sleep(1)
        process.crash()
        with pytest.raises(ProcessCrashed):
            await working
        with pytest.raises(ProcessCrashed):
            await process.call(works)
        await world.sleep(100)
        return list(done)

    assert run(story)[0] == []


def test_a_process_that_is_stopped_leaves_in_good_order() -> None:
    """Stopping closes the gateway and ends the process, without a crash; what was pending is shown by whoever is left."""

    async def story(world: World) -> list[str]:
        one, another = await opened(world), await world.start("b")
        await one.call(message)
        await one.stop()
        assert not one.alive
        assert not one.crashed
        return await another.call(turn)

    shown, world = run(story)
    assert len(shown) == 1
    assert any(line.split()[1:] == ["a", "stop"] for line in world.trace.lines)


def test_a_stopped_gateway_takes_no_call() -> None:
    """A handle that outlives its gateway raises `GatewayClosed`."""

    async def story(world: World) -> None:
        process = await opened(world)
        gateway = process.gateway
        await process.stop()
        await gateway.pending(MANAGER)

    with pytest.raises(GatewayClosed):
        run(story)


def test_a_restart_finds_what_was_committed() -> None:
    """Rule 4.11: after a crash the notice is there, and its watcher is woken."""

    async def story(world: World) -> tuple[list[str], int]:
        process = await opened(world)
        await process.call(message)
        process.crash()
        await world.sleep(5)
        process = await world.start("a")
        await world.sleep(1)
        wakes = sum(" wake agent:" in line for line in world.trace.lines)
        return await process.call(turn), wakes

    (shown, wakes), _ = run(story)
    assert len(shown) == 1
    assert wakes == 1


def test_an_hour_passes() -> None:
    """An hour of a hundred sessions' lives is an hour on every clock in the world."""

    async def story(world: World) -> float:
        process = await opened(world, "a", Host(config=GatewayConfig(poll_interval_s=1)))
        for number in range(100):
            key = f"agent:main:subagent:session-{number}"
            await process.call(lambda gateway, key=key: gateway.spawn(MANAGER, key, run_id=key))  # type: ignore[misc]
            await world.sleep(36)
        return world.clock.monotonic()

    hours, world = run(story)
    assert 3600 <= hours < 3605
    assert sum("PruneEvents" in line for line in world.trace.lines) == 2


def test_a_world_that_waits_for_nothing_says_so() -> None:
    """A story that waits for what can never happen ends in `Deadlock`, also with timers of dead processes about."""

    async def story(world: World) -> None:
        process = await opened(world)
        process.crash()
        await asyncio.get_running_loop().create_future()

    with pytest.raises(Deadlock):
        run(story)


def test_a_process_runs_once_at_a_time() -> None:
    """Two lives of one process at once are the story's mistake."""

    async def story(world: World) -> None:
        await world.start("a")
        await world.start("a")

    with pytest.raises(RuntimeError, match="running already"):
        run(story)


class Counting(Observer):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def started(self, process: Process) -> None:
        self.seen.append("started")

    def crashed(self, process: Process) -> None:
        self.seen.append("crashed")

    def stopped(self, process: Process) -> None:
        self.seen.append("stopped")

    def committed(self, process: Process, writes: Sequence[Write], commit: Commit) -> None:
        if commit.recorded:
            self.seen.append("recorded")

    def woken(self, process: Process, session_key: str, reasons: tuple[str, ...]) -> None:
        self.seen.append("woken")

    def dispatched(self, process: Process, sender: str, session_key: str) -> None:
        self.seen.append("dispatched")

    def struck(self, fault: Fault) -> None:
        self.seen.append("struck")


def test_observers_see_everything_when_it_happens() -> None:
    """An observer is told of starts, commits, wakes, dispatches, faults, crashes and stops, in their order."""

    async def story(world: World) -> None:
        process = await opened(world)
        await process.call(message)
        await world.sleep(5)
        await process.call(lambda gateway: gateway.sessions_send(MANAGER, WORKER, "hello"))
        process.crash()
        await (await world.start("a")).stop()

    counting = Counting()
    with World(1, [WallJump(3, 1_000)], observers=[counting]) as world:
        world.run(story)
    expected = ["started", "recorded", "recorded", "woken", "struck", "dispatched", "crashed", "started", "stopped"]
    assert [what for what in counting.seen if what] == expected


def test_the_hosts_logging_is_left_as_it_was() -> None:
    """What the library logs is in the trace while a world runs; afterwards structlog is configured as before."""
    structlog.configure(processors=[structlog.processors.KeyValueRenderer()])
    before = structlog.get_config()

    async def story(world: World) -> None:
        one, _ = await opened(world), await world.start("b")
        one.crash()
        await world.sleep(1)

    _, world = run(story)
    assert any("another gateway is gone" in line for line in world.trace.lines)
    assert structlog.get_config() == before


def test_a_world_that_is_over_holds_nothing() -> None:
    """What died in a world goes with it: a hundred thousand worlds in one process need the memory of one."""

    async def story(world: World) -> weakref.ref[Process]:
        process = await opened(world)
        process.call(long_turn)
        await world.sleep(1)
        process.crash()
        return weakref.ref(process)

    left = run(story)[0]
    gc.collect()
    assert left() is None


def test_an_exception_of_the_story_is_the_runs() -> None:
    """What the story raises comes out of the run, and the world is cleared away all the same."""

    async def story(world: World) -> None:
        await opened(world)
        raise LookupError("no such thing")

    with Disk() as disk:
        with pytest.raises(LookupError), World(1, disk=disk) as world:
            world.run(story)
        with World(2, disk=disk):
            assert disk.look.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
