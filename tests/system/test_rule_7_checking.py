"""Rules 7.2 and 7.3: when links are checked, what a catalog can do wrong, and what is looked at again before recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from kizuki.actors import Gateway, GatewayClosed, GatewayConfig, ManualClock, StoreUnavailable
from kizuki.actors.upstream.catalog import Activity, Failed, Happening, Nothing, Outcome, Probe
from tests.system.adopting import TIMEOUT_S, adopted, kinds, link_of, links, overdue, turns
from tests.system.cast import GLOBAL, MAIN, OPS
from tests.system.conftest import Opening
from tests.system.faulty_sqlite import Faults, faults
from tests.system.scripted_catalog import ScriptedCatalog, never, raising

__all__ = ["faults"]


@pytest.fixture
def fake() -> ScriptedCatalog:
    """A catalog with two threads."""
    return ScriptedCatalog("fake", "t1", "t2")


@pytest.fixture
def other() -> ScriptedCatalog:
    """Another catalog, which always does well."""
    return ScriptedCatalog("other", "o1")


class Texts:
    """What the host says it wrote, by session; `during` is run in each call."""

    def __init__(self) -> None:
        self.by_key: dict[str, Any] = {}
        self.calls: list[str] = []
        self.during: Callable[[str], Any] = lambda key: None

    async def __call__(self, key: str) -> Any:
        self.calls.append(key)
        answer = self.during(key)
        if asyncio.iscoroutine(answer):
            await answer
        return self.by_key.get(key, ())


@pytest.fixture
def texts() -> Texts:
    """The host's own texts."""
    return Texts()


@pytest_asyncio.fixture
async def gateway(opening: Opening, fake: ScriptedCatalog, other: ScriptedCatalog, texts: Texts) -> AsyncIterator[Gateway]:
    """A gateway with both catalogs."""
    async with opening(catalogs=[fake, other], recent_texts=texts) as opened:
        await opened.open_session(MAIN)
        yield opened


# -- 7.2 when ----------------------------------------------------------------------------------------------------------------


async def test_when_links_are_checked(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """Rule 7.2: first after 15 s, then every 60 s."""
    await adopted(gateway)
    checks = []
    for step in (14.9, 0.1, 59.9, 0.1, 60, 60):
        await clock.advance(step)
        checks.append(len(fake.batches))
    assert checks == [0, 1, 1, 2, 3, 4]


async def test_other_intervals(opening: Opening, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """Interface: both times are the configuration's."""
    config = GatewayConfig(upstream_first_s=0, upstream_interval_s=5)
    async with opening(catalogs=[fake], config=config) as gateway:
        await clock.advance(0)
        await adopted(gateway)
        await clock.advance(5)
        assert len(fake.batches) == 1


async def test_a_tick_finds_what_was_written(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """Rule 7.2: what a person wrote is recorded by the clock alone, and the watcher has its notice."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    await clock.advance(15)
    assert await turns(gateway, key) == [1]
    assert [notice.target for notice in await gateway.pending(MAIN)] == [key]


async def test_a_catalog_is_asked_once_for_all_its_links(gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog) -> None:
    """Rule 7.2: each catalog gets one batch with all its links, and no other's."""
    keys = [await adopted(gateway, "t1"), await adopted(gateway, "t2"), await adopted(gateway, "t1", key=OPS)]
    await adopted(gateway, "o1", "other")
    report = await gateway.check_upstream()
    assert [sorted(probe.address.session_key for probe in batch) for batch in fake.batches] == [sorted(keys)]
    assert [[probe.thread_id for probe in batch] for batch in other.batches] == [["o1"]]
    assert [(each.catalog, each.links, each.error) for each in report.catalogs] == [("fake", 3, None), ("other", 1, None)]


async def test_a_catalog_at_a_time(gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog) -> None:
    """Rule 7.2: no catalog is asked while another one that answers is at work."""
    order: list[str] = []
    for catalog, thread in ((fake, "t1"), (other, "o1")):
        await adopted(gateway, thread, catalog.name)
        catalog.during = _noting(catalog.name, order)
    await gateway.check_upstream()
    assert order in (["fake", "fake", "other", "other"], ["other", "other", "fake", "fake"])


def _noting(name: str, order: list[str]) -> Callable[[], Any]:
    async def during() -> None:
        order.append(name)
        for _ in range(20):
            await asyncio.sleep(0)
        order.append(name)

    return during


async def test_unwatched_links_are_not_scanned(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.2: without a watcher nothing is scanned and no marker moves; with one, all since the adoption is."""
    key = (await gateway.adopt("fake", "t1")).key
    fake.threads["t1"].append("hello")
    assert (await gateway.check_upstream()).checked == 0
    assert fake.batches == []
    await gateway.watch(MAIN, key)
    await gateway.check_upstream()
    assert await turns(gateway, key) == [1]
    await gateway.unwatch(MAIN, key)
    fake.threads["t1"].append("more")
    await gateway.check_upstream()
    assert link_of(database, key).marker == {"rows": 1}


async def test_a_parent_is_no_watcher(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.2: a lineage alone has nothing scanned."""
    await gateway.open_session(OPS, parent=MAIN)
    await gateway.adopt("fake", "t1", key=OPS)
    await gateway.check_upstream()
    assert fake.batches == []


async def test_what_a_probe_tells(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock, texts: Texts) -> None:
    """Rules 7.1 and 7.5: a probe holds all that a catalog needs: thread, source, marker, adoption, and the host's ten newest texts."""
    fake.threads["t1"].append("before")
    key = await adopted(gateway, host_id="node")
    adopted_at = clock.now_ms()
    texts.by_key[key] = [(f"m{number}", f"text {number}") for number in range(12)]
    await clock.advance(1)
    await gateway.check_upstream()
    ((probe,),) = fake.batches
    assert (probe.address.session_key, probe.thread_id, probe.host_id, probe.source) == (key, "t1", "node", "/fake/t1")
    assert (probe.marker, probe.adopted_at_ms, probe.accounted_ids) == ({"rows": 1}, adopted_at, frozenset())
    assert probe.own_texts == tuple((f"m{number}", f"text {number}") for number in range(2, 12))
    assert "text" not in repr(probe)


# -- 7.2 single flight -------------------------------------------------------------------------------------------------------


async def test_a_check_during_a_check(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.2: one tick at a time: who asks during one gets the next, shared, so that it covers what was written before the asking."""
    key = await adopted(gateway)
    gate = asyncio.Event()
    fake.during = gate.wait
    first = asyncio.create_task(gateway.check_upstream())
    await fake.asked.wait()
    fake.threads["t1"].append("written during the first check")
    others = [asyncio.create_task(gateway.check_upstream()) for _ in range(5)]
    await asyncio.sleep(0)
    gate.set()
    assert (await first).human_turns == 0
    assert [(await other).human_turns for other in others] == [1] * 5
    assert len(fake.batches) == 2
    assert await turns(gateway, key) == [1]


async def test_the_timer_during_a_check(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """Rule 7.2: a tick that is due while one is under way is left out."""
    await adopted(gateway)
    gate = asyncio.Event()
    fake.during = gate.wait
    check = asyncio.create_task(gateway.check_upstream())
    await clock.advance(15)
    gate.set()
    await check
    await clock.advance(59)
    assert len(fake.batches) == 1
    await clock.advance(1)
    assert len(fake.batches) == 2


async def test_a_caller_that_is_cancelled(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """A check goes on, and records what it finds, though its caller has gone."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    gate = asyncio.Event()
    fake.during = gate.wait
    check = asyncio.create_task(gateway.check_upstream())
    await fake.asked.wait()
    check.cancel()
    gate.set()
    await gateway.check_upstream()
    assert await turns(gateway, key) == [1]


async def test_leaving_during_a_check(opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Interface: a gateway is left while a catalog hangs: who waits for the check gets `GatewayClosed`, and nothing is recorded."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
        fake.answers.append(never)
        checks = [asyncio.create_task(gateway.check_upstream()) for _ in range(2)]
        await fake.asked.wait()
    for check in checks:
        with pytest.raises(GatewayClosed):
            await check
    assert link_of(database, key).marker == {"rows": 0}


# -- 7.2 catalogs that fail --------------------------------------------------------------------------------------------------


async def both(gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog) -> tuple[str, str]:
    """A thread of each catalog is adopted and has a turn of a person."""
    keys = await adopted(gateway, "t1"), await adopted(gateway, "o1", "other")
    fake.threads["t1"].append("hello")
    other.threads["o1"].append("hello")
    return keys


async def unharmed(gateway: Gateway, database: Path, keys: tuple[str, str]) -> None:
    """The first catalog's link has moved nowhere, the other's thread was recorded; one good check later so was the first."""
    assert (await turns(gateway, keys[0]), await turns(gateway, keys[1])) == ([], [1])
    assert (link_of(database, keys[0]).marker, link_of(database, keys[1]).marker) == ({"rows": 0}, {"rows": 1})
    await gateway.check_upstream()
    assert (await turns(gateway, keys[0]), await turns(gateway, keys[1])) == ([1], [1])


async def test_a_catalog_that_hangs(
    gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog, clock: ManualClock, database: Path
) -> None:
    """Rule 7.2: a catalog has 45 s on the gateway's clock, then it is skipped until the next tick; the other one is done long before."""
    keys = await both(gateway, fake, other)
    fake.answers.append(never)
    check = asyncio.create_task(gateway.check_upstream())
    await clock.advance(1)
    assert await turns(gateway, keys[1]) == [1]
    await clock.advance(43.9)
    assert not check.done()
    await clock.advance(0.1)
    report = await check
    assert (report.skipped, report.checked, report.duration_s) == (1, 1, TIMEOUT_S)
    assert [(each.catalog, each.error) for each in report.catalogs] == [("fake", "it did not answer within 45 s"), ("other", None)]
    await unharmed(gateway, database, keys)


async def test_a_catalog_that_crashes(gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog, database: Path) -> None:
    """Rule 7.2: a catalog that raises is skipped until the next tick, with a warning, and harms no other."""
    keys = await both(gateway, fake, other)
    fake.answers.append(raising)
    with capture_logs() as captured:
        report = await gateway.check_upstream()
    assert [(each.catalog, each.error) for each in report.catalogs] == [
        ("fake", "it failed: ZeroDivisionError('the catalog is broken')"),
        ("other", None),
    ]
    assert [entry["catalog"] for entry in captured if entry["log_level"] == "warning"] == ["fake"]
    await unharmed(gateway, database, keys)


async def test_a_catalog_whose_code_is_cancelled(gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog, database: Path) -> None:
    """Rule 7.2: a `CancelledError` out of a catalog's own code is a failure like any other."""
    keys = await both(gateway, fake, other)

    async def cancelled(_probes: Sequence[Probe]) -> Sequence[Outcome]:
        raise asyncio.CancelledError

    fake.answers.append(cancelled)
    assert (await gateway.check_upstream()).skipped == 1
    await unharmed(gateway, database, keys)


GARBAGE: list[Any] = [None, "ab", 7, {}, (), (Nothing(), Nothing()), (None,), ("activity",), ({"human_turns": 1},), (Activity,)]


@pytest.mark.parametrize("garbage", GARBAGE, ids=repr)
async def test_a_catalog_that_answers_garbage(
    gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog, database: Path, garbage: Any
) -> None:
    """Rule 7.2: an answer of a wrong length or of wrong types is none: the catalog is skipped, and harms no other."""
    keys = await both(gateway, fake, other)
    fake.answers.append(lambda probes: garbage)
    report = await gateway.check_upstream()
    assert (report.skipped, report.checked) == (1, 1)
    await unharmed(gateway, database, keys)


STRANGE: list[Any] = [
    Failed("no permission"),
    Failed(None),  # type: ignore[arg-type]
    Nothing("marker"),  # type: ignore[arg-type]
    Activity(None, 1, None),  # type: ignore[arg-type]
    Activity({"rows": object()}, 1, None),
    Activity({"rows": 1}, -1, None),
    Activity({"rows": 1}, True, None),
    Activity({"rows": 1}, 1.5, None),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, accounted_ids=(7,)),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, accounted_ids=None),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, happenings=("compacted",)),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, happenings=None),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, restarted=7),  # type: ignore[arg-type]
    Activity({"rows": 1}, 1, None, happenings=(Happening("compacted", "1", None),) * 10_001),
    Activity({"rows": 1}, 1, None, happenings=(Happening("exploded", "1", None),)),
    Activity({"rows": 1}, 1, None, happenings=(Happening("compacted", "", None),)),
    Activity({"rows": 1}, 1, None, happenings=(Happening("run_ended", "r", None, "great"),)),
]


@pytest.mark.parametrize("strange", STRANGE, ids=range(len(STRANGE)))
async def test_one_outcome_that_makes_no_sense(gateway: Gateway, fake: ScriptedCatalog, database: Path, strange: Any) -> None:
    """Rule 7.2: an outcome that fails, or holds what no outcome may, concerns its own link alone."""
    keys = [await adopted(gateway, "t1"), await adopted(gateway, "t2")]
    fake.threads["t2"].append("hello")
    fake.answers.append(lambda probes: [strange if probe.thread_id == "t1" else fake._outcome(probe) for probe in probes])
    report = await gateway.check_upstream()
    assert (report.failed, report.checked, report.active) == (1, 2, 1)
    assert (await turns(gateway, keys[0]), await turns(gateway, keys[1])) == ([], [1])
    assert link_of(database, keys[0]).marker == {"rows": 0}


async def test_an_answer_that_comes_too_late(
    gateway: Gateway, fake: ScriptedCatalog, other: ScriptedCatalog, clock: ManualClock, database: Path
) -> None:
    """Rule 7.2: a catalog that clings to its work after its time is not asked again before it has ended, and its answer is dropped."""
    keys = await both(gateway, fake, other)
    gate = asyncio.Event()

    async def clinging(probes: Sequence[Probe]) -> Sequence[Outcome]:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        return [Activity({"rows": 99}, 9, None) for _ in probes]

    fake.answers.append(clinging)
    await overdue(gateway, clock)
    report = await gateway.check_upstream()
    assert [(each.catalog, each.error) for each in report.catalogs] == [("fake", "its last check has not ended"), ("other", None)]
    gate.set()
    await clock.settle()
    await unharmed(gateway, database, keys)


async def test_two_catalogs_that_hang_keep_nobody_waiting(
    opening: Opening, fake: ScriptedCatalog, other: ScriptedCatalog, clock: ManualClock
) -> None:
    """Rule 7.2: however many catalogs hang, a tick is over within its minute, and the one that works is checked at every tick."""
    hanging = [ScriptedCatalog(f"hung{number}") for number in range(3)]
    async with opening(catalogs=[*hanging, other]) as gateway:
        for catalog in hanging:
            catalog.answers += [never] * 3
            await adopted(gateway, "t1", catalog.name)
        key = await adopted(gateway, "o1", "other")
        await clock.advance(14)
        for _ in range(3):
            other.threads["o1"].append("hello")
            for _ in range(60):
                await clock.advance(1)
        assert await turns(gateway, key) == [1, 1, 1]
        assert [len(catalog.batches) for catalog in hanging] == [3, 3, 3]


async def test_links_of_a_catalog_that_is_not_here(opening: Opening, fake: ScriptedCatalog, other: ScriptedCatalog, database: Path) -> None:
    """Rule 7.2: links to a catalog that this gateway was opened without wait for one that has it."""
    async with opening(catalogs=[fake, other]) as gateway:
        keys = await both(gateway, fake, other)
    async with opening(catalogs=[other]) as gateway:
        report = await gateway.check_upstream()
        assert [(each.catalog, each.links, each.error) for each in report.catalogs] == [
            ("fake", 1, "this gateway was opened without it"),
            ("other", 1, None),
        ]
        assert link_of(database, keys[0]).marker == {"rows": 0}


async def test_the_monitor_outlives_a_failing_database(faults: Faults, opening: Opening, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """Rule 7.2: a tick that cannot read the links says so to who asked for it, and the next one does its work."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
        fake.threads["t1"].append("hello")
        faults.arm(1, count=1000)
        with pytest.raises(StoreUnavailable):
            await gateway.check_upstream()
        await clock.advance(15)
        faults.disarm()
        assert await turns(gateway, key) == []
        await clock.advance(60)
        assert await turns(gateway, key) == [1]


# -- 7.3 ---------------------------------------------------------------------------------------------------------------------


async def test_a_session_with_an_active_run(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.3: it is deferred before the scan, its catalog is not even asked, and nothing is lost."""
    key = await adopted(gateway)
    await gateway.run_started(key, "r1")
    fake.threads["t1"].append("hello")
    report = await gateway.check_upstream()
    assert (report.deferred, report.checked, fake.batches) == (1, 0, [])
    await gateway.run_finished(key, "r1")
    assert (await gateway.check_upstream()).human_turns == 1


async def test_an_active_run_defers_one_session_alone(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.3: the other links of the catalog are scanned, and so is another agent's session under the same key."""
    await adopted(gateway, "t1", key=GLOBAL, agent_id="main")
    await gateway.run_started(GLOBAL, "r1", agent_id="ops")
    busy = await adopted(gateway, "t2")
    await gateway.run_started(busy, "r1")
    report = await gateway.check_upstream()
    assert (report.deferred, report.checked) == (1, 1)


Meanwhile = Callable[[Gateway, str, ScriptedCatalog, Texts], Any]


async def _starts(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    await gateway.run_started(key, "r1")


async def _readopted(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    await gateway.adopt("fake", "t1")


async def _reset(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    await gateway.reset_session(key)


async def _writes(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    texts.by_key[key] = [("m1", "hello")]


async def _changes_a_text(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    texts.by_key[key] = [("m0", "another text")]


async def _does_not_say(gateway: Gateway, key: str, fake: ScriptedCatalog, texts: Texts) -> None:
    texts.by_key[key] = None


@pytest.mark.parametrize("meanwhile", [_starts, _readopted, _reset, _writes, _changes_a_text, _does_not_say])
async def test_what_changes_during_the_scan(
    gateway: Gateway, fake: ScriptedCatalog, texts: Texts, database: Path, meanwhile: Meanwhile
) -> None:
    """Rule 7.3: after the scan, link, session id, idleness and own texts are looked at again; if any changed nothing is recorded."""
    key = await adopted(gateway)
    texts.by_key[key] = [("m0", "an old text")]
    fake.threads["t1"].append("hello")
    fake.during = lambda: meanwhile(gateway, key, fake, texts)
    report = await gateway.check_upstream()
    assert (report.checked, report.active, report.events, report.changed + report.deferred + report.failed) == (1, 0, 0, 1)
    assert await turns(gateway, key) == []
    assert (link_of(database, key).marker, link_of(database, key).own_ids) == ({"rows": 0}, [])
    fake.during = None
    await gateway.run_finished(key, "r1")
    texts.by_key[key] = []
    assert (await gateway.check_upstream()).human_turns == 1


@pytest.mark.parametrize("source", ["/fake/t1", "/moved"])
async def test_an_answer_after_the_session_was_adopted_again(gateway: Gateway, fake: ScriptedCatalog, database: Path, source: str) -> None:
    """Rule 7.3: what was scanned for the link as it was before is dropped, the same source or another; the other links are unharmed."""
    keys = await adopted(gateway, "t1"), await adopted(gateway, "t2")
    fake.threads["t1"].append("hello")
    fake.threads["t2"].append("hello")

    async def adopt_again() -> None:
        fake.sources["t1"] = source
        await gateway.adopt("fake", "t1")

    fake.during = adopt_again
    report = await gateway.check_upstream()
    assert (report.changed, report.active) == (1, 1)
    assert (await turns(gateway, keys[0]), await turns(gateway, keys[1])) == ([], [1])
    assert link_of(database, keys[0]).marker == {"rows": 0 if source == "/fake/t1" else 1}


async def test_a_session_that_is_deleted_during_the_scan(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.3: a session that has gone gets no event, and does not come back by one."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    fake.during = lambda: gateway.delete_session(key)
    assert (await gateway.check_upstream()).changed == 1
    assert links(database) == []
    assert not await gateway.delete_session(key)


async def test_a_session_deleted_and_adopted_anew_during_the_scan(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.3: the new link is another one, though key, thread and source are the same."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")

    async def anew() -> None:
        await gateway.delete_session(key)
        await adopted(gateway)

    fake.during = anew
    assert (await gateway.check_upstream()).changed == 1
    assert await turns(gateway, key) == []
    assert link_of(database, key).marker == {"rows": 1}


async def test_a_run_that_starts_while_the_host_tells_its_texts(gateway: Gateway, fake: ScriptedCatalog, texts: Texts) -> None:
    """Rule 7.3: idleness is the last thing that is looked at, after the texts."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    texts.during = lambda _: gateway.run_started(key, "r1") if len(texts.calls) == 2 else None
    assert (await gateway.check_upstream()).deferred == 1
    assert await turns(gateway, key) == []


async def test_nobody_watches_any_more(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 1.8: the last watcher has gone during the scan: the turn is not recorded."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    fake.during = lambda: gateway.unwatch(MAIN, key)
    assert (await gateway.check_upstream()).events == 0
    assert await kinds(gateway, key) == ["adopted"]


async def _hangs(_key: str) -> None:
    await asyncio.Event().wait()


def _raises(_key: str) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize("scan_done", [False, True])
@pytest.mark.parametrize("failing", [_hangs, _raises])
async def test_a_host_that_does_not_tell_its_texts(
    gateway: Gateway, fake: ScriptedCatalog, texts: Texts, clock: ManualClock, database: Path, failing: Any, scan_done: bool
) -> None:
    """Rule 7.3: a host that hangs or raises, before the scan or after it, leaves that one session unchecked, and no other."""
    keys = await adopted(gateway, "t1"), await adopted(gateway, "t2")
    for rows in fake.threads.values():
        rows.append("hello")
    texts.during = lambda key: failing(key) if key == keys[0] and texts.calls.count(key) == 1 + scan_done else None
    report = await overdue(gateway, clock, 5)
    assert (report.failed, report.active) == (1, 1)
    assert (await turns(gateway, keys[0]), await turns(gateway, keys[1])) == ([], [1])
    assert link_of(database, keys[0]).marker == {"rows": 0}
    texts.during = lambda key: None
    await gateway.check_upstream()
    assert await turns(gateway, keys[0]) == [1]


async def test_a_crowd_of_hanging_texts_is_waited_for_once(
    opening: Opening, fake: ScriptedCatalog, texts: Texts, clock: ManualClock
) -> None:
    """Rule 7.2: however many of the host's answers hang, they are given up together, within one catalog's time."""
    fake.threads = {f"t{number}": ["hello"] for number in range(80)}
    async with opening(catalogs=[fake], recent_texts=texts) as gateway:
        for thread in fake.threads:
            await adopted(gateway, thread)
        texts.during = _hangs
        assert (await overdue(gateway, clock, 5)).failed == 80


@pytest.mark.parametrize("answer", [None, "text", 7, [("m1",)], [("m1", 2)], ["ab"], [("", "text")], [("m1", "a", "b")]], ids=repr)
async def test_texts_that_are_garbage(gateway: Gateway, fake: ScriptedCatalog, texts: Texts, answer: Any) -> None:
    """Rule 7.3: a host that answers no (id, text) pairs has not said what it wrote; the session is not scanned."""
    key = await adopted(gateway)
    fake.threads["t1"].append("hello")
    texts.by_key[key] = answer
    report = await gateway.check_upstream()
    assert (report.failed, report.checked, fake.batches) == (1, 0, [])
    assert await turns(gateway, key) == []


async def test_a_plain_function_gives_the_texts(opening: Opening, fake: ScriptedCatalog) -> None:
    """Interface: `recent_texts` may be sync."""
    async with opening(catalogs=[fake], recent_texts=lambda key: [("m1", "mine")]) as gateway:
        key = await adopted(gateway)
        fake.threads["t1"] += ["mine", "theirs"]
        await gateway.check_upstream()
        assert await turns(gateway, key) == [1]
