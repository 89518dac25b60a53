"""What one check of the adopted sessions came to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Count = Literal["checked", "skipped", "deferred", "changed", "active", "missing", "removed", "failed", "more", "human_turns", "events"]


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """How one catalog did."""

    catalog: str
    links: int
    """Watched links to it."""
    error: str | None = None
    """Why it was skipped until the next tick; None where it answered, or was asked nothing."""


@dataclass(frozen=True, slots=True)
class TickReport:
    """One tick of the upstream monitor. Counts of watched links, where nothing else is said."""

    checked: int = 0
    """Those about which their catalog gave an outcome."""
    skipped: int = 0
    """Not scanned: their catalog hung, failed or is not here, or their key is ambiguous."""
    deferred: int = 0
    """Left for the next tick, since their session had an active run (rule 7.3)."""
    changed: int = 0
    """Nothing was recorded, since link, session or the host's own texts changed during the scan (rule 7.3)."""
    active: int = 0
    """Those of which activity was recorded."""
    missing: int = 0
    """Those whose source was definitely not found."""
    removed: int = 0
    """Those whose source has gone for good: their links are removed."""
    failed: int = 0
    """Those that alone could not be checked or recorded."""
    more: int = 0
    """Those with more to read than one check may."""
    human_turns: int = 0
    """Turns of a person in what was recorded."""
    events: int = 0
    """Events that were recorded, or found recorded already."""
    ambiguous: tuple[str, ...] = ()
    """Keys that two agents have linked (rule 7.8)."""
    catalogs: tuple[CatalogReport, ...] = ()
    """Ordered by name."""
    duration_s: float = 0.0
    """On the gateway's clock."""


@dataclass(slots=True)
class Tally:
    """A report in the making."""

    counts: Counter[Count] = field(default_factory=Counter)
    ambiguous: set[str] = field(default_factory=set)
    catalogs: list[CatalogReport] = field(default_factory=list)

    def add(self, count: Count, number: int = 1) -> None:
        self.counts[count] += number

    def report(self, duration_s: float) -> TickReport:
        catalogs = sorted(self.catalogs, key=lambda each: each.catalog)
        counts: dict[str, int] = {str(name): number for name, number in self.counts.items()}
        return TickReport(**counts, ambiguous=tuple(sorted(self.ambiguous)), catalogs=tuple(catalogs), duration_s=duration_s)
