"""Doing the same for each of many."""

from __future__ import annotations

import asyncio

import pytest

from kizuki.actors.upstream.crowd import AT_ONCE, for_each


@pytest.mark.parametrize("count", [0, 1, AT_ONCE, 3 * AT_ONCE + 1])
async def test_each_is_done_once(count: int) -> None:
    """Every item is done exactly once, however many there are."""

    async def double(number: int) -> int:
        return 2 * number

    assert sorted(await for_each(range(count), double)) == [2 * number for number in range(count)]


async def test_a_bounded_number_at_once() -> None:
    """No more than the bound run at the same time, and that many do."""
    running, most = 0, 0

    async def counted(_number: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    await for_each(range(5 * AT_ONCE), counted)
    assert most == AT_ONCE


async def test_one_that_hangs_keeps_its_own_place_only() -> None:
    """All others are done while one waits."""
    gate, done = asyncio.Event(), set()

    async def work(number: int) -> None:
        if number == 0:
            await gate.wait()
        done.add(number)
        if len(done) == 3 * AT_ONCE:
            gate.set()

    await for_each(range(3 * AT_ONCE + 1), work)
    assert len(done) == 3 * AT_ONCE + 1


async def test_what_never_waits_does_not_keep_the_loop() -> None:
    """Other tasks have their turns in between."""
    turns = 0

    async def nothing(_number: int) -> None:
        pass

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await for_each(range(100 * AT_ONCE), nothing)
    task.cancel()
    assert turns >= 100


async def test_a_failure_ends_all() -> None:
    """Nothing goes on in the background once it has failed."""
    ended = asyncio.Event()

    async def work(number: int) -> None:
        if number == 1:
            raise ZeroDivisionError
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ExceptionGroup):
        await for_each(range(3), work)
    assert ended.is_set()
