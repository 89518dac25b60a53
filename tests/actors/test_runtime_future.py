"""Futures: what is awaited for an answer."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable
from typing import Any

import pykka
import pytest

from kizuki.actors.runtime import AsyncioFuture, WouldBlockError


async def awaiting(future: AsyncioFuture[Any]) -> asyncio.Task[Any]:
    """A task that has reached its await of the future."""

    async def wait() -> Any:
        return await future

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    return task


def failed(error: BaseException) -> AsyncioFuture[Any]:
    future: AsyncioFuture[Any] = AsyncioFuture()
    future.fail(error)
    return future


def answered(value: Any) -> AsyncioFuture[Any]:
    future: AsyncioFuture[Any] = AsyncioFuture()
    future.set(value)
    return future


async def test_it_is_a_pykka_future() -> None:
    """Code that takes Pykka's futures takes these."""
    future = answered(1)
    assert isinstance(future, pykka.Future)
    assert isinstance(future, Awaitable)
    assert pykka.get_all([future, answered(2)]) == [1, 2]


async def test_get_before_the_answer_raises() -> None:
    """Pitfall: a stock future blocks the loop; this one refuses, with and without a timeout."""
    future: AsyncioFuture[int] = AsyncioFuture()
    with pytest.raises(WouldBlockError, match="await"):
        future.get()
    with pytest.raises(WouldBlockError):
        future.get(timeout=0)


async def test_awaiting_does_not_block_the_loop() -> None:
    """Pitfall: while one task awaits a reply, the loop runs others, one of which brings it."""
    future: AsyncioFuture[str] = AsyncioFuture()
    asyncio.get_running_loop().call_soon(future.set, "brought")
    assert await future == "brought"


async def test_a_value_is_read_any_number_of_times() -> None:
    """The value can be awaited and got again and again."""
    future = answered("x")
    assert [await future, await future, future.get()] == ["x"] * 3


async def test_no_value_is_none() -> None:
    """A future set without a value answers None."""
    future: AsyncioFuture[None] = AsyncioFuture()
    future.set()
    assert future.done()
    assert future.get() is None


async def test_several_tasks_await_one_future() -> None:
    """Every task that awaits a future gets its answer."""
    future: AsyncioFuture[int] = AsyncioFuture()
    tasks = [await awaiting(future) for _ in range(3)]
    future.set(7)
    assert await asyncio.gather(*tasks) == [7, 7, 7]


async def test_a_second_answer_is_refused() -> None:
    """An answer is final, be it a value, an exception or a get hook."""
    for future in (answered(1), failed(ValueError())):
        with pytest.raises(asyncio.InvalidStateError):
            future.set(2)
        with pytest.raises(asyncio.InvalidStateError):
            future.set_exception((ValueError, ValueError(), None))
        with pytest.raises(asyncio.InvalidStateError):
            future.set_get_hook(lambda _timeout: 2)


async def test_resolve_and_fail_leave_the_first_answer() -> None:
    """The forgiving forms keep the first answer and raise nothing."""
    future = answered(1)
    future.resolve(2)
    future.fail(ValueError())
    assert await future == 1


async def test_an_exception_is_raised_each_time_with_its_own_traceback() -> None:
    """Reading an exception twice raises the same one, and its traceback does not grow from read to read."""

    def raise_it() -> None:
        raise ValueError("bad")

    future: AsyncioFuture[Any] = AsyncioFuture()
    try:
        raise_it()
    except ValueError:
        future.set_exception()
    lengths = []
    for _ in range(3):
        with pytest.raises(ValueError, match="bad") as caught:
            await future
        lengths.append(len(caught.traceback))
        assert caught.traceback[-1].name == "raise_it"
    assert len(set(lengths)) == 1


async def test_set_exception_takes_an_exc_info() -> None:
    """Pykka's three-tuple is accepted, and so is one without a traceback."""
    future: AsyncioFuture[Any] = AsyncioFuture()
    future.set_exception((KeyError, KeyError("k"), None))
    with pytest.raises(KeyError):
        future.get()


async def test_set_exception_without_an_exception_is_a_mistake() -> None:
    """There must be an exception to set, given or being handled."""
    with pytest.raises(ValueError, match="exc_info"):
        AsyncioFuture[Any]().set_exception()


async def test_cancelling_a_waiter_leaves_the_future() -> None:
    """Pitfall: a cancelled wait neither cancels the future nor disturbs another waiter, and leaves nothing on it."""
    future: AsyncioFuture[int] = AsyncioFuture()
    first, second = await awaiting(future), await awaiting(future)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not future.done()
    assert future._waiters is not None
    assert len(future._waiters) == 1
    future.set(3)
    assert await second == 3


async def test_a_waiter_cancelled_as_the_answer_comes_harms_nobody() -> None:
    """Cancelling and answering in one loop turn, in either order, answers the other waiters."""
    for cancel_first in (True, False):
        future: AsyncioFuture[int] = AsyncioFuture()
        doomed, other = await awaiting(future), await awaiting(future)
        if cancel_first:
            doomed.cancel()
        future.set(1)
        doomed.cancel()
        assert await other == 1
        with pytest.raises(asyncio.CancelledError):
            await doomed


async def test_done_callbacks_run_from_the_loop() -> None:
    """A callback runs after the answer, never inside `set`, whether it was added before or after."""
    future: AsyncioFuture[int] = AsyncioFuture()
    seen: list[int] = []
    future.add_done_callback(lambda done: seen.append(done.get()))
    future.set(1)
    future.add_done_callback(lambda done: seen.append(done.get() + 1))
    assert seen == []
    await asyncio.sleep(0)
    assert seen == [1, 2]


async def test_a_get_hook_makes_the_value_once() -> None:
    """A get hook runs at the first read, with the timeout, and its value is kept."""
    calls: list[float | None] = []

    def hook(timeout: float | None) -> str:
        calls.append(timeout)
        return "hooked"

    future: AsyncioFuture[str] = AsyncioFuture()
    future.set_get_hook(hook)
    assert calls == []
    assert future.get(timeout=2) == "hooked"
    assert await future == "hooked"
    assert calls == [2]


async def test_a_get_hook_wakes_who_waits() -> None:
    """A hook set while a task waits answers that task."""
    future: AsyncioFuture[int] = AsyncioFuture()
    task = await awaiting(future)
    future.set_get_hook(lambda _timeout: 5)
    assert await task == 5


async def test_map_filter_reduce_join() -> None:
    """Pykka's four ways to derive a future hold, and each can be awaited before its source is answered."""
    source: AsyncioFuture[Any] = AsyncioFuture()
    other: AsyncioFuture[Any] = AsyncioFuture()
    doubled = source.map(lambda items: [item * 2 for item in items])
    large = source.filter(lambda item: item > 1)
    total = source.reduce(lambda a, b: a + b)
    total_and_ten = source.reduce(lambda a, b: a + b, 10)
    joined = source.join(other)
    waiting = [await awaiting(future) for future in (doubled, large, total, total_and_ten, joined)]
    assert not any(future.done() for future in (doubled, large, total, joined))
    other.set("later")
    source.set([1, 2, 3])
    assert await asyncio.gather(*waiting) == [[2, 4, 6], [2, 3], 6, 16, [[1, 2, 3], "later"]]
    assert doubled.get() == [2, 4, 6]


async def test_a_derived_future_maps_once_and_can_be_derived_from() -> None:
    """The function runs once however often the result is read, and chains of derivation resolve."""
    calls: list[int] = []

    def count(value: int) -> int:
        calls.append(value)
        return value + 1

    source: AsyncioFuture[int] = AsyncioFuture()
    once = source.map(count)
    twice = once.map(str)
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    twice.add_done_callback(lambda future: told.set_result(future.get()))
    source.set(1)
    assert [await once, await once, await twice] == [2, 2, "2"]
    assert await told == "2"
    assert calls == [1]


async def test_a_derived_future_passes_on_the_error_of_its_source() -> None:
    """What the source raises, or what the function raises, the derived future raises."""
    with pytest.raises(ZeroDivisionError):
        await failed(ZeroDivisionError()).map(str)
    with pytest.raises(TypeError):
        await answered(1).filter(bool)


async def test_a_failed_future_is_in_no_cycle() -> None:
    """Awaiting a failure leaves no cycle of error, traceback and future: the last reference frees it, without the collector."""

    class Value(Exception):
        pass

    async def fail_and_read() -> weakref.ref[AsyncioFuture[Any]]:
        future = failed(Value())
        for _ in range(2):
            with pytest.raises(Value):
                await future
            with pytest.raises(Value):
                future.get()
        reference = weakref.ref(future)
        del future  # This frame is in the error's traceback.
        return reference

    gc.disable()
    try:
        reference = await fail_and_read()
        assert reference() is None
    finally:
        gc.enable()
