"""A real gateway on a real file against a plain model of the rules: whatever a host does, in whatever order, both say the same.

`KIZUKI_MODEL_EXAMPLES=5000` runs more programs than a run of the suite does, which is 40 for each of two machines.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from kizuki.actors import Actor, Gateway, GatewayConfig, ManualClock, Notice, StateEvent, Turn, UnknownSession, open_gateway
from kizuki.storage.sqlite import store
from kizuki.storage.sqlite.transaction import OPENINGS_MAX
from tests.consistency import violations
from tests.system.cast import DAY_MS, MAIN, NOW, OPS
from tests.system.model import RETENTION_MS, Address, Event, Model, Shown

T = TypeVar("T")

A, B = "agent:main:subagent:a", "agent:main:subagent:b"
WATCHERS = (MAIN, OPS, A)
TARGETS: tuple[Address, ...] = ((A, "main"), (B, "main"), (OPS, "ops"), ("global", "main"), ("global", "ops"))
SESSIONS: tuple[Address, ...] = ((MAIN, "main"), *TARGETS)
CONFIG = GatewayConfig(retention_rows=9, retention_days=30, prune_interval_s=1e6, synchronous="normal", notices_max=2)
assert CONFIG.retention_days * DAY_MS == RETENTION_MS

watchers = st.sampled_from(WATCHERS)
targets = st.sampled_from(TARGETS)
sessions = st.sampled_from(SESSIONS)
limits = st.sampled_from((None, 1, 3))
dedupe_keys = st.sampled_from((None, None, "x", "y"))
actors = st.sampled_from((Actor.human(), Actor.human(OPS), Actor.system(), *map(Actor.agent, WATCHERS)))
outcomes = st.sampled_from(("ok", "error", "timeout", "cancelled"))
run_ids = st.sampled_from(("r1", "r2"))


class BodyError(Exception):
    """What a turn raises."""


def as_shown(notice: Notice) -> Shown:
    return Shown((notice.target, notice.target_agent_id), notice.changes_since, notice.notified)


class GatewayMachine(RuleBasedStateMachine):
    """Every rule does one thing to both, and compares the answers."""

    openings = OPENINGS_MAX
    """How many notices a transaction may open; the others are owed."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(store.SqliteStore, "openings_max", self.openings)
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.database = Path(self.folder.name, "state.db")
        self.clock = ManualClock(NOW)
        self.woken: list[str] = []
        self.woken_for: dict[str, set[Shown]] = {watcher: set() for watcher in WATCHERS}
        """What was pending when the watcher was last woken; nothing once a turn of it has ended, which asks anew."""
        self.model = Model(CONFIG.retention_rows)
        self.stack = AsyncExitStack()
        self.turns: dict[int, tuple[AbstractAsyncContextManager[Turn], Turn]] = {}
        self.remembered: dict[str, tuple[Notice, ...]] = {}
        self.numbers = 0

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def teardown(self) -> None:
        for number in list(self.turns):
            self._leave_turn(number, None)
        self.run(self.stack.aclose())
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()
        if self.database.exists():
            assert violations(self.database) == []
        self.folder.cleanup()
        self.patch.undo()

    @initialize(pairs=st.lists(st.tuples(watchers, targets), max_size=8))
    def start(self, pairs: list[tuple[str, Address]]) -> None:
        """Most programs begin with somebody watching somebody."""
        self.run(self._open())
        for watcher, address in pairs:
            self.watch(watcher, address)

    async def _open(self) -> None:
        opening = open_gateway(self.database, config=CONFIG, clock=self.clock, wake=self._wake)
        self.gateway: Gateway = await self.stack.enter_async_context(opening)
        await self.clock.settle()

    def _wake(self, session_key: str, reasons: tuple[str, ...]) -> None:
        self.woken.append(session_key)

    def _now(self) -> int:
        return self.clock.now_ms()

    # -- recording -----------------------------------------------------------------------------------------------------------

    @rule(address=targets, dedupe_key=dedupe_keys)
    def human(self, address: Address, dedupe_key: str | None) -> None:
        event = self.run(self._human(address, dedupe_key))
        repeated = self.model.repeated(address, "human_direct_message", dedupe_key)
        if repeated is not None or self.model.is_recorded(address):
            self._recorded(event, address, "human_direct_message", None, dedupe_key)
        else:
            assert event is None
            self.model.put_session(address)

    async def _human(self, address: Address, dedupe_key: str | None) -> StateEvent | None:
        return await self.gateway.human_message(address[0], agent_id=address[1], channel="web", dedupe_key=dedupe_key)

    @rule(address=targets, actor=actors)
    def goal(self, address: Address, actor: Actor) -> None:
        event = self.run(self.gateway.goal_changed(address[0], "updated", actor=actor, agent_id=address[1]))
        self._recorded(event, address, "goal_changed", actor.id if actor.type == "agent" else None, None)

    @rule(address=targets, run_id=run_ids, outcome=outcomes)
    def run_ended(self, address: Address, run_id: str, outcome: Any) -> None:
        self._compacted(address, run_id)
        event = self.run(self.gateway.run_ended(address[0], run_id=run_id, outcome=outcome, agent_id=address[1]))
        self._recorded(event, address, "run_completed" if outcome == "ok" else "run_failed", None, run_id)

    def _compacted(self, address: Address, operation_id: str) -> None:
        event = self.run(self.gateway.compacted(address[0], operation_id=operation_id, agent_id=address[1]))
        self._recorded(event, address, "compacted", None, operation_id)

    @rule(parent=watchers, address=targets, run_id=run_ids)
    def spawn(self, parent: str, address: Address, run_id: str) -> None:
        if parent == address[0]:
            return
        event = self.run(self.gateway.spawn(parent, address[0], run_id=run_id, agent_id=address[1]))
        self.model.put_session(self._address(parent))
        if self._recorded(event, address, "child_spawned", parent, run_id, parent=parent):
            self.model.spawn_seeds(parent, address, self._now())

    @rule(burst=st.lists(st.tuples(targets, actors), min_size=2, max_size=12))
    def burst(self, burst: list[tuple[Address, Actor]]) -> None:
        """Many at once: all are recorded, in whichever order."""

        async def all_at_once() -> list[StateEvent | None]:
            goals = (self.gateway.goal_changed(key, "updated", actor=actor, agent_id=agent) for (key, agent), actor in burst)
            return await asyncio.gather(*goals)

        events = self.run(all_at_once())
        assert None not in events
        told = [(event, *asked) for event, asked in zip(events, burst, strict=True) if event is not None]
        for event, address, actor in sorted(told, key=lambda item: item[0].sequence):
            self._recorded(event, address, "goal_changed", actor.id if actor.type == "agent" else None, None)

    def _recorded(
        self, event: StateEvent | None, address: Address, kind: str, agent: str | None, dedupe_key: str | None, *, parent: str | None = None
    ) -> bool:
        """Check the event that was given, and take it into the model; whether it is a new one."""
        assert event is not None
        assert (event.session_key, event.agent_id, event.kind) == (*address, kind)
        repeated = self.model.repeated(address, kind, dedupe_key)
        if repeated is not None:
            assert event.sequence == repeated.sequence
            return False
        self.model.record(Event(event.sequence, address, kind, agent, dedupe_key, self._now()), parent=parent)
        return True

    # -- sessions and cursors --------------------------------------------------------------------------------------------------

    @rule(session=sessions, parent=st.sampled_from((None, MAIN)))
    def open_session(self, session: Address, parent: str | None) -> None:
        opened = self.run(self.gateway.open_session(session[0], agent_id=session[1], parent=parent))
        self.model.put_session(session, parent)
        assert (opened.key, opened.agent_id, opened.parent) == (*session, self.model.sessions[session])

    @rule(watcher=watchers, address=targets)
    def watch(self, watcher: str, address: Address) -> None:
        watched = self.run(self.gateway.watch(watcher, address[0], target_agent_id=address[1]))
        assert watched == (watcher != address[0])
        if watched:
            self.model.put_session(self._address(watcher))
            self.model.put_session(address)
            self.model.seed(watcher, address, self._now())

    @rule(watcher=watchers, address=targets)
    def unwatch(self, watcher: str, address: Address) -> None:
        removed = self.run(self.gateway.unwatch(watcher, address[0], target_agent_id=address[1]))
        assert removed == (self.model.cursors.pop((watcher, address), None) is not None)

    @rule(session=sessions)
    def reset(self, session: Address) -> None:
        try:
            self.run(self.gateway.reset_session(session[0], agent_id=session[1]))
        except UnknownSession:
            assert session not in self.model.sessions
        else:
            assert session in self.model.sessions
            self.model.reset(session)

    @rule(session=sessions)
    def delete(self, session: Address) -> None:
        deleted = self.run(self.gateway.delete_session(session[0], agent_id=session[1]))
        assert deleted == self.model.delete(session)
        if deleted:
            self.model.mark_deleted(session, self._now())

    def _address(self, watcher: str) -> Address:
        return watcher, watcher.split(":")[1]

    # -- turns ---------------------------------------------------------------------------------------------------------------

    @rule(watcher=watchers, notices_max=limits, well=st.booleans())
    def whole_turn(self, watcher: str, notices_max: int | None, well: bool) -> None:
        """As a host does it that waits for its wake."""
        self.a_minute()
        number = self._begin_turn(watcher, notices_max)
        if number is not None:
            self._end_turn(number, well)
        self.a_minute()

    @rule(watcher=watchers, notices_max=limits)
    def begin_turn(self, watcher: str, notices_max: int | None) -> None:
        self._begin_turn(watcher, notices_max)

    def _begin_turn(self, watcher: str, notices_max: int | None) -> int | None:
        context = self.gateway.turn(watcher, notices_max=notices_max)
        free = self.model.free(watcher)
        try:
            turn = self.run(context.__aenter__())
        except UnknownSession:
            assert self._address(watcher) not in self.model.sessions
            return None
        assert self._address(watcher) in self.model.sessions
        expected = free[: notices_max or CONFIG.notices_max]
        assert list(map(as_shown, turn.notices)) == expected
        assert turn.remaining == len(free) - len(expected)
        self._check_texts(watcher, turn.notices)
        self.numbers += 1
        self.turns[self.numbers] = context, turn
        self.model.turns[self.numbers] = watcher, expected
        self.remembered[watcher] = turn.notices
        return self.numbers

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), well=st.booleans())
    def end_turn(self, data: st.DataObject, well: bool) -> None:
        self._end_turn(data.draw(st.sampled_from(sorted(self.turns))), well)

    def _end_turn(self, number: int, well: bool) -> None:
        watcher, held = self.model.turns[number]
        self.woken_for[watcher] = set()
        self._leave_turn(number, None if well else BodyError())
        if well:
            self.model.acknowledge(watcher, list(held), self._now())
        del self.model.turns[number]

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def acknowledge_early(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.turns)))
        self.run(self._acknowledge_early(self.turns[number][1]))
        watcher, held = self.model.turns[number]
        self.model.acknowledge(watcher, list(held), self._now())

    async def _acknowledge_early(self, turn: Turn) -> None:
        await turn.acknowledge()

    def _leave_turn(self, number: int, error: BodyError | None) -> None:
        context, _ = self.turns.pop(number)
        assert not self.run(_leave(context, error))  # a turn swallows nothing, and raises nothing of its own

    @rule(watcher=watchers, notices_max=limits)
    def drain(self, watcher: str, notices_max: int | None) -> None:
        expected = self.model.free(watcher)[: notices_max or CONFIG.notices_max]
        try:
            drained = self.run(self.gateway.drain(watcher, notices_max=notices_max))
        except UnknownSession:
            assert self._address(watcher) not in self.model.sessions
            return
        assert list(map(as_shown, drained)) == expected
        self._check_texts(watcher, drained)
        assert self.model.acknowledge(watcher, expected, self._now()) == len(expected)
        self.woken_for[watcher] = set()
        self.remembered[watcher] = tuple(drained)

    @rule(watcher=watchers)
    def acknowledge_what_was_shown(self, watcher: str) -> None:
        """As a host does whose turns end elsewhere; perhaps long ago, perhaps acknowledged already."""
        notices = self.remembered.get(watcher, ())
        applied = self.run(self.gateway.acknowledge(watcher, notices))
        assert applied == self.model.acknowledge(watcher, list(map(as_shown, notices)), self._now())

    def _check_texts(self, watcher: str, notices: Sequence[Notice]) -> None:
        for notice in notices:
            agent = "" if notice.target.startswith("agent:") else f' agentId "{notice.target_agent_id}"'
            assert notice.watcher == watcher
            assert notice.text == (
                f'Session "{notice.target}" was changed by another actor. Reconcile before acting: '
                f'session_status sessionKey "{notice.target}"{agent} changesSince {notice.changes_since}.'
            )

    # -- time and ends -------------------------------------------------------------------------------------------------------

    @rule()
    def a_minute(self) -> None:
        """Whoever has a notice that nobody was woken for, and can be woken, is woken within a minute; nobody is woken for nothing."""
        self.woken.clear()
        free = {watcher: set(self.model.free(watcher)) for watcher in (MAIN, OPS)}
        unserved = {watcher for watcher, notices in free.items() if notices - self.woken_for[watcher]}
        self.run(self.clock.advance(61))
        self.run(self.clock.advance(0.25))
        assert unserved <= set(self.woken) <= {watcher for watcher, notices in free.items() if notices}
        for watcher in self.woken:
            self.woken_for[watcher] = free[watcher]

    @rule(days=st.sampled_from((1, 16, 31)))
    def days_pass(self, days: int) -> None:
        self.clock.set_wall_clock(self._now() + days * DAY_MS)

    @rule()
    def prune(self) -> None:
        assert self.run(self.gateway.prune()) == self.model.prune(self._now())

    @rule(turns_end_first=st.booleans())
    def restart(self, turns_end_first: bool) -> None:
        """Leave and open again; turns that are still open then find the gateway closed, and end well all the same."""
        if turns_end_first:
            for number in list(self.turns):
                self._leave_turn(number, BodyError())
        self.run(self.stack.aclose())
        for number in list(self.turns):
            self._leave_turn(number, None)
        self.woken.clear()
        self.run(self._open())
        self.model.restart(self._now())
        self.run(self.clock.advance(0.25))
        self.woken_for = {watcher: set(self.model.free(watcher)) for watcher in WATCHERS}
        assert {watcher for watcher in (MAIN, OPS) if self.woken_for[watcher]} == set(self.woken)

    # -- what is compared after every step -----------------------------------------------------------------------------------

    @invariant()
    def same_watches(self) -> None:
        if not hasattr(self, "gateway"):
            return
        for watcher in WATCHERS:
            watches = self.run(self.gateway.watches(watcher))
            found = [((w.target, w.target_agent_id), w.last_seen, w.notified, w.material, w.pending) for w in watches]
            model = self.model
            cursors = sorted((address, cursor) for (owner, address), cursor in model.cursors.items() if owner == watcher)
            assert found == [
                (address, cursor.last_seen, cursor.pin or cursor.last_seen, model.material(watcher, address), cursor.pin is not None)
                for address, cursor in cursors
            ]

    @invariant()
    def same_pending(self) -> None:
        if not hasattr(self, "gateway"):
            return
        for watcher in WATCHERS:
            if self._address(watcher) in self.model.sessions:
                assert list(map(as_shown, self.run(self.gateway.pending(watcher)))) == self.model.free(watcher)

    @rule(session=sessions, since=st.integers(0, 60), limit=st.sampled_from((1, 3, 200)))
    def status(self, session: Address, since: int, limit: int) -> None:
        try:
            status = self.run(self.gateway.session_status(session[0], agent_id=session[1], changes_since=since, limit=limit))
        except UnknownSession:
            assert session not in self.model.sessions
            return
        head = self.model.heads[session]
        kept = [event.sequence for event in self.model.events if event.target == session]
        after = [sequence for sequence in kept if sequence > since]
        changes = status["stateChanges"]
        assert session in self.model.sessions
        assert status["stateVersion"] == head.version
        assert [event["sequence"] for event in changes["events"]] == after[:limit]
        assert changes["truncated"] == (len(after) > limit)
        assert changes.get("nextChangesSince") == (after[limit - 1] if len(after) > limit else None)
        assert changes.get("earliestAvailableSequence") == (kept[0] if kept else None)
        assert changes["historyGap"] == ("hint" in changes) == (since < head.pruned)

    @rule()
    def sessions_list(self) -> None:
        rows = self.run(self.gateway.sessions_list())["sessions"]
        found = [((row["sessionKey"], row["agentId"]), row.get("stateVersion"), row.get("parent")) for row in rows]
        model = self.model
        assert found == [(address, model.heads[address].version or None, model.sessions[address]) for address in sorted(model.sessions)]


async def _leave(context: AbstractAsyncContextManager[Turn], error: BodyError | None) -> bool | None:
    return await context.__aexit__(type(error) if error else None, error, None)


class OwingMachine(GatewayMachine):
    """The same with transactions that open one notice each and owe the others."""

    openings = 1


@pytest.mark.parametrize("machine", [GatewayMachine, OwingMachine])
def test_a_gateway_answers_as_the_model_does(machine: type[GatewayMachine]) -> None:
    """Rule 4.11: whatever is done to a gateway in whatever order, restarts included, it answers as the rules do, written down plainly."""
    examples = int(os.environ.get("KIZUKI_MODEL_EXAMPLES", "40"))
    checks = list(HealthCheck)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None, suppress_health_check=checks)
    )
