"""Which files `kizuki watch` was given, what is in them, and what is added to them while they are followed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from errno import EINVAL
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..upstream.files.compressed import SUFFIX as COMPRESSED
from ..upstream.files.follower import Follower, Marker, Restart
from ..upstream.formats import claude
from ..upstream.formats.formats import Format
from ..upstream.formats.recognise import recognise
from ..upstream.formats.rows import RowClass
from ..upstream.formats.scanning import FileReport, reader_at
from ..upstream.formats.tables import Reader
from .exits import CommandFailed, ExitCode
from .output import printable

LABEL_MAX = 200


def session_key(path: Path, catalog: str = claude.CATALOG) -> str:
    """The key of a file's session: the same for the same absolute path and format."""
    name = blake2b(os.fsencode(path.absolute()), digest_size=8).hexdigest()
    return f"agent:main:catalog:{catalog}:{name}"


def format_of(path: Path) -> Format:
    """Whose transcript the file is. Raises `OSError`, also for a compressed one."""
    if path.suffix == COMPRESSED and path.is_file():
        raise OSError(EINVAL, "this is compressed: expand it first, or adopt its session")
    return recognise(path)


def label(path: Path) -> str:
    """The file's path as a label: its end, which tells the most."""
    return printable(path)[-LABEL_MAX:]


def unreadable(path: Path, error: OSError) -> CommandFailed:
    """What is wrong with a file: not found (3), or an error (1)."""
    if isinstance(error, FileNotFoundError):
        return CommandFailed(f"{printable(path)}: there is no such file", ExitCode.NOT_FOUND)
    if isinstance(error, IsADirectoryError):
        return CommandFailed(f"{printable(path)}: this is a folder, name the files in it")
    return CommandFailed(f"{printable(path)}: {printable(error.strerror or error)}")


def report_row(report: FileReport) -> dict[str, Any]:
    """A report of a whole file as JSON shows it."""
    return {
        "path": report.path,
        "catalog": report.catalog,
        "rows": report.rows,
        "humanTurns": report.human_turns,
        "unknownRows": report.unknown_rows,
        "classes": {row_class.value: count for row_class, count in sorted(report.classes.items()) if count},
        "unknownShapes": dict(report.unknown_shapes),
    }


@dataclass(frozen=True, slots=True)
class Found:
    """What one scan found. Nothing has moved yet: `FollowedFile.keep` goes on behind it, another scan finds the same again."""

    rows: int
    turns: int
    """A person's turns."""
    occurred_at_ms: int | None
    """When the last of them was; None where none of them says so."""
    name: str | None
    """Names the last of them for good, in this file."""
    restart: Restart | None
    more: bool
    marker: Marker
    reader: Reader


class FollowedFile:
    """One transcript and how far it was read. Everything here blocks on the file system, and raises its `OSError`."""

    def __init__(self, path: Path, now_ms: int, *, from_start: bool) -> None:
        self.path = path
        self._form = format_of(path)
        self.catalog = self._form.name
        self.key = session_key(path, self.catalog)
        self.is_missing = False
        self._now_ms = now_ms
        self._follower = Follower(path)
        self._marker = self._follower.start(at_end=not from_start)
        self._reader = self._form.reader(path, None) if from_start else self._reader_at(self._marker)

    def scan(self) -> Found:
        """Read what was added."""
        scan = self._follower.scan(self._marker)
        if scan.restart is not None:
            return Found(0, 0, None, None, scan.restart, scan.more, scan.marker, self._reader_at(scan.marker))
        reader, turns, occurred_at_ms, name = self._reader.copy(), 0, None, None
        for row in scan.rows:
            for verdict in reader.feed(row.value):
                if verdict.row_class is RowClass.HUMAN:
                    turns, occurred_at_ms = turns + 1, verdict.occurred_at_ms or occurred_at_ms
                    name = f"{scan.marker.inode}:{row.position}:{row.part}"
        return Found(len(scan.rows), turns, occurred_at_ms, name, None, scan.more, scan.marker, reader)

    def keep(self, found: Found) -> None:
        """What was found is dealt with."""
        self._marker, self._reader = found.marker, found.reader

    def _reader_at(self, marker: Marker) -> Reader:
        return reader_at(self.path, marker, adopted_at_ms=self._now_ms, form=self._form)
