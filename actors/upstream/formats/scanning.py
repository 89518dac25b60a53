"""Reading transcripts from their files: a whole file at once, or the state in which to go on in the middle of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files.follower import Follower, Marker, last_line_end
from ..files.lines import LineAssembler
from ..files.parsing import values_on
from .formats import CLAUDE, Format
from .rows import RowClass
from .tables import Reader
from .tally import Tally

PRIME_HEAD_BYTES = 256 * 1024
PRIME_TAIL_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file holds."""

    path: str
    catalog: str
    rows: int
    """The JSON rows of the file, understood or not."""
    human_turns: int
    unknown_rows: int
    """Rows declined as unknown, and stretches that are no rows."""
    classes: Mapping[RowClass, int]
    unknown_shapes: Mapping[str, int]


def scan_whole_file(path: Path, form: Format = CLAUDE) -> FileReport:
    """Classify every row of the file, a bounded piece at a time. Blocks on the file system, and raises its `OSError`.

    A last row without a line end counts if it is whole; if it is torn, it is passed over as not written yet.
    """
    follower = Follower(path)
    reader = form.reader(path, None)
    tally = Tally()
    marker, more = follower.start(at_end=False), True
    while more:
        scan = follower.scan(marker)
        _count(tally, reader, [row.value for row in scan.rows])
        marker, more = scan.marker, scan.more
    _count(tally, reader, [row.value for row in follower.remainder()])
    for classified in reader.finish():
        tally.add(classified)
    return _report(path, form.name, tally)


def reader_at(path: Path, marker: Marker, *, adopted_at_ms: int, form: Format = CLAUDE) -> Reader:
    """A reader for the rows behind the marker that knows what the rows before it tell: whose the file is, whether rows say who
    wrote them, which ids came already, and what is still waiting.

    Reads the first row, a bounded part of the beginning, and of what is just before the marker. Blocks on the file system, and
    raises its `OSError`.
    """
    reader = form.reader(path, adopted_at_ms)
    head_end = min(max(PRIME_HEAD_BYTES, _first_row_end(path, marker.position)), marker.position)
    tail_start = max(head_end, _tail_start(path, marker.position))
    for start, end in ((0, head_end), (tail_start, marker.position)):
        _prime(reader, path, start, end)
    return reader


def _prime(reader: Reader, path: Path, start: int, end: int) -> None:
    assembler = LineAssembler(start)
    with path.open("rb") as file:
        file.seek(start)
        while piece := file.read(min(end - assembler.read_to, PRIME_HEAD_BYTES)):
            for line in assembler.feed(piece):
                for value in values_on(line.content or b""):
                    reader.feed(value)


def _tail_start(path: Path, position: int) -> int:
    """Far enough before the marker to see rows: where one row fills all of that, the beginning is as far before this row."""
    start = max(0, position - PRIME_TAIL_BYTES)
    with path.open("rb") as file:
        file.seek(start)
        if b"\n" in file.read(position - start)[:-1]:
            return start
        return max(0, last_line_end(file, start) - PRIME_TAIL_BYTES)


def _first_row_end(path: Path, before: int) -> int:
    """Where the first row ends: it can be a header of any length, and says whose the whole file is."""
    with path.open("rb") as file:
        while file.tell() < before:
            piece = file.readline(PRIME_HEAD_BYTES)
            if not piece or piece.endswith(b"\n"):
                break
        return file.tell()


def _count(tally: Tally, reader: Reader, values: list[object]) -> None:
    for value in values:
        for classified in reader.feed(value):
            tally.add(classified)


def _report(path: Path, catalog: str, tally: Tally) -> FileReport:
    unreadable = tally.classes[RowClass.UNREADABLE]
    return FileReport(
        path=str(path),
        catalog=catalog,
        rows=tally.classes.total() - unreadable,
        human_turns=tally.classes[RowClass.HUMAN],
        unknown_rows=tally.classes[RowClass.UNKNOWN] + unreadable,
        classes=dict(tally.classes),
        unknown_shapes=dict(tally.shapes),
    )
