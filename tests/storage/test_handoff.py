"""The loop's pauses for the database's thread."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from kizuki.storage.handoff import BUSY_SHARE, LOOK_EVERY_S, PAUSE_S, Handoff, handoff, pause_s

TURN_S = LOOK_EVERY_S / 5


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made, each of which then takes no time."""
    made: list[float] = []
    monkeypatch.setattr("kizuki.storage.handoff.time.sleep", made.append)
    return made


@pytest.fixture
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's thread has a processor to itself, whatever else runs on the machine: all time is its own."""
    monkeypatch.setattr("kizuki.storage.handoff.time.thread_time", time.perf_counter)


async def busy_turns(count: int) -> None:
    """Keep the loop busy for some turns."""
    for _ in range(count):
        began = time.perf_counter()
        while time.perf_counter() - began < TURN_S:
            pass
        await asyncio.sleep(0)


async def busy_until_paused(pauses: list[float]) -> None:
    """Keep the loop busy until it has been looked at."""
    while not pauses:
        await busy_turns(1)
    pauses.clear()


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.0), (BUSY_SHARE / 2, 0.0), (BUSY_SHARE, PAUSE_S), (1.0, PAUSE_S)])
def test_pause_by_share(share: float, expected: float) -> None:
    """A loop that computes pauses, equally long however much it does, and an idle one does not."""
    assert pause_s(share) == expected


def test_a_pause_is_some_tens_of_microseconds() -> None:
    """What the loop gives away in a turn is far below what anybody could feel."""
    assert 10e-6 <= PAUSE_S <= 100e-6


@pytest.mark.usefixtures("_alone")
async def test_a_busy_loop_pauses_once_a_turn(pauses: list[float]) -> None:
    """While the loop is busy and a hop is under way, there is one pause in each turn, but for those in which it looks again."""
    with handoff():
        await busy_until_paused(pauses)
        await busy_turns(20)
    assert 10 <= len(pauses) <= 21


@pytest.mark.usefixtures("_alone")
async def test_hops_at_once_share_the_pauses(pauses: list[float]) -> None:
    """Two hops under way at once make no more pauses than one, and the first one's end does not end the other's."""
    with handoff():
        with handoff():
            await busy_until_paused(pauses)
            await busy_turns(10)
        await busy_turns(10)
    assert 10 <= len(pauses) <= 21


@pytest.mark.usefixtures("_alone")
async def test_a_short_hop_is_not_looked_at(pauses: list[float]) -> None:
    """What is over before the first look costs the loop nothing, however busy it is."""
    for _ in range(20):
        with handoff():
            pass
        await busy_turns(1)
    assert pauses == []


async def test_waiting_is_not_being_busy(pauses: list[float]) -> None:
    """A loop that is kept waiting in its turns does not pause: it would hear too late that its hop is over."""
    with handoff():
        for _ in range(10):
            threading.Event().wait(10 * LOOK_EVERY_S)
            await asyncio.sleep(0)
    assert pauses == []


async def test_a_loop_that_is_busy_no_more_stops_pausing(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses end at a look after the loop has nothing to do any more."""
    with handoff():
        with monkeypatch.context() as alone:
            alone.setattr("kizuki.storage.handoff.time.thread_time", time.perf_counter)
            await busy_until_paused(pauses)
        await asyncio.sleep(20 * LOOK_EVERY_S)
        pauses.clear()
        await asyncio.sleep(20 * LOOK_EVERY_S)
    assert pauses == []


@pytest.mark.usefixtures("_alone")
async def test_no_pause_without_a_hop(pauses: list[float]) -> None:
    """When the last hop has ended a busy loop is left alone."""
    with handoff():
        await busy_until_paused(pauses)
    await busy_turns(10)
    assert pauses == []


async def test_an_idle_loop_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle loop is looked at from time to time by a timer, not in every turn."""
    looks: list[float] = []
    monkeypatch.setattr(Handoff, "_look", _noting(looks))
    with handoff():
        await asyncio.sleep(20 * LOOK_EVERY_S)
    assert 1 <= len(looks) <= 22


async def test_a_loop_has_one_handoff() -> None:
    """All connections of a loop share its pauses."""
    assert handoff() is handoff()


def test_no_loop_is_kept() -> None:
    """A loop that has ended is not kept alive by its pauses."""

    async def hop() -> weakref.ref[asyncio.AbstractEventLoop]:
        with handoff():
            await asyncio.sleep(0)
        return weakref.ref(asyncio.get_running_loop())

    assert asyncio.run(hop())() is None


def _noting(looks: list[float]) -> Callable[[Handoff], None]:
    original = Handoff._look

    def noting(self: Handoff) -> None:
        looks.append(time.perf_counter())
        original(self)

    return noting
