"""Playing a history: who is asked what, and when; gateways that die are started again.

Who is not answered asks again, by the same dedupe key, where there is one: that is what such keys are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...config import GatewayConfig
from ...errors import KizukiError
from ..oracle.oracle import Oracle
from ..oracle.violations import Violation
from ..process import Host, Process, ProcessCrashed
from .histories import History, Operation, agent_of
from .hosts import Hosts, Unanswered

if TYPE_CHECKING:
    from ..world import World

PATIENCE_S: Final = 120.0
"""How long a call may take: longer than any lock, stall and slow store together."""
ATTEMPTS: Final = 3
WAKES_WAIT_S: Final = 6.0
"""Longer than a gateway is without a look at the others."""
WAKES_WAITS: Final = 40
"""200 s: longer than a hung callback and the longest delay for a busy host together."""
GIVEN_BACK_S: Final = 45.0
TURNS_MAX: Final = 200
RETOLD: Final = frozenset({"human", "run_ended", "compacted", "spawn"})
BUSY_EVERY: Final = 5
"""Which of a host's wakes are answered with: busy."""


class Player:
    """Plays one history in a world that the oracle looks at."""

    def __init__(self, history: History, oracle: Oracle) -> None:
        self._history = history
        self._oracle = oracle
        self._reacting = history.reacts
        self._reactions: list[asyncio.Task[None]] = []
        self._wakes = 0
        self._starts: dict[str, asyncio.Task[Process]] = {}

    async def story(self, world: World) -> None:
        """Play it. Raises `Violation`."""
        self._world = world
        self._hosts = Hosts(world, self._history, self._oracle)
        self._loop = asyncio.get_running_loop()
        clients: dict[int, list[Operation]] = {}
        for operation in self._history.operations:
            clients.setdefault(operation.client, []).append(operation)
        await self._all([self._client(operations) for operations in clients.values()])
        self._reacting = False
        await self._all(self._reactions)
        await self._come_to_rest()

    async def _all(self, work: Sequence[Coroutine[Any, Any, None] | asyncio.Task[None]]) -> None:
        """Wait for all of it; the first violation ends it."""
        tasks = [asyncio.ensure_future(each) for each in work]
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()

    async def _client(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if operation.delay_s:
                await self._world.sleep(operation.delay_s)
            await self._do(operation)

    async def _do(self, operation: Operation) -> None:
        match operation.kind:
            case "later":
                await self._world.sleep(operation.lasts_s)
            case "restart":
                await self._restart(operation.gateway)
            case _:
                await self._ask_until_answered(operation)
        self._oracle.check()

    async def _ask_until_answered(self, operation: Operation) -> None:
        for attempt in range(ATTEMPTS):
            try:
                await self._ask(operation)
            except (ProcessCrashed, Unanswered, asyncio.CancelledError) as error:
                self._oracle.check()
                self._world.note(operation.gateway, f"no answer to {operation.number} {operation.kind}: {type(error).__name__}")
                if operation.kind not in RETOLD:
                    return
                self._oracle.counts["told again"] += attempt < ATTEMPTS - 1
            else:
                return

    async def _ask(self, operation: Operation) -> None:
        process = await self._running(operation.gateway)
        answer = process.call(partial(self._hosts.perform, process, operation))
        patience_s = PATIENCE_S + operation.lasts_s
        await asyncio.wait({answer}, timeout=patience_s)
        self._oracle.check()
        if not answer.done():
            answer.cancel()
            if operation.kind != "send":  # the host's own dispatch may hang
                raise Violation("1.9", f"{operation.kind} {operation.number} was not answered in {patience_s} s")
            await asyncio.wait({answer})
        answer.result()

    async def _running(self, name: str) -> Process:
        """The process of this name, started if need be. Raises `ProcessCrashed`, `Unanswered`."""
        process = self._world.process(name)
        if process is not None and name not in self._starts:
            return process
        if name not in self._starts:
            self._starts[name] = self._loop.create_task(self._start(name))
        return await asyncio.shield(self._starts[name])

    async def _start(self, name: str) -> Process:
        self._oracle.starting(name)
        try:
            return await self._world.start(name, Host(config=self._config(name), wake=self._woken, openings_max=self._history.openings_max))
        except KizukiError as error:
            if not self._oracle.has_trouble(name):
                raise Violation("1.9", f"{name} cannot start: {error}") from error
            raise Unanswered from error
        finally:
            self._oracle.start_failed(name)
            del self._starts[name]

    def _config(self, name: str) -> GatewayConfig:
        history = self._history
        language = "ja" if name in history.japanese else "en"
        return GatewayConfig(
            notices_max=history.notices_max,
            retention_rows=history.retention_rows,
            poll_interval_s=history.poll_interval_s,
            language=language,  # type: ignore[arg-type]
        )

    async def _restart(self, name: str) -> None:
        process = self._world.process(name)
        try:
            if process is not None and name not in self._starts:
                self._oracle.leaves(name)
                await process.stop()
            await self._running(name)
        except (ProcessCrashed, Unanswered):
            self._world.note(name, "restart failed")

    def _woken(self, process: Process, session_key: str, _reasons: tuple[str, ...]) -> bool | None:
        """A host that is busy now and then, and otherwise runs a turn of the session, or leaves that to the history."""
        self._wakes += 1
        if self._reacting and self._wakes % BUSY_EVERY == 0:
            self._oracle.waking.busy(session_key, self._oracle.now_ms)
            return False
        if self._reacting and session_key.startswith("agent:"):
            number = 1_000_000 + self._wakes
            turn = Operation(number, -1, 0, process.name, "turn", session_key, agent_of(session_key), lasts_s=0.1)
            self._reactions.append(self._loop.create_task(self._do(turn)))
        return None

    async def _come_to_rest(self) -> None:
        """Nothing fails any more: everybody is woken and shown all that is left, and all that was recorded is there."""
        self._world.calm()
        await self._wait_for_wakes()
        for watcher in dict.fromkeys(pair[0] for pair in self._oracle.now.cursors):
            await self._show_all(watcher)
        await self._check_statuses()
        for name in self._history.gateways:
            self._oracle.leaves(name)
            process = self._world.process(name)
            if process is not None:
                await process.stop()
        self._oracle.check()
        self._oracle.check_log()

    async def _wait_for_wakes(self) -> None:
        for _ in range(WAKES_WAITS):
            await self._start_all()
            await self._world.sleep(WAKES_WAIT_S)
            self._oracle.check()
            if not self._oracle.overdue() and not self._oracle.owed:
                return
        if self._oracle.owed:
            raise Violation("4.3", f"the notices of {sorted(self._oracle.owed)} are never opened")
        raise Violation("4.9", f"{self._oracle.overdue()} have something pending, and were not woken for it")

    async def _start_all(self) -> None:
        """A fault that was due before nothing fails any more may strike a moment later, and take the gateway down again."""
        for name in self._history.gateways:
            with suppress(ProcessCrashed, Unanswered):
                await self._running(name)

    async def _show_all(self, watcher: str) -> None:
        """Turn after turn, until there is nothing left (rules 4.10, 4.11)."""
        name = self._history.gateways[len(watcher) % len(self._history.gateways)]
        await self._turns_until_empty(watcher, name)
        if self._oracle.now.pending(watcher):
            await self._world.sleep(GIVEN_BACK_S)
            await self._turns_until_empty(watcher, name)
        left = self._oracle.now.pending(watcher)
        if left:
            raise Violation("4.11", f"{watcher} is never shown {left}")

    async def _turns_until_empty(self, watcher: str, name: str) -> None:
        for number in range(TURNS_MAX):
            shown = self._oracle.counts["notices shown"]
            await self._ask(Operation(2_000_000 + number, -1, 0, name, "turn", watcher, agent_of(watcher)))
            self._oracle.check()
            if self._oracle.counts["notices shown"] == shown:
                return

    async def _check_statuses(self) -> None:
        for number, (key, agent) in enumerate(tuple(self._oracle.now.rows)):
            head = self._oracle.now.heads.get((key, agent))
            for since in sorted({0, head.pruned, max(0, head.pruned - 1), head.last} if head else {0}):
                name = self._history.gateways[number % len(self._history.gateways)]
                await self._ask(Operation(3_000_000 + number, -1, 0, name, "status", key, agent, detail=str(since), limit=200))
