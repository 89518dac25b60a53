"""The database fails at any one statement, or for a while: the host's turn goes on, nothing is half-applied, and nothing is forgotten.

One busy scenario is run over and over, each time with another of its statements failing; what must be true then is the same each time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig, ManualClock, Notice, StateEvent, StoreUnavailable, UnknownSession, open_gateway
from tests.consistency import violations
from tests.system.cast import CHILD, GLOBAL, MAIN, NOW, OPS, OTHER, PERSON
from tests.system.faulty_sqlite import Faults, Kind, faults

__all__ = ["faults"]

T = TypeVar("T")

CONFIG = GatewayConfig(retention_rows=8, synchronous="normal")
SESSIONS = ((MAIN, "main"), (OPS, "ops"), (CHILD, "main"), (OTHER, "main"), (GLOBAL, "main"))


class BodyError(Exception):
    """What a turn of the host raises."""


def _body(fails: bool) -> None:
    if fails:
        raise BodyError


class Host:
    """A host that goes on whatever the database does, and keeps what it was told."""

    def __init__(self, database: Path, clock: ManualClock) -> None:
        self.database = database
        self.clock = clock
        self.recorded: list[StateEvent] = []
        self.may_have_seen: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        """Where a cursor may stand: what it was seeded with, and what was shown to its watcher."""
        self.woken: list[str] = []
        self.wake_owed_from: defaultdict[str, int] = defaultdict(int)
        """How many wakes there had been when a turn of the watcher last ended: what is pending later asks for a further one."""
        self.unavailable = 0

    def wake(self, session_key: str, reasons: tuple[str, ...]) -> None:
        self.woken.append(session_key)

    async def call(self, operation: Awaitable[T]) -> T | None:
        """A call that may say that the database failed, or that what an earlier failure prevented is not there."""
        try:
            return await operation
        except (StoreUnavailable, UnknownSession):
            self.unavailable += 1
            return None

    async def record(self, *recordings: Awaitable[StateEvent | None]) -> None:
        """Best effort (rule 1.9): whatever happens, none of them raises."""
        self.recorded.extend(event for event in await asyncio.gather(*recordings) if event is not None)

    async def watch(self, gateway: Gateway, watcher: str, target: str, agent_id: str | None = None) -> None:
        await self.call(gateway.watch(watcher, target, target_agent_id=agent_id))
        self.may_have_seen[watcher, target].add(self._version(target))

    async def spawn(self, gateway: Gateway, parent: str, child: str, run_id: str) -> None:
        await self.record(gateway.spawn(parent, child, run_id=run_id))
        self.may_have_seen[parent, child].add(self._version(child))

    def shown(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self.may_have_seen[notice.watcher, notice.target].add(notice.notified)

    async def turn(self, gateway: Gateway, key: str, *, fails: bool = False, early: bool = False) -> None:
        """A turn whose body ended well ends well (rule 4.8)."""
        began = ended = False
        try:
            async with gateway.turn(key) as turn:
                began = True
                self.turn_had(key, turn.notices)
                if early:
                    await self.call(turn.acknowledge())
                _body(fails)
                self.shown(turn.notices)
                ended = True
        except BodyError:
            assert fails
        except (StoreUnavailable, UnknownSession):
            assert not began, f"a turn whose body {'ended well' if ended else 'failed'} raised something of ours"
            self.unavailable += 1

    async def drain(self, gateway: Gateway, key: str) -> None:
        notices = await self.call(gateway.drain(key)) or []
        self.turn_had(key, notices)
        self.shown(notices)

    def turn_had(self, key: str, notices: Sequence[Notice]) -> None:
        if notices:
            self.wake_owed_from[key] = len(self.woken)

    def _version(self, key: str) -> int:
        # Outside of the faults: the test's own look.
        with closing(sqlite3.Connection(self.database)) as connection:
            row = connection.execute("SELECT last_sequence FROM heads WHERE session_key = ?", (key,)).fetchone()
        return row[0] if row else 0


async def scenario(gateway: Gateway, host: Host) -> None:
    """A bit of everything; at the end there are unseen changes for both watchers."""
    await host.call(gateway.open_session(MAIN))
    await host.call(gateway.open_session(OPS, label="operations"))
    await host.spawn(gateway, MAIN, CHILD, "r1")
    await host.watch(gateway, OPS, CHILD)
    await host.watch(gateway, MAIN, GLOBAL, "main")
    await host.record(
        gateway.human_message(CHILD, channel="telegram"),
        gateway.human_message(GLOBAL, agent_id="main", channel="telegram"),
        gateway.goal_changed(CHILD, "created", actor=Actor.agent(OPS)),
        gateway.compacted(CHILD, operation_id="c1"),
    )
    await host.turn(gateway, MAIN)
    await host.record(gateway.human_message(CHILD, channel="web", dedupe_key="d"))
    await host.record(gateway.human_message(CHILD, channel="web", dedupe_key="d"))
    await host.turn(gateway, MAIN, fails=True)
    await host.clock.advance(1.5)
    await host.turn(gateway, MAIN, early=True)
    await host.drain(gateway, OPS)
    await host.record(gateway.goal_changed(CHILD, "updated", actor=PERSON), gateway.run_ended(CHILD, run_id="r1", outcome="timeout"))
    pending = await host.call(gateway.pending(MAIN)) or []
    host.shown(pending)
    await host.call(gateway.acknowledge(MAIN, pending))
    await host.call(gateway.session_status(CHILD, changes_since=1))
    await host.call(gateway.sessions_list(with_total=True))
    await host.call(gateway.run_started(MAIN, "r9"))
    await host.spawn(gateway, MAIN, OTHER, "r2")
    await host.record(gateway.human_message(OTHER, channel="web"))
    await host.call(gateway.delete_session(OTHER))
    await host.call(gateway.unwatch(OPS, CHILD))
    await host.call(gateway.reset_session(OPS))
    await host.call(gateway.prune())
    await host.watch(gateway, OPS, CHILD)
    await host.record(gateway.human_message(CHILD, channel="telegram"))
    await host.clock.advance(0.3)
    await host.turn(gateway, OPS, fails=True)
    await gateway.idle()


class View(NamedTuple):
    """What a gateway says of everything, but for what a restart may change: where a notice is pinned, and what runs."""

    watches: list[list[tuple[str, str, int, int, bool]]]
    pending: list[list[str]]
    statuses: list[dict[str, Any] | None]


async def view(gateway: Gateway) -> View:
    """Ask the gateway for everything."""
    watches, pending = [], []
    for key in (MAIN, OPS):
        found = await gateway.watches(key)
        watches.append([(item.target, item.target_agent_id, item.last_seen, item.material, item.pending) for item in found])
        pending.append(sorted(notice.text for notice in await _pending(gateway, key)))
    statuses = [await _status(gateway, key, agent_id) for key, agent_id in SESSIONS]
    return View(watches, pending, statuses)


async def _pending(gateway: Gateway, key: str) -> list[Notice]:
    try:
        return await gateway.pending(key)
    except UnknownSession:
        return []


async def _status(gateway: Gateway, key: str, agent_id: str) -> dict[str, Any] | None:
    try:
        return await gateway.session_status(key, agent_id=agent_id, changes_since=0) | {"status": ""}
    except UnknownSession:
        return None


def check_told(host: Host, seen: View) -> None:
    """What the host was told is so: recorded events are in the log, and nothing counts as seen that was not shown."""
    with closing(sqlite3.Connection(host.database)) as connection:
        marks = dict(connection.execute("SELECT session_key, pruned_max_sequence FROM heads").fetchall())
        log = {row[0] for row in connection.execute("SELECT sequence FROM events")}
    for event in host.recorded:
        assert event.sequence in log or event.sequence <= marks[event.session_key], f"recorded, and lost: {event}"
    for watcher, cursors in zip((MAIN, OPS), seen.watches, strict=True):
        for target, _, last_seen, _, _ in cursors:
            assert last_seen in host.may_have_seen[watcher, target], f"{watcher} never saw {target} up to {last_seen}"


def check_notices(host: Host, seen: View) -> None:
    """Every unseen change has its notice, in no turn any more, and whoever may be woken has been."""
    for watcher, cursors, texts in zip((MAIN, OPS), seen.watches, seen.pending, strict=True):
        assert sum(cursor[4] for cursor in cursors) == len(texts), f"{watcher} is not shown all that is pending"
        assert not texts or watcher in host.woken[host.wake_owed_from[watcher] :], f"{watcher} was never woken"


async def run(database: Path, faults: Faults, first: int, *, count: int = 1, kind: Kind = "disk") -> int:
    """Run the scenario with these statements failing and check everything; returns how many statements it has."""
    clock = ManualClock(NOW)
    host = Host(database, clock)
    async with open_gateway(database, clock=clock, wake=host.wake, config=CONFIG) as gateway:
        await clock.settle()
        faults.arm(first, count=count, kind=kind)
        await scenario(gateway, host)
        faults.disarm()
        statements = len(faults.statements)
        for seconds in (1.0, 2.0, 60.0, 61.0):
            await clock.advance(seconds)
        await gateway.prune()  # as the start of the next gateway will do
        seen = await view(gateway)
    assert violations(database) == []
    check_told(host, seen)
    check_notices(host, seen)
    async with open_gateway(database, clock=clock, config=CONFIG) as gateway:
        await clock.settle()
        assert await view(gateway) == seen, "the running gateway and a fresh one disagree"
    return statements


async def run_all(folder: Path, faults: Faults, firsts: Iterable[int], *, count: int = 1, kind: Kind = "disk") -> None:
    """Run the scenario once for each first failing statement."""
    for first in firsts:
        try:
            await run(folder / f"{first}.db", faults, first, count=count, kind=kind)
        except BaseException as error:
            error.add_note(f"{kind}: {count} statements failing from number {first}, {faults.statements[first - 1 : first]}")
            raise


async def statements_of(folder: Path, faults: Faults) -> list[str]:
    """The scenario's statements, none failing."""
    await run(folder / "well.db", faults, 0)
    return list(faults.statements)


async def test_a_failure_of_any_statement(tmp_path: Path, faults: Faults) -> None:
    """Rule 1.9: whichever single statement fails, the turn goes on, nothing is half-applied, lost or forgotten, the wakes come."""
    total = len(await statements_of(tmp_path, faults))
    await run_all(tmp_path, faults, range(1, total + 1))


@pytest.mark.parametrize("kind", ["locked", "rolled_back"])
async def test_other_failures_of_a_statement(tmp_path: Path, faults: Faults, kind: Kind) -> None:
    """Rule 1.9: the same for a lock that is not given, and for an error with which SQLite gives up the transaction."""
    total = len(await statements_of(tmp_path, faults))
    await run_all(tmp_path, faults, range(1, total + 1, 9), kind=kind)


@pytest.mark.parametrize("kind", ["committed", "rolled_back"])
async def test_commits_of_unknown_outcome(tmp_path: Path, faults: Faults, kind: Kind) -> None:
    """Rule 4.11: where a COMMIT fails and may or may not have taken effect, what is in the store counts, whichever it was."""
    statements = await statements_of(tmp_path, faults)
    await run_all(tmp_path, faults, (number for number, text in enumerate(statements, start=1) if text == "COMMIT"), kind=kind)


@pytest.mark.parametrize("count", [4, 40])
async def test_outages(tmp_path: Path, faults: Faults, count: int) -> None:
    """Rule 1.9: the same while statement after statement fails."""
    total = len(await statements_of(tmp_path, faults))
    await run_all(tmp_path, faults, range(1, total + 1, 11), count=count)


async def test_a_failure_while_opening(tmp_path: Path, faults: Faults) -> None:
    """Rule 4.11: a start that fails says so and harms nothing; one that gets by gives every pending pair its notice and its wake."""
    database = tmp_path / "state.db"
    await run(database, faults, 0)
    clock = ManualClock(NOW)
    async with open_gateway(database, clock=clock, config=CONFIG) as gateway:
        expected = await view(gateway)
    first = failed = 0
    while not first or faults.raised:
        first += 1
        host = Host(database, clock)
        faults.arm(first)
        try:
            async with open_gateway(database, clock=clock, wake=host.wake, config=CONFIG) as gateway:
                for seconds in (1.0, 1.0, 1.0):
                    await clock.advance(seconds)
                faults.disarm()
                assert await view(gateway) == expected
                assert set(host.woken) == {MAIN, OPS}
        except StoreUnavailable:
            failed += 1
        faults.disarm()
        assert violations(database) == []
    assert 0 < failed < first
