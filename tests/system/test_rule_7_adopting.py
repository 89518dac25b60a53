"""Rules 7.1 and 7.8: links of adopted sessions, seen through a whole gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from kizuki.actors import (
    CatalogUnavailable,
    Gateway,
    GatewayClosed,
    InvalidArgument,
    InvalidSessionKey,
    ManualClock,
    StoreUnavailable,
    UnknownSession,
    UnknownThread,
)
from kizuki.actors.upstream.catalog import Start
from tests.system.adopting import TIMEOUT_S, adopted, kinds, link_of, links, turns
from tests.system.cast import GLOBAL, MAIN, OPS, changes, version
from tests.system.conftest import Opening
from tests.system.faulty_sqlite import Faults, faults
from tests.system.scripted_catalog import ScriptedCatalog

__all__ = ["faults"]


@pytest.fixture
def fake() -> ScriptedCatalog:
    """A catalog with two threads."""
    return ScriptedCatalog("fake", "t1", "t2")


@pytest_asyncio.fixture
async def gateway(opening: Opening, fake: ScriptedCatalog) -> AsyncIterator[Gateway]:
    """A gateway with that catalog and another one."""
    async with opening(catalogs=[fake, ScriptedCatalog("other")]) as opened:
        await opened.open_session(MAIN)
        yield opened


async def test_adopting_makes_a_session_and_a_link(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.1: the link holds catalog, host, thread, source and a marker at the thread's present end."""
    fake.threads["t1"] += ["before", "before"]
    session = await gateway.adopt("fake", "t1")
    assert (session.kind, session.agent_id, session.status) == ("catalog", "main", "idle")
    link = link_of(database, session.key)
    assert link[:6] == (session.key, "main", "fake", "t1", "/fake/t1", {"rows": 2})


async def test_what_adopting_records(gateway: Gateway) -> None:
    """Rules 1.2 and 1.3: one `adopted` event by a person, which opens no notice."""
    key = await adopted(gateway)
    (event,) = (await changes(gateway, key))["events"]
    assert (event["kind"], event["actorType"], event["summary"]) == ("adopted", "human", "session adopted via fake")
    assert await gateway.pending(MAIN) == []


async def test_the_default_key(gateway: Gateway) -> None:
    """Rule 2.1: the key names agent and catalog, is the same for the same thread, and another one for another host, thread or agent."""
    first = (await gateway.adopt("fake", "t1")).key
    assert first.startswith("agent:main:catalog:fake:")
    assert (await gateway.adopt("fake", "t1")).key == first
    others = [
        await gateway.adopt("fake", "t2"),
        await gateway.adopt("fake", "t1", host_id="node"),
        await gateway.adopt("other", "t1"),
        await gateway.adopt("fake", "t1", agent_id=" OPS "),
    ]
    assert len({first, *(other.key for other in others)}) == 5
    assert others[-1].key.startswith("agent:ops:catalog:fake:")


async def test_a_key_of_ones_own(gateway: Gateway) -> None:
    """Rules 2.2 and 2.4: a thread takes any key, canonical; a qualified one names its agent, another takes the argument."""
    assert (await gateway.adopt("fake", "t1", key=" Agent:OPS:Main ")).key == OPS
    session = await gateway.adopt("fake", "t1", key=GLOBAL, agent_id="ops")
    assert (session.key, session.agent_id) == (GLOBAL, "ops")


async def test_adopting_an_open_session(gateway: Gateway) -> None:
    """Rule 7.1: a session that is there already is linked as it is."""
    before = await gateway.open_session(OPS, session_id="s1", label="ops")
    assert await gateway.adopt("fake", "t1", key=OPS) == before


async def test_adopting_the_same_source_again(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.1: the marker is kept, so that what was written meanwhile is still found, and nothing is recorded for a second time."""
    key = await adopted(gateway)
    before = link_of(database, key)
    fake.threads["t1"].append("hello")
    await gateway.adopt("fake", "t1")
    assert link_of(database, key) == before
    assert (await gateway.check_upstream()).human_turns == 1
    assert await kinds(gateway, key) == ["adopted", "human_direct_message"]


async def test_adopting_a_changed_source(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.1: a changed source starts anew at its own end, as a new generation, and is told of again."""
    key = await adopted(gateway)
    before = link_of(database, key)
    fake.threads["t1"].append("unseen")
    fake.sources["t1"] = "/moved"
    await gateway.adopt("fake", "t1")
    after = link_of(database, key)
    assert after.generation > before.generation
    assert (after.source, after.marker) == ("/moved", {"rows": 1})
    assert (await gateway.check_upstream()).human_turns == 0
    assert await kinds(gateway, key) == ["adopted", "adopted"]


async def test_adopting_another_thread_under_the_key(gateway: Gateway, database: Path) -> None:
    """Rule 7.1: another thread under the same key takes the place of the first one."""
    await gateway.adopt("fake", "t1", key=OPS)
    await gateway.adopt("fake", "t2", key=OPS)
    assert [link.thread_id for link in links(database)] == ["t2"]


async def test_links_outlive_the_gateway(opening: Opening, fake: ScriptedCatalog) -> None:
    """Rule 7.1: the marker is durable: what was written while no gateway ran is found by the next one."""
    async with opening(catalogs=[fake]) as gateway:
        key = await adopted(gateway)
    fake.threads["t1"] += ["hello", "again"]
    async with opening(catalogs=[fake]) as gateway:
        await gateway.check_upstream()
        assert await turns(gateway, key) == [2]


async def test_a_deleted_session_loses_its_link(gateway: Gateway, database: Path) -> None:
    """Rule 1.11: deleting removes the link; adopting again goes on from the head's version, with another generation."""
    key = await adopted(gateway)
    before = link_of(database, key)
    last = await version(gateway, key)
    assert await gateway.delete_session(key)
    assert links(database) == []
    assert await adopted(gateway) == key
    assert link_of(database, key).generation > before.generation
    assert await version(gateway, key) > last


async def test_a_reset_session_stays_adopted(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 3.5: a reset keeps the link, and what is found later is recorded under the new session id."""
    key = await adopted(gateway)
    before = link_of(database, key)
    session = await gateway.reset_session(key)
    assert link_of(database, key) == before
    fake.threads["t1"].append("hello")
    assert (await gateway.check_upstream()).events == 1
    assert (await gateway.session_status(key))["sessionId"] == session.session_id


# -- refusals ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("catalog", ["nowhere", "", None, 7])
async def test_an_unknown_catalog(gateway: Gateway, catalog: Any) -> None:
    """An unknown catalog is refused, with a list of those there are."""
    with pytest.raises(InvalidArgument, match="fake, other"):
        await gateway.adopt(catalog, "t1")


async def test_a_gateway_without_catalogs(opening: Opening) -> None:
    """Without catalogs nothing can be adopted, and a check finds nothing to do."""
    async with opening() as gateway:
        with pytest.raises(InvalidArgument, match="without catalogs"):
            await gateway.adopt("fake", "t1")
        assert (await gateway.check_upstream()).catalogs == ()


async def test_an_unknown_thread(gateway: Gateway, database: Path) -> None:
    """A thread that the catalog does not have is an unknown session, said in the catalog's words; nothing is created."""
    with pytest.raises(UnknownThread, match="no thread 't9' on host 'local'") as caught:
        await gateway.adopt("fake", "t9")
    assert isinstance(caught.value, UnknownSession)
    assert links(database) == []
    assert (await gateway.sessions_list(kind="catalog"))["sessions"] == []


@pytest.mark.parametrize(
    "options", [{"thread_id": ""}, {"thread_id": "a\nb"}, {"host_id": " "}, {"agent_id": "a:b"}, {"key": GLOBAL, "agent_id": ""}]
)
async def test_wrong_arguments(gateway: Gateway, options: dict[str, Any]) -> None:
    """Rule 2.3: ids are one line and not blank, and agent ids are agent ids."""
    with pytest.raises(InvalidArgument):
        await gateway.adopt("fake", **({"thread_id": "t1"} | options))


async def test_a_wrong_key(gateway: Gateway) -> None:
    """Rule 2.3: what is no session key is refused before the catalog is asked; so is an agent that contradicts the key."""
    with pytest.raises(InvalidSessionKey):
        await gateway.adopt("fake", "t1", key="agent:main")
    with pytest.raises(InvalidArgument):
        await gateway.adopt("fake", "t1", key=OPS, agent_id="dev")


@pytest.mark.parametrize("names", [["fake", "fake"], ["a:b"], [""], ["a b"], [None], ["x" * 65]])
async def test_names_of_catalogs(opening: Opening, names: list[Any]) -> None:
    """A catalog's name is part of session keys: it must fit there, and be the only one of its kind."""
    with pytest.raises(InvalidArgument, match="catalogs"):
        async with opening(catalogs=[ScriptedCatalog(name) for name in names]):
            pass


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        Start("", {}),
        Start("/a", None),  # type: ignore[arg-type]
        pytest.param(Start("/a", {"x": object()}), id="a marker that is not JSON"),  # an object's repr differs from run to run
        Start("/a", {"x": float("nan")}),
        Start("/a", {"x": "y" * 70_000}),
    ],
    ids=repr,
)
async def test_a_catalog_that_links_to_garbage(gateway: Gateway, fake: ScriptedCatalog, database: Path, answer: Any) -> None:
    """A catalog whose answer is no start of a thread has failed, and nothing is linked."""

    async def link(thread_id: str, host_id: str) -> Any:
        return answer

    fake.link = link  # type: ignore[method-assign]
    with pytest.raises(CatalogUnavailable, match="fake"):
        await gateway.adopt("fake", "t1")
    assert links(database) == []


async def test_a_catalog_that_crashes_or_hangs_while_linking(gateway: Gateway, fake: ScriptedCatalog, clock: ManualClock) -> None:
    """A catalog that raises, or does not answer in time on the gateway's clock, has failed; the call may be tried again."""

    async def crash(thread_id: str, host_id: str) -> Start:
        raise ZeroDivisionError

    async def hang(thread_id: str, host_id: str) -> Start:
        await asyncio.Event().wait()
        raise AssertionError

    works, fake.link = fake.link, crash  # type: ignore[method-assign]
    with pytest.raises(CatalogUnavailable, match="ZeroDivisionError"):
        await gateway.adopt("fake", "t1")
    fake.link = hang  # type: ignore[method-assign]
    adopting = asyncio.create_task(gateway.adopt("fake", "t1"))
    await clock.advance(TIMEOUT_S)
    with pytest.raises(CatalogUnavailable, match="in time"):
        await adopting
    fake.link = works  # type: ignore[method-assign]
    assert (await gateway.adopt("fake", "t1")).kind == "catalog"


async def test_adopting_while_the_gateway_is_left(opening: Opening, fake: ScriptedCatalog) -> None:
    """Interface: an adoption that waits for its catalog when the gateway is left ends with `GatewayClosed`."""

    async def hang(thread_id: str, host_id: str) -> Start:
        await asyncio.Event().wait()
        raise AssertionError

    fake.link = hang  # type: ignore[method-assign]
    async with opening(catalogs=[fake]) as gateway:
        adopting = asyncio.create_task(gateway.adopt("fake", "t1"))
        await asyncio.sleep(0)
    with pytest.raises(GatewayClosed):
        await adopting


async def test_an_adoption_that_cannot_be_stored(faults: Faults, opening: Opening, fake: ScriptedCatalog, database: Path) -> None:
    """Interface: where the database fails `adopt` says so, and neither link nor event is there."""
    async with opening(catalogs=[fake]) as gateway:
        await gateway.adopt("fake", "t2")
        faults.arm(1, count=100)
        with pytest.raises(StoreUnavailable):
            await gateway.adopt("fake", "t1")
        faults.disarm()
        assert [link.thread_id for link in links(database)] == ["t2"]
        key = await adopted(gateway)
        assert await kinds(gateway, key) == ["adopted"]


# -- 7.8 ---------------------------------------------------------------------------------------------------------------------


async def test_one_key_of_two_agents(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.8: neither of two links under one key is scanned, and one warning says so for as long as it lasts."""
    for agent_id, thread in (("main", "t1"), ("ops", "t2")):
        await adopted(gateway, thread, key=GLOBAL, agent_id=agent_id)
    fine = await adopted(gateway, "t1")
    for rows in fake.threads.values():
        rows.append("hello")
    before = links(database)
    with capture_logs() as captured:
        first = await gateway.check_upstream()
        await gateway.check_upstream()
    assert [entry["session_key"] for entry in captured if "two agents" in entry["event"]] == [GLOBAL]
    assert (first.ambiguous, first.skipped, first.checked) == ((GLOBAL,), 2, 1)
    assert [probe.address.session_key for batch in fake.batches for probe in batch] == [fine] * 2
    assert [link for link in links(database) if link.session_key == GLOBAL] == [link for link in before if link.session_key == GLOBAL]
    assert await turns(gateway, fine) == [1]


async def test_an_ambiguity_ends(gateway: Gateway, fake: ScriptedCatalog) -> None:
    """Rule 7.8: once one of the two sessions is deleted the other is scanned, from its own marker on."""
    await adopted(gateway, "t1", key=GLOBAL, agent_id="main")
    await gateway.adopt("fake", "t2", key=GLOBAL, agent_id="ops")
    fake.threads["t1"].append("hello")
    assert (await gateway.check_upstream()).skipped == 1
    await gateway.delete_session(GLOBAL, agent_id="ops")
    assert (await gateway.check_upstream()).human_turns == 1
    assert await turns(gateway, GLOBAL, agent_id="main") == [1]


async def test_a_link_that_becomes_ambiguous_during_the_scan(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rules 7.3 and 7.8: what was found for a key that two agents have by then is not recorded."""
    await adopted(gateway, "t1", key=GLOBAL, agent_id="main")
    fake.threads["t1"].append("hello")
    fake.during = lambda: gateway.adopt("fake", "t2", key=GLOBAL, agent_id="ops")
    assert (await gateway.check_upstream()).changed == 1
    assert [link.marker for link in links(database)] == [{"rows": 0}, {"rows": 0}]
    assert await turns(gateway, GLOBAL, agent_id="main") == []


async def test_one_thread_under_several_keys(gateway: Gateway, fake: ScriptedCatalog, database: Path) -> None:
    """Rule 7.8: one thread under several keys is scanned for each, with a marker of its own."""
    first = await adopted(gateway, "t1")
    fake.threads["t1"].append("one")
    second = await adopted(gateway, "t1", key=OPS)
    fake.threads["t1"].append("two")
    await gateway.check_upstream()
    assert (await turns(gateway, first), await turns(gateway, second)) == ([2], [1])
    assert [link.marker for link in links(database)] == [{"rows": 2}, {"rows": 2}]
