"""What the tests of the simulated world have happen in it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kizuki.actors import Actor, Gateway, GatewayConfig, KizukiError
from kizuki.actors.simulation.disk import Disk
from kizuki.actors.simulation.faults import Fault
from kizuki.actors.simulation.plan import Extent, draw_faults
from kizuki.actors.simulation.process import Host, Process, ProcessCrashed
from kizuki.actors.simulation.world import World

T = TypeVar("T")

MANAGER = "agent:main:main"
WORKERS = tuple(f"agent:main:subagent:worker-{number}" for number in range(4))
WORKER = WORKERS[0]


async def opened(world: World, name: str = "a", host: Host | None = None) -> Process:
    """A process whose manager watches its worker."""
    process = await world.start(name, host)
    await process.call(lambda gateway: gateway.open_session(MANAGER))
    await process.call(lambda gateway: gateway.spawn(MANAGER, WORKER, run_id="run-1"))
    return process


async def message(gateway: Gateway) -> bool:
    """A person steps in; whether that was recorded."""
    return await gateway.human_message(WORKER, channel="telegram") is not None


async def turn(gateway: Gateway) -> list[str]:
    """One turn of the manager that lasts a second."""
    async with gateway.turn(MANAGER) as current:
        await asyncio.sleep(1)
        return current.prompt_lines()


async def busy_life(world: World) -> None:
    """Two gateways, five sessions, thirty operations; a process that dies is started again."""
    for number in range(30):
        try:
            async with asyncio.timeout(60):  # a dispatch may hang
                await _operation(world, await _running(world, world.random.choice("ab")), number)
        except (ProcessCrashed, KizukiError, TimeoutError, asyncio.CancelledError) as error:
            world.note("world", f"{type(error).__name__} at {number}")
        await world.sleep(world.random.uniform(0, 0.1))


async def _running(world: World, name: str) -> Process:
    return world.process(name) or await world.start(name, Host(config=GatewayConfig(poll_interval_s=0.5)))


async def _operation(world: World, process: Process, number: int) -> None:
    worker = world.random.choice(WORKERS)
    work: Sequence[Callable[[Gateway], Awaitable[object]]] = (
        lambda gateway: gateway.open_session(MANAGER),
        lambda gateway: gateway.spawn(MANAGER, worker, run_id=f"run-{number}"),
        lambda gateway: gateway.human_message(worker, channel="telegram", dedupe_key=f"message-{number}"),
        lambda gateway: gateway.goal_changed(worker, "updated", actor=Actor.agent(MANAGER)),
        lambda gateway: gateway.sessions_send(MANAGER, worker, "how is it going?", watch=True, timeout_s=1),
        turn,
    )
    answer = await process.call(world.random.choice(work) if number else work[0])
    world.note(process.name, f"answer {answer!r}")


def trace_of(seed: int, disk: Disk) -> str:
    """The trace of a busy life with the faults that this seed draws."""
    with World(seed, disk=disk) as quiet:
        quiet.run(busy_life)
    faults = draw_faults(random.Random(f"{seed}/faults"), Extent.of(quiet), crashes_max=2, others_max=5)
    with World(seed, faults, disk=disk) as world:
        world.run(busy_life)
    return world.trace.text()


def run(story: Callable[[World], Awaitable[T]], *faults: Fault, seed: int = 1) -> tuple[T, World]:
    """The story's result, and the world that it has happened in."""

    async def told(world: World) -> T:
        return await story(world)

    with World(seed, faults) as world:
        return world.run(told, steps_max=2_000_000), world
