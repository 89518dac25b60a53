"""Putting results on a terminal, into a pipe, or into JSON.

Keys, labels and ids are other people's text: they never reach the console as markup, and what cannot be printed is escaped.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TextIO

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .columns import Column, Manner, fit

PIPE_WIDTH: Final = 100_000
"""Where nobody looks at a screen, nothing is cut."""
_UNUSUAL: Final = re.compile(r"[^\x20-\x7e\n]")
_TIMES: Final = ((60_000, 1_000, "s"), (3_600_000, 60_000, "min"), (86_400_000, 3_600_000, "h"), (30 * 86_400_000, 86_400_000, "d"))


class ResultConsole(Console):
    """A console that leaves a broken pipe to its caller, who ends the command quietly."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(file: TextIO | None = None) -> Console:
    """A console on standard output, or on another stream: plain where it is no terminal or NO_COLOR is set."""
    stream = file or sys.stdout
    terminal = stream.isatty()
    plain = not terminal or bool(os.environ.get("NO_COLOR"))
    return ResultConsole(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=terminal,
        width=None if terminal else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def printable(value: object) -> str:
    """The value as text with everything escaped that a terminal would not simply print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in str(value))


def text(value: object, style: str = "") -> Text:
    """The value as one line of printable text that is no markup."""
    return Text(printable(value), style)


def write_json(document: object, file: TextIO | None = None) -> None:
    """One JSON document: indented on a terminal, one line otherwise."""
    stream = file or sys.stdout
    stream.write(to_json(document, indent=2 if stream.isatty() else None) + "\n")


def write_json_line(document: object) -> None:
    """One JSON document on its own line, written out at once."""
    sys.stdout.write(to_json(document) + "\n")
    sys.stdout.flush()


def to_json(document: object, *, indent: int | None = None) -> str:
    """JSON that reads well and is safe on a terminal: what is not printable, or not in the stream's encoding, is escaped."""
    encoded = json.dumps(document, ensure_ascii=not _is_utf8(sys.stdout), indent=indent)
    return _UNUSUAL.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], encoded)


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def since(then_ms: int, now_ms: int) -> str:
    """How long ago something was, in one number; a date where it is long ago."""
    age = max(0, now_ms - then_ms)
    for limit, unit, name in _TIMES:
        if age < limit:
            return f"{age // unit} {name} ago"
    return datetime.fromtimestamp(then_ms / 1000, UTC).strftime("%Y-%m-%d")


class Cut:
    """A title or a path, which loses its middle where there is no room."""

    def __init__(self, value: object, style: str = "") -> None:
        self._text = printable(value)
        self._style = style

    @property
    def cell_len(self) -> int:
        """How wide it is as a whole."""
        return cell_len(self._text)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(_cut(self._text, options.max_width), self._style, no_wrap=True, overflow="ellipsis")


def _cut(value: str, width: int) -> str:
    if cell_len(value) <= width:
        return value
    end = (width - 1) // 2
    tail = value[-end:] if end else ""
    while cell_len(tail) > end:
        tail = tail[1:]
    return f"{set_cell_size(value, width - 1 - cell_len(tail)).rstrip()}…{tail}"


Cell = Text | Cut


class Grid:
    """A table with a rule under its head, laid out anew for each width that it is shown in."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self._rows: list[tuple[Cell, ...]] = []

    def add_row(self, *cells: Cell) -> None:
        """Add a row, with a cell for each column."""
        self._rows.append(cells)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._made(options)

    def __rich_measure__(self, shown_on: Console, options: ConsoleOptions) -> Measurement:
        """As wide as its columns are, so that what indents it does not fill the rest of every line."""
        return Measurement.get(shown_on, options, self._made(options))

    def _made(self, options: ConsoleOptions) -> Table:
        made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", padding=(0, 1))
        widths = fit(self._columns, [self._natural(index) for index in range(len(self._columns))], options.max_width)
        for index, width in widths.items():
            _add_column(made, self._columns[index], width)
        for row in self._rows:
            made.add_row(*(row[index] for index in widths))
        return made

    def _natural(self, index: int) -> int:
        return max(cell_len(self._columns[index].name), *(row[index].cell_len for row in self._rows), 0)


def _add_column(made: Table, column: Column, width: int) -> None:
    whole = column.manner is Manner.WHOLE
    made.add_column(
        column.name, justify="right" if column.right else "left", width=width, no_wrap=whole, overflow="ellipsis" if whole else "fold"
    )


def table(*columns: Column | str) -> Grid:
    """A table of these columns; a name alone is a column of short texts that are always whole."""
    return Grid([Column(column) if isinstance(column, str) else column for column in columns])
