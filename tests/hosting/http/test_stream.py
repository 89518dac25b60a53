"""The stream of events, in memory: what is told, what is missed and said to be, and what many clients cost."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import Gateway, ManualClock, open_gateway
from kizuki.actors.hosting.http import follower, streaming
from kizuki.actors.hosting.http.endpoint import Refused
from kizuki.storage.errors import StoreError
from kizuki.storage.writes import PruneEvents
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.http.asking import LOOK_S, Api, Streamed, session
from tests.hosting.http.asking import streaming as listening

NUMBERS = itertools.count()


async def record(gateway: Gateway, count: int = 1) -> list[int]:
    """Record events of the child; their sequences."""
    events = [await gateway.compacted(CHILD, operation_id=f"c{next(NUMBERS)}") for _ in range(count)]
    return [event.sequence for event in events if event is not None]


async def recorded(stream: Streamed, count: int) -> list[int]:
    """The sequences of the next so many events, which are all recorded ones."""
    got = [await stream.next() for _ in range(count)]
    assert {kind for kind, _, _ in got} == {"recorded"}
    return [data["sequence"] for _, data, _ in got]


async def test_from_now_on(api: Api, gateway: Gateway, clock: ManualClock, tmp_path: Path) -> None:
    """Every event that is recorded from now on is told once, also what another gateway records, as `GET /api/events` gives it."""
    await record(gateway)
    async with listening(api.app, clock) as stream:
        assert await stream.next() == ("ready", {"resumed": False}, 1)
        assert stream.status == 200
        got = await record(gateway, 3)
        assert await recorded(stream, 3) == got
        async with open_gateway(tmp_path / "state.db") as elsewhere:
            got = await record(elsewhere, 2)
        first, second = await stream.next(), await stream.next()
        assert [first[1], second[1]] == (await api.get("/api/events", limit=2))["events"]
        assert second[2] == got[-1]


async def test_notices(api: Api, gateway: Gateway, clock: ManualClock) -> None:
    """Notices that were opened are told with their watcher, and when they are acknowledged they are cleared."""
    await gateway.watch(MAIN, CHILD)
    async with listening(api.app, clock) as stream:
        await stream.next()
        event = await gateway.human_message(CHILD, channel="telegram")
        assert event is not None
        assert await recorded(stream, 1) == [event.sequence]
        kind, data, _ = await stream.next()
        notices = [{"watcher": MAIN, **notice} for notice in (await api.get(session(MAIN, "notices")))["notices"]]
        assert (kind, data) == ("notices", {"opened": notices, "cleared": []})
        await gateway.drain(MAIN)
        assert (await stream.next())[1] == {"opened": [], "cleared": notices}


async def test_coming_back(api: Api, gateway: Gateway, clock: ManualClock) -> None:
    """Who comes back with the last id is given what was recorded meanwhile, each once, and then what comes."""
    got = await record(gateway, 4)
    for arguments in ({"last_event_id": str(got[1])}, {"query": f"after={got[1]}"}):
        async with listening(api.app, clock, **arguments) as stream:
            assert await stream.next() == ("ready", {"resumed": True}, got[1])
            later = await record(gateway, 1)
            assert await recorded(stream, len(got[2:]) + 1) == got[2:] + later
            got += later


@pytest.mark.parametrize("given", ["nonsense", "99", "-1", "9" * 30])
async def test_a_position_that_never_was(api: Api, gateway: Gateway, given: str, clock: ManualClock) -> None:
    """Who comes with a position that this database never had is told that something may be missing."""
    await record(gateway, 2)
    async with listening(api.app, clock, last_event_id=given) as stream:
        assert [await stream.next() for _ in range(2)] == [("ready", {"resumed": False}, 2), ("gap", {"reason": "unknown_position"}, 2)]


async def test_a_position_whose_events_are_gone(api: Api, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Who comes back after what they missed was pruned, or with too much to tell, is told that it is missing."""
    got = await record(gateway, 6)
    await gateway._system.log().ask(PruneEvents(0, 3, 100))
    async with listening(api.app, clock, query="after=1") as stream:
        assert [await stream.next() for _ in range(2)] == [("ready", {"resumed": True}, 1), ("gap", {"reason": "pruned"}, 1)]
        assert await recorded(stream, 3) == got[3:]
    async with listening(api.app, clock, query="after=3") as stream:
        assert (await stream.next())[1] == {"resumed": True}
        assert await recorded(stream, 3) == got[3:]
    monkeypatch.setattr(follower, "BACKLOG_MAX", 2)
    async with listening(api.app, clock, query="after=3") as stream:
        assert [await stream.next() for _ in range(2)] == [("ready", {"resumed": False}, 6), ("gap", {"reason": "too_much"}, 6)]


async def test_a_slow_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that does not keep up loses what waits for it, and is told how much; its queue does not grow."""
    monkeypatch.setattr(follower, "WAITING_MAX", 3)
    listener = follower.Listener()
    for number in range(10):
        listener.offer(follower.Sent("recorded", {}, number, number))
        assert len(listener.waiting) <= 3
    taken = await listener.take()
    assert (taken[0].kind, taken[0].data) == ("gap", {"reason": "too_slow", "lost": 9})
    assert [sent.sequence for sent in taken[1:]] == [9]


async def test_many_clients(api: Api, gateway: Gateway, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many clients share one look at the database; there may be so many; when the last has gone nobody looks."""
    monkeypatch.setattr(follower, "LISTENERS_MAX", 2)
    looks: list[Any] = []
    follow = gateway.store.follow

    async def counted(*args: Any, **more: Any) -> Any:
        looks.append(args)
        return await follow(*args, **more)

    monkeypatch.setattr(gateway.store, "follow", counted)
    async with listening(api.app, clock) as first, listening(api.app, clock) as second:
        await first.next()
        await second.next()
        assert await api.refused("/api/stream", "GET") == (503, "too_many_streams")
        got = await record(gateway)
        assert (await recorded(first, 1), await recorded(second, 1)) == (got, got)
        looks.clear()
        for _ in range(20):
            await clock.advance(LOOK_S)
        assert len(looks) <= 21
    looks.clear()
    await clock.advance(5)
    assert looks == []


async def test_many_at_once(gateway: Gateway, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be so many clients also where they come at the same time, before the first look is done."""
    monkeypatch.setattr(follower, "LISTENERS_MAX", 2)
    followed = follower.Follower(gateway.store, "en", clock)
    came = await asyncio.gather(*(followed.listen(None) for _ in range(5)), return_exceptions=True)
    assert [type(each) for each in came] == [tuple, tuple, *[Refused] * 3]
    await followed.close()


async def test_who_comes_at_the_end(gateway: Gateway, clock: ManualClock) -> None:
    """A client whose first look is under way when all streams are ended is ended with them, and nobody looks any more."""
    followed = follower.Follower(gateway.store, "en", clock)
    coming = asyncio.create_task(followed.listen(None))
    await asyncio.sleep(0)
    await followed.close()
    listener, _ = await coming
    assert (listener.ended, await listener.take()) == (True, [])
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "kizuki follower"]


async def test_head(api: Api) -> None:
    """HEAD answers with the stream's headers and is over: it takes no client's place."""
    response = await asyncio.wait_for(api.client.head("/api/stream"), 5)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (response.content, "content-length" in response.headers) == (b"", False)


async def test_a_failing_database(api: Api, gateway: Gateway, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database fails nothing is told; when it is back nothing was lost."""

    async def failing(*_args: Any, **_more: Any) -> Any:
        raise StoreError("no")

    async with listening(api.app, clock) as stream:
        await stream.next()
        with monkeypatch.context() as patched:
            patched.setattr(gateway.store, "follow", failing)
            got = await record(gateway, 2)
            await clock.advance(LOOK_S)
        assert await recorded(stream, 2) == got


async def test_a_sign_of_life(api: Api, monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Where nothing happens a comment is sent from time to time."""
    monkeypatch.setattr(streaming, "KEEP_ALIVE_S", 0.01)
    async with listening(api.app, clock) as stream:
        await stream.next()
        assert await stream.block() == ": keep-alive"


async def test_the_end(api: Api, clock: ManualClock) -> None:
    """When the application is closed its streams end, and no other begins."""
    async with listening(api.app, clock) as stream:
        await stream.next()
        await api.app.close()
        with pytest.raises(EOFError):
            await stream.next()
    assert await api.refused("/api/stream", "GET") == (503, "closing")
    assert "streams at a time" not in (await api.client.get("/api/stream")).json()["error"]


async def test_too_many_notices(api: Api, gateway: Gateway, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too many notices are open their changes are not told one by one, and both ends of that are told."""
    await gateway.watch(MAIN, CHILD)
    async with listening(api.app, clock) as stream:
        await stream.next()
        with monkeypatch.context() as patched:
            patched.setattr(follower, "OPENED_MAX", 0)
            await gateway.human_message(CHILD, channel="telegram")
            await stream.next()
            assert (await stream.next())[1] == {"reason": "too_many_notices"}
        assert (await stream.next())[1] == {"reason": "too_many_notices"}
