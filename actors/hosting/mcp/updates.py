"""Telling subscribers that a resource has changed, whoever changed it: this process, or another one on the same database.

The resources that somebody has subscribed to are looked at four times a second, and no others; while there is no subscription, nothing
runs. What is told is that a resource is another one now, not how often it changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from mcp.server.subscriptions import SubscriptionBus
from mcp.shared.subscriptions import ResourceUpdated

from ...errors import InvalidArgument, KizukiError
from ...gateway import Gateway
from ...logs import logger
from .resources import Place, place_of, state

POLL_INTERVAL_S: Final = 0.25
SUBSCRIPTIONS_MAX: Final = 100
"""Over all clients of a server: what may be looked at four times a second."""
TELL_TIMEOUT_S: Final = 1.0

Tell = Callable[[str], Awaitable[None]]
"""Tells a subscriber of a URI."""


@dataclass(slots=True)
class Followed:
    """A resource that somebody has subscribed to."""

    place: Place
    state: Hashable
    tell: dict[object, Tell | None] = field(default_factory=dict)
    """How each subscriber is told; None for one that listens to the bus."""


class Updates:
    """The subscriptions of a server's clients. A subscriber is any object that stands for it."""

    def __init__(self, gateway: Gateway, bus: SubscriptionBus, *, interval_s: float = POLL_INTERVAL_S) -> None:
        self._gateway = gateway
        self._bus = bus
        self._interval_s = interval_s
        self._followed: dict[str, Followed] = {}
        self._task: asyncio.Task[None] | None = None

    async def subscribe(self, uri: str, subscriber: object, tell: Tell | None) -> None:
        """From here on tell of changes; twice is once. Raises `KizukiError` for what is no resource of ours, and for one too many."""
        place = place_of(uri)
        if place is None:
            raise InvalidArgument("uri", uri, "it must be kizuki://session/<key> or kizuki://watcher/<key>, percent-encoded")
        now = await state(self._gateway, place)
        followed = self._followed.get(uri)
        if followed is not None and subscriber in followed.tell:
            return
        if sum(len(each.tell) for each in self._followed.values()) >= SUBSCRIPTIONS_MAX:
            raise InvalidArgument("uri", uri, f"there may be {SUBSCRIPTIONS_MAX} subscriptions: unsubscribe from another one")
        self._followed.setdefault(uri, Followed(place, now)).tell[subscriber] = tell
        if self._task is None:
            self._task = asyncio.create_task(self._follow())

    def unsubscribe(self, uri: str, subscriber: object) -> None:
        """Tell no more of this resource."""
        followed = self._followed.get(uri)
        if followed is not None:
            followed.tell.pop(subscriber, None)
        self._drop_unwanted()

    def forget(self, subscriber: object) -> None:
        """The subscriber has gone."""
        for followed in self._followed.values():
            followed.tell.pop(subscriber, None)
        self._drop_unwanted()

    def _drop_unwanted(self) -> None:
        self._followed = {uri: followed for uri, followed in self._followed.items() if followed.tell}
        if not self._followed and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            for uri, followed in list(self._followed.items()):
                await self._look(uri, followed)

    async def _look(self, uri: str, followed: Followed) -> None:
        try:
            now = await state(self._gateway, followed.place)
        except KizukiError as error:  # a database that is away is looked at again; what has changed by then is told then
            logger(uri=uri).debug("a subscribed resource could not be looked at", error=str(error))
            return
        if now == followed.state:
            return
        followed.state = now
        await self._bus.publish(ResourceUpdated(uri))
        for tell in list(followed.tell.values()):
            if tell is not None:
                await _told(tell, uri)


async def _told(tell: Tell, uri: str) -> None:
    """A client that does not read must not keep the others waiting."""
    try:
        async with asyncio.timeout(TELL_TIMEOUT_S):
            await tell(uri)
    except Exception as error:  # noqa: BLE001 - whatever a connection raises that is about to end
        logger(uri=uri).debug("a subscriber could not be told", error=repr(error))
