"""One simulated process: a gateway, the host's code beside it, and a loop of its own that can die at any step."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from ...storage.sqlite.transaction import OPENINGS_MAX
from ...storage.writes import Commit, Write
from ..config import GatewayConfig
from ..gateway import Gateway, running
from ..sending import Dispatched
from ..system import ActorSystem
from ..upstream.catalog import Catalog
from ..upstream.recent import AskTexts
from .clock import VirtualClock
from .disk import Disk
from .failing import fail_dispatch, fail_wake, worse
from .faults import CallCancelled, CommitFails, Counted, CrashAtStep, DispatchFails, Fault, HintsDelayed, WakeFails
from .injector import Injector
from .inline import BETWEEN_COMMIT_AND_REPLY, Fate, SimulatedStore
from .loop import Scheduler, bridge
from .presence import SimulatedPresence

T = TypeVar("T")

WakeScript = Callable[["Process", str, tuple[str, ...]], Awaitable[bool | None] | bool | None]
"""A host's wake callback: the process, the session's key, the reasons."""
DispatchScript = Callable[["Process", str, str, str], Dispatched | Awaitable[Dispatched]]
"""A host's dispatch: the process, the sender, the receiver, the message."""


class ProcessCrashed(Exception):
    """The process died before it answered. Whether what was asked of it took effect is for the database to tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What stands around a gateway; the world gives each new life of a process the same."""

    config: GatewayConfig = field(default_factory=GatewayConfig)
    wake: WakeScript | None = None
    """None: every wake is answered with None."""
    dispatch: DispatchScript | None = None
    """None: what is sent is delivered to whom it was sent to."""
    recent_texts: AskTexts | None = None
    openings_max: int = OPENINGS_MAX
    """How many notices a commit opens for its events; what is beyond that is owed, and opened by later commits."""
    catalogs: Iterable[Catalog] = ()


class Around(Protocol):
    """The world as its processes know it: what they share, and whom they tell."""

    scheduler: Scheduler
    clock: VirtualClock
    disk: Disk
    injector: Injector
    processes: list[Process]
    """Every life of every process, in the order of their starts."""
    living: set[int]
    """The registered gateways whose processes run."""

    def latency_s(self) -> float:
        """How long the next hop to or from the database takes."""
        ...

    def new_session_id(self) -> str:
        """The next session id."""
        ...

    def steps_before(self, name: str) -> int:
        """How many steps the earlier lives of the process took."""
        ...

    def note(self, gateway: str, what: str) -> None:
        """Add a line to the trace."""
        ...

    def started(self, process: Process) -> None: ...

    def crashed(self, process: Process, why: str) -> None: ...

    def stopped(self, process: Process, error: BaseException | None) -> None: ...

    def committed(self, process: Process, writes: Sequence[Write], commit: Commit) -> None: ...

    def wrote(self, process: Process) -> None: ...

    def woken(self, process: Process, session_key: str, reasons: tuple[str, ...]) -> None: ...

    def dispatched(self, process: Process, sender: str, session_key: str) -> None: ...

    def struck(self, fault: Fault) -> None: ...


class Process:
    """One life of a simulated process. Made by `World.start`; `alive` until it is stopped or crashes."""

    def __init__(self, world: Around, name: str, host: Host) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.loop = world.scheduler.loop(name)
        self.crashed = False
        self.died_unanswered = False
        """Whether it died between a commit and its answer."""
        self._presence = SimulatedPresence(world.living)
        self._connections = world.disk.connect()
        self._gateway: Gateway | None = None
        self._stopping: asyncio.Future[None] = self.loop.create_future()
        self._answers: dict[asyncio.Future[Any], None] = {}
        self._hints_hidden = 0
        self._stoppers: list[asyncio.Future[None]] = []
        self._main: asyncio.Task[None] | None = None
        self._set_crash_step()

    # -- what a world's director does ------------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.loop.is_alive

    @property
    def gateway(self) -> Gateway:
        """The open gateway; only code on the process's own loop may call it: what `call` was given."""
        if self._gateway is None:
            raise RuntimeError(f"the gateway of {self.name} is not open yet")
        return self._gateway

    @property
    def gateway_id(self) -> int:
        """The number under which the gateway is registered in the database; 0 before."""
        return self._presence.gateway_id

    async def open(self) -> None:
        """Start the gateway. Raises what `open_gateway` raises, and `ProcessCrashed`."""
        opened = self._awaited()
        self._main = self.loop.create_task(self._serve(opened), name="gateway")
        self._main.add_done_callback(partial(self._left, opened))
        await opened

    def call(self, work: Callable[[Gateway], Awaitable[T]]) -> asyncio.Future[T]:
        """Have the process run `await work(gateway)` in a task of its own; the future is done when it is. Cancelling it cancels the task.

        Raises `ProcessCrashed` through the future if the process dies first, also if it is dead already.
        """
        caller = asyncio.get_running_loop()
        if not self.alive:
            dead: asyncio.Future[T] = caller.create_future()
            self._fail(dead)
            return dead
        task = self.loop.create_task(_work(work, self.gateway), name="host")
        answer = self._known(bridge(task, caller))
        for fault in self._due("call"):
            if isinstance(fault, CallCancelled):
                self._struck(fault)
                self.loop.call_later(fault.after_s, self._cancel_after, task, fault.after_turns)
        return answer

    def crash(self, why: str = "killed") -> None:
        """Kill the process, now. A callback of its own that is running goes on to its next await; so call it from elsewhere."""
        if not self.alive:
            return
        self.loop.die()
        self.crashed = True
        self.died_unanswered = why == BETWEEN_COMMIT_AND_REPLY
        self._presence.give_up()
        self.world.disk.disconnect(self._connections)
        self.world.crashed(self, why)
        self._fail_answers()

    def end_unseen(self) -> None:
        """Be gone with the world: nobody is told."""
        if self.alive:
            self.loop.die()
            self.world.disk.disconnect(self._connections)

    async def stop(self) -> None:
        """Leave the gateway in good order; returns when it is closed. Raises `ProcessCrashed`."""
        if self._main is None or not self.alive:
            return
        left = self._awaited()
        self._stoppers.append(left)
        if not self._stopping.done():
            self._stopping.set_result(None)
        await left

    def note(self, what: str) -> None:
        """Add a line to the trace, in the process's name."""
        self.world.note(self.name, what)

    # -- the process's own code --------------------------------------------------------------------------------------------------

    async def _serve(self, opened: asyncio.Future[None]) -> None:
        async with AsyncExitStack() as left:
            store = SimulatedStore(self._connections, self._presence, self, self.world.new_session_id, left, self.host.openings_max)
            left.push_async_callback(store.close)
            self._gateway = await left.enter_async_context(running(self._system(store), self._dispatch))
            self.world.started(self)
            _answer(opened)
            await self._stopping

    def _system(self, store: SimulatedStore) -> ActorSystem:
        return ActorSystem(
            store,
            self.world.clock,
            self.host.config,
            wake=self._wake,
            recent_texts=self.host.recent_texts,
            catalogs=self.host.catalogs,
            budget_clock=_one_mail_a_step(),
        )

    def _left(self, opened: asyncio.Future[None], main: asyncio.Task[None]) -> None:
        """The gateway is closed, and with it the process ends."""
        self.loop.die()
        self.world.disk.disconnect(self._connections)
        error = None if main.cancelled() else main.exception()
        self.world.stopped(self, error)
        for waiter in (opened, *self._stoppers):
            _answer(waiter, error)
        self._fail_answers()

    async def _wake(self, session_key: str, reasons: tuple[str, ...]) -> bool | None:
        self.world.woken(self, session_key, reasons)
        for fault in self._due("wake"):
            if isinstance(fault, WakeFails):
                self._struck(fault)
                return await fail_wake(fault.how)
        if self.host.wake is None:
            return None
        answer = self.host.wake(self, session_key, reasons)
        return await answer if inspect.isawaitable(answer) else answer

    async def _dispatch(self, sender: str, session_key: str, message: str) -> Dispatched:
        self.world.dispatched(self, sender, session_key)
        for fault in self._due("dispatch"):
            if isinstance(fault, DispatchFails):
                self._struck(fault)
                return await fail_dispatch(fault.how, session_key)
        if self.host.dispatch is None:
            return Dispatched(session_key)
        answer = self.host.dispatch(self, sender, session_key, message)
        return await answer if inspect.isawaitable(answer) else answer

    # -- what its store asks (`StoreHooks`) ------------------------------------------------------------------------------------------

    def fate_of_write(self) -> Fate:
        fate = Fate(self.world.latency_s(), self.world.latency_s())
        for fault in self._due("commit"):
            self._struck(fault)
            fate = worse(fate, fault, self.host.config.busy_timeout_s)
        return fate

    def fate_of_read(self) -> Fate:
        fails = None
        for fault in self._due("read"):
            self._struck(fault)
            fails = CommitFails(self.name, fault.number, "disk")
        return Fate(self.world.latency_s(), self.world.latency_s(), fails)

    def committed(self, writes: Sequence[Write], commit: Commit) -> None:
        self.world.committed(self, writes, commit)

    def wrote(self) -> None:
        self.world.wrote(self)

    def hides_hints(self) -> bool:
        for fault in self._due("look"):
            if isinstance(fault, HintsDelayed):
                self._struck(fault)
                self._hints_hidden = fault.looks
        self._hints_hidden -= 1
        return self._hints_hidden >= 0

    def loses_hints(self) -> bool:
        due = self._due("hints")
        for fault in due:
            self._struck(fault)
        return bool(due)

    # -- inside --------------------------------------------------------------------------------------------------------------------

    def _due(self, point: Any) -> Sequence[Counted]:
        return self.world.injector.due(point, self.name)

    def _struck(self, fault: Fault) -> None:
        self.world.struck(fault)

    def _cancel_after(self, task: asyncio.Task[Any], turns: int) -> None:
        if turns <= 0:
            task.cancel()
        elif not task.done():
            self.loop.call_soon(self._cancel_after, task, turns - 1)

    def _set_crash_step(self) -> None:
        """Steps are counted over all lives of the name."""
        due = self.world.injector.next_crash_step(self.name)
        if due is not None:
            self.loop.alarm_at_step = max(0, due.number - 1 - self.world.steps_before(self.name))
            self.loop.alarm = partial(self._crash_at_step, due)

    def _crash_at_step(self, fault: CrashAtStep) -> None:
        self.world.struck(fault)
        self.crash(f"before step {fault.number}")

    def _awaited(self) -> asyncio.Future[None]:
        """A future of whoever is asking."""
        return self._known(asyncio.get_running_loop().create_future())

    def _known(self, answer: asyncio.Future[T]) -> asyncio.Future[T]:
        """Have the answer fail if the process dies first."""
        self._answers[answer] = None
        answer.add_done_callback(self._answers.pop)
        return answer

    def _fail_answers(self) -> None:
        for answer in tuple(self._answers):
            self._fail(answer)

    def _fail(self, answer: asyncio.Future[Any]) -> None:
        if not answer.done():
            answer.set_exception(ProcessCrashed(self.name))
            answer.exception()  # whoever does not look is not to be told by the loop


async def _work(work: Callable[[Gateway], Awaitable[T]], gateway: Gateway) -> T:
    return await work(gateway)


def _answer(waiter: asyncio.Future[None], error: BaseException | None = None) -> None:
    if waiter.done():
        return
    if error is None:
        waiter.set_result(None)
    else:
        waiter.set_exception(error)


def _one_mail_a_step() -> Callable[[], float]:
    """A clock by which the runtime's time for one turn of the loop is always over, so that the world can be stopped between any two
    mails."""
    return itertools.count(0.0, 1.0).__next__
