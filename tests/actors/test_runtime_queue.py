"""The ready queue: fairness, the time budget, rest, and what an actor costs while it rests."""

from __future__ import annotations

import asyncio
import contextvars
import tracemalloc
from typing import Any

from kizuki.actors import runtime as runtime_module
from kizuki.actors.runtime import AsyncioActor, Runtime


class Caller(AsyncioActor):
    """Runs what it is sent."""

    def on_receive(self, message: Any) -> Any:
        return message(self)


class Resting(AsyncioActor):
    def on_receive(self, message: Any) -> None:
        pass


def pending() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def test_actors_take_turns() -> None:
    """An actor with much mail does not hold up one with little: each handles one mail in turn."""
    runtime = Runtime()
    busy, other = runtime.start(Caller), runtime.start(Caller)
    seen: list[str] = []
    for _ in range(3):
        busy.tell(lambda _: seen.append("busy"))
    other.tell(lambda _: seen.append("other"))
    await runtime.idle()
    assert seen == ["busy", "other", "busy", "busy"]


async def test_sync_mail_of_all_actors_is_one_callback() -> None:
    """However many actors have mail, one loop turn handles it, within the budget."""
    runtime = Runtime(monotonic=lambda: 0.0)
    seen: list[int] = []
    for number in range(100):
        runtime.start(Caller).tell(lambda _, number=number: seen.append(number))
    await asyncio.sleep(0)
    assert seen == list(range(100))


async def test_the_queue_yields_to_the_loop() -> None:
    """When the budget of a loop turn is spent, other callbacks run before the next mail."""
    now = 0.0

    def take_time(_: AsyncioActor) -> None:
        nonlocal now
        now += runtime_module.TURN_BUDGET_S * 0.6
        seen.append("mail")

    runtime = Runtime(monotonic=lambda: now)
    seen: list[str] = []
    ref = runtime.start(Caller)
    for _ in range(4):
        ref.tell(take_time)
    asyncio.get_running_loop().call_soon(seen.append, "loop")
    await runtime.idle()
    assert seen == ["mail", "mail", "loop", "mail", "mail"]


async def test_handlers_do_not_see_the_context_of_who_woke_the_queue() -> None:
    """A context variable of one sender does not show in the handler of another's mail."""
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    runtime = Runtime()
    first, second = runtime.start(Caller), runtime.start(Caller)
    variable.set("the first sender's")
    first.tell(lambda _: None)
    assert await second.ask(lambda _: variable.get()) == "none"


async def test_idle_returns_when_nothing_was_sent() -> None:
    """A runtime without mail is idle at once."""
    await Runtime().idle()


async def test_idle_waits_for_mail_that_mail_causes() -> None:
    """Idle means that no handler will cause more mail."""
    runtime = Runtime()
    seen: list[int] = []
    ref = runtime.start(Caller)

    def count_down(left: int) -> Any:
        def handle(actor: AsyncioActor) -> None:
            seen.append(left)
            if left:
                actor.actor_ref.tell(count_down(left - 1))

        return handle

    ref.tell(count_down(5))
    await runtime.idle()
    assert seen == [5, 4, 3, 2, 1, 0]
    assert ref.is_idle()


async def test_idle_waits_for_async_handlers() -> None:
    """While an async handler runs the runtime is not idle, nor is the actor; every waiter is told once it is."""
    runtime = Runtime()
    future = pending()

    async def wait(_: AsyncioActor) -> None:
        await future

    ref = runtime.start(Caller)
    ref.tell(wait)
    waiting = [asyncio.create_task(runtime.idle()) for _ in range(2)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    assert not ref.is_idle()
    future.set_result(None)
    await asyncio.gather(*waiting)
    assert ref.is_idle()


async def test_a_cancelled_idle_disturbs_no_other() -> None:
    """One waiter for rest may be cancelled; the others are told all the same."""
    runtime = Runtime()
    runtime.start(Caller).tell(lambda _: None)
    first, second = asyncio.create_task(runtime.idle()), asyncio.create_task(runtime.idle())
    await asyncio.sleep(0)
    first.cancel()
    await second


async def test_idle_schedules_nothing_while_it_waits() -> None:
    """`idle` does not poll: while it waits it asks the loop for no callback and no timer."""
    runtime = Runtime()
    loop: Any = asyncio.get_running_loop()
    future = pending()

    async def wait(_: AsyncioActor) -> None:
        await future

    runtime.start(Caller).tell(wait)
    task = asyncio.create_task(runtime.idle())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not loop._ready
    assert not loop._scheduled
    future.set_result(None)
    await task


async def test_mail_waiting_counts_what_is_not_handled_yet() -> None:
    """`mail_waiting` counts mail behind a running handler and mail of actors whose turn has not come."""
    runtime = Runtime()
    future = pending()

    async def wait(_: AsyncioActor) -> None:
        await future

    blocked, ready = runtime.start(Caller), runtime.start(Caller)
    blocked.tell(wait)
    await asyncio.sleep(0)
    blocked.tell(lambda _: None)
    ready.tell(lambda _: None)
    ready.ask(lambda _: None)
    assert runtime.mail_waiting == 3
    future.set_result(None)
    await runtime.idle()
    assert runtime.mail_waiting == 0


async def test_actors_alive_counts_who_takes_mail() -> None:
    """`actors_alive` goes up with each start and down with each end."""
    runtime = Runtime()
    refs = [runtime.start(Caller) for _ in range(3)]
    assert runtime.actors_alive == 3
    await refs[0].stop()
    assert runtime.actors_alive == 2


async def test_a_resting_actor_has_no_task_and_no_mailbox() -> None:
    """After its mail, sync or async, an actor is back at rest: no task runs and no mailbox is kept."""

    async def slow(_: AsyncioActor) -> None:
        await asyncio.sleep(0)

    runtime = Runtime()
    ref = runtime.start(Caller)
    for handler in (lambda _: None, slow):
        await ref.ask(handler)
        await runtime.idle()
        assert ref._mail is None
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_resting_actor_costs_less_than_a_kibibyte() -> None:
    """Ten thousand resting actors, all of which have had mail, cost below 1,024 bytes each, far below in fact."""
    runtime = Runtime()
    for _ in range(100):  # What the classes allocate once.
        runtime.start(Resting)
    refs: list[Any] = [None] * 10_000
    tracemalloc.start()
    try:
        for index in range(len(refs)):
            refs[index] = runtime.start(Resting)
            refs[index].tell("x")
        await runtime.idle()
        current, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current / len(refs) < 512
