"""Rules 7.4 to 7.7: what is recorded of what a check found, with the marker or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from kizuki.actors import Gateway, GatewayConfig, ManualClock, StoreUnavailable, TickReport
from kizuki.actors.upstream.catalog import Activity, Failed, Happening, Nothing, Outcome
from tests.consistency import violations
from tests.system.adopting import adopted, kinds, link_of, links, overdue, turns
from tests.system.cast import CLOCK_BACK_MS, GLOBAL, MAIN, NOW, OPS, changes, show, version
from tests.system.conftest import Opening
from tests.system.faulty_sqlite import Faults, faults
from tests.system.scripted_catalog import ScriptedCatalog, never, raising

__all__ = ["faults"]


@pytest.fixture
def fake() -> ScriptedCatalog:
    """A catalog with two threads."""
    return ScriptedCatalog("fake", "t1", "t2")


@pytest.fixture
def own() -> dict[str, list[tuple[str, str]]]:
    """What the host wrote, by session."""
    return {}


@pytest_asyncio.fixture
async def gateway(opening: Opening, fake: ScriptedCatalog, own: dict[str, list[tuple[str, str]]]) -> AsyncIterator[Gateway]:
    """A gateway with that catalog, whose host tells what it wrote."""
    async with opening(catalogs=[fake], recent_texts=lambda key: own.get(key, [])) as opened:
        await opened.open_session(MAIN)
        yield opened


async def finding(gateway: Gateway, fake: ScriptedCatalog, outcome: Outcome) -> TickReport:
    """One check in which the catalog has this outcome for its one link."""
    fake.answers.append(lambda probes: [outcome])
    return await gateway.check_upstream()


# -- 7.4 ---------------------------------------------------------------------------------------------------------------------


async def test_turns_become_one_event(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rules 7.4 and 1.5: the turns of one scan are one event by a person, and one notice; the marker has moved behind them."""
    key = await adopted(gateway)
    fake.threads["t1"] += ["one", "two", "three"]
    report = await gateway.check_upstream()
    assert (report.active, report.human_turns, report.events) == (1, 3, 1)
    (event,) = [event for event in (await changes(gateway, key))["events"] if event["kind"] == "human_direct_message"]
    assert (event["actorType"], event["payload"], event["summary"]) == ("human", {"turns": 3}, "human message via fake")
    assert [notice.changes_since for notice in await gateway.pending(MAIN)] == [1]
    assert link_of(database, key).marker == {"rows": 3}


async def test_one_turn_needs_no_number(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 1.5: a single turn has no payload."""
    key = await adopted(gateway)
    fake.threads["t1"].append("one")
    await gateway.check_upstream()
    assert "payload" not in (await changes(gateway, key))["events"][-1]


async def test_no_turn_is_found_twice(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.4: over many checks each turn is counted once."""
    key = await adopted(gateway)
    for number in range(4):
        fake.threads["t1"] += ["text"] * number
        await gateway.check_upstream()
        await gateway.check_upstream()
    assert await turns(gateway, key) == [1, 2, 3]


@pytest.mark.parametrize(
    ("occurred", "expected"),
    [
        (NOW - CLOCK_BACK_MS, NOW - CLOCK_BACK_MS),
        (None, NOW),
        (NOW + 5, NOW),
        (0, NOW - 86_400_000),
        ("yesterday", NOW),
        (NOW - 0.5, NOW - 1),
    ],
)
async def test_when_a_turn_occurred(gateway: Gateway, fake: ScriptedCatalog, occurred: Any, expected: int) -> None:
    """Rule 1.7: the time of the row counts, clamped into the last 24 hours; without one it is now."""
    key = await adopted(gateway)
    await finding(gateway, fake, Activity({"rows": 1}, 1, occurred))
    assert (await changes(gateway, key))["events"][-1]["occurredAt"] == expected


async def test_an_activity_without_turns_moves_the_marker(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.4: rows that are nobody's turn are passed over for good, and nothing is recorded."""
    key = await adopted(gateway)
    assert (await finding(gateway, fake, Activity({"rows": 5}, 0, None))).events == 0
    assert link_of(database, key).marker == {"rows": 5}
    await finding(gateway, fake, Nothing({"rows": 6}))
    assert link_of(database, key).marker == {"rows": 6}
    await finding(gateway, fake, Nothing())
    assert link_of(database, key).marker == {"rows": 6}
    assert await kinds(gateway, key) == ["adopted"]


async def test_a_quiet_check_writes_nothing(gateway: Gateway, database: Path) -> None:
    """Rule 7.4: where nothing was found nothing is written: not one byte of the database or its log changes."""
    await adopted(gateway)
    await gateway.idle()
    files = [database, database.with_name(f"{database.name}-wal")]
    before = [file.read_bytes() for file in files]
    assert (await gateway.check_upstream()).checked == 1
    assert [file.read_bytes() for file in files] == before


async def test_a_locked_database_moves_no_marker(opening: Opening, fake: ScriptedCatalog, clock: ManualClock, database: Path) -> None:
    """Rule 7.4: another process holds the database: the check says so, the marker stays, and the turns are found when it is free again."""
    async with opening(catalogs=[fake], config=GatewayConfig(busy_timeout_s=0)) as gateway:
        keys = [await adopted(gateway, "t1"), await adopted(gateway, "t2")]
        for rows in fake.threads.values():
            rows.append("hello")
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            report = await gateway.check_upstream()
            other.execute("ROLLBACK")
        assert (report.failed, report.events, report.active) == (2, 0, 0)
        assert [link.marker for link in links(database)] == [{"rows": 0}] * 2
        assert (await gateway.check_upstream()).events == 2
        assert [await turns(gateway, key) for key in keys] == [[1], [1]]


async def test_every_statement_of_a_check_fails_once(faults: Faults, opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.4: whichever statement of a check fails, events and marker move together or not at all, and no turn is lost or doubled."""
    found, expected, first = 0, 0, 1
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
        while first:
            fake.threads["t1"] += ["hello", Happening("compacted", f"c{first}", None)]
            faults.arm(first)
            with contextlib.suppress(StoreUnavailable):
                await gateway.check_upstream()
            first = first + 1 if faults.raised else 0
            faults.disarm()
            expected += 1
            marker = link_of(database, key).marker
            events = (await changes(gateway, key))["events"]
            found = sum(event.get("payload", {}).get("turns", 1) for event in events if event["kind"] == "human_direct_message")
            assert marker == {"rows": 2 * found}
            await gateway.check_upstream()
        assert sum(await turns(gateway, key)) == expected > 5
    assert violations(database) == []


async def test_killed_between_scan_and_record(opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.4: what was scanned by a gateway that ended before it recorded is scanned again by the next."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
        fake.threads["t1"].append("hello")
        fake.during = asyncio.Event().wait
        check = asyncio.create_task(gateway.check_upstream())
        await fake.asked.wait()
    await asyncio.gather(check, return_exceptions=True)
    fake.during = None
    async with opening(catalogs=[fake]) as gateway:
        assert (await gateway.check_upstream()).human_turns == 1
        assert await turns(gateway, key) == [1]


async def test_turns_of_the_unwatched(opening: Opening, fake: ScriptedCatalog) -> None:
    """Rule 1.8: `record_unwatched` lifts the condition for what is found upstream, too."""
    async with opening(catalogs=[fake], config=GatewayConfig(record_unwatched=True)) as gateway:
        key = await adopted(gateway)
        fake.threads["t1"].append("hello")
        fake.during = lambda: gateway.unwatch(MAIN, key)
        await gateway.check_upstream()
        assert await turns(gateway, key) == [1]


async def test_the_same_position_is_recorded_once(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 1.6: a catalog whose marker does not move says the same again and again, and one event is recorded."""
    key = await adopted(gateway)
    for _ in range(3):
        await finding(gateway, fake, Activity({"rows": 0}, 2, None))
    assert await turns(gateway, key) == [2]
    await finding(gateway, fake, Activity({"rows": 1}, 1, None))
    assert await turns(gateway, key) == [2, 1]


async def test_the_same_position_of_another_generation(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 1.6: the position of a new generation of the link is another one, though source and marker are the same."""
    key = await adopted(gateway)
    await finding(gateway, fake, Activity({"rows": 1}, 1, None))
    await finding(gateway, fake, Activity({"rows": 0}, 0, None, restarted="replaced"))
    await finding(gateway, fake, Activity({"rows": 1}, 1, None))
    assert await turns(gateway, key) == [1, 1]


# -- happenings --------------------------------------------------------------------------------------------------------------


async def test_what_else_a_source_tells(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rules 1.1, 1.3 and 1.4: compactions, run ends and changed goals are recorded as what they are, by the system."""
    key = await adopted(gateway)
    fake.threads["t1"] += [
        Happening("compacted", "c1", NOW - 3),
        Happening("run_ended", "r1", NOW - 2, "ok"),
        Happening("run_ended", "r2", None, "cancelled"),
        Happening("goal_changed", "g1", None, "updated"),
    ]
    assert (await gateway.check_upstream()).events == 4
    events = (await changes(gateway, key))["events"][1:]
    assert [(event["kind"], event["actorType"], event["summary"]) for event in events] == [
        ("compacted", "system", "session compacted"),
        ("run_completed", "system", "child run completed"),
        ("run_failed", "system", "child run cancelled"),
        ("goal_changed", "system", "goal updated"),
    ]
    assert [event["occurredAt"] for event in events] == [NOW - 3, NOW - 2, NOW, NOW]
    assert events[2]["payload"] == {"outcome": "cancelled"}


async def test_happenings_are_deduplicated_by_their_ids(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 1.6: a compaction or a run end that comes again, even from the host itself, is recorded once."""
    key = await adopted(gateway)
    await gateway.compacted(key, operation_id="c1")
    fake.threads["t1"] += [
        Happening("compacted", "c1", None),
        Happening("run_ended", "r1", None, "ok"),
        Happening("goal_changed", "g", None, "created"),
    ]
    await gateway.check_upstream()
    fake.threads["t1"] += [Happening("run_ended", "r1", None, "ok"), Happening("goal_changed", "g", None, "created")]
    await gateway.check_upstream()
    assert await kinds(gateway, key) == ["adopted", "compacted", "run_completed", "goal_changed"]


async def test_a_child_that_a_source_tells_of(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rules 1.1 and 3.1: the child is the session that adopting its thread gives; the adopted session is its parent and watches it."""
    key = await adopted(gateway)
    fake.threads["t1"].append(Happening("child_spawned", "t2", None))
    await gateway.check_upstream()
    child = await gateway.adopt("fake", "t2")
    assert child.parent == key
    (spawned, _) = (await changes(gateway, child.key))["events"]
    assert (spawned["kind"], spawned["actorId"], spawned["summary"]) == ("child_spawned", key, "child session spawned")
    fake.threads["t2"].append("hello")
    await gateway.check_upstream()
    assert [notice.target for notice in await gateway.pending(key)] == [child.key]


async def test_a_child_of_a_session_that_cannot_watch(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 2.4: a session under a key without prefix can be a parent, and gets no cursor."""
    key = await adopted(gateway, key=GLOBAL, agent_id="ops")
    fake.threads["t1"].append(Happening("child_spawned", "t2", None))
    assert (await gateway.check_upstream()).events == 1
    child = await gateway.adopt("fake", "t2", agent_id="ops")
    assert child.parent == key
    assert await gateway.watches(key) == []


# -- 7.5 ---------------------------------------------------------------------------------------------------------------------


async def test_own_texts_are_no_persons(
    gateway: Gateway, fake: ScriptedCatalog, own: dict[str, list[tuple[str, str]]], database: Path
) -> None:
    """Rule 7.5: each own text accounts for one row, in this check and in every later one; the ids are stored with the marker."""
    key = await adopted(gateway)
    own[key] = [("m1", "go on"), ("m2", "stop")]
    fake.threads["t1"] += ["go  on ", "go on"]
    await gateway.check_upstream()
    assert await turns(gateway, key) == [1]
    assert (link_of(database, key).own_ids, link_of(database, key).marker) == (["m1"], {"rows": 2})
    fake.threads["t1"] += ["go on", "stop"]
    await gateway.check_upstream()
    assert await turns(gateway, key) == [1, 1]
    assert link_of(database, key).own_ids == ["m1", "m2"]
    assert fake.batches[-1][0].accounted_ids == {"m1"}


async def test_own_texts_alone_are_no_event(
    gateway: Gateway, fake: ScriptedCatalog, own: dict[str, list[tuple[str, str]]], database: Path
) -> None:
    """Rule 7.5: a scan of nothing but our own rows moves marker and ids, and records nothing."""
    key = await adopted(gateway)
    own[key] = [("m1", "go on")]
    fake.threads["t1"].append("go on")
    assert (await gateway.check_upstream()).events == 0
    assert (link_of(database, key).own_ids, link_of(database, key).marker) == (["m1"], {"rows": 1})


async def test_texts_are_never_stored(
    gateway: Gateway, fake: ScriptedCatalog, own: dict[str, list[tuple[str, str]]], database: Path
) -> None:
    """Rule 7.5: the ids are in the database, and the texts are nowhere in its files."""
    key = await adopted(gateway)
    own[key] = [("the-id-of-it", "a very secret text")]
    fake.threads["t1"] += ["a very secret text", "another secret text"]
    await gateway.check_upstream()
    content = b"".join(file.read_bytes() for file in database.parent.iterdir())
    assert b"the-id-of-it" in content
    assert b"secret text" not in content


async def test_ids_of_accounted_texts_are_bounded(
    gateway: Gateway, fake: ScriptedCatalog, own: dict[str, list[tuple[str, str]]], database: Path
) -> None:
    """Rule 7.5: the newest ids are kept, more than count; ids that the host never gave are not stored."""
    key = await adopted(gateway)
    for number in range(70):
        own[key] = [(f"m{number}", f"text {number}")]
        fake.threads["t1"].append(f"text {number}")
        await gateway.check_upstream()
    await finding(gateway, fake, Activity({"rows": 99}, 0, None, accounted_ids=("invented", "m69")))
    assert link_of(database, key).own_ids == [f"m{number}" for number in range(6, 70)]
    assert await turns(gateway, key) == []


async def test_a_failed_write_accounts_for_nothing(faults: Faults, opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.5: the ids move in the marker's transaction: a text accounted for in vain still accounts for its row the next time."""
    async with opening(catalogs=[fake], recent_texts=lambda key: [("m1", "go on")]) as gateway:
        key = await adopted(gateway)
        fake.threads["t1"] += ["go on", "hello"]
        fake.during = lambda: _fails_from_here(faults)
        assert (await gateway.check_upstream()).failed == 1
        faults.disarm()
        fake.during = None
        assert (link_of(database, key).own_ids, link_of(database, key).marker) == ([], {"rows": 0})
        await gateway.check_upstream()
        assert await turns(gateway, key) == [1]


async def _fails_from_here(faults: Faults) -> None:
    faults.arm(1, count=1000)


# -- 7.6 ---------------------------------------------------------------------------------------------------------------------


async def test_missing_three_times(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.6: at the third time in a row, and not before, there is one `upstream_missing`, a notice, and no link any more."""
    key = await adopted(gateway)
    del fake.threads["t1"]
    for count in (1, 2):
        assert (await gateway.check_upstream()).missing == 1
        assert link_of(database, key).missing_count == count
        assert await gateway.pending(MAIN) == []
    with capture_logs() as captured:
        assert (await gateway.check_upstream()).removed == 1
    assert [entry["session_key"] for entry in captured if "link is removed" in entry["event"]] == [key]
    event = (await changes(gateway, key))["events"][-1]
    assert (event["kind"], event["actorType"], event["summary"]) == ("upstream_missing", "system", "upstream missing via fake")
    assert [notice.target for notice in await gateway.pending(MAIN)] == [key]
    assert links(database) == []
    assert (await gateway.check_upstream()).catalogs == ()


Between = Callable[[Gateway, ScriptedCatalog, str, ManualClock], Awaitable[object]]


async def _a_run(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    await gateway.run_started(key, "r1")
    assert (await gateway.check_upstream()).deferred == 1
    await gateway.run_finished(key, "r1")


async def _a_run_after_the_scan(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    fake.during = lambda: gateway.run_started(key, "r1")
    assert (await gateway.check_upstream()).deferred == 1
    fake.during = None
    await gateway.run_finished(key, "r1")


async def _nothing(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    await finding(gateway, fake, Nothing())


async def _activity(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    await finding(gateway, fake, Activity({"rows": 0}, 0, None))


async def _failure(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    await finding(gateway, fake, Failed("no permission"))


async def _crash(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    fake.answers.append(raising)
    await gateway.check_upstream()


async def _hang(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    fake.answers.append(never)
    await overdue(gateway, clock)


async def _adoption(gateway: Gateway, fake: ScriptedCatalog, key: str, clock: ManualClock) -> None:
    fake.threads["t1"] = []
    await gateway.adopt("fake", "t1")
    del fake.threads["t1"]


@pytest.mark.parametrize(
    ("between", "resets"),
    [
        (_a_run, False),
        (_a_run_after_the_scan, False),
        (_nothing, True),
        (_activity, True),
        (_failure, True),
        (_crash, True),
        (_hang, True),
        (_adoption, True),
    ],
)
async def test_what_comes_between(
    gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock, database: Path, between: Between, resets: bool
) -> None:
    """Rule 7.6: an active run between two times does not reset the count, anything else does; only "not found" counts."""
    key = await adopted(gateway)
    del fake.threads["t1"]
    await gateway.check_upstream()
    await gateway.check_upstream()
    await between(gateway, fake, key, clock)
    assert link_of(database, key).missing_count == (0 if resets else 2)
    await gateway.check_upstream()
    assert ("upstream_missing" in await kinds(gateway, key)) is not resets


async def test_the_count_outlives_the_gateway(opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.6: a restart is nothing that comes between: the count is in the link."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
    del fake.threads["t1"]
    for expected in ([1], [2], []):
        async with opening(catalogs=[fake]) as gateway:
            await gateway.check_upstream()
        assert [link.missing_count for link in links(database)] == expected
    async with opening() as gateway:
        assert (await kinds(gateway, key))[-1] == "upstream_missing"


async def test_adopting_what_was_missing(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.6: adopting again creates a new link, from its own end on; if that goes missing, too, it is told of again."""
    key = await adopted(gateway)
    first = link_of(database, key)
    for _ in range(2):
        del fake.threads["t1"]
        for _ in range(3):
            await gateway.check_upstream()
        fake.threads["t1"] = ["another thread's row"]
        assert await adopted(gateway) == key
        assert (await gateway.check_upstream()).human_turns == 0
    assert link_of(database, key).generation > first.generation
    assert await kinds(gateway, key) == ["adopted", "upstream_missing"] * 2 + ["adopted"]


async def test_a_missing_source_is_told_of_once_it_can_be_stored(opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.6: event and removal are one transaction: while the database is held neither happens, and then both do."""
    async with opening(catalogs=[fake], config=GatewayConfig(busy_timeout_s=0)) as gateway:
        key = await adopted(gateway)
        del fake.threads["t1"]
        for _ in range(2):
            await gateway.check_upstream()
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert (await gateway.check_upstream()).removed == 0
            other.execute("ROLLBACK")
        assert (link_of(database, key).missing_count, await kinds(gateway, key)) == (2, ["adopted"])
        assert (await gateway.check_upstream()).removed == 1
        assert (links(database), await kinds(gateway, key)) == ([], ["adopted", "upstream_missing"])


async def test_one_of_two_links_goes_missing(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.6: a thread under two keys is missed under both, and another thread under none."""
    keys = [await adopted(gateway), await adopted(gateway, key=OPS)]
    other = await adopted(gateway, "t2")
    del fake.threads["t1"]
    for _ in range(3):
        await gateway.check_upstream()
    assert [(await kinds(gateway, key))[-1] for key in keys] == ["upstream_missing"] * 2
    assert [link.session_key for link in links(database)] == [other]


# -- 7.7 ---------------------------------------------------------------------------------------------------------------------


async def test_a_source_that_was_replaced(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.7: following goes on from the new marker as a new generation, with one logged warning that says why."""
    key = await adopted(gateway)
    before = link_of(database, key)
    with capture_logs() as captured:
        await finding(gateway, fake, Activity({"rows": 40}, 0, None, restarted="truncated"))
    warnings = [entry for entry in captured if entry["log_level"] == "warning"]
    assert [(entry["session_key"], entry["reason"], entry["source"]) for entry in warnings] == [(key, "truncated", "/fake/t1")]
    after = link_of(database, key)
    assert after.generation > before.generation
    assert after == before._replace(generation=after.generation, marker={"rows": 40})
    assert await kinds(gateway, key) == ["adopted"]


async def test_a_replaced_source_that_could_not_be_recorded(
    faults: Faults, opening: Opening, fake: ScriptedCatalog, database: Path
) -> None:
    """Rule 7.7: no warning is given before the new generation is stored, and it is given when it is."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
        before = link_of(database, key)
        fake.answers += [_restarted(lambda: faults.arm(1, count=1000)), _restarted(lambda: None)]
        with capture_logs() as captured:
            await gateway.check_upstream()
            faults.disarm()
            assert link_of(database, key) == before
            assert [entry for entry in captured if "anew" in entry["event"]] == []
            await gateway.check_upstream()
        assert len([entry for entry in captured if "anew" in entry["event"]]) == 1
        assert link_of(database, key).generation > before.generation


def _restarted(also: Callable[[], None]) -> Callable[[object], list[Activity]]:
    def answer(_probes: object) -> list[Activity]:
        also()
        return [Activity({"rows": 0}, 0, None, restarted="replaced")]

    return answer


async def test_more_than_one_check_may_read(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.7: a backlog is read in order, a bounded part at each check; the report says that there is more."""
    key = await adopted(gateway)
    assert (await finding(gateway, fake, Activity({"rows": 1}, 1, None, more=True))).more == 1
    assert (await finding(gateway, fake, Activity({"rows": 2}, 2, None))).more == 0
    assert await turns(gateway, key) == [1, 2]


# -- all together ------------------------------------------------------------------------------------------------------------


async def test_the_whole_story(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock, database: Path) -> None:
    """Rules 4.1, 4.5 and 7.4: what people do upstream is one notice, reconciled and acknowledged like everything else."""
    key = await adopted(gateway)
    seen = await version(gateway, key)
    for _ in range(3):
        fake.threads["t1"].append("hello")
        await clock.advance(60)
    (line,) = await show(gateway)
    assert f"changesSince {seen}" in line
    assert [event["kind"] for event in (await changes(gateway, key, seen))["events"]] == ["human_direct_message"] * 3
    assert len(await show(gateway)) == 1, "what came while the notice was pending is one further notice"
    assert await show(gateway) == []
    assert violations(database) == []
