"""Start, stop, crash, cancel: how actors begin and end, and who hears of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, TypeAlias

import pytest
from structlog.testing import capture_logs

from kizuki.actors.runtime import ActorDeadError, AsyncioActor, AsyncioActorRef, AsyncioFuture, HandlerCancelledError, Runtime

Entries: TypeAlias = list[MutableMapping[str, Any]]


class RecordedEnds:
    """An `on_end` that keeps each report as (ref, the error's repr), so that it holds no traceback and through it no actor."""

    def __init__(self) -> None:
        self.seen: list[tuple[AsyncioActorRef[Any], str | None]] = []

    def __call__(self, ref: AsyncioActorRef[Any], error: BaseException | None) -> None:
        self.seen.append((ref, None if error is None else repr(error)))


class Caller(AsyncioActor):
    """Runs what it is sent; its hooks write down that they ran."""

    def __init__(self, seen: list[Any] | None = None) -> None:
        super().__init__()
        self.seen = [] if seen is None else seen

    def on_receive(self, message: Any) -> Any:
        return message(self)

    def on_stop(self) -> None:
        self.seen.append("on_stop")

    def on_failure(self, exception_type: Any, exception_value: Any, traceback: Any) -> None:
        self.seen.append(("on_failure", exception_type, repr(exception_value), traceback is not None))


def fail(_: AsyncioActor) -> None:
    raise ValueError("bad")


async def fail_later(_: AsyncioActor) -> None:
    await asyncio.sleep(0)
    raise ValueError("bad later")


def pending() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


async def raises_dead(future: AsyncioFuture[Any]) -> None:
    with pytest.raises(ActorDeadError):
        await future


async def handler_task(runtime: Runtime) -> asyncio.Task[Any]:
    """The task of the one async handler that is about to start: the drain of the ready queue makes it in the next loop turn."""
    await asyncio.sleep(0)
    (task,) = runtime._running.values()
    return task


@pytest.fixture(autouse=True)
def entries() -> Iterator[Entries]:
    """What is logged, as structlog keeps it for tests; rendering a traceback would make cycles of its own."""
    with capture_logs() as captured:
        yield captured


@pytest.fixture
def ends() -> RecordedEnds:
    return RecordedEnds()


@pytest.fixture
async def runtime(ends: RecordedEnds) -> Runtime:
    return Runtime(ends)


# Starting


async def test_start_passes_its_arguments_on(runtime: Runtime) -> None:
    """`start` gives `__init__` its arguments, and `actor_ref` is there inside it already."""

    class Made(AsyncioActor):
        def __init__(self, a: int, *, b: int) -> None:
            self.made = (a, b, self.actor_ref.is_alive())

        def on_receive(self, message: Any) -> Any:
            return self.made

    assert await runtime.start(Made, 1, b=2).ask("") == (1, 2, True)
    assert await Made.start(3, b=4).ask("") == (3, 4, True)


async def test_a_failure_in_init_is_the_callers(runtime: Runtime, ends: RecordedEnds) -> None:
    """What `__init__` raises, `start` raises; no actor has begun, so none ends."""

    class Unmade(AsyncioActor):
        def __init__(self) -> None:
            raise ValueError("unmade")

    with pytest.raises(ValueError, match="unmade"):
        runtime.start(Unmade)
    assert runtime.actors_alive == 0
    assert ends.seen == []


@pytest.mark.parametrize("slow", [False, True], ids=["sync", "async"])
async def test_on_start_runs_before_any_mail(runtime: Runtime, slow: bool) -> None:
    """`on_start`, sync or async, has ended before the first mail, even one that `__init__` sent."""
    seen: list[Any] = []

    class Starting(AsyncioActor):
        def __init__(self) -> None:
            self.actor_ref.tell("from init")

        def on_start(self) -> Any:
            return self.start_slowly() if slow else seen.append("on_start")

        async def start_slowly(self) -> None:
            await asyncio.sleep(0)
            seen.append("on_start")

        def on_receive(self, message: Any) -> None:
            seen.append(message)

    runtime.start(Starting).tell("from outside")
    assert seen == []
    await runtime.idle()
    assert seen == ["on_start", "from init", "from outside"]


@pytest.mark.parametrize("slow", [False, True], ids=["sync", "async"])
async def test_a_failing_on_start_ends_the_actor(runtime: Runtime, ends: RecordedEnds, slow: bool) -> None:
    """Pitfall: a failure in `on_start` kills without `on_failure`; the runtime's `on_end` hears of it all the same."""
    seen: list[Any] = []

    class Stillborn(Caller):
        def on_start(self) -> Any:
            return fail_later(self) if slow else fail(self)

    ref = runtime.start(Stillborn, seen)
    reply = ref.ask(lambda _: "never")
    await raises_dead(reply)
    assert ends.seen == [(ref, "ValueError('bad later')" if slow else "ValueError('bad')")]
    assert seen == []


# Stopping


async def test_stop_says_whether_the_actor_was_alive(runtime: Runtime, ends: RecordedEnds) -> None:
    """Pitfall: a stock `stop(block=False)` never completes here; this one does, True the first time and False after."""
    ref = runtime.start(Caller)
    assert await ref.stop() is True
    assert not ref.is_alive()
    assert await ref.stop() is False
    assert ends.seen == [(ref, None)]


async def test_two_stops_in_flight_are_both_true(runtime: Runtime, ends: RecordedEnds) -> None:
    """A stop that is asked for while another is waiting finds the actor alive; it ends once."""
    ref = runtime.start(Caller)
    first, second = ref.stop(), ref.stop()
    assert (await first, await second) == (True, True)
    assert len(ends.seen) == 1


async def test_mail_before_a_stop_is_handled_mail_after_it_is_not(runtime: Runtime, entries: Entries) -> None:
    """A stop stands in line: what was sent before is handled, an ask behind it gets `ActorDeadError`, a tell vanishes as ordered."""
    seen: list[Any] = []
    ref = runtime.start(Caller, seen)
    ref.tell(lambda actor: actor.seen.append("before"))
    stopped = ref.stop()
    after = ref.ask(lambda actor: actor.seen.append("after"))
    ref.tell(lambda actor: actor.seen.append("after"))
    assert await stopped
    await raises_dead(after)
    assert seen == ["before", "on_stop"]
    assert not entries


async def test_an_actor_may_stop_itself(runtime: Runtime, ends: RecordedEnds) -> None:
    """`self.stop()` stops after the mail that is waiting."""
    seen: list[Any] = []
    ref = runtime.start(Caller, seen)
    ref.tell(lambda actor: actor.stop())
    ref.tell(lambda actor: actor.seen.append("waiting"))
    await runtime.idle()
    assert seen == ["waiting", "on_stop"]
    assert ends.seen == [(ref, None)]


async def test_a_stop_waits_for_the_running_handler(runtime: Runtime) -> None:
    """A stop lets an async handler end and answer first."""
    future = pending()
    ref = runtime.start(Caller)

    async def slow(_: AsyncioActor) -> Any:
        return await future

    reply, stopped = ref.ask(slow), ref.stop()
    for _ in range(5):
        await asyncio.sleep(0)
    assert ref.is_alive()
    future.set_result("done")
    assert await reply == "done"
    assert await stopped


async def test_an_async_on_stop_ends_before_the_stop_answers(runtime: Runtime, ends: RecordedEnds) -> None:
    """While an async `on_stop` runs, the actor takes no mail and the runtime is not idle; then the stop answers and `on_end` is told."""
    future = pending()

    class Slow(Caller):
        async def on_stop(self) -> None:  # type: ignore[override]
            await future
            self.seen.append("on_stop")

    ref = runtime.start(Slow)
    actor = ref._actor
    assert actor is not None
    stopped = ref.stop()
    idle = asyncio.create_task(runtime.idle())
    for _ in range(5):
        await asyncio.sleep(0)
    await raises_dead(ref.ask(lambda _: None))
    assert not stopped.done()
    assert not idle.done()
    assert ends.seen == []
    future.set_result(None)
    assert await stopped
    await idle
    assert actor.seen == ["on_stop"]
    assert ends.seen == [(ref, None)]


@pytest.mark.parametrize("slow", [False, True], ids=["sync", "async"])
async def test_a_failing_on_stop_still_stops(runtime: Runtime, ends: RecordedEnds, slow: bool, entries: Entries) -> None:
    """A failure in `on_stop` is logged and told to `on_end`; the stop still answers True, and no other hook runs."""
    seen: list[Any] = []

    class Bad(Caller):
        def on_stop(self) -> Any:
            return fail_later(self) if slow else fail(self)

    ref = runtime.start(Bad, seen)
    assert await ref.stop()
    assert [entry["event"] for entry in entries] == ["actor_hook_failed"]
    assert [error for _, error in ends.seen] == ["ValueError('bad later')" if slow else "ValueError('bad')"]
    assert seen == []


async def test_stop_all_stops_the_last_started_first(runtime: Runtime, ends: RecordedEnds) -> None:
    """`stop_all` ends every actor in the reverse order of their start, and returns when all have ended."""
    refs = [runtime.start(Caller) for _ in range(3)]
    await runtime.stop_all()
    assert [ref for ref, _ in ends.seen] == refs[::-1]
    assert runtime.actors_alive == 0


async def test_stop_all_stops_what_starts_meanwhile(runtime: Runtime) -> None:
    """An actor that another one's `on_stop` starts is stopped as well, and a slow `on_stop` is waited for."""
    ended: list[str] = []

    class Late(AsyncioActor):
        async def on_stop(self) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            ended.append("late")

    class Starter(AsyncioActor):
        def on_stop(self) -> None:
            runtime.start(Late)

    runtime.start(Starter)
    await runtime.stop_all()
    assert ended == ["late"]


async def test_stop_all_of_nothing_returns(runtime: Runtime) -> None:
    """A runtime without actors is stopped at once."""
    await runtime.stop_all()


# Crashing


@pytest.mark.parametrize("handler", [fail, fail_later], ids=["sync", "async"])
async def test_a_failure_in_an_ask_is_the_callers(runtime: Runtime, ends: RecordedEnds, handler: Callable[..., Any]) -> None:
    """A failure in an ask goes to the caller, with the traceback of the actor's code alone; the actor lives and handles what is next."""
    ref = runtime.start(Caller)
    reply, after = ref.ask(handler), ref.ask(lambda _: "after")
    with pytest.raises(ValueError, match="bad") as caught:
        await reply
    assert caught.traceback[-1].name == handler.__name__
    assert "_handle" not in [entry.name for entry in caught.traceback]
    assert await after == "after"
    assert ends.seen == []


@pytest.mark.parametrize("handler", [fail, fail_later], ids=["sync", "async"])
async def test_a_failure_in_a_tell_ends_the_actor(runtime: Runtime, ends: RecordedEnds, handler: Any, entries: Entries) -> None:
    """A failure in a tell is logged, runs `on_failure` and not `on_stop`, ends the actor, and is told to `on_end`."""
    seen: list[Any] = []
    ref = runtime.start(Caller, seen)
    ref.tell(handler)
    await runtime.idle()
    assert not ref.is_alive()
    ((name, exception_type, value, has_traceback),) = seen
    assert (name, exception_type, has_traceback) == ("on_failure", ValueError, True)
    assert ends.seen == [(ref, value)]
    assert [entry["event"] for entry in entries] == ["actor_failed"]


async def test_mail_behind_a_failure(runtime: Runtime, ends: RecordedEnds, entries: Entries) -> None:
    """Pitfall: behind a failure asks get `ActorDeadError`, a stop is True, tells vanish and their number is logged."""
    ref = runtime.start(Caller)
    ref.tell(fail)
    asked, stopped = ref.ask(lambda _: None), ref.stop()
    ref.tell(lambda _: None)
    ref.tell(lambda _: None)
    await runtime.idle()
    await raises_dead(asked)
    assert await stopped
    assert [entry.get("tells") for entry in entries] == [None, 2]
    assert len(ends.seen) == 1


async def test_a_failing_actor_leaves_the_others_alone(runtime: Runtime) -> None:
    """Mail of other actors in the same loop turn is handled around a failure."""
    failing, other = runtime.start(Caller), runtime.start(Caller)
    before = other.ask(lambda _: 1)
    failing.tell(fail)
    after = other.ask(lambda _: 2)
    assert (await before, await after) == (1, 2)


async def test_a_failure_after_taking_the_reply_has_no_caller(runtime: Runtime, ends: RecordedEnds) -> None:
    """A handler that has taken its reply and fails ends the actor; the taken reply stays the taker's to answer."""
    taken: list[Any] = []

    def take_and_fail(actor: AsyncioActor) -> None:
        taken.append(actor.take_reply())
        fail(actor)

    ref = runtime.start(Caller)
    reply = ref.ask(take_and_fail)
    await runtime.idle()
    assert ends.seen == [(ref, "ValueError('bad')")]
    assert not reply.done()
    assert taken == [reply]


@pytest.mark.parametrize("slow", [False, True], ids=["sync", "async"])
async def test_a_failing_on_failure_still_ends_the_actor(runtime: Runtime, ends: RecordedEnds, slow: bool) -> None:
    """`on_end` hears of the first failure, once, even if `on_failure` fails too."""

    class Worse(Caller):
        def on_failure(self, *_: Any) -> Any:
            return fail_later(self) if slow else fail(self)

    def fail_first(_: AsyncioActor) -> None:
        raise KeyError("first")

    ref = runtime.start(Worse)
    ref.tell(fail_first)
    await runtime.idle()
    assert ends.seen == [(ref, "KeyError('first')")]


async def test_a_failing_deferred_reply_of_a_tell_is_logged(runtime: Runtime, entries: Entries) -> None:
    """A task that a tell's handler returns and that fails is logged, its exception retrieved; the actor has gone on and lives."""
    ref = runtime.start(Caller)
    tasks: list[asyncio.Task[None]] = []

    def return_task(actor: AsyncioActor) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(fail_later(actor)))
        return tasks[0]

    ref.tell(return_task)
    await runtime.idle()
    await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert [entry["event"] for entry in entries] == ["deferred_reply_failed"]
    assert ref.is_alive()


async def test_a_failing_on_end_is_the_loops_failure(ends: RecordedEnds) -> None:
    """What `on_end` raises goes to the loop's exception handler; the end stands, and other actors go on."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    def bad(ref: AsyncioActorRef[Any], error: BaseException | None) -> None:
        ends(ref, error)
        raise ValueError("on_end")

    runtime = Runtime(bad)
    refs = [runtime.start(Caller) for _ in range(2)]
    await runtime.stop_all()
    assert [repr(context["exception"]) for context in reported] == ["ValueError('on_end')"] * 2
    assert not any(ref.is_alive() for ref in refs)


async def test_a_failing_logger_keeps_no_actor(runtime: Runtime, ends: RecordedEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the host's logger raises goes to the loop's exception handler; the actor ends and its mail is answered."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    class BrokenLogger:
        def error(self, *_args: Any, **_kwargs: Any) -> None:
            raise OSError("no room")

    monkeypatch.setattr("kizuki.actors.runtime.logger", BrokenLogger)
    ref = runtime.start(Caller)
    ref.tell(fail)
    await raises_dead(ref.ask(lambda _: None))
    assert [repr(context["exception"]) for context in reported] == ["OSError('no room')"]
    assert len(ends.seen) == 1


async def test_on_end_may_start_a_successor() -> None:
    """A supervisor may start the next actor from inside `on_end`."""
    successors: list[AsyncioActorRef[Any]] = []

    def restart(ref: AsyncioActorRef[Any], _error: BaseException | None) -> None:
        successors.append(supervised.start(ref.actor_class))

    supervised = Runtime(restart)
    supervised.start(Caller).tell(fail)
    await supervised.idle()
    assert [ref.is_alive() for ref in successors] == [True]


# Cancelling


async def wait_for_ever(_: AsyncioActor) -> None:
    await pending()


@pytest.mark.parametrize("first_step", [False, True], ids=["while it waits", "before its first step"])
async def test_cancelling_a_handler_ends_that_actor_alone(runtime: Runtime, ends: RecordedEnds, first_step: bool) -> None:
    """Pitfall: a cancelled handler ends its own actor, whenever it is hit, and no other; its caller gets `HandlerCancelledError`."""
    seen: list[Any] = []
    ref, other = runtime.start(Caller, seen), runtime.start(Caller)
    reply, behind = ref.ask(wait_for_ever), ref.ask(lambda _: None)
    task = await handler_task(runtime)
    if not first_step:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(HandlerCancelledError, match="cancelled"):
        await reply
    await raises_dead(behind)
    await runtime.idle()
    assert [ended for ended, _ in ends.seen] == [ref]
    assert "HandlerCancelledError" in str(ends.seen[0][1])
    assert [entry[0] for entry in seen] == ["on_failure"]
    assert await other.ask(lambda _: "alive") == "alive"


async def test_cancelling_the_handler_of_a_tell_ends_that_actor(runtime: Runtime, ends: RecordedEnds) -> None:
    """Without a caller too the cancellation is told to `on_end`, once."""
    ref = runtime.start(Caller)
    ref.tell(wait_for_ever)
    (await handler_task(runtime)).cancel()
    await runtime.idle()
    assert [ended for ended, _ in ends.seen] == [ref]


async def test_a_cancellation_that_leaks_into_a_handler_is_a_failure(runtime: Runtime) -> None:
    """A handler that awaits something which is cancelled fails in an ordinary way: its caller hears, the actor lives."""
    future = pending()

    async def wait(_: AsyncioActor) -> Any:
        return await future

    def cancelled(_: AsyncioActor) -> None:
        raise asyncio.CancelledError

    ref = runtime.start(Caller)
    reply = ref.ask(wait)
    await asyncio.sleep(0)
    future.cancel()
    for failing in (reply, ref.ask(cancelled)):
        with pytest.raises(HandlerCancelledError):
            await failing
    assert ref.is_alive()


async def test_a_cancelled_deferred_reply_is_no_cancellation_of_the_asker(runtime: Runtime) -> None:
    """A deferred reply that is cancelled reaches the asker as `HandlerCancelledError`."""
    future = pending()
    ref = runtime.start(Caller)
    reply = ref.ask(lambda _: future)
    await runtime.idle()
    future.cancel()
    with pytest.raises(HandlerCancelledError):
        await reply


async def test_a_handler_may_survive_its_cancellation(runtime: Runtime) -> None:
    """A handler that catches its cancellation and returns has answered; the actor lives."""

    async def stubborn(_: AsyncioActor) -> str:
        try:
            await pending()
        except asyncio.CancelledError:
            return "finished anyway"
        return "not cancelled"

    ref = runtime.start(Caller)
    reply = ref.ask(stubborn)
    task = await handler_task(runtime)
    await asyncio.sleep(0)
    task.cancel()
    assert await reply == "finished anyway"
    assert ref.is_alive()


async def test_cancelling_an_on_stop_ends_the_actor(runtime: Runtime, ends: RecordedEnds) -> None:
    """A cancelled `on_stop` does not keep the actor from ending, nor its stop from answering."""

    class Slow(AsyncioActor):
        async def on_stop(self) -> None:  # type: ignore[override]
            await pending()

    ref = runtime.start(Slow)
    stopped = ref.stop()
    (await handler_task(runtime)).cancel()
    assert await stopped
    assert len(ends.seen) == 1


class Interrupting(AsyncioActor):
    """Raises what it is sent, in a handler or in its task."""

    def on_receive(self, message: tuple[type[BaseException], bool]) -> Any:
        exception_type, slow = message
        if slow:
            return self.later(exception_type)
        raise exception_type

    async def later(self, exception_type: type[BaseException]) -> None:
        raise exception_type


@pytest.mark.parametrize("exception_type", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("slow", [False, True], ids=["sync", "async"])
def test_what_ends_the_loop_passes_on_to_it(exception_type: type[BaseException], slow: bool) -> None:
    """`KeyboardInterrupt` and `SystemExit` end the actor and reach whoever runs the loop; other mail is handled when the loop runs on."""
    ends = RecordedEnds()
    loop = asyncio.new_event_loop()
    try:

        async def ask() -> tuple[AsyncioFuture[Any], AsyncioFuture[Any]]:
            runtime = Runtime(ends)
            asked, other = runtime.start(Interrupting), runtime.start(Caller)
            replies = asked.ask((exception_type, slow)), other.ask(lambda _: "handled")
            await runtime.idle()
            return replies

        task = loop.create_task(ask())
        with pytest.raises(exception_type):
            loop.run_until_complete(task)
        reply, other_reply = loop.run_until_complete(task)
        assert reply.done()
        with pytest.raises(ActorDeadError):
            reply.get()
        assert other_reply.get() == "handled"
        assert len(ends.seen) == 1
    finally:
        loop.close()


class OddError(BaseException):
    pass


async def test_any_other_base_exception_is_a_failure(runtime: Runtime) -> None:
    """Pitfall: Pykka stops all actors for a `BaseException`; here it is its caller's, as an exception is."""

    def odd(_: AsyncioActor) -> None:
        raise OddError

    ref = runtime.start(Caller)
    with pytest.raises(OddError):
        await ref.ask(odd)
    assert ref.is_alive()


# What is left


@pytest.mark.parametrize("handler", [None, fail, fail_later], ids=["stopped", "failed", "failed in a task"])
async def test_a_dead_actor_is_freed_at_once(runtime: Runtime, handler: Callable[..., Any] | None, entries: Entries) -> None:
    """No cycle keeps an ended actor alive: while its ref is kept, the actor is gone without the collector's help."""
    gc.collect()
    gc.disable()
    try:
        ref = runtime.start(Caller)
        reference = weakref.ref(ref._actor)
        if handler is None:
            await ref.stop()
        else:
            ref.tell(handler)
            await runtime.idle()
            await asyncio.sleep(0)
        entries.clear()
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("handler", [fail, fail_later], ids=["sync", "async"])
async def test_a_failed_ask_is_freed_at_once(runtime: Runtime, handler: Callable[..., Any]) -> None:
    """The reply of a failed ask is freed with its last reference: the failure's traceback does not lead back to it."""
    gc.collect()
    gc.disable()
    try:
        ref = runtime.start(Caller)
        reply = ref.ask(handler)
        reference = weakref.ref(reply)
        await runtime.idle()
        assert reply.done()
        del reply
        await asyncio.sleep(0)
        assert reference() is None
    finally:
        gc.enable()


async def test_no_task_exception_is_left_unretrieved(runtime: Runtime) -> None:
    """Handlers that fail in tasks, in asks nobody reads and in tells, leave nothing for the loop's exception handler."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    ref, other = runtime.start(Caller), runtime.start(Caller)
    ref.ask(fail_later)
    ref.ask(lambda actor: asyncio.create_task(fail_later(actor)))
    ref.tell(fail_later)
    other.tell(wait_for_ever)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    runtime._running[other].cancel()
    await runtime.idle()
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []
