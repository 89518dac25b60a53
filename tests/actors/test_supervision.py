"""Actors that fail: each is back soon, nothing that was committed is forgotten, nobody waits for ever, and what is beyond help says so.

They fail by mail that cannot be handled, and by the cancellation of the task that runs their handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import Gateway, GatewayClosed, ManualClock, StateEvent, StoreUnavailable, open_gateway
from kizuki.actors.runtime import AsyncioActorRef
from kizuki.storage.records import Address

MAIN = "agent:main:main"
OPS = "agent:ops:main"
CHILD = "agent:main:subagent:child"
PERMANENT = ("log", "replay", "retention", "heartbeat")
FIRST_DELAY_S = 0.05
LONG_S = 5.0
"""Real seconds after which a test gives up on somebody who waits for ever."""


class Poison:
    """Mail that nobody can even look at."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise RuntimeError("poison")


class Host:
    """A gateway, its clock, and whom it woke."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.clock = ManualClock(1_767_225_600_000)
        self.woken: list[str] = []

    def wake(self, session_key: str, reasons: tuple[str, ...]) -> None:
        self.woken.append(session_key)

    def open(self) -> AbstractAsyncContextManager[Gateway]:
        return open_gateway(self.database, clock=self.clock, wake=self.wake)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "state.db")


def child(gateway: Gateway, name: str) -> AsyncioActorRef[Any]:
    """The permanent actor of this name."""
    return gateway._system.child(name)


async def poison(gateway: Gateway, ref: AsyncioActorRef[Any]) -> None:
    """Let the actor fail."""
    ref.tell(Poison())
    await gateway._system.runtime.idle()
    assert not ref.is_alive()


async def until(condition: Callable[[], bool]) -> None:
    """Give the loop turns until it is so."""
    while not condition():  # noqa: ASYNC110, there is no event for what only a test waits for
        await asyncio.sleep(0)


async def cancel_handler(gateway: Gateway, ref: AsyncioActorRef[Any], turns: int = 0) -> None:
    """Cancel the task of the handler that the actor runs, as soon as it has run for so many turns of the loop."""
    running = gateway._system.runtime._running
    await until(lambda: ref in running)
    task = running[ref]
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()


async def answered(awaitable: Awaitable[Any]) -> Any:
    """The result, which must come."""
    return await asyncio.wait_for(awaitable, LONG_S)


async def family(gateway: Gateway) -> None:
    await gateway.open_session(MAIN)
    await gateway.spawn(MAIN, CHILD, run_id="r1")


async def human(gateway: Gateway, key: str = CHILD) -> StateEvent | None:
    return await gateway.human_message(key, channel="telegram")


async def check_all_is_well(gateway: Gateway, host: Host) -> None:
    """An event is recorded, noticed, woken for, shown and acknowledged."""
    host.woken.clear()
    await answered(gateway.drain(MAIN))
    assert await answered(human(gateway)) is not None
    await host.clock.advance(0.25)
    assert host.woken.count(MAIN) == 1
    assert len(await answered(gateway.drain(MAIN))) == 1
    assert await answered(gateway.pending(MAIN)) == []


@pytest.mark.parametrize("name", PERMANENT)
async def test_a_failed_actor_is_back_after_a_delay(host: Host, name: str) -> None:
    """A permanent actor that fails is started again after the first delay, not before, and all works as ever."""
    async with host.open() as gateway:
        await family(gateway)
        await poison(gateway, child(gateway, name))
        await host.clock.advance(FIRST_DELAY_S - 0.01)
        assert gateway._system._permanent.get(name) is None
        await host.clock.advance(0.01)
        assert child(gateway, name).is_alive()
        await check_all_is_well(gateway, host)


@pytest.mark.parametrize("name", PERMANENT)
async def test_the_delay_doubles(host: Host, name: str) -> None:
    """An actor that fails again and again is started again after 0.05 s, then 0.1, 0.2, ... each time."""
    async with host.open() as gateway:
        for delay_s in (0.05, 0.1, 0.2, 0.4, 0.8):
            await poison(gateway, child(gateway, name))
            await host.clock.advance(delay_s - 0.01)
            assert gateway._system._permanent.get(name) is None
            await host.clock.advance(0.01)
            assert gateway._system._permanent.get(name) is not None


@pytest.mark.parametrize("name", PERMANENT)
async def test_a_committed_change_survives_the_failure(host: Host, name: str) -> None:
    """Rule 4.11: what was committed before an actor failed is noticed and woken for after it, exactly once."""
    async with host.open() as gateway:
        await family(gateway)
        assert await human(gateway) is not None
        await poison(gateway, child(gateway, name))
        await host.clock.advance(FIRST_DELAY_S)
        await host.clock.advance(0.25)
        assert host.woken == [MAIN]
        assert len(await gateway.drain(MAIN)) == 1
        assert await gateway.pending(MAIN) == []


async def test_calls_while_the_log_is_away(host: Host) -> None:
    """Rule 1.9: while the log is being started again recordings are lost quietly and turns end well; other calls say so."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN) as turn:
            await poison(gateway, child(gateway, "log"))
            assert len(turn.notices) == 1
        assert await human(gateway) is None
        assert await gateway.drain(MAIN) == []
        with pytest.raises(StoreUnavailable, match="restarted"):
            await gateway.watch(OPS, CHILD)
        assert (await gateway.statistics()).recordings_lost == 1
        await host.clock.advance(FIRST_DELAY_S)
        assert len(await gateway.drain(MAIN)) == 1


async def test_everybody_is_answered_when_the_log_fails(host: Host) -> None:
    """Rule 1.9: writes that queue in a log that fails are answered: recordings with None, others with an error."""
    async with host.open() as gateway:
        await family(gateway)
        recordings = [asyncio.ensure_future(human(gateway)) for _ in range(3)]
        opening = asyncio.ensure_future(gateway.open_session(OPS))
        log = child(gateway, "log")
        await until(lambda: not log.is_idle())
        log.tell(Poison())
        results = await answered(asyncio.gather(*recordings, opening, return_exceptions=True))
        assert all(result is None or isinstance(result, StateEvent | StoreUnavailable) or result.key == OPS for result in results)
        await host.clock.advance(FIRST_DELAY_S)
        await check_all_is_well(gateway, host)


@pytest.mark.parametrize("turns", range(3))
async def test_everybody_is_answered_when_a_commit_is_cancelled(host: Host, turns: int) -> None:
    """Rule 4.11: the writes of a cancelled commit are answered as lost; what took effect all the same is noticed and woken for."""
    async with host.open() as gateway:
        await family(gateway)
        await gateway.idle()
        recording = asyncio.ensure_future(human(gateway))
        opening = asyncio.ensure_future(gateway.open_session(OPS))
        await cancel_handler(gateway, child(gateway, "log"), turns)
        assert await answered(recording) is None
        with pytest.raises(StoreUnavailable):
            await answered(opening)
        for seconds in (FIRST_DELAY_S, 1.0, 0.25):  # the log, the replay that waits for it, the wake
            await host.clock.advance(seconds)
        status = await gateway.session_status(CHILD, changes_since=0)
        committed = len(status["stateChanges"]["events"]) == 2
        assert host.woken == ([MAIN] if committed else [])
        assert len(await gateway.pending(MAIN)) == committed
        await check_all_is_well(gateway, host)


@pytest.mark.parametrize("turns", range(3))
async def test_a_wake_survives_the_heartbeat(host: Host, turns: int) -> None:
    """Rule 4.9: a wake that the heartbeat was about to make when it was cancelled is made by the next one."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)
        await gateway.idle()
        heartbeat = child(gateway, "heartbeat")
        advancing = asyncio.ensure_future(host.clock.advance(0.25))
        await cancel_handler(gateway, heartbeat, turns)
        await answered(advancing)
        assert not heartbeat.is_alive()
        for _ in range(4):
            await host.clock.advance(0.25)
        assert host.woken == [MAIN]


async def test_a_wake_callback_survives_the_heartbeat(host: Host) -> None:
    """Rule 4.9: a host whose answer was awaited when the heartbeat failed is asked again."""
    calls: list[str] = []

    async def slow(session_key: str, reasons: tuple[str, ...]) -> None:
        calls.append(session_key)
        await host.clock.sleep(10)

    async with open_gateway(host.database, clock=host.clock, wake=slow) as gateway:
        await family(gateway)
        await human(gateway)
        await host.clock.advance(0.25)
        assert calls == [MAIN]
        await poison(gateway, child(gateway, "heartbeat"))
        await host.clock.advance(FIRST_DELAY_S)
        await host.clock.advance(0.25)
        assert calls == [MAIN, MAIN]


async def many_pending(host: Host, children: int) -> None:
    """Leave a database with this many pending pairs."""
    async with host.open() as gateway:
        await gateway.open_session(MAIN)
        keys = [f"agent:main:subagent:{number}" for number in range(children)]
        await asyncio.gather(*(gateway.spawn(MAIN, key, run_id=key) for key in keys))
        await asyncio.gather(*(gateway.watch(OPS, key) for key in keys))
        await asyncio.gather(*(human(gateway, key) for key in keys))
    host.woken.clear()


@pytest.mark.parametrize("kill", [poison, cancel_handler])
async def test_a_replay_that_fails_goes_on(host: Host, kill: Callable[[Gateway, AsyncioActorRef[Any]], Awaitable[None]]) -> None:
    """Rule 4.11: a start whose replay fails in the middle still gives every pair its notice, and every watcher its wake."""
    await many_pending(host, 1_100)
    async with host.open() as gateway:
        await kill(gateway, child(gateway, "replay"))
        await gateway._system.runtime.idle()
        for _ in range(4):
            await host.clock.advance(0.25)
        assert sorted(host.woken) == [MAIN, OPS]
        for watcher in (MAIN, OPS):
            assert len(await gateway.pending(watcher)) == 1_100


@pytest.mark.parametrize("name", PERMANENT)
async def test_an_actor_that_keeps_failing_closes_the_gateway(host: Host, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An actor that fails for the sixth time within a minute closes the gateway: loudly, every call says so, and leaving it works."""
    async with host.open() as gateway:
        await family(gateway)
        for _ in range(5):
            await poison(gateway, child(gateway, name))
            await host.clock.advance(5)
        assert "the gateway closes" not in capsys.readouterr().err
        await poison(gateway, child(gateway, name))
        assert "the gateway closes" in capsys.readouterr().err
        for call in (gateway.open_session(OPS), human(gateway), gateway.pending(MAIN), gateway.drain(MAIN), gateway.statistics()):
            with pytest.raises(GatewayClosed, match=f"its {name} actor failed 6 times"):
                await answered(call)
        with pytest.raises(GatewayClosed):
            async with gateway.turn(MAIN):
                pytest.fail("a turn began")


async def test_failures_far_apart_do_not_close_the_gateway(host: Host) -> None:
    """An actor that fails once in a while is started again for ever."""
    async with host.open() as gateway:
        await family(gateway)
        for _ in range(12):
            await poison(gateway, child(gateway, "log"))
            await host.clock.advance(15)
        await check_all_is_well(gateway, host)


async def test_an_open_turn_ends_when_the_gateway_has_closed(host: Host) -> None:
    """Rule 4.8: a turn that is open while the gateway fails ends well, and its notice is shown again by the next gateway."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN) as turn:
            shown = turn.prompt_lines()
            for _ in range(6):
                await poison(gateway, child(gateway, "log"))
                await host.clock.advance(5)
    async with host.open() as gateway:
        assert [notice.text for notice in await gateway.drain(MAIN)] == shown


async def test_a_supervisor_that_fails_closes_the_gateway(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody supervises the supervisor: when it fails the gateway closes, loudly, and leaving it works."""
    async with host.open() as gateway:
        supervisor = gateway._system._supervisor
        assert supervisor is not None
        await poison(gateway, supervisor)
        assert "the supervisor failed, the gateway closes" in capsys.readouterr().err
        with pytest.raises(GatewayClosed, match="supervisor"):
            await gateway.open_session(MAIN)


async def test_a_failed_session_actor_harms_nobody(host: Host) -> None:
    """A session's actor that fails is back at its next mail; what it was asked before is answered, and no other actor notices."""
    async with host.open() as gateway:
        await family(gateway)
        await gateway.watch(OPS, CHILD)
        session, watcher = gateway._system.session(Address(CHILD, "main")), gateway._system.watcher(OPS)
        before = asyncio.ensure_future(human(gateway))
        await asyncio.sleep(0)
        await poison(gateway, session)
        assert await answered(before) is not None
        assert watcher.is_alive()
        assert gateway._system.session(Address(CHILD, "main")) is not session
        await check_all_is_well(gateway, host)


async def test_a_failed_watcher_actor_forgets_no_turn(host: Host) -> None:
    """Rule 4.8: a watcher's actor that fails while its notice is in a turn is back at its next mail, and does not show it again."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN) as turn:
            assert len(turn.notices) == 1
            await poison(gateway, gateway._system.watcher(MAIN))
            assert await gateway.pending(MAIN) == []
            async with gateway.turn(MAIN) as second:
                assert second.notices == ()
        assert await gateway.pending(MAIN) == []
        await check_all_is_well(gateway, host)


@pytest.mark.parametrize("turns", range(3))
async def test_a_take_that_is_cancelled_leaves_nothing_taken(host: Host, turns: int) -> None:
    """Rule 4.8: a watcher's actor cancelled while it takes fails that turn before its body; the next turn is shown the notice."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)

        async def begin() -> None:
            async with gateway.turn(MAIN):
                pytest.fail("a turn began")

        turn = asyncio.ensure_future(begin())
        await cancel_handler(gateway, gateway._system.watcher(MAIN), turns)
        with pytest.raises(StoreUnavailable):
            await answered(turn)
        assert len(await gateway.drain(MAIN)) == 1


@pytest.mark.parametrize("turns", range(3))
async def test_an_acknowledgement_that_is_cancelled_is_no_failure_of_the_turn(host: Host, turns: int) -> None:
    """Rule 4.8: a watcher's actor cancelled while it acknowledges: the turn ends well, and the notice is acknowledged or shown again."""
    async with host.open() as gateway:
        await family(gateway)
        await human(gateway)

        async def whole() -> int:
            async with gateway.turn(MAIN) as turn:
                await gateway.idle()
            return len(turn.notices)

        turn = asyncio.ensure_future(whole())
        await until(lambda: bool(gateway._system.claims.taken(MAIN)))
        await until(lambda: gateway._system.watcher(MAIN).is_idle())
        await cancel_handler(gateway, gateway._system.watcher(MAIN), turns)
        assert await answered(turn) == 1
        await gateway.idle()
        assert len(await gateway.pending(MAIN)) == sum(watch.pending for watch in await gateway.watches(MAIN))
        await check_all_is_well(gateway, host)
