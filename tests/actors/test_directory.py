"""The directory: stable names, and who is put away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kizuki.actors.directory import ActorDirectory
from kizuki.actors.runtime import AsyncioActor, AsyncioActorRef, Runtime

Ref = AsyncioActorRef[Any]


class Caller(AsyncioActor):
    """Runs what it is sent."""

    def on_receive(self, message: Any) -> Any:
        return message(self)


class LookedAt:
    """A `may_put_away` that allows all but some names, and keeps whom it was asked about."""

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.names: list[Any] = []

    def __call__(self, ref: Ref) -> bool:
        self.names.append(ref.name)
        return ref.name not in self.refused


@pytest.fixture
async def runtime() -> Runtime:
    return Runtime()


@pytest.fixture
def factory(runtime: Runtime) -> Callable[[], Ref]:
    return lambda: runtime.start(Caller)


@pytest.fixture
def directory() -> ActorDirectory:
    return ActorDirectory()


async def test_a_name_starts_one_actor(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """The first look-up starts the actor, the next ones find it; another name is another actor."""
    assert directory.get("a") is None
    ref = directory.get_or_start("a", factory)
    assert directory.get_or_start("a", factory) is ref is directory.get("a")
    assert directory.get_or_start(("any", "hashable"), factory) is not ref
    assert len(directory) == 2
    assert ref.name == "a"


async def test_a_factory_that_fails_leaves_the_name_free(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """What the factory raises the caller gets, and the next caller may try again."""

    def fail() -> Ref:
        raise ValueError("no start")

    with pytest.raises(ValueError, match="no start"):
        directory.get_or_start("a", fail)
    assert directory.get("a") is None
    assert directory.get_or_start("a", factory).is_alive()


async def test_a_dead_actor_is_not_found(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """The name of an actor that has ended is answered by its successor, even before the end was reported."""
    ref = directory.get_or_start("a", factory)
    await ref.stop()
    assert directory.get("a") is None
    successor = directory.get_or_start("a", factory)
    assert successor is not ref
    assert successor.is_alive()


async def test_a_late_end_does_not_remove_the_successor(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """Removing on an actor's end removes the name only if it is still that actor's."""
    ref = directory.get_or_start("a", factory)
    await ref.stop()
    successor = directory.get_or_start("a", factory)
    assert directory.remove("a", ref) is False
    assert directory.get("a") is successor
    assert directory.remove("a", successor) is True
    assert directory.remove("a", successor) is False
    assert len(directory) == 0


async def test_remove_without_a_ref_frees_the_name(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """A name can be freed whoever has it; the actor itself goes on."""
    ref = directory.get_or_start("a", factory)
    assert directory.remove("a") is True
    assert directory.remove("a") is False
    assert ref.is_alive()


async def test_the_unused_are_put_away(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """An actor that was not used for the time given is stopped and forgotten; one that was used since stays."""
    old, used = directory.get_or_start("old", factory), directory.get_or_start("used", factory)
    assert directory.put_away(60, now=100) == []
    directory.get("used")
    assert directory.put_away(60, now=160) == [old]
    assert await old.stop() is True
    assert directory.get("old") is None
    assert directory.get("used") is used


async def test_nobody_is_put_away_early(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """What was used in a period counts as used at its end: the time runs from the next `put_away` on."""
    ref = directory.get_or_start("a", factory)
    assert directory.put_away(60, now=1_000) == []
    assert directory.put_away(60, now=1_059) == []
    assert directory.put_away(60, now=1_060) == [ref]
    await ref.stop()


async def test_the_longest_unused_goes_first(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """What is put away at once goes in order of last use."""
    refs = {name: directory.get_or_start(name, factory) for name in ("a", "b", "c")}
    directory.put_away(10, now=0)
    directory.get("a")
    directory.put_away(10, now=1)
    assert directory.put_away(10, now=11) == [refs["b"], refs["c"], refs["a"]]


async def test_an_actor_with_mail_is_not_put_away(directory: ActorDirectory, runtime: Runtime, factory: Callable[[], Ref]) -> None:
    """Neither waiting mail nor a running handler is put away, whatever `may_put_away` says; the actor has its time from then on."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(_: AsyncioActor) -> None:
        await future

    ref = directory.get_or_start("a", factory)
    directory.put_away(10, now=0)
    ref.tell(wait)
    assert directory.put_away(10, now=10, may_put_away=LookedAt()) == []
    await asyncio.sleep(0)
    directory.put_away(10, now=20)
    assert directory.put_away(10, now=30) == []
    future.set_result(None)
    await runtime.idle()
    directory.put_away(10, now=40)
    assert directory.put_away(10, now=50) == [ref]
    await runtime.idle()


async def test_the_caller_may_refuse(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """An actor that `may_put_away` refuses stays, and does not keep those behind it."""
    kept, gone = directory.get_or_start("kept", factory), directory.get_or_start("gone", factory)
    directory.put_away(10, now=0)
    assert directory.put_away(10, now=10, may_put_away=LookedAt("kept")) == [gone]
    assert directory.get("kept") is kept


async def test_only_the_old_are_looked_at(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """Putting away never walks the directory: it looks at the old ones and at nobody else, and at a refused one once a period."""
    for name in ("a", "b", "c"):
        directory.get_or_start(name, factory)
    directory.put_away(10, now=0)
    directory.get("b")
    directory.get_or_start("d", factory)
    looked_at = LookedAt("a")
    directory.put_away(10, now=10, may_put_away=looked_at)
    assert looked_at.names == ["a", "c"]
    directory.put_away(10, now=10, may_put_away=looked_at)
    assert looked_at.names == ["a", "c"]
    assert len(directory) == 3


async def test_a_dead_actor_is_swept_as_well(directory: ActorDirectory, factory: Callable[[], Ref]) -> None:
    """An ended actor whose end nobody reported leaves the directory when its time is over."""
    ref = directory.get_or_start("a", factory)
    await ref.stop()
    directory.put_away(10, now=0)
    assert directory.put_away(10, now=10) == [ref]
    assert len(directory) == 0


async def test_a_name_that_comes_back_is_new(directory: ActorDirectory, runtime: Runtime, factory: Callable[[], Ref]) -> None:
    """A name that was put away starts a fresh actor, as recently used as any."""
    first = directory.get_or_start("a", factory)
    directory.put_away(10, now=0)
    directory.put_away(10, now=10)
    second = directory.get_or_start("a", factory)
    assert second is not first
    assert directory.put_away(10, now=20) == []
    await runtime.stop_all()
