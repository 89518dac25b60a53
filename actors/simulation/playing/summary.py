"""An experiment as a JSON-ready document. Pure: no wall time is in it, so the same seeds give the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..scenario import Scenario
from .experiment import Run
from .figures import FIGURES, NEVER, Figures, median
from .modes import MODES, Mode

SCHEMA = 1


def document(scenario: Scenario, runs: Sequence[Run]) -> dict[str, Any]:
    """The figures of each run, and over all runs the least, the middle and the greatest of each; null stands for never."""
    return {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "title": scenario.title,
        "lastsS": scenario.lasts_s,
        "agents": len(scenario.agents),
        "seeds": [run.seed for run in runs],
        "summary": {mode: summary(runs, mode) for mode in MODES},
        "runs": [{"seed": run.seed, "modes": {mode: _figures(run.figures[mode]) for mode in MODES}} for run in runs],
    }


def summary(runs: Sequence[Run], mode: Mode) -> dict[str, dict[str, float | None]]:
    """Each figure over all runs."""
    return {_camel(name): _spread([getattr(run.figures[mode], name) for run in runs]) for name in FIGURES}


def _spread(values: Sequence[float | None]) -> dict[str, float | None]:
    ascending = sorted(NEVER if value is None else value for value in values)
    return {"min": _or_none(ascending[0]), "median": median(values), "max": _or_none(ascending[-1])}


def _or_none(value: float) -> float | None:
    return None if value == NEVER else value


def _figures(figures: Figures) -> dict[str, Any]:
    return {_camel(name): value for name, value in asdict(figures).items()}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
