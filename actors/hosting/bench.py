"""`kizuki bench`: runs the benchmark suites of `kizuki.benchmarks`, and shows their rows."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from rich.console import Console
from rich.text import Text

from .columns import flexible, number
from .exits import CommandFailed, ExitCode
from .output import console, printable, table, text, write_json_line

PACKAGE = "kizuki.benchmarks"


class Row(Protocol):
    """One measured value. `baseline`, `ratio` and `target` are None where a suite only shows it."""

    suite: str
    name: str
    value: float
    unit: str
    baseline: float | None
    ratio: float | None
    target: str | None
    ok: bool
    """Whether the target is met."""


class Benchmarks(Protocol):
    """What the package offers."""

    SUITES: Mapping[str, str]
    """What each suite measures, by its name."""

    def run(self, suites: Sequence[str] | None, *, scale: str, progress: Callable[[str], None]) -> Sequence[Row]:
        """Run these suites, or all; `progress` is told what is being measured."""
        ...

    def draw(self, rows: Sequence[Row], folder: Path) -> Sequence[Path]:
        """Plot them; returns the files written."""
        ...


def run_bench(suites: Sequence[str], *, quick: bool, full: bool, as_json: bool, plots: Path | None) -> ExitCode:
    """Run suites, print their rows, and say by the exit code whether each target was met. A suite that is named runs at its full size."""
    benchmarks = _benchmarks()
    unknown = [name for name in suites if name not in benchmarks.SUITES]
    if unknown:
        raise CommandFailed(f"there is no suite {printable(unknown[0])}: there are {', '.join(benchmarks.SUITES)}", ExitCode.USAGE)
    if plots is not None:
        _check_plots()
    rows = benchmarks.run(list(suites) or None, scale=_scale(suites, quick=quick, full=full), progress=_say)
    if as_json:
        for row in rows:
            write_json_line(_document(row))
    else:
        _show(console(), rows)
    if plots is not None:
        for path in benchmarks.draw(rows, plots):
            _say(f"plotted {path}")
    return ExitCode.OK if all(row.ok for row in rows) else ExitCode.ERROR


def _scale(suites: Sequence[str], *, quick: bool, full: bool) -> str:
    if quick and full:
        raise CommandFailed("--quick and --full exclude each other", ExitCode.USAGE)
    if quick:
        return "quick"
    return "full" if full or suites else "usual"


def _check_plots() -> None:
    """Before anything is measured, which takes minutes."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandFailed("--plot needs the package matplotlib: pip install 'kizuki[plot]'")


def _benchmarks() -> Benchmarks:
    try:
        return cast("Benchmarks", importlib.import_module(PACKAGE))
    except ModuleNotFoundError as error:
        if error.name != PACKAGE:
            raise
        raise CommandFailed(f"{PACKAGE} is not installed: the benchmarks come with the repository, not with this package") from error


def _say(what: str) -> None:
    print(printable(what), file=sys.stderr, flush=True)  # noqa: T201, progress


def _document(row: Row) -> dict[str, Any]:
    names = ("suite", "name", "value", "unit", "baseline", "ratio", "target", "ok")
    return {name: getattr(row, name) for name in names}


def _show(output: Console, rows: Sequence[Row]) -> None:
    made = table("SUITE", flexible("WHAT"), number("VALUE"), "UNIT", number("BASELINE"), number("RATIO"), "TARGET", "")
    for row in rows:
        values = (_number(row.value), text(row.unit), _number(row.baseline), _number(row.ratio), text(row.target or ""))
        made.add_row(text(row.suite), text(row.name), *values, _verdict(row))
    output.print(made)


def _verdict(row: Row) -> Text:
    if not row.ok:
        return Text("missed", "bold red")
    return Text() if row.target is None else Text("ok", "green")


def _number(value: float | None) -> Text:
    if value is None:
        return Text()
    return Text(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")
