"""Pykka's proxies over asyncio actors."""

from __future__ import annotations

import asyncio
from typing import Any

import pykka
import pytest

from kizuki.actors.runtime import ActorDeadError, AsyncioActor, AsyncioFuture, Runtime


class Shelf:
    pykka_traversable = True

    def __init__(self) -> None:
        self.books = 3

    def take(self) -> int:
        self.books -= 1
        return self.books


class Library(AsyncioActor):
    """Has what a proxy can reach: attributes, methods, something traversable."""

    name = "library"

    def __init__(self) -> None:
        super().__init__()
        self.lent = 0
        self.shelf = Shelf()

    def lend(self, books: int, *, times: int = 1) -> int:
        self.lent += books * times
        return self.lent

    async def lend_slowly(self, books: int) -> int:
        await asyncio.sleep(0)
        return self.lend(books)

    def refuse(self) -> None:
        raise ValueError("refused")


@pytest.fixture
async def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
async def library(runtime: Runtime) -> Any:
    return runtime.start(Library).proxy()


async def test_a_method_call_is_an_awaitable_future(library: Any) -> None:
    """A method called through the proxy is mail, and its answer is awaited."""
    future = library.lend(2, times=3)
    assert isinstance(future, AsyncioFuture)
    assert await future == 6


async def test_an_async_method_is_awaited(library: Any) -> None:
    """A method of the actor may be async."""
    assert await library.lend_slowly(2) == 2


async def test_calls_keep_their_order(library: Any) -> None:
    """Calls through a proxy are handled one after the other, a slow one before the quick one behind it."""
    slow, quick = library.lend_slowly(1), library.lend(1)
    assert (await quick, await slow) == (2, 1)


async def test_an_attribute_is_an_awaitable_future(library: Any) -> None:
    """Attributes of the class and of the instance are read by mail."""
    assert await library.name == "library"
    assert await library.lent == 0


async def test_a_traversable_attribute_is_a_proxy(library: Any) -> None:
    """What is marked traversable is reached through."""
    assert await library.shelf.take() == 2
    assert await library.shelf.books == 2


async def test_an_assignment_is_mail_that_nobody_waits_for(library: Any, runtime: Runtime) -> None:
    """Pitfall: Pykka blocks on an assignment through a proxy; here it is handled in its turn and returns at once."""
    library.lent = 10
    assert await library.lent == 10
    await runtime.idle()


async def test_a_failing_call_fails_its_future(library: Any) -> None:
    """What a method raises its caller gets; the actor lives."""
    with pytest.raises(ValueError, match="refused"):
        await library.refuse()
    assert await library.lend(1) == 1


async def test_a_deferred_call_is_a_tell(library: Any, runtime: Runtime) -> None:
    """`defer` waits for nothing, and a failure in it ends the actor."""
    assert library.lend.defer(1) is None
    assert await library.lent == 1
    library.refuse.defer()
    await runtime.idle()
    assert not library.actor_ref.is_alive()


async def test_an_unknown_attribute_is_an_attribute_error(library: Any) -> None:
    """The proxy knows what the actor has not."""
    with pytest.raises(AttributeError):
        _ = library.cinema


async def test_no_proxy_of_the_dead(library: Any) -> None:
    """A dead actor has no proxy, and the calls of an old one fail."""
    await library.actor_ref.stop()
    with pytest.raises(ActorDeadError):
        library.actor_ref.proxy()
    with pytest.raises(ActorDeadError):
        await library.lend(1)


async def test_pykkas_messages_work_without_a_proxy(runtime: Runtime) -> None:
    """`pykka.messages` are understood as mail, Pykka's own shortcut around a proxy."""
    ref = runtime.start(Library)
    call = pykka.messages.ProxyCall(attr_path=("lend",), args=(4,), kwargs={})
    assert await ref.ask(call) == 4
    ref.tell(pykka.messages.ProxySetAttr(attr_path=("lent",), value=7))
    assert await ref.ask(pykka.messages.ProxyGetAttr(attr_path=("lent",))) == 7
