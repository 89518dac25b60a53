"""What the interface says about leaving a gateway, its errors, and its frozen values."""

from __future__ import annotations

import asyncio
import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kizuki.actors
from kizuki.actors import (
    Actor,
    Dispatched,
    Gateway,
    GatewayClosed,
    GatewayConfig,
    InvalidArgument,
    InvalidSessionKey,
    KizukiError,
    ManualClock,
    StoreUnavailable,
    SystemClock,
    UnknownSession,
    open_gateway,
)
from tests.system.cast import CHILD, MAIN, OPS, PERSON, family, human, show, there
from tests.system.conftest import Opening


async def a_turn(gateway: Gateway) -> None:
    async with gateway.turn(MAIN):
        pass


CALLS: dict[str, Callable[[Gateway], Any]] = {
    "open_session": lambda g: g.open_session(MAIN),
    "spawn": lambda g: g.spawn(MAIN, CHILD, run_id="r"),
    "human_message": lambda g: g.human_message(CHILD, channel="c"),
    "goal_changed": lambda g: g.goal_changed(CHILD, "created", actor=PERSON),
    "run_ended": lambda g: g.run_ended(CHILD, run_id="r", outcome="ok"),
    "compacted": lambda g: g.compacted(CHILD, operation_id="c"),
    "run_started": lambda g: g.run_started(CHILD, "r"),
    "run_finished": lambda g: g.run_finished(CHILD, "r"),
    "watch": lambda g: g.watch(MAIN, CHILD),
    "unwatch": lambda g: g.unwatch(MAIN, CHILD),
    "watches": lambda g: g.watches(MAIN),
    "turn": a_turn,
    "drain": lambda g: g.drain(MAIN),
    "pending": lambda g: g.pending(MAIN),
    "acknowledge": lambda g: g.acknowledge(MAIN, []),
    "session_status": lambda g: g.session_status(CHILD),
    "sessions_list": lambda g: g.sessions_list(),
    "sessions_send": lambda g: g.sessions_send(MAIN, CHILD, "hello"),
    "reset_session": lambda g: g.reset_session(CHILD),
    "delete_session": lambda g: g.delete_session(CHILD),
    "adopt": lambda g: g.adopt("claude", "t1"),
    "check_upstream": lambda g: g.check_upstream(),
    "prune": lambda g: g.prune(),
    "idle": lambda g: g.idle(),
    "statistics": lambda g: g.statistics(),
}


@pytest.mark.parametrize("name", CALLS)
async def test_call_after_leaving(opening: Opening, name: str) -> None:
    """Interface: every call on a gateway that was left raises `GatewayClosed`, naming the call."""
    async with opening() as gateway:
        await family(gateway)
    with pytest.raises(GatewayClosed, match=name):
        await CALLS[name](gateway)


async def test_left_by_an_exception(opening: Opening) -> None:
    """Interface: a host's exception inside the gateway comes out as it is, and what was recorded is there."""
    with pytest.raises(ZeroDivisionError):
        async with opening() as gateway:
            await family(gateway)
            await human(gateway)
            raise ZeroDivisionError
    async with opening() as gateway:
        assert len(await show(gateway)) == 1


async def test_calls_under_way_while_leaving(opening: Opening) -> None:
    """Interface: calls that are under way when the gateway is left end, one way or the other, and what succeeded is stored."""
    async with opening() as gateway:
        await family(gateway)
        calls = [asyncio.create_task(CALLS[name](gateway)) for name in CALLS if name not in ("delete_session", "reset_session")]
        recordings = [asyncio.create_task(gateway.human_message(CHILD, channel="c")) for _ in range(20)]
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        ends = await asyncio.gather(*calls, return_exceptions=True)
        recorded = await asyncio.gather(*recordings, return_exceptions=True)
    assert all(not isinstance(end, Exception) or isinstance(end, KizukiError) for end in ends)
    stored = [event.sequence for event in recorded if event is not None and not isinstance(event, BaseException)]
    async with opening() as gateway:
        kept = (await gateway.session_status(CHILD, changes_since=0))["stateChanges"]["events"]
        assert set(stored) <= {event["sequence"] for event in kept}


async def test_send_under_way_while_leaving(opening: Opening) -> None:
    """Interface: a send that waits for a reply when the gateway is left ends."""

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    async with opening(dispatch=lambda sender, key, message: Dispatched(key, reply=never())) as gateway:
        sending = asyncio.create_task(gateway.sessions_send(MAIN, CHILD, "hello"))
        await gateway.idle()
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        end: object = (await asyncio.gather(sending, return_exceptions=True))[0]
    assert isinstance(end, GatewayClosed)


async def test_dispatch_under_way_while_leaving(opening: Opening) -> None:
    """Interface: leaving the gateway while `dispatch` runs is told as `GatewayClosed`, never as a cancellation of the sender."""

    async def dispatch(_sender: str, key: str, _message: str) -> Dispatched:
        await asyncio.Event().wait()
        return Dispatched(key)

    async with opening(dispatch=dispatch) as gateway:
        sending = asyncio.create_task(gateway.sessions_send(MAIN, CHILD, "hello"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        with pytest.raises(GatewayClosed):
            await sending


async def test_cancelled_sender_stays_cancelled(opening: Opening) -> None:
    """Interface: a sender that is cancelled itself sees its own cancellation."""

    async def dispatch(_sender: str, key: str, _message: str) -> Dispatched:
        await asyncio.Event().wait()
        return Dispatched(key)

    async with opening(dispatch=dispatch) as gateway:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gateway.sessions_send(MAIN, CHILD, "hello"), 0.05)


async def test_opened_and_left_many_times(opening: Opening) -> None:
    """Interface: one database can be opened again and again."""
    for number in range(1, 6):
        async with opening() as gateway:
            assert there(await gateway.compacted(CHILD, operation_id=str(number))).sequence == number


async def test_nothing_keeps_the_interpreter_alive(tmp_path: Path) -> None:
    """Interface: a process that forgets to leave its gateway still ends."""
    program = f"""
import asyncio
from kizuki.actors import open_gateway
async def main():
    opening = open_gateway({str(tmp_path / "state.db")!r}, wake=lambda key, reasons: None)
    gateway = await opening.__aenter__()
    await gateway.open_session("agent:main:main")
    import os, gc
    gc.collect()
    print("opened", flush=True)
asyncio.run(main())
"""
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert "opened" in done.stdout


async def test_real_clock(tmp_path: Path) -> None:
    """Interface: without a clock the system's is used, and a wake comes by itself."""
    woken = asyncio.Event()
    async with open_gateway(tmp_path / "state.db", wake=lambda key, reasons: woken.set()) as gateway:
        await family(gateway)
        event = await human(gateway)
        assert abs(event.occurred_at_ms - SystemClock().now_ms()) < 60_000
        async with asyncio.timeout(10):
            await woken.wait()


async def test_errors_are_one_family(opening: Opening) -> None:
    """Interface: the errors are one family."""
    for error in (InvalidSessionKey, UnknownSession, InvalidArgument, GatewayClosed, StoreUnavailable):
        assert issubclass(error, KizukiError)
    async with opening() as gateway:
        with pytest.raises(KizukiError, match="agent:main:nobody"):
            await gateway.session_status("agent:main:nobody")


async def test_frozen_values(gateway: Gateway) -> None:
    """Interface: sessions, events, notices, watches, actors, statistics and the configuration are frozen."""
    event = await family(gateway)
    await human(gateway)
    values: list[Any] = [
        event,
        await gateway.open_session(MAIN),
        (await gateway.pending(MAIN))[0],
        (await gateway.watches(MAIN))[0],
        Actor.human("ada"),
        await gateway.statistics(),
        GatewayConfig(),
    ]
    for value in values:
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "changed")


async def test_event_has_what_the_interface_names(gateway: Gateway) -> None:
    """Interface: an event's fields."""
    session = await gateway.open_session(CHILD, session_id="s-1")
    await gateway.watch(MAIN, CHILD)
    event = there(await gateway.human_message(CHILD, channel="c", actor_id="ada", run_id="r"))
    assert (event.sequence, event.session_key, event.agent_id, event.session_id) == (1, CHILD, "main", session.session_id)
    assert (event.kind, event.actor_type, event.actor_id, event.run_id) == ("human_direct_message", "human", "ada", "r")
    assert (event.summary, event.payload) == ("human message via c", None)


async def test_idle_actors_are_put_away(opening: Opening, clock: ManualClock) -> None:
    """Interface: actors that had no mail for `idle_actor_s` are put away, and come back with all they knew."""
    async with opening(config=GatewayConfig(idle_actor_s=10)) as gateway:
        await family(gateway)
        await human(gateway)
        assert (await gateway.statistics()).actors_resident > 0
        for _ in range(8):
            await clock.advance(5)
        assert (await gateway.statistics()).actors_resident == 0
        assert len(await show(gateway)) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"language": "de"},
        {"notices_max": 0},
        {"notices_max": True},
        {"busy_timeout_s": -1},
        {"busy_timeout_s": float("nan")},
        {"synchronous": "off"},
        {"retention_days": 0},
        {"retention_days": "30"},
        {"retention_rows": 0},
        {"prune_interval_s": 0},
        {"wake_coalesce_s": -0.1},
        {"record_unwatched": 1},
        {"idle_actor_s": 0},
    ],
)
def test_bad_configuration(options: Any) -> None:
    """Interface: a wrong setting raises `InvalidArgument` at once, naming the setting."""
    with pytest.raises(InvalidArgument, match=next(iter(options))):
        GatewayConfig(**options)


async def test_idle_waits_for_everything(gateway: Gateway) -> None:
    """Interface: `idle` returns when nothing is uncommitted: what was begun before it is done after it."""
    await family(gateway)
    recordings = [asyncio.create_task(gateway.human_message(CHILD, channel="c")) for _ in range(50)]
    await asyncio.sleep(0)
    await gateway.idle()
    await asyncio.sleep(0)
    assert all(recording.done() for recording in recordings)
    assert (await gateway.statistics()).mail_waiting == 0


NAMES = (
    "Actor", "Clock", "DispatchRefused", "Dispatched", "Gateway", "GatewayClosed", "GatewayConfig", "GatewayStatistics", "InvalidArgument",
    "InvalidSessionKey", "KizukiError", "Notice", "Session", "StateEvent", "StoreUnavailable", "Turn", "UnknownSession", "Watch",
    "open_gateway",
)  # fmt: skip


def test_front_door() -> None:
    """Interface: every name that the interface gives without a module is importable from `kizuki.actors`."""
    assert set(NAMES) <= set(kizuki.actors.__all__)
    assert kizuki.actors.__all__ == sorted(kizuki.actors.__all__)
    assert all(hasattr(kizuki.actors, name) for name in kizuki.actors.__all__)


async def test_watch_has_what_the_interface_names(gateway: Gateway) -> None:
    """Interface: a watch's fields."""
    await gateway.watch(MAIN, OPS)
    (found,) = await gateway.watches(MAIN)
    assert dataclasses.asdict(found) == {
        "target": OPS,
        "target_agent_id": "ops",
        "last_seen": 0,
        "notified": 0,
        "material": 0,
        "pending": False,
    }
