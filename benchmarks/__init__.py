"""What kizuki costs, measured on this machine against plain `sqlite3` and `asyncio` in the same run.

Machines differ and are never quiet, so what is promised are ratios: the value and its baseline are measured in turns, and the median of
their ratios counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from . import busy, commits, fanout, neighbours, postgres, runtime, stalls
from .rows import Row

__all__ = ["SUITES", "Row", "run"]

_SUITES: Mapping[str, ModuleType] = {module.SUITE: module for module in (commits, fanout, neighbours, postgres, busy, stalls, runtime)}

SUITES: Mapping[str, str] = {name: module.WHAT for name, module in _SUITES.items()}
"""What each suite measures, by its name."""


def run(suites: Sequence[str] | None, *, quick: bool, progress: Callable[[str], None]) -> list[Row]:
    """Run these suites, None for all; `progress` is told what is being measured. Raises `KeyError` for a suite that there is not."""
    rows: list[Row] = []
    for name in SUITES if suites is None else suites:
        progress(f"{name}: {SUITES[name]}")
        rows.extend(_SUITES[name].measure(quick=quick))
    return rows
