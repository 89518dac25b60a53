"""A simulated world: several processes with their gateways on one database file, on virtual time, and everything that can go wrong.

    async def story(world: World) -> list[str]:
        a = await world.start("a")
        await a.call(lambda gateway: gateway.open_session("agent:main:main"))
        await world.sleep(60)                          # a minute of everybody's life
        a.crash()
        a = await world.start("a")                     # the same database, a new life
        return await a.call(my_turn)                   # async def my_turn(gateway): async with gateway.turn(...) as turn: ...

    with World(seed=7, faults=[CrashAtCommit("a", 12, committed=True)]) as world:
        lines = world.run(story)
    world.trace.lines, world.injector.struck

The story is the director: it lives on a loop of its own, which never crashes, and asks the processes. Everything that a host would do
belongs into `Process.call`, so that it dies with its process; the director then gets `ProcessCrashed`. A run is a pure function of the
story, the seed and the faults: draw from `world.random` alone, and let no set decide an order. Real are the gateway, the actors and
SQLite; simulated are the clock, the threads, the presence locks and whatever the story plays.

A dispatch that hangs, or a call into a stalled process, is waited for as long as the story waits: put `asyncio.timeout` around a call,
which is virtual, too. Else the gateways' timers go on for ever, and only `steps_max` ends the run.

`seed` decides how long the database takes and which process runs next (`order="seeded"`), and what `world.random` gives; with
`order="fifo"` everything takes no time and the processes take turns. Worlds that follow one another share a `Disk`, which is far faster.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar

from ...storage.writes import Commit, Write
from .clock import VirtualClock
from .disk import Disk
from .faults import CrashAtTime, Fault, Stall, WallJump
from .inboxes import small_inboxes
from .injector import Injector
from .logs import captured_logs
from .loop import NEVER, Scheduler
from .observer import Observer
from .process import Host, Process
from .trace import Trace

T = TypeVar("T")

START_MS: Final = 1_767_225_600_000
"""2026-01-01, when every world begins."""
LATENCY_S: Final = (0.00005, 0.002)
"""Shortest and longest time of a hop to the database and back, each way."""
DIRECTOR: Final = "world"


class World:
    """See the module. Entered once, run once."""

    def __init__(
        self,
        seed: int = 0,
        faults: Sequence[Fault] = (),
        *,
        order: Literal["seeded", "fifo"] = "seeded",
        disk: Disk | None = None,
        start_ms: int = START_MS,
        traced: bool = True,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.seed = seed
        self.injector = Injector(faults)
        self.trace = Trace(kept=traced)
        self.random = random.Random(f"{seed}/story")
        """For the story's own decisions."""
        self.scheduler = Scheduler(random.Random(f"{seed}/order") if order == "seeded" else None)
        self.clock = VirtualClock(self.scheduler, start_ms)
        self.observers = list(observers)
        self.processes: list[Process] = []
        """Every life of every process, in the order of their starts."""
        self.living: set[int] = set()
        """The registered gateways whose processes run."""
        self.on_crash: Callable[[Process], None] | None = None
        """Called after a crash, for whoever starts the process again; on the director's loop."""
        self._latency = random.Random(f"{seed}/latency") if order == "seeded" else None
        self._own_disk = disk is None
        self.disk = disk or Disk()
        self._loop = self.scheduler.loop(DIRECTOR)
        self._sessions = 0

    def __enter__(self) -> Self:
        self.disk.clear()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """End the world: processes that still run die like all the others, unseen."""
        for process in self.processes:
            process.end_unseen()
        with captured_logs(_nowhere):
            self.scheduler.close()
        if self._own_disk:
            self.disk.close()

    def run(self, story: Callable[[World], Coroutine[Any, Any, T]], *, steps_max: int = NEVER) -> T:
        """Run the story to its end. Raises what it raises, `Deadlock` if it waits for what can never happen, and `OutOfSteps`."""
        for inbox in self.injector.inboxes():
            self.struck(inbox)
        for fault in self.injector.timed():
            self._loop.call_later(fault.at_s, self._strike, fault)
        with captured_logs(self._log), small_inboxes(self.injector.inbox_size()):
            return self.scheduler.run_until(self._loop.create_task(story(self)), steps_max=steps_max)

    # -- for the story --------------------------------------------------------------------------------------------------------------

    async def start(self, name: str, host: Host | None = None) -> Process:
        """Start a process and open its gateway; without a host it gets that of its last life. Raises what `Process.open` raises."""
        if any(process.alive and process.name == name for process in self.processes):
            raise RuntimeError(f"the process {name} is running already")
        process = Process(self, name, host or self._last_host(name))
        self.processes.append(process)
        self.note(name, "start")
        await process.open()
        return process

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.clock.sleep(seconds)

    def calm(self) -> None:
        """Let no fault strike any more; one that lasts, lasts."""
        self.injector.disarm()
        for process in self.processes:
            process.loop.alarm_at_step = NEVER

    def problems(self) -> list[tuple[str, dict[str, Any]]]:
        """What asyncio's exception handlers were called with, by process; a dead process has none after its death. Some are found only when
        garbage is collected, so they are in no trace."""
        loops = [self._loop, *(process.loop for process in self.processes)]
        return [(loop.name, problem) for loop in loops for problem in loop.problems]

    def process(self, name: str) -> Process | None:
        """The running process of this name."""
        return next((process for process in reversed(self.processes) if process.name == name and process.alive), None)

    def note(self, gateway: str, what: str) -> None:
        """Add a line to the trace."""
        self.trace.note(self.clock.elapsed_ms, gateway, what)

    # -- what processes ask and tell ---------------------------------------------------------------------------------------------------

    def latency_s(self) -> float:
        """How long the next hop to or from the database takes."""
        return 0.0 if self._latency is None else self._latency.uniform(*LATENCY_S)

    def new_session_id(self) -> str:
        """The next session id; never the same twice in a world."""
        self._sessions += 1
        return f"00000000-0000-4000-8000-{self._sessions:012d}"

    def steps_before(self, name: str) -> int:
        """How many steps the earlier lives of the process took."""
        return sum(process.loop.steps for process in self.processes if process.name == name)

    def started(self, process: Process) -> None:
        self.note(process.name, f"open as gateway {process.gateway_id}")
        for observer in self.observers:
            observer.started(process)

    def crashed(self, process: Process, why: str) -> None:
        self.note(process.name, f"crash {why}")
        for observer in self.observers:
            observer.crashed(process)
        if self.on_crash is not None:
            self._loop.call_soon(self.on_crash, process)

    def stopped(self, process: Process, error: BaseException | None) -> None:
        self.note(process.name, "stop" if error is None else f"stop {error!r}")
        for observer in self.observers:
            observer.stopped(process)

    def committed(self, process: Process, writes: Sequence[Write], commit: Commit) -> None:
        if self.trace.kept:
            number = self.injector.occasions["commit", process.name]
            self.note(process.name, f"commit {number} {_kinds(writes)} recorded={commit.recorded} opened={len(commit.opened)}")
        for observer in self.observers:
            observer.committed(process, writes, commit)

    def wrote(self, process: Process) -> None:
        for observer in self.observers:
            observer.wrote(process)

    def woken(self, process: Process, session_key: str, reasons: tuple[str, ...]) -> None:
        self.note(process.name, f"wake {session_key} for {' '.join(reasons)}")
        for observer in self.observers:
            observer.woken(process, session_key, reasons)

    def dispatched(self, process: Process, sender: str, session_key: str) -> None:
        self.note(process.name, f"dispatch {sender} -> {session_key}")
        for observer in self.observers:
            observer.dispatched(process, sender, session_key)

    def struck(self, fault: Fault) -> None:
        """A fault strikes."""
        self.injector.struck.append(fault)
        self.note(getattr(fault, "gateway", DIRECTOR), f"fault {fault!r}")
        for observer in self.observers:
            observer.struck(fault)

    # -- inside -----------------------------------------------------------------------------------------------------------------------

    def _strike(self, fault: CrashAtTime | WallJump | Stall) -> None:
        if not self.injector.is_armed:
            return
        if isinstance(fault, WallJump):
            self.struck(fault)
            self.clock.set_wall(fault.by_ms)
            return
        process = self.process(fault.gateway)
        if process is None:
            return
        self.struck(fault)
        if isinstance(fault, Stall):
            process.loop.stall(fault.for_s)
        else:
            process.crash("by the clock")

    def _last_host(self, name: str) -> Host:
        return next((process.host for process in reversed(self.processes) if process.name == name), Host())

    def _log(self, gateway: str, line: str) -> None:
        self.note(gateway, f"log {line}")


def _kinds(writes: Sequence[Write]) -> str:
    if len(writes) == 1:
        return type(writes[0]).__name__
    counts = Counter(type(write).__name__ for write in writes)
    return " ".join(name if count == 1 else f"{name}*{count}" for name, count in counts.items())


def _nowhere(_gateway: str, _line: str) -> None:
    """What a dead process logs."""
