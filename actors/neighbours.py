"""The neighbours: other gateways on the same database (spec section 8).

Ten times a second this actor asks the store whether anybody else has committed, which costs next to nothing while nobody has. If so,
or while others are there, it looks who lives: it takes over from the dead, and takes the hints that the living left. A hint is
kept in the store until it is taken, so what is missed at one look is found at the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pykka import ActorDeadError

from ..storage.errors import StoreError
from ..storage.protocol import Store
from ..storage.records import Hint, Shown
from ..storage.writes import Reclaim, TakeHints, TakenOver, TakeOver
from .claims import Claims
from .clock import Clock
from .config import GatewayConfig
from .logs import logger
from .messages import GiveBack, Join, Tick
from .runtime import AsyncioActor, AsyncioActorRef
from .timer import Timer

SLICE_SESSIONS: Final = 500
GIVE_BACK_AGAIN_S: Final = 1.0

Ref = AsyncioActorRef[Any]


@dataclass(slots=True)
class Neighbourhood:
    """What of the neighbours outlives the actor."""

    gateway_id: int = 0
    """This gateway's number; 0 before it has registered."""
    present: bool = False
    """Whether others were registered at the last look."""


class NeighboursActor(AsyncioActor):
    """Registers the gateway, and looks at the others when its timer rings."""

    def __init__(
        self,
        store: Store,
        *,
        log: Callable[[], Ref],
        watcher: Callable[[str], Ref],
        clock: Clock,
        config: GatewayConfig,
        claims: Claims,
        neighbourhood: Neighbourhood,
        on_hints: Callable[[Sequence[Hint]], None],
    ) -> None:
        super().__init__()
        self._store = store
        self._log = log
        self._watcher = watcher
        self._clock = clock
        self._config = config
        self._claims = claims
        self._neighbourhood = neighbourhood
        self._on_hints = on_hints
        self._timer = Timer(clock, self.actor_ref)
        self._missed = True
        """Whether a change may not have been looked at yet."""
        self._gave_back_at = clock.monotonic()

    def on_start(self) -> None:
        if self._neighbourhood.gateway_id:
            self._timer.set(self._config.poll_interval_s)

    async def on_receive(self, message: Join | Tick) -> None:
        if isinstance(message, Join):
            await self._join()
        else:
            await self._look_by_the_clock()
        self._timer.set(self._config.poll_interval_s)

    def on_stop(self) -> None:
        self._timer.cancel()

    def on_failure(self, *_exc_info: object) -> None:
        self._timer.cancel()

    async def _join(self) -> None:
        """The start: what the dead hosted is this gateway's before the replay asks whose watchers are whose."""
        await self._register()
        await self._look()

    async def _register(self) -> None:
        timeout_s = self._config.busy_timeout_s
        self._neighbourhood.gateway_id = await self._store.register(now_ms=self._clock.now_ms(), busy_timeout_s=timeout_s)

    async def _look_by_the_clock(self) -> None:
        try:
            self._missed = await self._store.changed() or self._missed
            if self._missed or self._neighbourhood.present:
                for dead in await self._look():
                    logger().info("another gateway is gone, its sessions are taken over", gateway=dead)
        except (StoreError, ActorDeadError) as error:
            self._missed = True
            logger().warning("looking for other gateways failed, it is tried again", error=str(error))
        self._give_back()

    async def _look(self) -> tuple[int, ...]:
        """Do what there is to do; gives the gateways that were taken over from."""
        seen = await self._store.neighbours()
        self._neighbourhood.present = bool(seen.living or seen.dead)
        if not seen.registered:
            await self._join_again()
        for dead in seen.dead:
            await self._take_over(dead)
        if seen.hinted:
            self._on_hints(await self._log().ask(TakeHints(self._clock.now_ms())))
        self._missed = False
        return seen.dead

    async def _take_over(self, dead: int) -> None:
        finished = False
        while not finished:
            taken: TakenOver = await self._log().ask(TakeOver(dead, SLICE_SESSIONS))
            finished = taken.finished

    async def _join_again(self) -> None:
        """Somebody took this gateway for dead: it is another one from now on, with what is left of its sessions and open turns."""
        before = self._neighbourhood.gateway_id
        logger().warning("this gateway was taken for dead, it registers anew", gateway=before)
        await self._register()
        await self._take_over(before)
        for watcher in sorted(self._claims.watchers()):
            await self._claim_again(watcher)

    async def _claim_again(self, watcher: str) -> None:
        """What another gateway has taken meanwhile is that one's; here it is no longer in the turn that showed it."""
        held = self._claims.taken(watcher)
        kept: tuple[Shown, ...] = await self._log().ask(Reclaim(watcher, tuple(sorted(held))))
        self._claims.settle(watcher, held.difference(kept))

    def _give_back(self) -> None:
        """Claims that could not be given back in the store are tried again from time to time."""
        now = self._clock.monotonic()
        if self._claims.stale and now - self._gave_back_at >= GIVE_BACK_AGAIN_S:
            self._gave_back_at = now
            for watcher in sorted(self._claims.stale):
                self._watcher(watcher).ask(GiveBack())
