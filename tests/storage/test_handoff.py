"""The loop's pauses for the database's thread."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable

import pytest

from kizuki.storage import handoff as handoff_module
from kizuki.storage.handoff import BUSY_TURN_S, PAUSE_S, Handoff, handoff, pause_s


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made, each of which then takes no time."""
    made: list[float] = []
    monkeypatch.setattr("kizuki.storage.handoff.time.sleep", made.append)
    return made


async def busy_turns(count: int) -> None:
    """Keep the loop busy for some turns, each clearly longer than an idle one."""
    for _ in range(count):
        began = time.perf_counter()
        while time.perf_counter() - began < 4 * BUSY_TURN_S:
            pass
        await asyncio.sleep(0)


@pytest.mark.parametrize(("turn_s", "expected"), [(0.0, 0.0), (BUSY_TURN_S / 2, 0.0), (BUSY_TURN_S, PAUSE_S), (0.5, PAUSE_S)])
def test_pause_after_a_turn(turn_s: float, expected: float) -> None:
    """A loop pauses after a busy turn, equally long however long that was, and not after an idle one."""
    assert pause_s(turn_s) == expected


def test_a_pause_is_some_tens_of_microseconds() -> None:
    """What the loop gives away in a turn is far below what anybody could feel."""
    assert 10e-6 <= PAUSE_S <= 100e-6


async def test_a_busy_loop_pauses_once_a_turn(pauses: list[float]) -> None:
    """While the loop is busy and a hop is under way, there is one pause in each turn."""
    with handoff():
        await busy_turns(10)
    assert 9 <= len(pauses) <= 11


async def test_hops_at_once_share_the_pauses(pauses: list[float]) -> None:
    """Two hops under way at once make no more pauses than one, and the first one's end does not end the other's."""
    with handoff():
        with handoff():
            await busy_turns(5)
        await busy_turns(5)
    assert 9 <= len(pauses) <= 11


async def test_no_pause_without_a_hop(pauses: list[float]) -> None:
    """When the last hop has ended a busy loop is left alone."""
    with handoff():
        pass
    await busy_turns(5)
    assert pauses == []


async def test_an_idle_loop_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle loop is looked at from time to time by a timer, not in every turn."""
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(handoff_module, "BUSY_TURN_S", 10.0)
    looks: list[float] = []
    monkeypatch.setattr(Handoff, "_look_at_turn", _noting(looks))
    with handoff():
        ended = loop.create_future()
        loop.call_later(10 * handoff_module.LOOK_AGAIN_S, ended.set_result, None)
        await ended
    assert 1 <= len(looks) <= 12


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
    original = Handoff._look_at_turn

    def noting(self: Handoff) -> None:
        looks.append(time.perf_counter())
        original(self)

    return noting
