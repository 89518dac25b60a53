"""The upstream monitor: checks the watched links from time to time, and whenever it is asked to (rule 7.2).

A tick waits for other people's code, for which no handler may wait: it runs in a task of its own, one at a time. Who asks for a check
while one is under way gets the next, so that it covers what was written before the asking; all who ask meanwhile share that one.

Catalogs are checked one after another, but none waits long for one that is slow: the next begins after a moment, and the tick is over
when the slowest has answered or has run out of its time.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from pykka import ActorDeadError

from ...storage.errors import StoreError
from ...storage.protocol import Store
from ...storage.records import LinkRecord
from ..clock import Clock
from ..config import GatewayConfig
from ..logs import logger
from ..messages import CheckUpstream, ReadLinks, Tick
from ..runtime import AsyncioActor, AsyncioFuture
from ..timer import Timer
from .batch import BatchCheck
from .catalogs import Catalogs
from .report import CatalogReport, Tally, TickReport

PATIENCE_S: Final = 1.0
"""How long a catalog that has not answered keeps the next one waiting."""


class UpstreamMonitorActor(AsyncioActor):
    """Ticks by its timer and by request."""

    def __init__(self, catalogs: Catalogs, batches: BatchCheck, store: Store, clock: Clock, config: GatewayConfig) -> None:
        super().__init__()
        self._catalogs = catalogs
        self._batches = batches
        self._store = store
        self._clock = clock
        self._config = config
        self._timer = Timer(clock, self.actor_ref)
        self._tick: asyncio.Task[None] | None = None
        self._asked: list[AsyncioFuture[Any]] = []
        """Who waits for the next tick."""
        self._warned_of: frozenset[str] = frozenset()

    def on_receive(self, message: Tick | CheckUpstream | ReadLinks) -> Awaitable[tuple[LinkRecord, ...]] | None:
        match message:
            case ReadLinks():
                return self._store.links(watched_only=True)
            case CheckUpstream():
                self._asked.extend(filter(None, [self.take_reply()]))
            case Tick():
                self._timer.set(self._config.upstream_interval_s)
        self._begin()
        return None

    def on_start(self) -> None:
        self._timer.set(self._config.upstream_first_s)

    def on_stop(self) -> None:
        self._end()

    def on_failure(self, *_exc_info: object) -> None:
        self._end()

    def _end(self) -> None:
        self._timer.cancel()
        asked, self._asked = self._asked, []
        _fail(asked, ActorDeadError("the upstream monitor has stopped"))
        if self._tick is not None:
            self._tick.cancel()

    def _begin(self) -> None:
        if self._tick is None:
            asked, self._asked = self._asked, []
            self._tick = asyncio.create_task(self._run(asked), name="kizuki upstream tick")
            self._tick.add_done_callback(self._over)

    def _over(self, tick: asyncio.Task[None]) -> None:
        self._tick = None
        if not tick.cancelled() and (error := tick.exception()) is not None:
            logger().error("upstream tick failed", error=repr(error))
        if self._asked:
            self._begin()

    async def _run(self, asked: Sequence[AsyncioFuture[Any]]) -> None:
        try:
            report = await self._check_all()
        except (StoreError, ActorDeadError) as error:
            logger().warning("upstream tick failed, it is tried again at the next interval", error=str(error))
            _fail(asked, error)
        except BaseException as error:
            # Nothing of a batch gets here: this is a cancellation, or a fault of ours, and nobody shall wait for ever.
            _fail(asked, ActorDeadError(f"the upstream tick was ended by {error!r}"))
            raise
        else:
            for reply in asked:
                reply.resolve(report)

    async def _check_all(self) -> TickReport:
        began = self._clock.monotonic()
        tally = Tally()
        by_catalog = self._sorted_out(await self.actor_ref.ask(ReadLinks()), tally)
        async with asyncio.TaskGroup() as group:
            for catalog, links in by_catalog.items():
                await self._a_moment(group.create_task(self._batches.run(catalog, links, tally), name=f"kizuki check of {catalog}"))
        return tally.report(self._clock.monotonic() - began)

    async def _a_moment(self, check: asyncio.Task[None]) -> None:
        patience = asyncio.create_task(_sleep(self._clock, PATIENCE_S))
        try:
            await asyncio.wait({check, patience}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            patience.cancel()

    def _sorted_out(self, links: Sequence[LinkRecord], tally: Tally) -> dict[str, list[LinkRecord]]:
        """The links to scan, by catalog."""
        by_catalog: defaultdict[str, list[LinkRecord]] = defaultdict(list)
        for link in links:
            if link.ambiguous:
                tally.ambiguous.add(link.address.session_key)
                tally.add("skipped")
            else:
                by_catalog[link.catalog].append(link)
        self._warn_of(frozenset(tally.ambiguous))
        for catalog in by_catalog.keys() - set(self._catalogs):
            strange = by_catalog.pop(catalog)
            tally.add("skipped", len(strange))
            tally.catalogs.append(CatalogReport(catalog, len(strange), "this gateway was opened without it"))
        return by_catalog

    def _warn_of(self, ambiguous: frozenset[str]) -> None:
        """Once for as long as it lasts, not once a minute."""
        for key in sorted(ambiguous - self._warned_of):
            logger(session_key=key).warning("two agents have adopted a thread under this key, neither is checked")
        self._warned_of = ambiguous


async def _sleep(clock: Clock, seconds: float) -> None:
    await clock.sleep(seconds)


def _fail(asked: Sequence[AsyncioFuture[Any]], error: Exception) -> None:
    for reply in asked:
        reply.fail(error)
