"""The supervisor: starts the permanent actors, and starts again what fails.

There is no restart path, only a start path: a new actor of the same kind, over state that outlived the old one. The first
failures are met with a short delay that grows; a child that keeps failing is beyond help here, and the gateway closes, loudly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from .clock import Clock
from .directory import ActorDirectory
from .logs import logger
from .messages import Begin, ChildEnded, StartChild, Tick
from .restarts import Escalate, RestartPolicy, decide
from .runtime import AsyncioActor, AsyncioActorRef
from .timer import Timer

PUT_AWAYS_PER_IDLE_TIME: Final = 4

Start = Callable[[], AsyncioActorRef[Any]]


class SupervisorActor(AsyncioActor):
    """Owns the permanent children; each is in the directory under its name while it lives. Puts away residents that rest."""

    def __init__(
        self,
        children: Mapping[str, Start],
        *,
        permanent: ActorDirectory,
        resident: ActorDirectory,
        clock: Clock,
        idle_actor_s: float,
        policy: RestartPolicy,
        escalate: Callable[[str], None],
    ) -> None:
        super().__init__()
        self._children = children
        self._permanent = permanent
        self._resident = resident
        self._clock = clock
        self._idle_actor_s = idle_actor_s
        self._timer = Timer(clock, self.actor_ref)
        self._policy = policy
        self._escalate = escalate
        self._history: dict[str, tuple[float, ...]] = {}
        self._delays: dict[asyncio.Task[None], None] = {}

    def on_receive(self, message: Begin | ChildEnded | StartChild | Tick) -> None:
        match message:
            case Begin():
                self._begin()
            case ChildEnded():
                self._ended(message.name, message.error)
            case StartChild():
                self._start_child(message.name)
            case Tick():
                self._put_away()

    def on_stop(self) -> None:
        self._timer.cancel()
        for delay in self._delays:
            delay.cancel()

    def on_failure(self, *_exc_info: object) -> None:
        self.on_stop()

    def _begin(self) -> None:
        for name in self._children:
            self._start_child(name)
        self._put_away()

    def _start_child(self, name: str) -> None:
        self._permanent.put(name, self._children[name]())

    def _put_away(self) -> None:
        """Idle session and watcher actors go; their next mail starts them again from what is durable."""
        self._resident.put_away(self._idle_actor_s, self._clock.monotonic())
        self._timer.set(self._idle_actor_s / PUT_AWAYS_PER_IDLE_TIME)

    def _ended(self, name: str, error: BaseException | None) -> None:
        decision = decide(self._history.get(name, ()), self._clock.monotonic(), self._policy)
        if isinstance(decision, Escalate):
            logger(actor=name).critical("actor keeps failing, the gateway closes", restarts=decision.restarts, error=repr(error))
            self._escalate(f"its {name} actor failed {decision.restarts + 1} times, last with {error!r}")
            return
        self._history[name] = decision.history
        logger(actor=name).error("actor failed, it is started again", delay_s=decision.delay_s, error=repr(error))
        delay = asyncio.create_task(self._start_later(name, decision.delay_s), name=f"kizuki restart of {name}")
        self._delays[delay] = None
        delay.add_done_callback(self._delays.pop)

    async def _start_later(self, name: str, delay_s: float) -> None:
        await self._clock.sleep(delay_s)
        self.actor_ref.tell(StartChild(name))
