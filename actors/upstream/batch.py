"""One catalog's part of a tick: its links in one batch, each failure confined to its link or to this catalog (rules 7.2 to 7.7)."""

from __future__ import annotations

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
from .crowd import for_each
from .decisions import decide
from .recent import RecentTexts, TextsUnavailableError
from .report import CatalogReport, Tally


@dataclass(frozen=True, slots=True)
class Checked:
    """A link with what was known of it before the scan."""

    link: LinkRecord
    own_texts: OwnTexts | None
    """None: the host did not say, and the link was not scanned."""


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
        idle = [link for link in links if not self._is_active(link)]
        tally.add("deferred", len(links) - len(idle))
        batch = await self._with_texts(idle, tally)
        error = await self._check(catalog, batch, tally) if batch else None
        tally.catalogs.append(CatalogReport(catalog, len(links), error))

    async def _with_texts(self, links: Sequence[LinkRecord], tally: Tally) -> list[Checked]:
        """What is to be scanned: the links of which the host says what it wrote itself."""
        deadline = self._texts.deadline()

        async def ask(link: LinkRecord) -> Checked | None:
            try:
                return Checked(link, await self._texts.of(link.address.session_key, deadline))
            except TextsUnavailableError as error:
                await self._conclude(Checked(link, None), Failed(str(error)), deadline, tally)
                return None

        return [checked for checked in await for_each(links, ask) if checked is not None]

    async def _check(self, catalog: str, batch: Sequence[Checked], tally: Tally) -> str | None:
        """Scan and record; returns why the catalog was skipped, None if it was not."""
        try:
            probes = tuple(_probe(checked) for checked in batch)
            outcomes = outcomes_of(await self._catalogs.check(catalog, probes), len(batch))
        except (CatalogCallError, GarbageError) as error:
            await self._skip(catalog, batch, str(error), tally)
            return str(error)
        tally.add("checked", len(batch))
        deadline = self._texts.deadline()
        await for_each(list(zip(batch, outcomes, strict=True)), lambda each: self._conclude(*each, deadline, tally))
        return None

    async def _skip(self, catalog: str, batch: Sequence[Checked], reason: str, tally: Tally) -> None:
        logger(catalog=catalog).warning("catalog skipped until the next tick", reason=reason, links=len(batch))
        tally.add("skipped", len(batch))
        deadline = self._texts.deadline()
        await for_each(batch, lambda checked: self._record(checked, Failed(reason), deadline, tally))

    async def _conclude(self, checked: Checked, outcome: Outcome, deadline: float, tally: Tally) -> None:
        """Count and log the outcome of one link, and record what it calls for."""
        match outcome:
            case Failed():
                tally.add("failed")
                _logger(checked.link).warning("upstream check failed", reason=outcome.reason)
            case Missing():
                tally.add("missing")
        recorded = await self._record(checked, outcome, deadline, tally)
        if recorded and isinstance(outcome, Activity):
            _tell_activity(checked.link, outcome, tally)

    async def _record(self, checked: Checked, outcome: Outcome, deadline: float, tally: Tally) -> bool:
        """Record what the outcome calls for, if nothing has changed since the scan; False where something kept it from that."""
        write = decide(checked.link, outcome, checked.own_texts or (), self._clock.now_ms(), record_unwatched=self._record_unwatched)
        if write is None:
            return True
        try:
            return await self._has_same_texts(checked, deadline, tally) and await self._record_if_idle(write, tally)
        except (StoreError, ActorDeadError, TextsUnavailableError) as error:
            tally.add("failed")
            _logger(checked.link).warning("upstream check not recorded", error=str(error))
            return False

    async def _has_same_texts(self, checked: Checked, deadline: float, tally: Tally) -> bool:
        if checked.own_texts is None or await self._texts.of(checked.link.address.session_key, deadline) == checked.own_texts:
            return True
        tally.add("changed")
        return False

    async def _record_if_idle(self, write: RecordUpstream, tally: Tally) -> bool:
        """The last look at what this gateway knows; the store looks at link and session id itself, in the transaction (rule 7.3)."""
        if self._is_active(write.link):
            tally.add("deferred")
            return False
        recorded: UpstreamRecorded = await self._log().ask(write)
        if not recorded.applied:
            tally.add("changed")
            return False
        tally.add("events", sum(event is not None for event in recorded.events))
        if write.removes:
            tally.add("removed")
            _logger(write.link).warning("upstream missing, the link is removed")
        return True

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
        own_texts=checked.own_texts or (),
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
