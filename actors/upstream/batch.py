"""One catalog's part of a tick: its links in one batch, each failure confined to its link or to this catalog (rules 7.2 to 7.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pykka import ActorDeadError

from ...storage.errors import StoreError
from ...storage.records import LinkRecord
from ...storage.writes import RecordUpstream, UpstreamRecorded
from ..clock import Clock
from ..logs import logger
from ..runs import ActiveRuns
from ..runtime import AsyncioActorRef
from .answers import GarbageError, OwnTexts, outcomes_of
from .catalog import Activity, Failed, Missing, Outcome, Probe
from .catalogs import CatalogCallError, Catalogs
from .decisions import decide
from .recent import RecentTexts, TextsUnavailableError
from .report import CatalogReport, Tally


@dataclass(frozen=True, slots=True)
class Checked:
    """A link with what was known of it before the scan."""

    link: LinkRecord
    own_texts: OwnTexts


class BatchCheck:
    """Checks batches. `log` gives the log actor of the moment, for that may have been restarted."""

    def __init__(
        self,
        catalogs: Catalogs,
        texts: RecentTexts,
        runs: ActiveRuns,
        log: Callable[[], AsyncioActorRef[Any]],
        clock: Clock,
        *,
        record_unwatched: bool,
    ) -> None:
        self._catalogs = catalogs
        self._texts = texts
        self._runs = runs
        self._log = log
        self._clock = clock
        self._record_unwatched = record_unwatched

    async def run(self, catalog: str, links: Sequence[LinkRecord], tally: Tally) -> None:
        """Check the links of one catalog and record what was found; all that happens is in the tally, and nothing is raised."""
        batch = await self._begin(links, tally)
        error = await self._check(catalog, batch, tally) if batch else None
        tally.catalogs.append(CatalogReport(catalog, len(links), error))

    async def _begin(self, links: Sequence[LinkRecord], tally: Tally) -> list[Checked]:
        """What is to be scanned: the links of idle sessions of which the host says what it wrote itself."""
        idle = [link for link in links if not self._is_active(link)]
        tally.add("deferred", len(links) - len(idle))
        deadline = self._texts.deadline()
        begun = await asyncio.gather(*(self._with_texts(link, deadline, tally) for link in idle))
        return [checked for checked in begun if checked is not None]

    async def _with_texts(self, link: LinkRecord, deadline: float, tally: Tally) -> Checked | None:
        try:
            return Checked(link, await self._texts.of(link.address.session_key, deadline))
        except TextsUnavailableError as error:
            await self._conclude(Checked(link, ()), Failed(str(error)), tally, texts_known=False)
            return None

    async def _check(self, catalog: str, batch: Sequence[Checked], tally: Tally) -> str | None:
        """Scan and record; returns why the catalog was skipped, None if it was not."""
        try:
            probes = tuple(_probe(checked) for checked in batch)
            outcomes = outcomes_of(await self._catalogs.check(catalog, probes), len(batch))
        except (CatalogCallError, GarbageError) as error:
            await self._skip(catalog, batch, str(error), tally)
            return str(error)
        tally.add("checked", len(batch))
        await asyncio.gather(*(self._conclude(checked, outcome, tally) for checked, outcome in zip(batch, outcomes, strict=True)))
        return None

    async def _skip(self, catalog: str, batch: Sequence[Checked], reason: str, tally: Tally) -> None:
        logger(catalog=catalog).warning("catalog skipped until the next tick", reason=reason, links=len(batch))
        tally.add("skipped", len(batch))
        await asyncio.gather(*(self._record(checked, Failed(reason), tally) for checked in batch))

    async def _conclude(self, checked: Checked, outcome: Outcome, tally: Tally, *, texts_known: bool = True) -> None:
        """Count and log the outcome of one link, and record what it calls for."""
        match outcome:
            case Failed():
                tally.add("failed")
                _logger(checked.link).warning("upstream check failed", reason=outcome.reason)
            case Missing():
                tally.add("missing")
        recorded = await self._record(checked, outcome, tally, texts_known=texts_known)
        if recorded is not None and isinstance(outcome, Activity):
            _tell_activity(checked.link, outcome, tally)

    async def _record(self, checked: Checked, outcome: Outcome, tally: Tally, *, texts_known: bool = True) -> UpstreamRecorded | None:
        """Record what the outcome calls for, if nothing has changed since the scan; None where nothing was recorded."""
        link, now_ms = checked.link, self._clock.now_ms()
        write = decide(link, outcome, checked.own_texts, now_ms, record_unwatched=self._record_unwatched)
        if write is None:
            return UpstreamRecorded(applied=True)
        try:
            if texts_known and await self._texts.of(link.address.session_key, self._texts.deadline()) != checked.own_texts:
                tally.add("changed")
                return None
            return await self._record_if_idle(write, tally)
        except (StoreError, ActorDeadError, TextsUnavailableError) as error:
            tally.add("failed")
            _logger(link).warning("upstream check not recorded", error=str(error))
            return None

    async def _record_if_idle(self, write: RecordUpstream, tally: Tally) -> UpstreamRecorded | None:
        """The last look at what this gateway knows; the store looks at link and session id itself, in the transaction (rule 7.3)."""
        if self._is_active(write.link):
            tally.add("deferred")
            return None
        recorded: UpstreamRecorded = await self._log().ask(write)
        if not recorded.applied:
            tally.add("changed")
            return None
        tally.add("events", sum(event is not None for event in recorded.events))
        if write.removes:
            tally.add("removed")
            _logger(write.link).warning("upstream missing, the link is removed")
        return recorded

    def _is_active(self, link: LinkRecord) -> bool:
        return self._runs.status(link.address) == "running"


def _probe(checked: Checked) -> Probe:
    link = checked.link
    return Probe(
        address=link.address,
        thread_id=link.thread_id,
        host_id=link.host_id,
        source=link.source,
        marker=link.marker,
        adopted_at_ms=link.adopted_at_ms,
        own_texts=checked.own_texts,
        accounted_ids=frozenset(link.own_ids),
    )


def _tell_activity(link: LinkRecord, found: Activity, tally: Tally) -> None:
    tally.add("active")
    tally.add("human_turns", found.human_turns)
    tally.add("more", int(found.more))
    if found.restarted is not None:
        told = _logger(link).bind(source=link.source, reason=found.restarted)
        told.warning("upstream source is another one, it is followed anew from its end")


def _logger(link: LinkRecord) -> Any:
    return logger(session_key=link.address.session_key, catalog=link.catalog, thread_id=link.thread_id)
