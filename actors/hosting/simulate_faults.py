"""`kizuki simulate --faults`: plays random histories under faults, judged by the oracle, and shows what is broken."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from ..simulation.disk import Disk
from ..simulation.plan import FAULT_KINDS, FaultKind
from ..simulation.search.campaign import history_of, search
from ..simulation.search.figures import Failure, Figures
from ..simulation.search.shrinking import Shrunk, shrink
from .columns import flexible, number
from .exits import CommandFailed, ExitCode
from .output import console, printable, table, text, write_json

SHRUNK_MAX: Final = 3
"""How many failing seeds are made small; the others are named."""
_SEEDS: Final = re.compile(r"(\d{1,12})(?:\.\.(\d{1,12}))?")
_COUNTS: Final = (
    "events", "acknowledged events", "notices opened", "notices shown", "acknowledged notices", "turns", "wakes", "crashes",
    "crashes between commit and reply", "crashes with a commit unanswered", "told again", "repeats", "steps",
)  # fmt: skip


def run_search(faults: str, seeds: str, *, long: bool, as_json: bool, processes: int | None = None) -> ExitCode:
    """Play the seeds; 1 if a rule is broken. Raises `CommandFailed`."""
    kinds, numbers = parse_kinds(faults), parse_seeds(seeds)
    started = time.perf_counter()
    with _progress(len(numbers)) as advance:
        figures = search(numbers, kinds, long=long, processes=processes, progress=advance)
    wall_s = time.perf_counter() - started
    if as_json:
        again = [_again(failure.seed, kinds, long=long) for failure in figures.failures]
        write_json({**figures.document(), "again": again})
        console(sys.stderr).print(_speed(figures, wall_s))  # Seeds and faults alone decide what stands in the document.
    else:
        _show(console(), figures, wall_s)
        _explain(console(), figures, kinds, long=long)
    return ExitCode.ERROR if figures.failures else ExitCode.OK


def parse_kinds(faults: str) -> tuple[FaultKind, ...]:
    """`all`, `none`, or names with commas between."""
    if faults == "all":
        return FAULT_KINDS
    names = [] if faults == "none" else [name.strip() for name in faults.split(",")]
    unknown = [name for name in names if name not in FAULT_KINDS]
    if unknown:
        allowed = f"all, none, or some of {', '.join(FAULT_KINDS)}"
        raise CommandFailed(f"--faults: there is no fault {printable(unknown[0])}: it must be {allowed}", ExitCode.USAGE)
    return tuple(kind for kind in FAULT_KINDS if kind in names)


def parse_seeds(seeds: str) -> range:
    """`7`, or `1..100` with both ends."""
    found = _SEEDS.fullmatch(seeds)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if first > last:
        raise CommandFailed(f"--seeds: {printable(seeds)} must be a number, or two, as in 1..1000", ExitCode.USAGE)
    return range(first, last + 1)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Figures], None]]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(figures: Figures) -> None:
            events, crashes, failures = figures.counts["events"], figures.counts["crashes"], len(figures.failures)
            bar.update(task, completed=figures.histories, description=f"{events:,} events, {crashes:,} crashes, {failures} broken")

        yield advance


def _show(output: Console, figures: Figures, wall_s: float) -> None:
    made = table(flexible("WHAT"), number("HOW OFTEN"))
    rows = [("seeds", figures.histories), ("operations", figures.operations), *((name, figures.counts[name]) for name in _COUNTS)]
    rows.extend((f"fault: {name}", count) for name, count in figures.struck.most_common())
    for name, count in rows:
        made.add_row(text(name), text(f"{count:,}"))
    output.print(made)
    verdict = text(f"{len(figures.failures)} broken", "bold red") if figures.failures else text("nothing broken", "bold green")
    output.print(verdict, _speed(figures, wall_s))


def _speed(figures: Figures, wall_s: float) -> Text:
    rate = figures.histories / max(wall_s, 1e-9)
    return text(f"in {wall_s:.1f} s, {rate:,.1f} seeds a second", "dim")


def _explain(output: Console, figures: Figures, kinds: tuple[FaultKind, ...], *, long: bool) -> None:
    for failure in figures.failures[:SHRUNK_MAX]:
        _say(output, failure, kinds, long=long)
        with Disk() as disk:
            _show_shrunk(output, shrink(history_of(failure.seed, kinds, long=long), failure.rule, disk), whole=figures.histories == 1)
    for failure in figures.failures[SHRUNK_MAX:]:
        _say(output, failure, kinds, long=long)


def _again(seed: int, kinds: tuple[FaultKind, ...], *, long: bool) -> str:
    """What plays the seed again, to be typed as it is."""
    faults = "all" if kinds == FAULT_KINDS else ",".join(kinds) or "none"
    return f"kizuki simulate --faults {faults} --seeds {seed}..{seed}{' --long' if long else ''}"


def _say(output: Console, failure: Failure, kinds: tuple[FaultKind, ...], *, long: bool) -> None:
    output.print()
    output.print(text(f"seed {failure.seed}", "bold red"), text(failure.problem))
    output.print(text(f"again, with a trace: {_again(failure.seed, kinds, long=long)}", "dim"))


def _show_shrunk(output: Console, shrunk: Shrunk, *, whole: bool) -> None:
    history = shrunk.history
    output.print(text(f"{len(history.operations)} operations and {len(history.faults)} faults are enough ({shrunk.plays} plays):"))
    for item in (*history.operations, *history.faults):
        output.print(text(f"  {item!r}"))
    output.print(text(f"  {shrunk.outcome.problem}"))
    if whole:
        for line in shrunk.outcome.trace.splitlines():
            output.print(text(line, "dim"))
