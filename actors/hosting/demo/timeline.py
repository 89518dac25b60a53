"""The demo's steps as a timeline for people."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...clock import SystemClock
from ..output import text
from ..tables import events_table
from .checks import CHANGES
from .process import CHANNEL, CONCURRENT, MANAGER, OTHER_CHILD, SEQUENTIAL, STEPPED_INTO

Step = Mapping[str, Any]

INDENT: Final = 9
"""Where a step's text begins, behind the time and the mark."""


class Timeline:
    """Prints each step as it happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def show(self, step: Step) -> None:
        """One step: when it was, what happened, and the exact texts and rows."""
        by_step: dict[str, Callable[[Step], None]] = {
            "opened": self._opened,
            "spawned": self._spawned,
            "changed": self._changed,
            "noticed": self._noticed,
            "read": self._read,
            "given_back": self._given_back,
            "held": self._held,
            "killed": self._killed,
            "replayed": self._replayed,
            "reconciled": self._reconciled,
            "left": self._left,
        }
        by_step[step["step"]](step)

    def _line(self, style: str, *parts: str | tuple[str, str]) -> None:
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text(f"{time.monotonic() - self._began:4.1f} s", "dim"), Text("●", style), Text.assemble(*parts))
        self._console.print(grid)
        self._console.file.flush()

    def _notice(self, line: str) -> None:
        self._console.print(Padding.indent(text(line, "yellow"), INDENT))

    def _delta(self, step: Step) -> None:
        rows = events_table(step["delta"]["events"], SystemClock().now_ms(), with_session=False)
        self._console.print(Padding.indent(rows, INDENT))

    def _opened(self, step: Step) -> None:
        self._line("cyan", "Process ", (str(step["pid"]), "bold"), " opens the database and hosts the manager ", (MANAGER, "cyan"), ".")

    def _spawned(self, step: Step) -> None:
        first, second = step["events"]
        self._line("cyan", "The manager spawns two children, and watches both from there on:")
        for event in (first, second):
            self._detail((event["sessionKey"], "cyan"), f"  state version {event['sequence']}")

    def _detail(self, *parts: str | tuple[str, str]) -> None:
        self._console.print(Padding.indent(Text.assemble(*parts), INDENT))

    def _changed(self, step: Step) -> None:
        self._line("green", "A person steps into ", (STEPPED_INTO, "cyan"), f" via {CHANNEL}, and goes on:")
        self._detail(f"1 message, then {CONCURRENT} at once, then {SEQUENTIAL} changes of the goal: {len(step['events'])} changes.")

    def _noticed(self, step: Step) -> None:
        wakes, notices = len(step["wakes"]), len(step["notices"])
        self._line(
            "yellow", "The manager is woken ", (_times(wakes), "bold"), ", and has ", (_count(notices, "notice"), "bold"), " pending:"
        )
        for notice in step["notices"]:
            self._notice(notice["text"])

    def _read(self, step: Step) -> None:
        self._line("magenta", "Its turn begins with that line, and it reconciles: ", ("session_status", "bold"), " gives the exact delta.")
        self._delta(step)

    def _given_back(self, step: Step) -> None:
        self._line("red", "The turn ", ("fails", "bold red"), ". The notice is given back, byte for byte:")
        for notice in step["notices"]:
            self._notice(notice["text"])

    def _held(self, step: Step) -> None:
        taken = _count(len(step["promptLines"]), "notice")
        self._line("magenta", f"Another turn takes {taken}, and is still running when ...")

    def _killed(self, step: Step) -> None:
        self._line("red", "... process ", (str(step["pid"]), "bold"), " is killed: ", (step["signal"], "bold red"), ".")
        self._detail(f"The file holds {step['eventsInFile']} events, and the manager's cursor where it was.")

    def _replayed(self, step: Step) -> None:
        notices = _count(len(step["notices"]), "notice")
        self._line(
            "cyan", "Process ", (str(step["pid"]), "bold"), " opens the database and replays the cursor: ", (notices, "bold"), " again."
        )
        for notice in step["notices"]:
            self._notice(notice["text"])

    def _reconciled(self, step: Step) -> None:
        delta, left = len(step["delta"]["events"]), len(step["notices"])
        self._line(
            "green", f"The manager's turn gets the same {delta} changes and ", ("ends well", "bold green"), f": {left} notices are pending."
        )

    def _left(self, step: Step) -> None:
        self._line("green", "One more change, of ", (OTHER_CHILD, "cyan"), ", is left pending for you to look at:")
        for notice in step["notices"]:
            self._notice(notice["text"])

    def end(self, database: str, checks: int) -> None:
        """The figures, and what to try next."""
        self._console.print()
        figures = Text.assemble(
            (f"{CHANGES} changes", "bold"), ", ", ("1 line of prompt", "bold"), ", ", ("1 crash", "bold"), ", nothing lost, "
        )
        self._console.print(figures.append("nothing told twice.").append(f"  {checks} checks passed.", "dim"))
        self._console.print()
        self._console.print(Text.assemble("The database is ", (database, "bold"), ". Try:"))
        for command in commands(database):
            self._console.print(text(f"  {command}", "cyan"), soft_wrap=True)


def commands(database: str) -> list[str]:
    """What can be tried on the demo's database."""
    db = f"--db {shlex.quote(database)}"
    return [
        f"kizuki list {db}",
        f"kizuki status {STEPPED_INTO} --since 1 {db}",
        f"kizuki events {STEPPED_INTO} {db}",
        f"kizuki watches {MANAGER} {db}",
        f"kizuki notices {MANAGER} {db}",
    ]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
