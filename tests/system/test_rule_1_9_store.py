"""Rule 1.9, and what the interface says about `StoreUnavailable`: a real database that is really not available."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import Gateway, GatewayConfig, Notice, StoreUnavailable, open_gateway
from tests.system.cast import CHILD, MAIN, OPS, OTHER, PERSON, changes, family, human, positions, sequences, show, there, version
from tests.system.conftest import Opening

IMPATIENT = GatewayConfig(busy_timeout_s=0.02)


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Somebody else holds the database for writing."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield
        other.execute("ROLLBACK")


def broken(database: Path) -> None:
    """Somebody else takes the tables away, so that neither reading nor writing works."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        for table in ("sessions", "cursors", "heads"):
            other.execute(f"ALTER TABLE {table} RENAME TO taken_{table}")


RECORDINGS: dict[str, Callable[[Gateway], Any]] = {
    "spawn": lambda g: g.spawn(MAIN, OTHER, run_id="r2"),
    "human_message": lambda g: g.human_message(CHILD, channel="c"),
    "goal_changed": lambda g: g.goal_changed(CHILD, "updated", actor=PERSON),
    "run_ended": lambda g: g.run_ended(CHILD, run_id="r1", outcome="ok"),
    "compacted": lambda g: g.compacted(CHILD, operation_id="c"),
}


@pytest.mark.parametrize("name", RECORDINGS)
async def test_recording_under_a_lock(opening: Opening, database: Path, name: str) -> None:
    """Rule 1.9: a recording that cannot be stored returns None and is counted; nothing of it is there, and the next one works."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        before = await changes(gateway), await gateway.watches(MAIN), await gateway.sessions_list()
        with locked(database):
            assert await RECORDINGS[name](gateway) is None
        assert (await gateway.statistics()).recordings_lost == 1
        assert (await changes(gateway), await gateway.watches(MAIN), await gateway.sessions_list()) == before
        assert await RECORDINGS[name](gateway) is not None
        assert (await gateway.statistics()).recordings_lost == 1


async def test_lost_recording_is_logged(opening: Opening, database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rule 1.9: a storage failure is logged, on standard error."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        with locked(database):
            await gateway.human_message(CHILD, channel="c")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "locked" in captured.err


async def test_lost_dedupe_key_is_free(opening: Opening, database: Path) -> None:
    """Rules 1.6, 1.9: a recording that was lost is no first event: the same key records later."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        with locked(database):
            assert await gateway.human_message(CHILD, channel="c", dedupe_key="k") is None
        assert await gateway.human_message(CHILD, channel="c", dedupe_key="k") is not None


async def test_many_recordings_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 1.9: no recording waits longer than the timeout plus one commit, however many wait behind each other."""
    async with opening(config=GatewayConfig(busy_timeout_s=0.2)) as gateway:
        await family(gateway)
        with locked(database):
            began = time.monotonic()
            answers = await asyncio.gather(*(gateway.human_message(CHILD, channel="c") for _ in range(100)))
            waited = time.monotonic() - began
        assert answers == [None] * 100
        assert waited < 2
        assert (await gateway.statistics()).recordings_lost == 100
        assert await version(gateway) == 1


async def test_lock_that_goes_in_time(opening: Opening, database: Path) -> None:
    """Rule 1.9: a lock that goes within the timeout loses nothing."""
    async with opening(config=GatewayConfig(busy_timeout_s=20)) as gateway:
        await family(gateway)
        with locked(database):
            recording = asyncio.create_task(gateway.human_message(CHILD, channel="c"))
            await asyncio.sleep(0.02)
            assert not recording.done()
        assert there(await recording).sequence == 2


async def test_turn_goes_on_through_a_lost_recording(opening: Opening, database: Path) -> None:
    """Rule 1.9: the turn that caused a lost recording goes on."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN) as turn:
            with locked(database):
                assert await gateway.goal_changed(MAIN, "updated", actor=PERSON) is None
            assert len(turn.notices) == 1
        assert await gateway.pending(MAIN) == []


async def test_runs_are_noted_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 1.9: that a run is active is in memory, and needs no database."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        with locked(database):
            await gateway.run_started(CHILD, "r")
            assert (await gateway.session_status(CHILD))["status"] == "running"
            assert await gateway.run_ended(CHILD, run_id="r", outcome="ok") is None
            assert (await gateway.session_status(CHILD))["status"] == "idle"
            await gateway.run_started(CHILD, "r")
            await gateway.run_finished(CHILD, "r")
            assert (await gateway.session_status(CHILD))["status"] == "idle"


WRITES: dict[str, Callable[[Gateway, list[Notice]], Any]] = {
    "open_session": lambda g, n: g.open_session(OPS),
    "watch": lambda g, n: g.watch(MAIN, OPS),
    "unwatch": lambda g, n: g.unwatch(MAIN, CHILD),
    "acknowledge": lambda g, n: g.acknowledge(MAIN, n),
    "reset_session": lambda g, n: g.reset_session(MAIN),
    "delete_session": lambda g, n: g.delete_session(CHILD),
    "prune": lambda g, n: g.prune(),
}


@pytest.mark.parametrize("name", WRITES)
async def test_writes_under_a_lock(opening: Opening, database: Path, name: str) -> None:
    """Interface: every other writing call raises `StoreUnavailable`, changes nothing, and works when it is tried again."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        notices = await gateway.pending(MAIN)
        before = await gateway.watches(MAIN), await gateway.sessions_list(), await changes(gateway)
        with locked(database), pytest.raises(StoreUnavailable) as failure:
            await WRITES[name](gateway, notices)
        assert name in str(failure.value)
        assert (await gateway.watches(MAIN), await gateway.sessions_list(), await changes(gateway)) == before
        assert await gateway.pending(MAIN) == notices
        await WRITES[name](gateway, notices)


async def test_reads_under_a_lock(opening: Opening, database: Path) -> None:
    """Interface: who only reads is not held up by another's lock."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        event = await human(gateway)
        with locked(database):
            assert sequences(await changes(gateway)) == [1, event.sequence]
            assert len((await gateway.sessions_list())["sessions"]) == 2
            assert len(await gateway.pending(MAIN)) == 1
            assert len(await gateway.watches(MAIN)) == 1
            assert (await gateway.statistics()).notices_pending == 1


async def end_under_a_lock(gateway: Gateway, database: Path) -> list[str]:
    """A turn that ends well while somebody else holds the database; what it showed."""
    async with AsyncExitStack() as stack:
        turn = await stack.enter_async_context(gateway.turn(MAIN))
        with locked(database):
            await stack.aclose()
    return turn.prompt_lines()


async def test_turn_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 8.3: taking is a claim in the store, so a turn that cannot claim its notices says so before its body."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        with locked(database), pytest.raises(StoreUnavailable):
            async with gateway.turn(MAIN):
                pytest.fail("the body ran")
        assert len(await show(gateway)) == 1


async def test_turn_end_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 4.8: if the acknowledgement cannot be stored the turn still ends well, and the notice is shown again."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        before = await positions(gateway)
        first = await end_under_a_lock(gateway, database)
        assert await positions(gateway) == before
        assert await show(gateway) == first
        assert await show(gateway) == []


async def test_error_of_the_body_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 4.8: a turn that raises gives back without any database."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        before = await gateway.pending(MAIN)
        with pytest.raises(ZeroDivisionError), ExitStack() as stack:
            async with gateway.turn(MAIN):
                stack.enter_context(locked(database))
                raise ZeroDivisionError
        with locked(database):
            assert await gateway.pending(MAIN) == before


async def test_early_acknowledgement_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 4.8: an early acknowledgement that cannot be stored says so; the turn's end then does it."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        event = await human(gateway)
        async with gateway.turn(MAIN) as turn:
            with locked(database), pytest.raises(StoreUnavailable):
                await turn.acknowledge()
        assert await positions(gateway) == (event.sequence,) * 3


async def test_drain_under_a_lock(opening: Opening, database: Path) -> None:
    """Rule 4.8: a drain never raises for the database's sake, and what it could not acknowledge is shown again."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        with locked(database):
            await gateway.drain(MAIN)
        assert len(await gateway.drain(MAIN)) == 1
        assert await gateway.drain(MAIN) == []


async def test_wakes_after_a_turn_end_under_a_lock(opening: Opening, database: Path, clock: Any) -> None:
    """Rule 4.9: a turn whose acknowledgement could not be stored is followed by a wake."""
    woken: list[str] = []
    async with opening(config=IMPATIENT, wake=lambda key, reasons: woken.append(key)) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await end_under_a_lock(gateway, database)
        await clock.advance(1)
        assert woken == [MAIN, MAIN]


READS: dict[str, Callable[[Gateway], Any]] = {
    "session_status": lambda g: g.session_status(CHILD),
    "sessions_list": lambda g: g.sessions_list(),
    "pending": lambda g: g.pending(MAIN),
    "watches": lambda g: g.watches(MAIN),
    "statistics": lambda g: g.statistics(),
    "turn": show,
}


@pytest.mark.parametrize("name", READS)
async def test_reads_of_a_broken_database(opening: Opening, database: Path, name: str) -> None:
    """Interface: reading calls, and the start of a turn, raise `StoreUnavailable` when the database cannot be read."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        broken(database)
        with pytest.raises(StoreUnavailable) as failure:
            await READS[name](gateway)
        assert str(failure.value).isprintable()


async def test_recording_and_drain_on_a_broken_database(opening: Opening, database: Path) -> None:
    """Rule 1.9: recordings and drains on a broken database raise nothing either."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        broken(database)
        assert await gateway.drain(MAIN) == []
        for record in RECORDINGS.values():
            assert await record(gateway) is None


async def test_turn_end_on_a_broken_database(opening: Opening, database: Path) -> None:
    """Rule 4.8: the end of a turn raises nothing when the database has broken during it."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN) as turn:
            broken(database)
        assert len(turn.notices) == 1


async def test_gateway_leaves_a_locked_database(opening: Opening, database: Path) -> None:
    """Interface: leaving is possible while somebody else holds the database."""
    async with opening(config=IMPATIENT) as gateway:
        await family(gateway)
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
    other.close()


# -- opening ----------------------------------------------------------------------------------------------------------------------------


def a_folder(tmp_path: Path) -> Path:
    return tmp_path


def in_no_folder(tmp_path: Path) -> Path:
    return tmp_path / "no" / "state.db"


def no_database(tmp_path: Path) -> Path:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Ada, this is a letter and no database at all. " * 100)
    return path


def anothers(tmp_path: Path) -> Path:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE invoices (id INTEGER)")
    return path


def of_a_newer_release(tmp_path: Path) -> Path:
    path = tmp_path / "newer.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 0x6B697A75")
        connection.execute("PRAGMA user_version = 9999")
    return path


@pytest.mark.parametrize("make", [a_folder, in_no_folder, no_database, anothers, of_a_newer_release])
async def test_what_cannot_be_opened(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    """Interface: a database that cannot be opened is `StoreUnavailable`, and is left as it was."""
    path = make(tmp_path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreUnavailable):
        async with open_gateway(path):
            pass
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("url", ["", ":memory:", "mysql://localhost/x", "sqlite://relative.db"])
async def test_urls_that_are_none(url: str) -> None:
    """Interface: what is no database's address is `StoreUnavailable`, and says what is allowed."""
    with pytest.raises(StoreUnavailable):
        async with open_gateway(url):
            pass


@pytest.mark.parametrize("form", ["path", "str", "url"])
async def test_forms_of_an_address(tmp_path: Path, form: str) -> None:
    """Interface: a path, a text, or `sqlite:///path` open the same database."""
    path = tmp_path / "state with spaces?#%41.db"
    given: dict[str, str | Path] = {"path": path, "str": str(path), "url": f"sqlite:///{path}"}
    async with open_gateway(path) as gateway:
        await gateway.open_session(MAIN)
    async with open_gateway(given[form]) as gateway:
        assert len((await gateway.sessions_list())["sessions"]) == 1
    left = await asyncio.to_thread(os.listdir, tmp_path)
    assert left == [path.name]
