"""What a search came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .histories import History
from .trial import Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed whose history broke a rule."""

    seed: int
    rule: str
    problem: str


@dataclass(slots=True)
class Figures:
    """Sums over histories; those of parts can be added up in any order."""

    histories: int = 0
    operations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """What happened: events, crashes, turns, ..."""
    struck: Counter[str] = field(default_factory=Counter)
    """The faults that struck, by kind."""
    failures: list[Failure] = field(default_factory=list)

    def add(self, history: History, outcome: Outcome) -> None:
        """Count one history."""
        self.histories += 1
        self.operations += len(history.operations)
        self.counts += outcome.counts
        self.struck += outcome.struck
        if outcome.problem is not None:
            self.failures.append(Failure(history.seed, outcome.rule or "", outcome.problem))

    def add_all(self, other: Figures) -> None:
        """Count what another part counted."""
        self.histories += other.histories
        self.operations += other.operations
        self.counts += other.counts
        self.struck += other.struck
        self.failures = sorted([*self.failures, *other.failures], key=lambda failure: failure.seed)

    def document(self) -> Mapping[str, Any]:
        """For JSON."""
        return {
            "histories": self.histories,
            "operations": self.operations,
            "counts": dict(sorted(self.counts.items())),
            "faults": dict(sorted(self.struck.items())),
            "failures": [{"seed": each.seed, "rule": each.rule, "problem": each.problem} for each in self.failures],
        }
