"""Mail: tell, ask, forward, replies, order and bounds."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, cast

import pykka
import pytest
from pykka._envelope import Envelope

from kizuki.actors.runtime import ActorDeadError, AsyncioActor, AsyncioActorRef, AsyncioFuture, InboxFullError, Runtime, WouldBlockError


class Recorder(AsyncioActor):
    """Keeps what it is sent; answers it too."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen

    def on_receive(self, message: Any) -> Any:
        self.seen.append(message)
        return message


class Caller(AsyncioActor):
    """Runs what it is sent."""

    def on_receive(self, message: Any) -> Any:
        return message(self)


class Narrow(Recorder):
    inbox_size: ClassVar[int] = 2


class Gate(AsyncioActor):
    """Handles one mail at a time, each for as long as its future takes."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.inside_max = 0

    async def on_receive(self, message: asyncio.Future[Any]) -> Any:
        self.inside += 1
        self.inside_max = max(self.inside_max, self.inside)
        try:
            return await message
        finally:
            self.inside -= 1


def pending() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def raises_dead(future: AsyncioFuture[Any]) -> None:
    with pytest.raises(ActorDeadError):
        await future


@pytest.fixture
async def runtime() -> Runtime:
    return Runtime()


async def test_the_actor_and_its_ref_are_pykkas(runtime: Runtime) -> None:
    """An `AsyncioActor` is a real `pykka.Actor`, its ref a real `pykka.ActorRef`."""
    ref = runtime.start(Caller)
    actor = await ref.ask(lambda actor: actor)
    assert isinstance(actor, pykka.Actor)
    assert isinstance(ref, pykka.ActorRef)
    assert actor.actor_ref is ref
    assert ref.actor_class is Caller


async def test_urns_are_unique_and_stable(runtime: Runtime) -> None:
    """Each actor has its own urn, the same from both sides, and both texts name the class and it."""
    first, second = runtime.start(Caller), runtime.start(Caller)
    actor = await first.ask(lambda actor: actor)
    assert first.actor_urn == first.actor_urn == actor.actor_urn
    assert first.actor_urn.startswith("urn:")
    assert first.actor_urn != second.actor_urn
    assert str(first) == str(actor) == f"Caller ({first.actor_urn})"
    assert repr(first) == f"<ActorRef for {first}>"


async def test_actors_are_not_in_pykkas_registry(runtime: Runtime) -> None:
    """Pitfall: the class-global registry knows nothing of these actors."""
    ref = runtime.start(Caller)
    default = Caller.start()
    assert pykka.ActorRegistry.get_all() == []
    assert await ref.stop()
    assert await default.stop()


async def test_tell_is_handled_later(runtime: Runtime) -> None:
    """A tell returns at once and is handled by the loop, not inside the call."""
    seen: list[Any] = []
    ref = runtime.start(Recorder, seen)
    ref.tell("a")
    assert seen == []
    await runtime.idle()
    assert seen == ["a"]


async def test_ask_answers_with_what_the_handler_returns(runtime: Runtime) -> None:
    """The reply of an ask is the handler's return value, None included."""
    ref = runtime.start(Caller)
    assert await ref.ask(lambda _: 5) == 5
    assert await ref.ask(lambda _: None) is None


async def test_an_async_handler_answers_when_it_ends(runtime: Runtime) -> None:
    """An async handler may await before it answers, and other actors go on meanwhile."""
    gate, other = runtime.start(Gate), runtime.start(Caller)
    future = pending()
    reply = gate.ask(future)
    assert await other.ask(lambda _: "meanwhile") == "meanwhile"
    assert not reply.done()
    future.set_result("now")
    assert await reply == "now"


async def test_an_awaitable_that_is_no_coroutine_is_awaited(runtime: Runtime) -> None:
    """A handler may return any awaitable; the reply is what it gives."""

    class Slow:
        def __await__(self) -> Any:
            yield from asyncio.sleep(0).__await__()
            return "slow"

    assert await runtime.start(Caller).ask(lambda _: Slow()) == "slow"


async def test_mail_is_handled_in_order(runtime: Runtime) -> None:
    """Tells and asks of one sender to one actor keep their order."""
    seen: list[Any] = []
    ref = runtime.start(Recorder, seen)
    for number in range(100):
        if number % 3:
            ref.tell(number)
        else:
            ref.ask(number)
    await runtime.idle()
    assert seen == list(range(100))


async def test_one_mail_at_a_time(runtime: Runtime) -> None:
    """While an async handler runs, the actor's further mail waits."""
    ref = runtime.start(Gate)
    futures = [pending() for _ in range(3)]
    replies = [ref.ask(future) for future in futures]
    for number, future in reversed(list(enumerate(futures))):
        future.set_result(number)
    assert [await reply for reply in replies] == [0, 1, 2]
    assert ref._actor is not None
    assert ref._actor.inside_max == 1


@pytest.mark.parametrize("make", [AsyncioFuture[Any], pending], ids=["AsyncioFuture", "asyncio.Future"])
async def test_a_returned_future_is_a_deferred_reply(runtime: Runtime, make: Any) -> None:
    """The actor goes on with its next mail while a returned future is pending; its answer is the reply."""
    ref = runtime.start(Caller)
    future = make()
    reply = ref.ask(lambda _: future)
    assert await ref.ask(lambda _: "next") == "next"
    assert not reply.done()
    assert ref.is_idle()
    (future.set if isinstance(future, AsyncioFuture) else future.set_result)("late")
    assert await reply == "late"


async def test_a_deferred_reply_may_fail(runtime: Runtime) -> None:
    """The asker gets the failure of a deferred reply; the actor, which has gone on, lives."""
    ref = runtime.start(Caller)
    future = pending()
    reply = ref.ask(lambda _: future)
    future.set_exception(ValueError("deferred"))
    with pytest.raises(ValueError, match="deferred"):
        await reply
    assert ref.is_alive()


async def test_an_async_handler_may_return_a_deferred_reply(runtime: Runtime) -> None:
    """A future that comes out of an async handler is a deferred reply as well."""
    future = pending()

    async def hand_out(_: AsyncioActor) -> Any:
        await asyncio.sleep(0)
        return future

    ref = runtime.start(Caller)
    reply = ref.ask(hand_out)
    assert await ref.ask(lambda _: "next") == "next"
    future.set_result("late")
    assert await reply == "late"


async def test_one_actor_may_answer_with_its_question_to_another(runtime: Runtime) -> None:
    """A handler that returns its own ask of another actor passes that answer on without waiting for it."""
    first, second = runtime.start(Caller), runtime.start(Caller)
    assert await first.ask(lambda _: second.ask(lambda _: "from the second")) == "from the second"


async def test_a_taken_reply_is_answered_by_the_taker(runtime: Runtime) -> None:
    """After `take_reply` the handler's return value answers nobody; the taker answers, from wherever it likes."""
    ref = runtime.start(Caller)
    taken: list[AsyncioFuture[Any] | None] = []
    reply = ref.ask(lambda actor: taken.append(actor.take_reply()))
    await runtime.idle()
    assert not reply.done()
    assert taken == [reply]
    reply.set("by the taker")
    assert await reply == "by the taker"


async def test_a_tell_has_no_reply_to_take(runtime: Runtime) -> None:
    """`take_reply` is None in a tell, and the second time in an ask."""
    ref = runtime.start(Caller)
    taken: list[Any] = []
    ref.tell(lambda actor: taken.append(actor.take_reply()))
    reply = ref.ask(lambda actor: taken.extend([actor.take_reply(), actor.take_reply()]))
    await runtime.idle()
    assert taken == [None, reply, None]


async def test_a_reply_is_taken_in_an_async_handler_after_an_await(runtime: Runtime) -> None:
    """An async handler takes the reply of its own mail, even when other actors were busy in between."""
    first, second = runtime.start(Caller), runtime.start(Caller)

    async def take_late(actor: AsyncioActor) -> None:
        await second.ask(lambda _: None)
        reply = actor.take_reply()
        assert reply is not None
        reply.set("late taken")

    assert await first.ask(take_late) == "late taken"


async def test_forward_gives_the_answer_to_the_first_asker(runtime: Runtime) -> None:
    """A mail that is forwarded with its taken reply is answered by the next actor."""
    first, second = runtime.start(Caller), runtime.start(Caller)
    assert await first.ask(lambda actor: second.forward(lambda _: "second", actor.take_reply())) == "second"


async def test_forward_without_a_reply_is_a_tell(runtime: Runtime) -> None:
    """Forwarding a tell tells, and raises for a dead actor as a tell does."""
    seen: list[Any] = []
    ref = runtime.start(Recorder, seen)
    ref.forward("a", None)
    await runtime.idle()
    assert seen == ["a"]
    await ref.stop()
    with pytest.raises(ActorDeadError):
        ref.forward("b", None)


async def test_forward_to_the_dead_fails_the_reply(runtime: Runtime) -> None:
    """A reply forwarded to a dead actor is answered with `ActorDeadError`."""
    ref = runtime.start(Caller)
    await ref.stop()
    reply: AsyncioFuture[Any] = AsyncioFuture()
    ref.forward("x", reply)
    await raises_dead(reply)


async def test_a_reply_answered_twice_keeps_the_first_answer(runtime: Runtime) -> None:
    """Two actors that both answer one forwarded reply do each other no harm."""
    first, second = runtime.start(Caller), runtime.start(Caller)
    reply: AsyncioFuture[Any] = AsyncioFuture()
    first.forward(lambda _: 1, reply)
    second.forward(lambda _: 2, reply)
    await runtime.idle()
    assert await reply == 1
    assert first.is_alive()
    assert second.is_alive()


async def test_an_actor_may_mail_itself(runtime: Runtime) -> None:
    """Mail to oneself is handled after what is waiting already."""
    seen: list[Any] = []
    ref = runtime.start(Caller)

    def first(actor: AsyncioActor) -> None:
        actor.actor_ref.tell(lambda _: seen.append("own"))

    ref.tell(first)
    ref.tell(lambda _: seen.append("waiting"))
    await runtime.idle()
    assert seen == ["waiting", "own"]


async def test_a_full_inbox_refuses_a_tell(runtime: Runtime) -> None:
    """A tell beyond the bound raises, names the bound, and is not handled; there is room again once mail is handled."""
    seen: list[Any] = []
    ref = runtime.start(Narrow, seen)
    ref.tell(1)
    ref.tell(2)
    with pytest.raises(InboxFullError, match="2"):
        ref.tell(3)
    await runtime.idle()
    ref.tell(4)
    await runtime.idle()
    assert seen == [1, 2, 4]


async def test_a_full_inbox_makes_an_ask_wait_its_turn(runtime: Runtime) -> None:
    """Asks beyond the bound are suspended and answered in the order they were made; they leave no room to tells."""
    seen: list[Any] = []
    ref = runtime.start(Narrow, seen)
    ref.tell(1)
    ref.tell(2)
    replies = [ref.ask(number) for number in (3, 4, 5)]
    with pytest.raises(InboxFullError):
        ref.tell("no room")
    assert [await reply for reply in replies] == [3, 4, 5]
    assert seen == [1, 2, 3, 4, 5]


async def test_a_full_inbox_takes_a_stop(runtime: Runtime) -> None:
    """Neither way to stop an actor needs room in its inbox."""

    def stop_by_ref(ref: AsyncioActorRef[Any]) -> None:
        ref.stop()

    def stop_by_actor(ref: AsyncioActorRef[Any]) -> None:
        cast(AsyncioActor, ref._actor).stop()

    for stop in (stop_by_ref, stop_by_actor):
        ref = runtime.start(Narrow, [])
        ref.tell(1)
        ref.tell(2)
        stop(ref)
        await runtime.idle()
        assert not ref.is_alive()


async def test_cancelling_the_asker_leaves_the_mail(runtime: Runtime) -> None:
    """The mail of a cancelled asker is handled all the same, and its answer can still be read."""
    seen: list[Any] = []
    ref = runtime.start(Recorder, seen)
    reply = ref.ask("kept")

    async def wait() -> Any:
        return await reply

    task = asyncio.create_task(wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await reply == "kept"
    assert seen == ["kept"]


async def test_mail_to_the_dead(runtime: Runtime) -> None:
    """A tell to a dead actor raises; an ask gives a future that raises."""
    ref = runtime.start(Caller)
    await ref.stop()
    with pytest.raises(ActorDeadError, match="not found"):
        ref.tell("x")
    await raises_dead(ref.ask("x"))


@pytest.mark.parametrize("blocking", [{"block": True}, {"timeout": 1.0}], ids=["block", "timeout"])
async def test_blocking_calls_are_refused(runtime: Runtime, blocking: dict[str, Any]) -> None:
    """Pykka's blocking forms of ask and stop would stand still for ever: they raise, and send nothing."""
    seen: list[Any] = []
    ref = runtime.start(Recorder, seen)
    with pytest.raises(WouldBlockError):
        ref.ask("x", **blocking)
    with pytest.raises(WouldBlockError):
        ref.stop(**blocking)
    await runtime.idle()
    assert seen == []
    assert ref.is_alive()


async def test_an_unexpected_message_is_harmless(runtime: Runtime) -> None:
    """An actor without `on_receive` answers None, as Pykka's does."""
    assert await runtime.start(AsyncioActor).ask("x") is None


async def test_pykkas_view_of_inbox_and_flag(runtime: Runtime) -> None:
    """What Pykka promises of `actor_inbox` and `actor_stopped` holds, as views of the ref."""
    seen: list[Any] = []
    ref: AsyncioActorRef[Any] = runtime.start(Recorder, seen)
    actor = cast(AsyncioActor, ref._actor)
    assert ref.actor_inbox.empty()
    ref.actor_inbox.put(Envelope("put"))
    assert not actor.actor_inbox.empty()
    with pytest.raises(WouldBlockError):
        ref.actor_inbox.get()
    await runtime.idle()
    assert seen == ["put"]
    assert not ref.actor_stopped.is_set()
    await ref.stop()
    assert ref.actor_stopped.is_set()
    assert actor.actor_stopped.is_set()
