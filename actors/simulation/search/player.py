"""Playing a history: hosts that ask their gateways, and tell the oracle what they ask and what they are answered.

Everything that a host would do is done on its own process's loop, and dies with it. Who is not answered asks again, by the same dedupe key,
where there is one: that is what such keys are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...config import GatewayConfig
from ...errors import KizukiError, UnknownSession
from ...gateway import Gateway
from ...identity import Actor
from ...notices import Notice
from ..oracle.effects import Acknowledge, Delete, Drain, Effect, PutRow, Record, Reset, Shown, Unwatch, Watch
from ..oracle.operations import Asked
from ..oracle.oracle import Oracle
from ..oracle.turns import Held
from ..oracle.violations import Violation
from ..process import Host, Process, ProcessCrashed
from .histories import Address, History, Operation, agent_of

if TYPE_CHECKING:
    from ..world import World

T = TypeVar("T")

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


class BodyError(Exception):
    """What a turn raises."""


class Unanswered(Exception):
    """A gateway could not answer: its database failed, or it is closed."""


class Player:
    """Plays one history in a world that the oracle looks at."""

    def __init__(self, history: History, oracle: Oracle) -> None:
        self._history = history
        self._oracle = oracle
        self._remembered: dict[str, tuple[Notice, ...]] = {}
        self._reacting = history.reacts
        self._reactions: list[asyncio.Task[None]] = []
        self._wakes = 0
        self._starts: dict[str, asyncio.Task[Process]] = {}

    async def story(self, world: World) -> None:
        """Play it. Raises `Violation`."""
        self._world = world
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

    # -- one operation ---------------------------------------------------------------------------------------------------------------

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
        answer = process.call(partial(self._perform, process, operation))
        patience_s = PATIENCE_S + operation.lasts_s
        await asyncio.wait({answer}, timeout=patience_s)
        self._oracle.check()
        if not answer.done():
            answer.cancel()
            if operation.kind != "send":  # the host's own dispatch may hang
                raise Violation("1.9", f"{operation.kind} {operation.number} was not answered in {patience_s} s")
            await asyncio.wait({answer})
        answer.result()

    # -- processes ---------------------------------------------------------------------------------------------------------------------

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
            return await self._world.start(name, Host(config=self._config(name), wake=self._woken))
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

    # -- what is done on the process's loop ------------------------------------------------------------------------------------------------

    async def _perform(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        work: Coroutine[Any, Any, None] = getattr(self, f"_{operation.kind}")(process, operation, gateway)
        await work

    def _asks(self, process: Process, operation: Operation, *effects: Effect, **more: Any) -> Asked:
        return self._oracle.asks(process, f"{operation.kind} {operation.number} on {process.name}", *effects, **more)

    async def _answer(self, asked: Asked, call: Coroutine[Any, Any, T], *unknown: Address) -> T:
        """What the call answers. A failure is judged here, and raised as `Unanswered`."""
        try:
            return await call
        except asyncio.CancelledError:
            self._oracle.cancelled(asked)
            raise
        except UnknownSession as error:
            self._oracle.fact(asked, "interface", error, lambda state: any(address not in state.rows for address in unknown))
            raise Unanswered from error
        except KizukiError as error:
            self._oracle.failed(asked, error)
            raise Unanswered from error

    async def _record(
        self, process: Process, operation: Operation, record: Record, call: Coroutine[Any, Any, Any], *mentions: Address
    ) -> None:
        asked = self._asks(process, operation, record, mentions=(record.address, *mentions))
        event = await self._answer(asked, call)
        self._oracle.recorded(asked, event)
        if event is None and record.event is None and not record.only_if_watched:
            raise Unanswered

    async def _human(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        person, dedupe = f"person-{operation.number % 3}", operation.detail or None
        record = Record(
            address=operation.address, kind="human_direct_message", summary="human message via telegram", actor_type="human",
            actor_id=person, run_id=f"turn-{operation.number}", dedupe_key=dedupe, only_if_watched=True,
        )  # fmt: skip
        call = gateway.human_message(
            operation.key, channel="telegram", actor_id=person, run_id=record.run_id, agent_id=operation.agent, dedupe_key=dedupe
        )
        await self._record(process, operation, record, call)

    async def _goal(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        who, change = operation.detail.split()
        actors = {
            "human": Actor.human(operation.other[0]),
            "system": Actor.system(),
            "agent": Actor.agent(operation.other[0]),
        }
        actor_id = None if who == "system" else operation.other[0]
        record = Record(address=operation.address, kind="goal_changed", summary=f"goal {change}", actor_type=who, actor_id=actor_id)
        call = gateway.goal_changed(operation.key, change, actor=actors[who], agent_id=operation.agent)  # type: ignore[arg-type]
        await self._record(process, operation, record, call)

    async def _run_ended(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        outcome, run = operation.detail.split()
        words = {"ok": "completed", "error": "failed", "timeout": "timed out", "cancelled": "cancelled"}
        well = outcome == "ok"
        record = Record(
            address=operation.address, kind="run_completed" if well else "run_failed", summary=f"child run {words[outcome]}",
            actor_type="system", run_id=run, dedupe_key=run, payload_json=None if well else f'{{"outcome":"{outcome}"}}',
        )  # fmt: skip
        call = gateway.run_ended(operation.key, run_id=run, outcome=outcome, agent_id=operation.agent)  # type: ignore[arg-type]
        await self._record(process, operation, record, call)

    async def _compacted(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        record = Record(
            address=operation.address, kind="compacted", summary="session compacted", actor_type="system", dedupe_key=operation.detail
        )
        call = gateway.compacted(operation.key, operation_id=operation.detail, agent_id=operation.agent)
        await self._record(process, operation, record, call)

    async def _spawn(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        parent = operation.other[0]
        record = Record(
            address=operation.address, kind="child_spawned", summary="child session spawned", actor_type="agent", actor_id=parent,
            run_id=operation.detail, dedupe_key=operation.detail, spawned_by=parent,
        )  # fmt: skip
        call = gateway.spawn(parent, operation.key, run_id=operation.detail, agent_id=operation.agent)
        await self._record(process, operation, record, call, operation.other)

    async def _watch(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        pair, itself = (operation.key, operation.other), operation.address == operation.other
        effects = () if itself else (Watch(pair=pair),)
        asked = self._asks(process, operation, *effects, mentions=() if itself else (operation.address, operation.other))
        told = await self._answer(asked, gateway.watch(operation.key, operation.other[0], target_agent_id=operation.other[1]))
        self._oracle.fact(asked, "3.2", told, lambda state: told is not itself and (itself or pair in state.cursors))

    async def _unwatch(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        pair = operation.key, operation.other
        asked = self._asks(process, operation, Unwatch(pair=pair))
        told = await self._answer(asked, gateway.unwatch(operation.key, operation.other[0], target_agent_id=operation.other[1]))
        self._oracle.fact(asked, "3.4", told, lambda state: told == (pair in state.cursors))

    async def _send(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        pair, itself = (operation.key, operation.other), operation.address == operation.other
        effects = () if itself else (Watch(pair=pair),)
        asked = self._asks(process, operation, *effects, mentions=(operation.address, operation.other))
        call = gateway.sessions_send(operation.key, operation.other[0], "how is it going?", watch=True, timeout_s=2)
        told = await self._answer(asked, call)
        delivered = told["status"] in ("accepted", "ok", "timeout")
        wrong = "watched" in told if not delivered else told["watched"] is not (not itself) and not self._oracle.is_excused(asked)
        self._oracle.fact(asked, "3.3", told, lambda state: not wrong and (not told.get("watched") or pair in state.cursors))

    async def _open(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        key, agent = operation.address
        parent = operation.other[0] or None
        hosts = key if key.startswith("agent:") else None
        asked = self._asks(process, operation, PutRow(address=operation.address, parent=parent), hosts=hosts)
        told = await self._answer(asked, gateway.open_session(key, agent_id=agent, parent=parent))
        self._oracle.fact(
            asked,
            "interface",
            told,
            lambda state: operation.address in state.rows and (told.session_id, told.parent) == state.rows[operation.address][:2],
        )
        self._oracle.hosted(asked)

    async def _reset(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation, Reset(address=operation.address))
        told = await self._answer(asked, gateway.reset_session(operation.key, agent_id=operation.agent), operation.address)
        row_of = operation.address
        self._oracle.fact(asked, "3.5", told, lambda state: row_of in state.rows and state.rows[row_of].session_id == told.session_id)

    async def _delete(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        hosts = operation.key if operation.key.startswith("agent:") else None
        asked = self._asks(process, operation, Delete(address=operation.address), hosts=hosts)
        told = await self._answer(asked, gateway.delete_session(operation.key, agent_id=operation.agent))
        self._oracle.fact(asked, "1.11", told, lambda state: told == (operation.address in state.rows))

    async def _status(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        since = int(operation.detail) if operation.detail else None
        asked = self._asks(process, operation)
        call = gateway.session_status(operation.key, agent_id=operation.agent, changes_since=since, limit=operation.limit)
        told = await self._answer(asked, call, operation.address)
        self._oracle.status(asked, operation.address, since, operation.limit, told)

    async def _list(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation)
        told = await self._answer(asked, gateway.sessions_list())
        self._oracle.listed(asked, told["sessions"])

    async def _watches(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation)
        told = await self._answer(asked, gateway.watches(operation.key))
        found = [((w.target, w.target_agent_id), w.last_seen, w.notified, w.material, w.pending) for w in told]
        self._oracle.watches(asked, operation.key, found)

    async def _prune(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation)
        await self._answer(asked, gateway.prune())
        self._oracle.pruned(asked)

    # -- notices ---------------------------------------------------------------------------------------------------------------

    async def _pending(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation)
        told = await self._answer(asked, gateway.pending(operation.key), operation.address)
        self._oracle.shown(asked, operation.key, self._as_shown(process, operation.key, told), limit=None)
        self._oracle.answered(asked)

    async def _drain(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation, Drain(watcher=operation.key), takes=operation.key, hosts=operation.key)
        told = await self._answer(asked, gateway.drain(operation.key, notices_max=operation.limit or None), operation.address)
        limit = operation.limit or self._history.notices_max
        if told or not self._oracle.is_excused(asked):
            self._oracle.shown(asked, operation.key, self._as_shown(process, operation.key, told), limit=limit, drained=True)
            self._oracle.hosted(asked)
            self._oracle.answered(asked)
        else:
            self._oracle.unclear(asked)
        self._oracle.left_over(process, operation.key)
        self._remembered[operation.key] = tuple(told)

    async def _acknowledge(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        """As a host does whose turns end elsewhere: of what was shown, perhaps long ago, perhaps acknowledged already."""
        notices = self._remembered.get(operation.key, ())
        acknowledge = Acknowledge(watcher=operation.key, shown=[_shown(notice) for notice in notices])
        asked = self._asks(process, operation, acknowledge)
        count = await self._answer(asked, gateway.acknowledge(operation.key, notices))
        self._oracle.applied(asked, operation.key, count)

    async def _turn(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        asked = self._asks(process, operation, takes=operation.key, hosts=operation.key)
        held: Held | None = None
        ending: Asked | None = None
        try:
            async with gateway.turn(operation.key, notices_max=operation.limit or None) as turn:
                notices = self._as_shown(process, operation.key, turn.notices)
                limit = operation.limit or self._history.notices_max
                held = self._oracle.opened(asked, operation.key, notices, limit, turn.remaining)
                self._remembered[operation.key] = turn.notices
                try:
                    await self._body(operation, held, turn.acknowledge)
                except (asyncio.CancelledError, BodyError, Unanswered):
                    self._oracle.ends(held)
                    raise
                ending = self._oracle.acknowledges(held, f"the end of turn {operation.number} on {process.name}")
                self._oracle.ends(held)
        except BodyError:
            pass
        except asyncio.CancelledError:
            if held is None:
                self._oracle.cancelled(asked)
            raise
        except (UnknownSession, KizukiError) as error:
            if held is None:
                self._refused(asked, operation, error)
            raise Unanswered from error
        finally:
            if process.alive and held is not None:
                self._turn_over(held, ending)

    def _turn_over(self, held: Held, ending: Asked | None) -> None:
        if ending is not None:
            self._oracle.acknowledged(ending, held)
        self._oracle.left_over(held.process, held.watcher)

    def _refused(self, asked: Asked, operation: Operation, error: KizukiError) -> None:
        if isinstance(error, UnknownSession):
            self._oracle.fact(asked, "interface", error, lambda state: operation.address not in state.rows)
        else:
            self._oracle.failed(asked, error)

    async def _body(self, operation: Operation, held: Held, acknowledge: Any) -> None:
        await self._world.sleep(operation.lasts_s)
        if operation.kind == "turn_raises":
            raise BodyError
        if operation.kind == "turn_acknowledges":
            early = self._oracle.acknowledges(held, f"the early acknowledgement of turn {operation.number}")
            await self._answer(early, _awaited(acknowledge))
            self._oracle.acknowledged(early, held)
            await self._world.sleep(operation.lasts_s)

    _turn_raises = _turn
    _turn_acknowledges = _turn

    def _as_shown(self, process: Process, watcher: str, notices: Sequence[Notice]) -> list[Shown]:
        """What identifies the notices, their texts checked (rule 4.2)."""
        for notice in notices:
            text = expected_text(notice.target, notice.target_agent_id, notice.changes_since, process.host.config.language)
            if (notice.watcher, notice.text) != (watcher, text):
                raise Violation("4.2", f"a notice of {watcher} says {notice}")
        return [_shown(notice) for notice in notices]

    # -- the end ---------------------------------------------------------------------------------------------------------------

    async def _come_to_rest(self) -> None:
        """Nothing fails any more: everybody is woken and shown all that is left, and all that was recorded is there."""
        self._world.calm()
        for name in self._history.gateways:
            await self._running(name)
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
            await self._world.sleep(WAKES_WAIT_S)
            self._oracle.check()
            if not self._oracle.overdue():
                return
        raise Violation("4.9", f"{self._oracle.overdue()} have something pending, and were not woken for it")

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


async def _awaited(call: Any) -> None:
    await call()


def _shown(notice: Notice) -> Shown:
    return Shown((notice.target, notice.target_agent_id), notice.changes_since, notice.notified)


def expected_text(target: str, agent_id: str, since: int, language: str) -> str:
    """Rule 4.2, letter by letter."""
    agent = "" if target.startswith("agent:") else f' agentId "{agent_id}"'
    call = f'session_status sessionKey "{target}"{agent} changesSince {since}'
    if language == "ja":
        return f'セッション "{target}" が変更されました（別のアクター）。行動する前に調整してください: {call}.'
    return f'Session "{target}" was changed by another actor. Reconcile before acting: {call}.'
