"""What kizuki costs, measured on this machine against plain `sqlite3`, `asyncio` and simpler designs in the same run.

Machines differ and are never quiet, so what is promised are ratios wherever there is something to compare with: the value and its
baseline are measured in turns, and the median of their ratios counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from . import busy, commits, fanout, inbox, memory, mixed, neighbours, postgres, reading, replay, runtime, stalls, turns, upstream
from .rows import Row
from .scale import Scale

__all__ = ["SUITES", "Row", "Scale", "draw", "run"]

_MODULES = (
    *(commits, mixed, inbox, fanout, turns, reading, replay, memory, runtime),
    *(upstream, neighbours, postgres, busy, stalls),
)
_SUITES: Mapping[str, ModuleType] = {module.SUITE: module for module in _MODULES}

SUITES: Mapping[str, str] = {name: module.WHAT for name, module in _SUITES.items()}
"""What each suite measures, by its name."""


def run(suites: Sequence[str] | None, *, scale: str, progress: Callable[[str], None]) -> list[Row]:
    """Run these suites, None for all, at a `Scale`; `progress` is told what is being measured.

    Raises `KeyError` for a suite that there is not, `ValueError` for such a scale.
    """
    modules = [_SUITES[name] for name in (SUITES if suites is None else suites)]
    size = Scale(scale)
    rows: list[Row] = []
    for module in modules:
        progress(f"{module.SUITE}: {module.WHAT}")
        rows.extend(module.measure(size, lambda step, name=module.SUITE: progress(f"{name}:   {step}")))
    return rows


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Plot the rows that have a place in a plot; returns the files written. Needs matplotlib."""
    from .plots import draw as draw_rows

    return draw_rows(rows, folder)
