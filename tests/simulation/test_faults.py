"""Every fault strikes where it says it does, and does what it says."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from kizuki.actors import Gateway, GatewayConfig, StateEvent, StoreUnavailable
from kizuki.actors.runtime import AsyncioActor
from kizuki.actors.simulation.faults import (
    CallCancelled,
    CommitFails,
    CommitSlow,
    CrashAtCommit,
    CrashAtStep,
    CrashAtTime,
    DispatchFails,
    Fault,
    HintsDelayed,
    HintsLost,
    ReadFails,
    SmallInboxes,
    Stall,
    WakeFails,
    WallJump,
)
from kizuki.actors.simulation.plan import Extent, every_crash
from kizuki.actors.simulation.process import Host, Process, ProcessCrashed
from kizuki.actors.simulation.world import START_MS, World
from tests.simulation.stories import MANAGER, WORKER, message, opened, run, turn

COMMIT = 40
"""Of gateway a, later than all that opening takes: housekeeping alone commits until then."""


async def keyed(gateway: Gateway) -> StateEvent | None:
    """A message that can be told again."""
    return await gateway.human_message(WORKER, channel="telegram", dedupe_key="once")


def kinds(world: World) -> list[str]:
    """What the log holds."""
    return [row[0] for row in world.disk.look.execute("SELECT kind FROM session_state_events ORDER BY sequence")]


async def up_to_commit(world: World, process: Process, number: int) -> None:
    """Have the gateway's next commit be the one with this number."""
    while world.injector.occasions["commit", process.name] < number - 1:
        await process.call(lambda gateway: gateway.watch(MANAGER, WORKER))


@pytest.mark.parametrize("committed", [False, True])
def test_a_crash_at_a_commit(committed: bool) -> None:
    """The process dies before the commit, or between commit and reply: the caller knows neither, and tells it again by its dedupe key."""

    async def story(world: World) -> tuple[list[str], StateEvent | None]:
        process = await opened(world)
        await up_to_commit(world, process, COMMIT)
        with pytest.raises(ProcessCrashed):
            await process.call(keyed)
        before = kinds(world)
        return before, await (await world.start("a")).call(keyed)

    (before, event), world = run(story, CrashAtCommit("a", COMMIT, committed))
    assert before == ["child_spawned", "human_direct_message"][: 1 + committed]
    assert event is not None
    assert event.sequence == 2
    assert world.injector.struck == [CrashAtCommit("a", COMMIT, committed)]


def crashing_everywhere(fault: Fault) -> int:
    """A short history that goes on after any crash; how many messages were acknowledged."""

    async def story(world: World) -> int:
        acknowledged = 0
        while acknowledged < 3:
            try:
                process = world.process("a") or await opened(world)
                acknowledged += await process.call(message)
            except ProcessCrashed:
                continue
        assert kinds(world).count("human_direct_message") >= acknowledged
        return acknowledged

    acknowledged, world = run(story, fault)
    assert world.injector.struck == [fault]
    return acknowledged


def test_a_process_can_die_at_every_commit_and_at_every_step() -> None:
    """Each crash that a history has room for strikes, the history goes on, and what was acknowledged is in the log."""

    async def story(world: World) -> Extent:
        process = await opened(world)
        for _ in range(3):
            await process.call(message)
        return Extent.of(world)

    extent, _ = run(story)
    crashes = list(every_crash(extent, steps=True))
    assert len(crashes) > 100
    for fault in crashes[::7]:
        assert crashing_everywhere(fault) == 3


def test_a_crash_at_a_moment() -> None:
    """The process is alive until then."""

    async def story(world: World) -> tuple[bool, bool]:
        process = await opened(world)
        await world.sleep(4.9)
        before = process.alive
        await world.sleep(0.2)
        return before, process.alive

    assert run(story, CrashAtTime("a", 5.0))[0] == (True, False)


def test_steps_are_counted_over_all_lives() -> None:
    """Two crashes at steps are two crashes, of two lives."""

    async def story(world: World) -> int:
        for _ in range(3):
            try:
                await opened(world)
                await world.sleep(60)
            except ProcessCrashed:
                continue
        return sum(process.crashed for process in world.processes)

    assert run(story, CrashAtStep("a", 50), CrashAtStep("a", 100))[0] == 2


@pytest.mark.parametrize("how", ["disk", "locked", "committed", "rolled_back"])
def test_a_commit_that_fails(how: Literal["disk", "locked", "committed", "rolled_back"]) -> None:
    """A recording whose commit fails answers None; only where COMMIT took effect all the same is the event there."""

    async def story(world: World) -> tuple[bool, float, bool, int]:
        process = await opened(world)
        await up_to_commit(world, process, COMMIT)
        before = world.clock.monotonic()
        first = await process.call(message)
        took_s = world.clock.monotonic() - before
        return first, took_s, await process.call(message), kinds(world).count("human_direct_message")

    (first, took_s, second, messages), _ = run(story, CommitFails("a", COMMIT, how, statement=2))
    assert (first, second) == (False, True)
    assert (took_s >= 5.0) == (how == "locked")
    assert messages == 1 + (how == "committed")


def test_a_disk_error_at_each_statement() -> None:
    """Whichever statement of a commit fails, nothing of it is there."""
    for statement in range(1, 12):

        async def story(world: World) -> tuple[bool, list[str]]:
            process = await opened(world)
            await up_to_commit(world, process, COMMIT)
            return await process.call(message), kinds(world)

        assert run(story, CommitFails("a", COMMIT, "disk", statement))[0] == (False, ["child_spawned"])


def test_a_read_that_fails() -> None:
    """A reading tool says that the database fails, once."""

    async def status(gateway: Gateway) -> dict[str, Any]:
        return await gateway.session_status(WORKER)

    async def story(world: World) -> int:
        process = await opened(world)
        failures = 0
        for _ in range(20):
            try:
                await process.call(status)
            except StoreUnavailable:
                failures += 1
        return failures

    assert run(story, ReadFails("a", 15))[0] == 1


def test_a_slow_store() -> None:
    """Others see what was committed before its own process is answered."""

    async def story(world: World) -> tuple[list[str], float]:
        process = await opened(world)
        await up_to_commit(world, process, COMMIT)
        before = world.clock.monotonic()
        waiting = process.call(message)
        await world.sleep(2.5)
        seen = kinds(world)
        await waiting
        return seen, world.clock.monotonic() - before

    (seen, took_s), _ = run(story, CommitSlow("a", COMMIT, before_s=2, after_s=3))
    assert seen == ["child_spawned", "human_direct_message"]
    assert 5 <= took_s < 5.1


def wakes_elsewhere(*faults: Fault) -> list[float]:
    """When the gateway that hosts the manager wakes it for what another one records, in seconds after that; for a minute."""

    async def story(world: World) -> list[float]:
        woken: list[float] = []
        host = Host(wake=lambda _process, _key, _reasons: woken.append(world.clock.monotonic()))
        await opened(world, "a", host)
        other = await world.start("b", Host())
        await world.sleep(1)
        began = world.clock.monotonic()
        await other.call(message)
        await world.sleep(60)
        return [moment - began for moment in woken]

    return run(story, *faults)[0]


def test_hints_between_gateways() -> None:
    """A hint has the host wake its session soon; a delayed one later; and one that is lost not at all."""
    (in_time,) = wakes_elsewhere()
    (delayed,) = wakes_elsewhere(*(HintsDelayed("a", number, 200) for number in range(1, 30)))
    assert in_time < 0.5
    assert 10 < delayed < 30
    assert wakes_elsewhere(HintsLost("a", 1)) == []


@pytest.mark.parametrize(("how", "again_s"), [("hang", 31), ("raise", 1), ("busy", 1), ("cancel", 1)])
def test_a_wake_callback_that_fails(how: Literal["hang", "raise", "busy", "cancel"], again_s: float) -> None:
    """Rule 4.9: a wake that raises, hangs or finds the host busy is asked again after a second."""

    async def story(world: World) -> list[str]:
        process = await opened(world)
        await process.call(message)
        await world.sleep(100)
        return [line for line in world.trace.lines if " wake agent:" in line]

    wakes, _ = run(story, WakeFails("a", 1, how))
    first, second = (int(line.split()[0]) for line in wakes)
    assert again_s * 1000 <= second - first <= again_s * 1000 + 100


@pytest.mark.parametrize(("how", "status"), [("raise", "error"), ("cancel", "error"), ("refuse", "refused"), ("reply", "timeout")])
def test_a_dispatch_that_fails(how: Literal["raise", "cancel", "refuse", "reply"], status: str) -> None:
    """`sessions_send` tells what became of the message."""

    async def send(gateway: Gateway) -> dict[str, Any]:
        return await gateway.sessions_send(MANAGER, WORKER, "hello", timeout_s=3)

    async def story(world: World) -> tuple[str, str]:
        process = await opened(world)
        return (await process.call(send))["status"], (await process.call(send))["status"]

    assert run(story, DispatchFails("a", 1, how))[0] == (status, "accepted")


def test_a_dispatch_that_hangs() -> None:
    """It harms its caller alone, who can give up."""

    async def story(world: World) -> bool:
        process = await opened(world)
        sending = process.call(lambda gateway: gateway.sessions_send(MANAGER, WORKER, "hello", timeout_s=3))
        await world.sleep(600)
        assert not sending.done()
        sending.cancel()
        return await process.call(message)

    assert run(story, DispatchFails("a", 1, "hang"))[0]


def test_a_cancelled_turn() -> None:
    """A turn that is cancelled in its body gives its notices back, byte for byte."""

    async def story(world: World) -> tuple[list[str], list[str]]:
        process = await opened(world)
        await process.call(message)
        shown = await process.call(lambda gateway: gateway.pending(MANAGER))
        with pytest.raises(asyncio.CancelledError):
            await process.call(turn)
        return [notice.text for notice in shown], await process.call(turn)

    # The calls before it: open, spawn, the message, and pending.
    (shown, again), _ = run(story, CallCancelled("a", 5, after_turns=0, after_s=0.5))
    assert len(shown) == 1
    assert again == shown


def test_a_jump_of_the_wall_clock() -> None:
    """The wall clock jumps, in both directions; timers do not."""

    async def story(world: World) -> list[int]:
        times = []
        for _ in range(3):
            times.append(world.clock.now_ms() - START_MS)
            await world.sleep(10)
        return times

    times, world = run(story, WallJump(5, 86_400_000), WallJump(15, -2 * 86_400_000))
    assert times == [0, 86_410_000, -86_380_000]
    assert world.clock.monotonic() == 30


def test_a_stalled_gateway() -> None:
    """What is asked of it is answered when it goes on."""

    async def story(world: World) -> float:
        process = await opened(world)
        await world.sleep(10 - world.clock.monotonic())
        await process.call(message)
        return world.clock.monotonic()

    assert 15 <= run(story, Stall("a", 9.5, 5.5))[0] < 15.1


def test_small_inboxes() -> None:
    """Every inbox but the log's is small while the world runs, and gateways live with it."""

    async def story(world: World) -> tuple[int, list[bool]]:
        process = await opened(world)
        size = AsyncioActor.inbox_size
        return size, [await answer for answer in [process.call(message) for _ in range(50)]]

    (size, recorded), world = run(story, SmallInboxes(1))
    assert size == 1
    assert world.injector.struck == [SmallInboxes(1)]
    assert all(recorded)
    assert AsyncioActor.inbox_size == 10_000


def test_a_start_whose_database_fails() -> None:
    """A gateway that cannot open says so, and the process is started again."""

    async def story(world: World) -> bool:
        with pytest.raises(StoreUnavailable):
            await world.start("a", Host(config=GatewayConfig(busy_timeout_s=1)))
        return (await world.start("a")).alive

    assert run(story, CommitFails("a", 1, "locked"))[0]


def test_a_take_of_unknown_outcome_wakes_whom_it_moved() -> None:
    """Rule 4.9: a turn that could not be opened, though its claim was stored and has moved the session here, leaves a wake behind."""
    woken: list[str] = []

    def wake(process: Process, session_key: str, _reasons: tuple[str, ...]) -> None:
        woken.append(f"{process.name} {session_key}")

    async def up_to_the_take(world: World) -> int:
        first = await opened(world, "a", Host(wake=wake))
        await world.start("b", Host(wake=wake))
        await first.call(message)
        return world.injector.occasions["commit", "b"]

    async def story(world: World) -> list[str]:
        await up_to_the_take(world)
        second = world.process("b")
        assert second is not None
        with pytest.raises(StoreUnavailable):
            await second.call(turn)
        assert woken == []
        await world.sleep(60)
        return await second.call(turn)

    before, _ = run(up_to_the_take)
    woken.clear()
    lines, world = run(story, CommitFails("b", before + 1, "committed"))
    assert len(world.injector.struck) == 1
    assert woken == [f"b {MANAGER}"]
    assert len(lines) == 1


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_commit_of_unknown_outcome_in_a_start(nth: int) -> None:
    """Rule 4.11: whichever commit of a start fails with an unknown outcome, what is pending is pinned anew, and its watcher is woken."""
    woken: list[str] = []

    def wake(_process: Process, session_key: str, _reasons: tuple[str, ...]) -> None:
        woken.append(session_key)

    async def up_to_the_crash(world: World) -> int:
        process = await opened(world, "a", Host(wake=wake))
        await process.call(message)
        await process.call(message)
        process.crash()
        return world.injector.occasions["commit", "a"]

    async def story(world: World) -> tuple[int, int]:
        await up_to_the_crash(world)
        try:
            await world.start("a")
        except StoreUnavailable:
            await world.start("a")
        await world.sleep(5)
        sql = "SELECT notified_sequence, material_sequence FROM session_watch_positions"
        (positions,) = world.disk.look.execute(sql).fetchall()
        return (positions[0], positions[1])

    before, _ = run(up_to_the_crash)
    woken.clear()
    (notified, material), world = run(story, CommitFails("a", before + nth, "committed"))
    assert notified == material == 3
    assert woken == [MANAGER]
    assert len(world.injector.struck) == 1
