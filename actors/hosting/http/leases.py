"""Turns of hosts that are elsewhere: each is held open here until its host ends it, or has not been heard of for its lease.

A turn is held by a task of its own, inside `gateway.turn(...)`: what ends it well or not is what the host said, and a host that has
vanished is a turn that failed, whose notices are given back, byte for byte.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Any, Final

from ...clock import Clock
from ...gateway import Gateway
from ...turn import Turn
from .endpoint import Refused, closing

LEASE_S: Final = 300.0
LEASE_S_MIN: Final = 1.0
LEASE_S_MAX: Final = 86_400.0
TURNS_MAX: Final = 1_000


class _GivenBack(Exception):
    """Ends a turn as one that failed."""


@dataclass(slots=True)
class _Held:
    """One open turn."""

    lease_s: float
    until_s: float
    """On the clock's monotonic time."""
    taken: asyncio.Future[Turn]
    ended: asyncio.Future[bool]
    """Whether it ended well."""
    task: asyncio.Task[None] | None = None
    renewed: asyncio.Event = field(default_factory=asyncio.Event)


class LeasedTurns:
    """The turns that are open."""

    def __init__(self, gateway: Gateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._closed = False

    async def open(self, key: str, notices_max: int | None, lease_s: float) -> tuple[str, Turn]:
        """Take a turn's notices; its id, which nobody can guess. Raises what `Gateway.turn` raises, and `Refused`."""
        if self._closed:
            raise closing()
        if len(self._held) >= TURNS_MAX:
            raise Refused(503, "too_many_turns", f"there may be {TURNS_MAX} open turns; end some")
        loop = asyncio.get_running_loop()
        held = _Held(lease_s, self._clock.monotonic() + lease_s, loop.create_future(), loop.create_future())
        turn_id = secrets.token_urlsafe(18)
        self._held[turn_id] = held
        held.task = asyncio.create_task(self._hold(turn_id, key, notices_max, held), name="kizuki leased turn")
        try:
            return turn_id, await asyncio.shield(held.taken)
        except asyncio.CancelledError:
            held.task.cancel()
            self._held.pop(turn_id, None)  # a task that had not begun yet does not see to it
            if held.taken.cancelled():
                raise closing() from None
            raise

    def renew(self, turn_id: str, lease_s: float | None) -> float:
        """Begin the lease anew, with another length if one is given; the seconds that it has."""
        held = self._named(turn_id)
        held.lease_s = held.lease_s if lease_s is None else lease_s
        held.until_s = self._clock.monotonic() + held.lease_s
        held.renewed.set()
        return held.lease_s

    async def acknowledge(self, turn_id: str) -> None:
        """See `Turn.acknowledge`."""
        held = self._named(turn_id)
        self.renew(turn_id, None)
        await (await asyncio.shield(held.taken)).acknowledge()

    async def end(self, turn_id: str, *, failed: bool) -> None:
        """End it: acknowledged if it went well, given back if not. Returns when that is done."""
        held = self._named(turn_id)
        del self._held[turn_id]
        held.ended.set_result(not failed)
        if held.task is not None:
            await asyncio.wait([held.task])

    async def close(self) -> None:
        """Give back what is open, and open no more."""
        self._closed = True
        opened = list(self._held.values())
        tasks = [held.task for held in opened if held.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for held in opened:
            held.taken.cancel()  # whoever waits for a turn whose task had not begun yet waits no longer

    def _named(self, turn_id: str) -> _Held:
        held = self._held.get(turn_id)
        if held is None or held.ended.done():
            raise Refused(
                404, "unknown_turn", "there is no such open turn: it was ended, or its lease is over and its notices were given back"
            )
        return held

    async def _hold(self, turn_id: str, key: str, notices_max: int | None, held: _Held) -> None:
        try:
            async with self._gateway.turn(key, notices_max=notices_max) as turn:
                held.taken.set_result(turn)
                await self._until_it_ends(turn_id, held)
        except _GivenBack:
            pass
        except Exception as error:  # noqa: BLE001 - whoever opened it is told, and nobody else waits for this task
            if not held.taken.done():
                held.taken.set_exception(error)
                held.taken.exception()  # it may be that nobody waits for it any more
        finally:
            self._held.pop(turn_id, None)
            held.taken.cancel()

    async def _until_it_ends(self, turn_id: str, held: _Held) -> None:
        """Return when the turn has ended well; else raise `_GivenBack`."""
        while (left_s := held.until_s - self._clock.monotonic()) > 0:
            held.renewed.clear()
            waits: list[asyncio.Future[Any]] = [asyncio.create_task(self._slept(left_s)), asyncio.create_task(held.renewed.wait())]
            try:
                await asyncio.wait([held.ended, *waits], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            if held.ended.done() and held.ended.result():
                return
            if held.ended.done():
                raise _GivenBack
        # From this moment on nobody can end it any more: who tries is told so.
        self._held.pop(turn_id, None)
        raise _GivenBack

    async def _slept(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
