"""`kizuki simulate`: plays a scenario in a simulated world, in four modes over the same life, and shows what it came to."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..simulation.durations import duration_text
from ..simulation.places import ScenarioError
from ..simulation.playing.experiment import Run, experiment
from ..simulation.playing.modes import MODES, TITLES
from ..simulation.playing.summary import document
from ..simulation.scenario import Scenario
from ..simulation.shipped import ScenarioNotFound, load_scenario, shipped
from .columns import flexible, number
from .exits import CommandFailed, ExitCode
from .output import console, printable, table, text, write_json

Row = Mapping[str, Any]

RUNS_MAX: Final = 10_000
_COLUMNS: Final = (
    (number("STALE"), "staleActs"),
    (number("OF"), "acts"),
    (number("PREVENTABLE", goes=1), "preventableActs"),
    (number("LINES"), "promptLines"),
    (number("CALLS", goes=3), "statusCalls"),
    (number("WAKES", goes=4), "wakes"),
)
"""Acts on stale assumptions, of all that assume something, those that could have been prevented; prompt lines, calls of session_status."""


def run_list(*, as_json: bool) -> ExitCode:
    """Name the scenarios that come with the package."""
    scenarios = [load_scenario(name) for name in shipped()]
    if as_json:
        write_json({"scenarios": [{"name": each.name, "title": each.title, "about": each.about} for each in scenarios]})
        return ExitCode.OK
    made = table("SCENARIO", "LASTS", number("AGENTS"), flexible("WHAT HAPPENS"))
    for each in scenarios:
        made.add_row(text(each.name, "bold"), text(duration_text(each.lasts_s)), text(len(each.agents)), text(each.title))
    console().print(made)
    return ExitCode.OK


def run_simulate(name: str, seed: int, runs: int, report: Path | None, *, as_json: bool) -> ExitCode:
    """Play it from as many seeds as runs, the first one being `seed`, and print the figures. Raises `CommandFailed`."""
    scenario = _load(name)
    _check_writable(report)
    seeds = range(seed, seed + runs)
    with _progress(scenario, len(seeds) * len(MODES)) as advance:
        played = experiment(scenario, seeds, progress=advance)
    results = document(scenario, played)
    if report is not None:
        _write_report(report, scenario, played)
    if as_json:
        write_json(results)
    else:
        _show(console(), scenario, results)
    return ExitCode.OK


def _load(name: str) -> Scenario:
    try:
        return load_scenario(name)
    except ScenarioNotFound:
        known = f"the shipped ones are {', '.join(shipped())}"
        raise CommandFailed(f"there is no scenario and no file {printable(name)}: {known}", ExitCode.NOT_FOUND) from None
    except ScenarioError as error:
        raise CommandFailed(f"{printable(name)}: {printable(error)}", ExitCode.USAGE) from error
    except OSError as error:
        raise CommandFailed(f"{printable(name)} cannot be read: {error.strerror or error}") from error


def _check_writable(report: Path | None) -> None:
    """Before the work is done rather than after it."""
    if report is not None and not report.absolute().parent.is_dir():
        raise CommandFailed(f"--report: there is no folder {printable(report.absolute().parent)}", ExitCode.USAGE)
    if report is not None and report.is_dir():
        raise CommandFailed(f"--report: {printable(report)} is a folder: name a file", ExitCode.USAGE)


def _write_report(path: Path, scenario: Scenario, runs: Sequence[Run]) -> None:
    from ..simulation.report.page import report_page

    try:
        path.write_text(report_page(scenario, runs), "utf-8")
    except OSError as error:
        raise CommandFailed(f"{printable(path)} cannot be written: {error.strerror or error}") from error


@contextmanager
def _progress(scenario: Scenario, plays: int) -> Iterator[Any]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(Text(printable(scenario.name)).plain, total=plays)
        yield lambda: bar.advance(task)


def _show(output: Console, scenario: Scenario, results: Row) -> None:
    output.print(text(scenario.title, "bold"))
    if scenario.about:
        output.print(text(scenario.about, "dim"))
    output.print()
    made = table("", *(column for column, _ in _COLUMNS), number("AWARE AFTER"), number("99 %", goes=2))
    for mode in MODES:
        figures = results["summary"][mode]
        cells = [_cell(figures[key]) for _, key in _COLUMNS]
        style = "bold green" if mode == "kizuki" else ""
        made.add_row(text(TITLES[mode], style), *cells, _time(figures["awarenessMedianS"]), _time(figures["awarenessP99S"]))
    output.print(made)
    first, last = results["seeds"][0], results["seeds"][-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}: medians"
    output.print(text("STALE: acts on a stale assumption. LINES: spent in prompts. CALLS: of session_status.", "dim"))
    output.print(text(f"{duration_text(scenario.lasts_s)} of {len(scenario.agents)} agents' life, {seeds}", "dim"))


def _cell(figure: Row) -> Text:
    return text(f"{figure['median']:,}")


def _time(figure: Row) -> Text:
    value = figure["median"]
    return Text("never", "red") if value is None else text(duration_text(value))
