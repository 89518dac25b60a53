"""Hosts that ask their gateways, and tell the oracle what they ask and what they are answered, all of it on their own process's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import KizukiError, UnknownSession
from ...gateway import Gateway
from ...identity import Actor
from ...notices import Notice
from ..oracle.effects import Acknowledge, Delete, Drain, Effect, PutRow, Record, Reset, Shown, Unwatch, Watch
from ..oracle.operations import Asked
from ..oracle.oracle import Oracle
from ..oracle.turns import Held
from ..oracle.violations import Violation
from ..process import Process
from .histories import Address, History, Operation

if TYPE_CHECKING:
    from ..world import World

T = TypeVar("T")


class BodyError(Exception):
    """What a turn raises."""


class Unanswered(Exception):
    """A gateway could not answer: its database failed, or it is closed."""


class Hosts:
    """One method for each kind of operation. `perform` runs on the process's loop, and dies with it."""

    def __init__(self, world: World, history: History, oracle: Oracle) -> None:
        self._world = world
        self._history = history
        self._oracle = oracle
        self._remembered: dict[str, tuple[Notice, ...]] = {}
        """What was shown last, by watcher."""

    async def perform(self, process: Process, operation: Operation, gateway: Gateway) -> None:
        """Do what the operation says. Raises `Unanswered`, `Violation`."""
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
