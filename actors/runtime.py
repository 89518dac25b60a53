"""Pykka's actors on one asyncio loop, without a task or a queue for those that rest.

Pykka has no asyncio runtime, only hooks for one. This file is that runtime and the only one that touches Pykka's underscore names.

How mail moves. A ref is the mailbox: its deque is made by the first mail and dropped when the actor has handled the last, so a resting
actor is its own object, its ref and one dictionary entry. Refs with mail stand in one ready queue, which a single `call_soon` callback
drains: one mail for each ref in turn, so that no actor starves another, for about a millisecond, so that the actors do not starve the
loop. A sync handler runs inline. An async handler gets a task for as long as it runs, and the actor's further mail waits for it: one mail
at a time, always. Everything belongs to the loop's thread; nothing here may be called from another.

Starting. `__init__` runs in the caller and its failure is the caller's. `on_start` is the actor's first mail, before any other; if it
fails, the actor ends as it does in Pykka: without `on_failure`. So supervise the end (`Runtime(on_end)`, called exactly once for each
actor), not the hook.

Stopping. A stop stands in line: mail before it is handled, mail after it is answered with `ActorDeadError`. The actor counts as dead from
the moment its stop is handled; the stop's own future resolves after `on_stop`, sync or async, has ended. A full inbox refuses no stop.

Crashing. A failure in an `ask` goes to the caller and the actor lives. A failure in a `tell`, or after `take_reply`, has no caller: it is
logged, `on_failure` runs, the actor ends. Asks queued behind it are answered with `ActorDeadError`; tells queued behind it vanish (their
number is logged), so an inbox is never a place of record.

Cancelling. Pykka's loop takes a cancellation, like every `BaseException`, for a reason to stop all actors. Here it concerns one:
cancelling the task of a handler ends that actor, and its caller gets `HandlerCancelledError`, never a `CancelledError`, which would look
like the caller's own cancellation. A `CancelledError` that merely leaks out of something a handler awaited is an ordinary failure.
Cancelling a task that awaits a reply cancels that wait alone: the mail is handled and the future resolves for its other readers.
`KeyboardInterrupt` and `SystemExit` end the actor and pass on to the loop, as they do from any asyncio callback.

Bounds. A `tell` to a full inbox raises `InboxFullError`. An `ask` is taken on: its place in line is behind the full inbox, and its caller
is suspended until the answer, which is the waiting for room that a bounded inbox means.

Not used of Pykka: `ActorRegistry`, because it is one list for the whole process (a removal walks it, and two gateways would share it); a
uuid, a `threading.Event` and a weakref for each actor, because they weigh more than the rest of it.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Hashable, Iterable
from contextvars import copy_context
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, TypeVar, cast

import pykka
from pykka import ActorDeadError, messages
from pykka._envelope import Envelope
from pykka._future import _Unset

from .logs import logger

__all__ = [
    "ActorDeadError",
    "AsyncioActor",
    "AsyncioActorRef",
    "AsyncioFuture",
    "HandlerCancelledError",
    "InboxFullError",
    "Runtime",
    "WouldBlockError",
]

T = TypeVar("T")
M = TypeVar("M")
A = TypeVar("A", bound="AsyncioActor")
ExcInfo: TypeAlias = tuple[type[BaseException] | None, BaseException | None, TracebackType | None]

TURN_BUDGET_S = 0.001
STOPS_PER_SLICE = 1_000


class InboxFullError(Exception):
    """A tell found no room in the actor's bounded inbox. The mail was not taken."""


class HandlerCancelledError(ActorDeadError):
    """The handler that was to answer was cancelled, which has ended its actor. What it had done until then stays done."""


class WouldBlockError(RuntimeError):
    """The answer is not there yet, and waiting for it without `await` would block the loop that is to bring it."""


class _ActorStart(NamedTuple):
    """The actor's first mail, when its class has an `on_start`."""


_START = _ActorStart()
_STOP = messages._ActorStop()
_PYKKA_MESSAGES = frozenset({_ActorStart, messages._ActorStop, messages.ProxyCall, messages.ProxyGetAttr, messages.ProxySetAttr})
_LOOP_ENDING = (KeyboardInterrupt, SystemExit)

_PENDING, _VALUE, _ERROR, _HOOKED = range(4)


class AsyncioFuture(pykka.Future[T]):
    """The answer to a mail: awaited any number of times, by any number of tasks, before or after it is there.

    Cancelling a task that awaits it cancels the wait, not the future. An exception that nobody reads is dropped silently.
    """

    _value: T
    _error: BaseException
    _traceback: TracebackType | None
    _get_hook_result = _Unset()
    _sources: tuple[AsyncioFuture[Any], ...] = ()

    def __init__(self) -> None:
        # Not Pykka's: its two get-hook attributes are for the few futures that have a hook.
        self._state = _PENDING
        self._waiters: list[asyncio.Future[None]] | None = None

    def done(self) -> bool:
        """Whether `get` would answer now."""
        return self._state != _PENDING and all(source.done() for source in self._sources)

    def get(self, *, timeout: float | None = None) -> T:
        """Return the value or raise the error, if it is there; raises `WouldBlockError` if it is not, whatever the timeout."""
        if self._state == _VALUE:
            return self._value
        if self._state == _HOOKED:
            return super().get(timeout=timeout)
        if self._state == _PENDING:
            raise WouldBlockError("the answer is not there yet: await the future instead of calling get()")
        try:
            raise self._error.with_traceback(self._traceback)
        finally:
            # The error's traceback now holds this frame, which must not hold the error's future in turn.
            del self

    def set(self, value: T | None = None) -> None:
        """Answer with a value. Raises `asyncio.InvalidStateError` if there is an answer or a get hook already."""
        self._refuse_second()
        self._value = cast(T, value)
        self._settle(_VALUE)

    def set_exception(self, exc_info: ExcInfo | None = None) -> None:
        """Answer with an exception, by default the one being handled. Raises `asyncio.InvalidStateError` like `set`."""
        self._refuse_second()
        error = (exc_info or sys.exc_info())[1]
        if error is None:
            raise ValueError("set_exception needs an exception: pass exc_info with a value, or call it from an except block")
        self.fail(error, exc_info[2] if exc_info else error.__traceback__)

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Let `func(timeout)` produce the value at the first `get`; it must not block. Raises `asyncio.InvalidStateError` like `set`."""
        if self._state in (_VALUE, _ERROR):
            self._refuse_second()
        super().set_get_hook(func)
        self._settle(_HOOKED)

    def resolve(self, value: T) -> None:
        """Answer with a value unless there is an answer already: the first one counts."""
        if self._state == _PENDING:
            self._value = value
            self._settle(_VALUE)

    def fail(self, error: BaseException, traceback: TracebackType | None = None) -> None:
        """Answer with an exception unless there is an answer already: the first one counts."""
        if self._state == _PENDING:
            self._error = error
            self._traceback = traceback or error.__traceback__
            self._settle(_ERROR)

    def add_done_callback(self, fn: Callable[[Self], object]) -> None:
        """Have the loop call `fn(self)` soon after the answer is there; an exception in it goes to the loop's exception handler."""
        missing = next((source for source in self._sources if not source.done()), None)
        if missing is not None:
            missing.add_done_callback(lambda _: self.add_done_callback(fn))
        elif self._state == _PENDING:
            self._new_waiter().add_done_callback(lambda _: fn(self))
        else:
            asyncio.get_running_loop().call_soon(fn, self)

    def __await__(self) -> Generator[Any, None, T]:
        if self._state == _PENDING or self._sources:
            yield from self._until_done()
        if self._state == _VALUE:
            return self._value
        try:
            return self.get()
        finally:
            del self

    __iter__ = __await__

    def map(self, func: Callable[[T], M]) -> AsyncioFuture[M]:
        """See Pykka; `func` runs at the first read."""
        return _after(super().map(func), self)

    def filter(self: AsyncioFuture[Iterable[M]], func: Callable[[M], bool]) -> AsyncioFuture[Iterable[M]]:
        """See Pykka; `func` runs at the first read."""
        return _after(super().filter(func), self)

    def join(self: AsyncioFuture[Any], *futures: AsyncioFuture[Any]) -> AsyncioFuture[Iterable[Any]]:  # type: ignore[override]
        """See Pykka; the list is in the order of the futures, whichever is done first."""
        return _after(super().join(*futures), self, *futures)

    def reduce(self: AsyncioFuture[Iterable[Any]], func: Callable[[Any, Any], M], *args: M) -> AsyncioFuture[M]:
        """See Pykka; `func` runs at the first read."""
        return _after(super().reduce(func, *args), self)

    def _refuse_second(self) -> None:
        if self._state != _PENDING:
            raise asyncio.InvalidStateError("this future has an answer or a get hook already")

    def _settle(self, state: int) -> None:
        self._state = state
        waiters = self._waiters
        if waiters is not None:
            self._waiters = None
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def _new_waiter(self) -> asyncio.Future[None]:
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)
        return waiter

    def _until_done(self) -> Generator[Any, None, None]:
        if self._state == _PENDING:
            waiter = self._new_waiter()
            try:
                yield from waiter
            finally:
                # A cancelled wait leaves nothing behind on a future that may live long.
                if self._waiters is not None:
                    self._waiters.remove(waiter)
        for source in self._sources:
            yield from source._until_done()


def _after(derived: pykka.Future[T], *sources: AsyncioFuture[Any]) -> AsyncioFuture[T]:
    """Have a future that Pykka derived with a get hook wait for what its hook reads, so that the hook never blocks."""
    future = cast("AsyncioFuture[T]", derived)
    future._sources = sources
    return future


class AsyncioActorRef(pykka.ActorRef[A]):
    """The way to an actor, and its mailbox. It belongs to the loop it was started on.

    While the actor lives the ref holds it; after its end the ref holds nothing, so that a kept ref keeps no dead actor alive.
    """

    name: Hashable | None = None
    """The stable name under which a directory knows the actor, if one does."""
    period: Any = None
    """When it was used last, as that directory counts."""

    def __init__(self, runtime: Runtime, actor: A) -> None:
        # Not Pykka's: urn, inbox and stopped flag are properties here, which cost nothing while nobody looks.
        self._actor: A | None = actor
        self._runtime = runtime
        self._mail: deque[tuple[Any, AsyncioFuture[Any] | None]] | None = None
        self._reply: AsyncioFuture[Any] | None = None
        self.actor_class = type(actor)

    @property
    def actor_urn(self) -> str:  # type: ignore[override]
        """The actor's unique name, made at the first look: random for the process, counted in it."""
        urn: str | None = self.__dict__.get("_urn")
        if urn is None:
            urn = self.__dict__["_urn"] = f"{_URN_PREFIX}{next(_urn_numbers)}"
        return urn

    @property
    def actor_inbox(self) -> _Inbox:  # type: ignore[override]
        """See Pykka; a view."""
        return _Inbox(self)

    @property
    def actor_stopped(self) -> _StoppedFlag:  # type: ignore[override]
        """See Pykka; a view of `is_alive`."""
        return _StoppedFlag(self)

    def is_alive(self) -> bool:
        """Whether the actor takes mail. False from the moment its stop is handled or it crashes."""
        return self._actor is not None

    def is_idle(self) -> bool:
        """Whether no mail is waiting and no handler or hook of the actor is running."""
        return self._mail is None

    def tell(self, message: Any) -> None:
        """Send a message without a reply. Raises `ActorDeadError`, or `InboxFullError` if `inbox_size` mails are waiting."""
        if self._actor is None:
            raise self._dead()
        mail = self._mail
        if mail is None:
            self._post(message, None)
        elif len(mail) < self.actor_class.inbox_size:
            mail.append((message, None))
        else:
            raise InboxFullError(f"{self} has {len(mail)} mails waiting, its inbox takes {self.actor_class.inbox_size}")

    def ask(self, message: Any, *, block: Literal[False] = False, timeout: None = None) -> AsyncioFuture[Any]:  # type: ignore[override]
        """Send a message; the future is its reply, or `ActorDeadError`, or what the handler raised. A full inbox makes the caller wait.

        `block` and `timeout` are Pykka's and take no other value here, for a blocking ask would never be answered.
        """
        if block or timeout is not None:
            raise WouldBlockError(_AWAITED)
        reply: AsyncioFuture[Any] = AsyncioFuture()
        if self._actor is None:
            reply.fail(self._dead())
        else:
            self._post(message, reply)
        return reply

    def forward(self, message: Any, reply: AsyncioFuture[Any] | None) -> None:
        """Send a message whose answer goes to a future that exists already; without one this is `tell`."""
        if reply is None:
            self.tell(message)
        elif self._actor is None:
            reply.fail(self._dead())
        else:
            self._post(message, reply)

    def stop(self, *, block: Literal[False] = False, timeout: None = None) -> AsyncioFuture[bool]:  # type: ignore[override]
        """Ask the actor to stop after the mail before; True once it has ended, False if it was dead already."""
        if block or timeout is not None:
            raise WouldBlockError(_AWAITED)
        reply: AsyncioFuture[bool] = AsyncioFuture()
        if self._actor is None:
            reply.set(False)
        else:
            self._post(_STOP, reply)
        return reply

    def _actor_weakref(self) -> A | None:  # type: ignore[override]
        """What Pykka's proxies call to reach the actor."""
        return self._actor

    def _post(self, message: Any, reply: AsyncioFuture[Any] | None) -> None:
        mail = self._mail
        if mail is None:
            mail = self._mail = deque()
            self._runtime._make_ready(self)
        mail.append((message, reply))

    def _dead(self) -> ActorDeadError:
        return ActorDeadError(f"{self} not found")


_URN_PREFIX = f"urn:kizuki:{secrets.token_hex(8)}:"
_urn_numbers = count(1)


_AWAITED = "an asyncio actor is awaited: `await ref.ask(...)`, with `asyncio.timeout` around it"


class _StoppedFlag:
    """What Pykka reads of the `threading.Event` that each of its actors has."""

    __slots__ = ("_ref",)

    def __init__(self, ref: AsyncioActorRef[Any]) -> None:
        self._ref = ref

    def is_set(self) -> bool:
        return not self._ref.is_alive()


class _Inbox:
    """What Pykka promises of an inbox, as a view of the ref's mail."""

    __slots__ = ("_ref",)

    def __init__(self, ref: AsyncioActorRef[Any]) -> None:
        self._ref = ref

    def put(self, envelope: Envelope[Any], /) -> None:
        self._ref.forward(envelope.message, cast("AsyncioFuture[Any] | None", envelope.reply_to))

    def get(self) -> Envelope[Any]:
        raise WouldBlockError("only the runtime takes mail out of an inbox")

    def empty(self) -> bool:
        return not self._ref._mail


class AsyncioActor(pykka.Actor):
    """An actor on the running loop. Subclass it, override `on_receive`, start it with `Runtime.start` or `start`.

    A handler is sync or async. What it returns is the reply. A future that it returns (`AsyncioFuture`, `asyncio.Future`, a task) is a
    deferred reply: the actor goes on with its next mail, and the asker gets what the future gets.

    A proxy of the ref works as Pykka's does, each call and each read an awaitable future. Only an assignment through it cannot wait: it is
    mail like any other, and its error is lost.
    """

    inbox_size: ClassVar[int] = 10_000
    """How many mails may wait before `tell` raises `InboxFullError`."""

    _actor_ref: AsyncioActorRef[Any]

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Take any arguments, like Pykka's. `actor_ref` is there already: the runtime sets it before `__init__` runs."""

    @classmethod
    def start(cls, *args: Any, **kwargs: Any) -> AsyncioActorRef[Self]:
        """Start an actor on the running loop's default runtime, which supervises nobody. A gateway has its own."""
        return default_runtime().start(cls, *args, **kwargs)

    @property
    def actor_ref(self) -> AsyncioActorRef[Self]:
        """The actor's own ref."""
        return self._actor_ref

    @property
    def actor_urn(self) -> str:  # type: ignore[override]
        """See `AsyncioActorRef.actor_urn`."""
        return self._actor_ref.actor_urn

    @property
    def actor_inbox(self) -> _Inbox:  # type: ignore[override]
        """See `AsyncioActorRef.actor_inbox`."""
        return self._actor_ref.actor_inbox

    @property
    def actor_stopped(self) -> _StoppedFlag:  # type: ignore[override]
        """See `AsyncioActorRef.actor_stopped`."""
        return self._actor_ref.actor_stopped

    def stop(self) -> None:
        """Stop after the mail that is waiting now."""
        self._actor_ref._post(_STOP, None)

    def on_start(self) -> Awaitable[None] | None:  # type: ignore[override]
        """Run before the first mail, sync or async. If it fails, the actor ends, without `on_failure`."""
        return None

    def on_stop(self) -> Awaitable[None] | None:  # type: ignore[override]
        """Run after the last mail, sync or async, when the actor is stopped; a failure in it is logged and told to `on_end`."""
        return None

    def on_failure(  # type: ignore[override]
        self,
        exception_type: type[BaseException] | None,  # noqa: ARG002
        exception_value: BaseException | None,  # noqa: ARG002
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> Awaitable[None] | None:
        """Run instead of `on_stop`, sync or async, when a failure without a caller, or a cancellation, ends the actor."""
        return None

    def take_reply(self) -> AsyncioFuture[Any] | None:
        """Take over the answer to the current mail, to give it later or to forward it; None if nobody waits for one.

        From here on the answer is the taker's duty alone: the runtime gives none, neither when the handler returns nor when the
        actor ends. A failure after this is one without a caller, as in a tell.
        """
        reply = self._actor_ref._reply
        self._actor_ref._reply = None
        return reply

    @staticmethod
    def _create_actor_inbox() -> _Inbox:
        raise NotImplementedError("the first mail makes the inbox")

    @staticmethod
    def _create_future() -> AsyncioFuture[Any]:
        return AsyncioFuture()

    def _start_actor_loop(self) -> None:
        self._actor_ref._runtime._begin(self._actor_ref)


OnEnd: TypeAlias = Callable[[AsyncioActorRef[Any], BaseException | None], None]


class Runtime:
    """The actors of one gateway: one ready queue on the loop that runs when it is made.

    `on_end(ref, error)` is called once for each actor that ends, after its hook and after what waited for it was answered; the error is
    None for a stop. `monotonic` measures the time budget of a loop turn, in seconds; a simulation passes its virtual one.
    """

    def __init__(self, on_end: OnEnd | None = None, *, monotonic: Callable[[], float] = time.perf_counter) -> None:
        self._loop = asyncio.get_running_loop()
        # One context for all handlers: else each would see the context variables of whoever happened to wake the queue.
        self._context = copy_context()
        self._on_end = on_end
        self._monotonic = monotonic
        self._alive: dict[AsyncioActorRef[Any], None] = {}
        self._ready: deque[AsyncioActorRef[Any]] = deque()
        self._running: dict[AsyncioActorRef[Any], asyncio.Task[Any]] = {}
        self._draining = False
        self._idle_waiters: list[asyncio.Future[None]] = []

    @property
    def actors_alive(self) -> int:
        """How many actors take mail."""
        return len(self._alive)

    @property
    def mail_waiting(self) -> int:
        """How many mails wait, those of suspended askers included. Costs a look at each actor that is not idle.

        Looks at copies, for another thread may ask while the loop goes on.
        """
        return sum(len(ref._mail or ()) for ref in (*self._ready, *self._running))

    def start(self, actor_class: type[A], *args: Any, **kwargs: Any) -> AsyncioActorRef[A]:
        """Make an actor and start it. What its `__init__` raises is raised here, and then there is no actor to end."""
        actor = actor_class.__new__(actor_class, *args, **kwargs)
        ref = AsyncioActorRef(self, actor)
        actor._actor_ref = ref
        actor.__init__(*args, **kwargs)  # type: ignore[misc]
        self._alive[ref] = None
        if actor_class.on_start is not AsyncioActor.on_start:
            actor._start_actor_loop()
        return ref

    async def idle(self) -> None:
        """Return when no mail is waiting and no handler or hook is running. Never returns inside a handler, which would wait for itself."""
        while self._draining or self._running:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._idle_waiters.append(waiter)
            await waiter

    async def stop_all(self) -> None:
        """Stop every actor, the last started first, and return when all have ended. A handler that never ends makes it wait for ever."""
        while self._alive:
            for index, ref in enumerate(reversed(tuple(self._alive)), start=1):
                if ref.is_alive():
                    ref._post(_STOP, None)
                if index % STOPS_PER_SLICE == 0:
                    await asyncio.sleep(0)
            await self.idle()
        await self.idle()

    # The ready queue

    def _make_ready(self, ref: AsyncioActorRef[Any]) -> None:
        self._ready.append(ref)
        if not self._draining:
            self._draining = True
            self._loop.call_soon(self._drain, context=self._context)

    def _drain(self) -> None:
        ready = self._ready
        monotonic = self._monotonic
        handle = self._handle
        deadline = monotonic() + TURN_BUDGET_S
        try:
            while ready:
                handle(ready.popleft())
                if monotonic() > deadline:
                    break
        finally:
            if ready:
                self._loop.call_soon(self._drain, context=self._context)
            else:
                self._draining = False
                self._tell_idle()

    def _tell_idle(self) -> None:
        if self._idle_waiters and not self._draining and not self._running:
            waiters, self._idle_waiters = self._idle_waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    # One mail

    def _handle(self, ref: AsyncioActorRef[Any]) -> None:
        mail = ref._mail
        message, ref._reply = mail.popleft()  # type: ignore[union-attr]
        if type(message) in _PYKKA_MESSAGES:
            self._handle_pykka(ref, message)
            return
        try:
            result = ref._actor.on_receive(message)  # type: ignore[union-attr]
        except BaseException as error:
            _drop_own_frame(error)
            self._failed(ref, error)
            if isinstance(error, _LOOP_ENDING):
                raise
            return
        if result is not None and hasattr(type(result), "__await__"):
            self._returned(ref, result, self._failed)
            return
        reply = ref._reply
        if reply is not None:
            ref._reply = None
            reply.resolve(result)
        if mail:
            self._ready.append(ref)
        else:
            ref._mail = None

    def _handle_pykka(self, ref: AsyncioActorRef[Any], message: Any) -> None:
        actor = cast(AsyncioActor, ref._actor)
        if isinstance(message, messages._ActorStop):
            self._hold_reply(ref, message)
            self._end(ref, None, actor.on_stop)
        elif isinstance(message, _ActorStart):
            self._call(ref, actor.on_start, self._start_failed)
        else:
            self._call(ref, partial(actor._handle_receive, message), self._failed)

    def _call(self, ref: AsyncioActorRef[Any], call: Callable[[], Any], failed: OnFailed) -> None:
        try:
            result = call()
        except BaseException as error:
            _drop_own_frame(error)
            failed(ref, error)
            if isinstance(error, _LOOP_ENDING):
                raise
        else:
            self._returned(ref, result, failed)

    def _returned(self, ref: AsyncioActorRef[Any], result: Any, failed: OnFailed) -> None:
        if not hasattr(type(result), "__await__"):
            self._answer(ref, result)
        elif isinstance(result, AsyncioFuture | asyncio.Future):
            self._defer(ref, result)
        else:
            self._run(ref, result, partial(self._handler_done, ref, failed))

    def _answer(self, ref: AsyncioActorRef[Any], value: Any) -> None:
        reply, ref._reply = ref._reply, None
        if reply is not None:
            reply.resolve(value)
        self._go_on(ref)

    def _defer(self, ref: AsyncioActorRef[Any], deferred: Any) -> None:
        reply, ref._reply = ref._reply, None
        deferred.add_done_callback(partial(_pass_on, ref, reply))
        self._go_on(ref)

    def _go_on(self, ref: AsyncioActorRef[Any]) -> None:
        if ref._mail:
            self._make_ready(ref)
        else:
            ref._mail = None

    # Async handlers

    def _run(self, ref: AsyncioActorRef[Any], awaitable: Any, done: Callable[[asyncio.Task[Any]], None]) -> None:
        # A done callback, not a wrapping coroutine: a task that is cancelled before its first step never enters its coroutine.
        task = self._loop.create_task(awaitable if asyncio.iscoroutine(awaitable) else _as_coroutine(awaitable))
        self._running[ref] = task
        task.add_done_callback(done)

    def _handler_done(self, ref: AsyncioActorRef[Any], failed: OnFailed, task: asyncio.Task[Any]) -> None:
        del self._running[ref]
        error = _error_of(task, ref)
        if error is None:
            self._returned(ref, task.result(), failed)
        elif task.cancelled() and task.cancelling():
            self._cancelled(ref, error)
        else:
            failed(ref, error)
        self._tell_idle()

    def _cancelled(self, ref: AsyncioActorRef[Any], error: BaseException) -> None:
        reply, ref._reply = ref._reply, None
        if reply is not None:
            reply.fail(error)
        self._crash(ref, error)

    # The end

    def _failed(self, ref: AsyncioActorRef[Any], error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            error = HandlerCancelledError(f"a handler of {ref} raised {error!r}")
        reply = ref._reply
        if reply is None or isinstance(error, _LOOP_ENDING):
            self._crash(ref, error)
        else:
            ref._reply = None
            reply.fail(error)
            self._go_on(ref)

    def _start_failed(self, ref: AsyncioActorRef[Any], error: BaseException) -> None:
        _log_failure("actor_start_failed", ref, error)
        self._end(ref, error, _no_hook)

    def _crash(self, ref: AsyncioActorRef[Any], error: BaseException) -> None:
        _log_failure("actor_failed", ref, error)
        self._hold_reply(ref, None)
        self._end(ref, error, partial(cast(AsyncioActor, ref._actor).on_failure, type(error), error, error.__traceback__))

    def _hold_reply(self, ref: AsyncioActorRef[Any], message: Any) -> None:
        """Put the current mail back to the others that are answered at the end."""
        reply, ref._reply = ref._reply, None
        if reply is not None:
            cast("deque[Any]", ref._mail).appendleft((message, reply))

    def _end(self, ref: AsyncioActorRef[Any], error: BaseException | None, hook: Callable[[], Awaitable[None] | None]) -> None:
        ref._actor = None
        del self._alive[ref]
        try:
            result = hook()
        except BaseException as hook_error:
            _drop_own_frame(hook_error)
            self._hook_failed(ref, error, hook_error)
            if isinstance(hook_error, _LOOP_ENDING):
                raise
        else:
            if result is None:
                self._ended(ref, error)
            else:
                self._run(ref, result, partial(self._hook_done, ref, error))

    def _hook_done(self, ref: AsyncioActorRef[Any], error: BaseException | None, task: asyncio.Task[Any]) -> None:
        del self._running[ref]
        hook_error = _error_of(task, ref)
        if hook_error is None:
            self._ended(ref, error)
        else:
            self._hook_failed(ref, error, hook_error)
        self._tell_idle()

    def _hook_failed(self, ref: AsyncioActorRef[Any], error: BaseException | None, hook_error: BaseException) -> None:
        _log_failure("actor_hook_failed", ref, hook_error)
        self._ended(ref, error or hook_error)

    def _ended(self, ref: AsyncioActorRef[Any], error: BaseException | None) -> None:
        mail, ref._mail = ref._mail, None
        tells_lost = _answer_dead(ref, mail or ())
        if tells_lost and error is not None:  # who orders a stop wants nothing handled behind it, be it the last tick of a timer
            _guarded("logging", lambda: logger().warning("mail_lost", actor=str(ref), tells=tells_lost))
        on_end = self._on_end
        if on_end is not None:
            _guarded("on_end", lambda: on_end(ref, error))

    def _begin(self, ref: AsyncioActorRef[Any]) -> None:
        """Put `on_start` before what the actor's own `__init__` may have mailed."""
        if ref._mail is None:
            ref._post(_START, None)
        else:
            ref._mail.appendleft((_START, None))


OnFailed: TypeAlias = Callable[[AsyncioActorRef[Any], BaseException], None]


def _no_hook() -> None:
    return None


def _guarded(what: str, call: Callable[[], object]) -> None:
    """Call the host's code where its failure must not keep an actor from ending: a failure goes to the loop's exception handler."""
    try:
        call()
    except Exception as failure:  # noqa: BLE001
        asyncio.get_running_loop().call_exception_handler({"message": f"{what} failed at the end of an actor", "exception": failure})


def _log_failure(event: str, ref: AsyncioActorRef[Any], error: BaseException) -> None:
    _guarded("logging", lambda: logger().error(event, actor=str(ref), exc_info=error))


def _drop_own_frame(error: BaseException) -> None:
    """Let a traceback begin in the actor's code: the runtime's frame says nothing, and would keep mail alive for as long as the error."""
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _error_of(task: asyncio.Task[Any], ref: AsyncioActorRef[Any]) -> BaseException | None:
    if task.cancelled():
        return HandlerCancelledError(f"a handler of {ref} was cancelled")
    return task.exception()


def _pass_on(ref: AsyncioActorRef[Any], reply: AsyncioFuture[Any] | None, deferred: Any) -> None:
    """Give a deferred reply to the one who asked; a failure that nobody asked for is logged, for the actor has long gone on."""
    try:
        value = deferred.get() if isinstance(deferred, AsyncioFuture) else deferred.result()
    except BaseException as failure:  # noqa: BLE001
        _drop_own_frame(failure)
        cancelled = isinstance(failure, asyncio.CancelledError)
        error = HandlerCancelledError(f"a deferred reply of {ref} was cancelled") if cancelled else failure
        if reply is None:
            _log_failure("deferred_reply_failed", ref, error)
        else:
            reply.fail(error)
    else:
        if reply is not None:
            reply.resolve(value)


def _answer_dead(ref: AsyncioActorRef[Any], mail: Iterable[tuple[Any, AsyncioFuture[Any] | None]]) -> int:
    """Answer what an ended actor left: True to a stop, `ActorDeadError` to an ask. Returns how many tells had nobody to answer."""
    tells_lost = 0
    for message, reply in mail:
        stop = isinstance(message, messages._ActorStop)
        if reply is None:
            tells_lost += not stop
        elif stop:
            reply.resolve(True)  # noqa: FBT003
        else:
            reply.fail(ActorDeadError(f"{ref} stopped before handling the message"))
    return tells_lost


_default = threading.local()


def default_runtime() -> Runtime:
    """The runtime of `AsyncioActor.start` on the running loop; a thread keeps the one of its latest loop."""
    runtime: Runtime | None = getattr(_default, "runtime", None)
    if runtime is None or runtime._loop is not asyncio.get_running_loop():
        runtime = _default.runtime = Runtime()
    return runtime
