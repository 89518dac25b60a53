"""The part of `kizuki doctor` on the agents' own tools: where each catalog looked, what it found, and which rows it did not understand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ..upstream.catalog import Catalog, Discovered
from ..upstream.files import compressed
from ..upstream.files.catalog import FileCatalog
from ..upstream.formats import opencode
from ..upstream.formats.formats import FORMATS, Format
from ..upstream.formats.rows import RowClass
from ..upstream.formats.scanning import scan_whole_file
from ..upstream.formats.tally import Tally
from ..upstream.installed import installed_catalogs
from ..upstream.opencode.catalog import OpenCodeCatalog
from ..upstream.opencode.database import opened
from .discovery import UNREADABLE
from .output import printable

VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "claude": ("CLAUDE_CONFIG_DIR",),
    "codex": ("CODEX_HOME",),
    "pi": ("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"),
    "gemini": ("GEMINI_CLI_HOME",),
    "opencode": ("XDG_DATA_HOME", "OPENCODE_DB"),
}
"""What says where each tool keeps its sessions."""
FILES_MAX: Final = 20
BYTES_MAX: Final = 32 * 1024 * 1024
"""Of how many of the newest transcripts of a catalog the rows are counted, and up to how many bytes."""
ENTRIES_MAX: Final = 2_000


@dataclass(frozen=True, slots=True)
class Shapes:
    """What was counted in the newest transcripts."""

    transcripts: int
    rows: int
    human_turns: int
    unknown_rows: int
    unknown_shapes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Looked:
    """One catalog."""

    catalog: str
    places: tuple[str, ...]
    variables: tuple[str, ...]
    """Those that are set, and say so; none: the tool's default."""
    there: bool
    """Whether any of the places is there."""
    threads: int
    newest_ms: int | None
    shapes: Shapes
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        row: dict[str, Any] = {
            "catalog": self.catalog,
            "places": list(self.places),
            "variables": list(self.variables),
            "there": self.there,
            "threads": self.threads,
            "newest": self.newest_ms,
            "scanned": {
                "transcripts": self.shapes.transcripts,
                "rows": self.shapes.rows,
                "humanTurns": self.shapes.human_turns,
                "unknownRows": self.shapes.unknown_rows,
            },
            "unknownShapes": dict(self.shapes.unknown_shapes),
        }
        return row if self.error is None else row | {"error": self.error}

    def detail(self) -> str:
        """As a line, and one for each shape that is unknown."""
        source = f" (from {', '.join(self.variables)})" if self.variables else ""
        lines = [f"{', '.join(self.places)}{source}: {self._found()}"]
        lines += [f"  {count} × {printable(shape)}" for shape, count in self.shapes.unknown_shapes.items()]
        return "\n".join(lines)

    def _found(self) -> str:
        if self.error is not None:
            return self.error
        if not self.there:
            return "not there"
        newest = "" if self.newest_ms is None else f", the newest of {_moment(self.newest_ms)}"
        unknown = f"{self.shapes.unknown_rows} of {self.shapes.rows} rows unknown in the newest {self.shapes.transcripts}"
        return f"{self.threads} threads{newest}; {unknown}" if self.threads else "no threads"


def _moment(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def look_at_catalogs() -> list[Looked]:
    """Look at each tool's folder. Reads a bounded part of what is there."""
    return asyncio.run(_look())


async def _look() -> list[Looked]:
    return [await _look_at(catalog) for catalog in installed_catalogs()]


async def _look_at(catalog: Catalog) -> Looked:
    places = _places(catalog)
    variables = tuple(name for name in VARIABLES.get(catalog.name, ()) if os.environ.get(name))
    there = any(place.exists() for place in places)
    names = tuple(printable(place) for place in places)
    try:
        threads = await catalog.list()
        shapes = await asyncio.to_thread(_shapes, catalog, threads)
    except UNREADABLE as error:
        return Looked(catalog.name, names, variables, there, 0, None, Shapes(0, 0, 0, 0, {}), f"cannot be read: {printable(error)}")
    return Looked(catalog.name, names, variables, there, len(threads), threads[0].updated_at_ms if threads else None, shapes)


def _places(catalog: Catalog) -> Sequence[Path]:
    match catalog:
        case FileCatalog():
            return catalog.roots
        case OpenCodeCatalog():
            return (catalog.database,)
        case _:
            return ()


def _shapes(catalog: Catalog, threads: Sequence[Discovered]) -> Shapes:
    if isinstance(catalog, OpenCodeCatalog):
        return _of_database(catalog, threads)
    form = next(form for form in FORMATS if form.name == catalog.name)
    return _of_files(form, list(_within_bounds(threads)))


def _within_bounds(threads: Sequence[Discovered]) -> Iterator[Path]:
    """The newest transcripts that are plain, as far as the bound on bytes reaches; a large one is passed over for smaller ones."""
    left = BYTES_MAX
    plain = (Path(thread.source) for thread in threads if not thread.source.endswith(compressed.SUFFIX))
    for path, _ in zip(plain, range(FILES_MAX), strict=False):
        size = path.stat().st_size if path.exists() else left + 1
        if size <= left:
            left -= size
            yield path


def _of_files(form: Format, paths: Sequence[Path]) -> Shapes:
    reports = [scan_whole_file(path, form) for path in paths]
    shapes: dict[str, int] = {}
    for report in reports:
        for shape, count in report.unknown_shapes.items():
            shapes[shape] = shapes.get(shape, 0) + count
    return Shapes(
        len(reports),
        sum(report.rows for report in reports),
        sum(report.human_turns for report in reports),
        sum(report.unknown_rows for report in reports),
        _histogram(shapes),
    )


def _of_database(catalog: OpenCodeCatalog, threads: Sequence[Discovered]) -> Shapes:
    tally = Tally()
    newest = threads[:FILES_MAX]
    if newest:
        with opened(catalog.database) as database:
            for thread in newest:
                reader = opencode.SessionReader(child=thread.parent_thread_id is not None)
                for entry in database.entries(thread.thread_id, 0, ENTRIES_MAX):
                    for verdict in (verdict for row in entry.rows for verdict in reader.feed(row)):
                        tally.add(verdict)
    unknown = tally.classes[RowClass.UNKNOWN]
    return Shapes(len(newest), tally.classes.total(), tally.classes[RowClass.HUMAN], unknown, _histogram(tally.shapes))


def _histogram(shapes: Mapping[str, int]) -> dict[str, int]:
    """The most frequent first."""
    return dict(sorted(shapes.items(), key=lambda item: (-item[1], item[0])))
