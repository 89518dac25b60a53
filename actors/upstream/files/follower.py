"""Following one line-oriented file: every row once, in order, while the file grows, is cut short, or is replaced.

How far a file was read is a `Marker`, a small value that its owner stores. A follower keeps nothing that a marker cannot
restore, except what it has already read of a row that is not complete yet: that is read again after a restart, never lost.
Whoever stores no new marker, because recording failed, scans again with the old one and gets the same rows.

Everything here blocks on the file system; on an event loop, call it in a thread.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from ..formats.rows import Unreadable
from .lines import ROW_MAX_BYTES, Line, LineAssembler
from .parsing import values_on

SCAN_MAX_BYTES = 10 * 1024 * 1024
HEAD_BYTES = 1024
TAIL_BYTES = 256
_PIECE_BYTES = 256 * 1024
_TOO_LARGE = Unreadable("oversized")


class Restart(StrEnum):
    """Why a scan began anew at the end of the file."""

    REPLACED = "replaced"
    """Another file has this name now."""
    TRUNCATED = "truncated"
    """The file is shorter than what was read of it."""
    REWRITTEN = "rewritten"
    """What was read of the file now reads differently."""


@dataclass(frozen=True, slots=True)
class Marker:
    """How far one file was read, and by what that file is recognised.

    The device is left out on purpose: its number can change when a machine starts, and a file of the same inode number, the same
    beginning and the same bytes before the position goes on where the other stopped.
    """

    inode: int
    position: int
    """Behind the last complete row, in bytes."""
    head_bytes: int
    """How many of the first bytes `head_hash` covers; never more than were read."""
    head_hash: str
    tail_hash: str
    """Of the last bytes before the position."""
    generation: int
    """Grows by one whenever the file turns out to be another."""

    def to_json(self) -> dict[str, int | str]:
        """The marker as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Marker:
        """The marker that `to_json` gave. Raises `ValueError` for anything else."""
        if not isinstance(value, dict) or value.keys() != _MARKER_TYPES.keys():
            raise ValueError(f"not a marker: {value!r}")
        if any(type(value[name]).__name__ != kind for name, kind in _MARKER_TYPES.items()):
            raise ValueError(f"not a marker: {value!r}")
        marker = cls(**value)
        if not 0 <= marker.head_bytes <= min(HEAD_BYTES, marker.position):
            raise ValueError(f"not a marker: {value!r}")
        return marker


_MARKER_TYPES = {field.name: field.type for field in fields(Marker)}


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON value of the file."""

    position: int
    """Where its line begins, in bytes."""
    part: int
    """Which value of its line it is, from 0. With generation and position it names the row for good."""
    value: object
    """The value; an `Unreadable` where the bytes are no row."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan found."""

    rows: tuple[Row, ...]
    marker: Marker
    """Where the next scan goes on, once these rows are dealt with."""
    restart: Restart | None
    """Set where the file turned out to be another: then there are no rows, and the marker is at its end."""
    more: bool
    """Whether the file was longer than what was read."""
    bytes_read: int
    modified_at_ms: int
    """The file's time of modification, rounded down."""

    @property
    def restarted(self) -> bool:
        """Whether the marker belongs to a new generation."""
        return self.restart is not None

    @property
    def unreadable(self) -> int:
        """How many stretches of bytes are no rows."""
        return sum(isinstance(row.value, Unreadable) for row in self.rows)


class Follower:
    """Reads one file. Keep it between scans: it remembers what it has read of an incomplete row, and when the file last changed.

    Every method raises the `OSError` of the file system; `FileNotFoundError` alone means that the file is gone.
    """

    def __init__(self, path: Path, *, row_max_bytes: int = ROW_MAX_BYTES) -> None:
        self.path = path
        self._row_max_bytes = row_max_bytes
        self._assembler = LineAssembler(0, row_max_bytes=row_max_bytes)
        self._at: Marker | None = None
        self._read_hash = ""
        self._quiet: tuple[int, ...] | None = None

    def start(self, *, at_end: bool = True, generation: int = 1) -> Marker:
        """The marker to begin with: behind the last complete row, or at the beginning of the file."""
        with self.path.open("rb") as file:
            return self._mark(file, last_line_end(file, file.seek(0, os.SEEK_END)) if at_end else 0, generation)

    def recognise(self, marker: Marker) -> Marker | None:
        """The marker for this file, if it is a copy of the one that was read, or the same moved: it begins alike, and is alike just
        before the position. None if it is not."""
        with self.path.open("rb") as file:
            stat = os.fstat(file.fileno())
            moved = replace(marker, inode=stat.st_ino)
            return moved if _restart(file, stat, moved) is None else None

    def scan(self, marker: Marker, max_bytes: int = SCAN_MAX_BYTES) -> Scan:
        """Read at most `max_bytes` (at least 1) from the marker on, and give the complete rows among them.

        A row without its line end waits for a later scan. A row longer than `max_bytes` takes several scans, all of this one
        follower, and is given by the last of them.
        """
        stat = self.path.stat()
        if self._at == marker and self._quiet == _signature(stat):
            return Scan((), marker, None, more=False, bytes_read=0, modified_at_ms=_modified_at_ms(stat))
        with self.path.open("rb") as file:
            stat = os.fstat(file.fileno())
            restart = _restart(file, stat, marker)
            if restart is not None:
                return self._restarted(file, stat, marker, restart)
            return self._scan(file, stat, marker, max_bytes)

    def remainder(self) -> tuple[Row, ...]:
        """What follows the last line end, for a file that will not grow any more: its rows if they are whole, else nothing."""
        rows = _rows_of(Line(self._assembler.position, self._assembler.remainder()))
        return () if any(isinstance(row.value, Unreadable) for row in rows) else tuple(rows)

    def _restarted(self, file: BinaryIO, stat: os.stat_result, marker: Marker, restart: Restart) -> Scan:
        anew = self._mark(file, last_line_end(file, file.seek(0, os.SEEK_END)), marker.generation + 1)
        more = anew.position < stat.st_size
        return Scan((), anew, restart, more, bytes_read=0, modified_at_ms=_modified_at_ms(stat))

    def _scan(self, file: BinaryIO, stat: os.stat_result, marker: Marker, max_bytes: int) -> Scan:
        if self._at != marker or _tail_hash(file, self._assembler.read_to) != self._read_hash:
            # The second is a torn row that was cut off or written over after it was read: it is read again.
            self._assembler = LineAssembler(marker.position, row_max_bytes=self._row_max_bytes)
        read_from = self._assembler.read_to
        rows = self._read(file, max_bytes)
        read_to = self._assembler.read_to
        more = read_to < stat.st_size
        moved = self._assembler.position != marker.position
        self._at = self._mark(file, self._assembler.position, marker.generation) if moved else marker
        self._read_hash = _tail_hash(file, read_to)
        self._quiet = None if more else _signature(stat)
        return Scan(tuple(rows), self._at, None, more, read_to - read_from, _modified_at_ms(stat))

    def _read(self, file: BinaryIO, max_bytes: int) -> list[Row]:
        rows: list[Row] = []
        file.seek(self._assembler.read_to)
        while max_bytes > 0 and (piece := file.read(min(_PIECE_BYTES, max_bytes))):
            max_bytes -= len(piece)
            for line in self._assembler.feed(piece):
                rows += _rows_of(line)
        return rows

    def _mark(self, file: BinaryIO, position: int, generation: int) -> Marker:
        head_bytes = min(position, HEAD_BYTES)
        head_hash, tail_hash = _hash(file, 0, head_bytes), _tail_hash(file, position)
        return Marker(os.fstat(file.fileno()).st_ino, position, head_bytes, head_hash, tail_hash, generation)


def _rows_of(line: Line) -> list[Row]:
    values = [_TOO_LARGE] if line.content is None else values_on(line.content)
    return [Row(line.position, part, value) for part, value in enumerate(values)]


def _restart(file: BinaryIO, stat: os.stat_result, marker: Marker) -> Restart | None:
    if stat.st_ino != marker.inode:
        return Restart.REPLACED
    if stat.st_size < marker.position:
        return Restart.TRUNCATED
    same_head = _hash(file, 0, marker.head_bytes) == marker.head_hash
    same_tail = _tail_hash(file, marker.position) == marker.tail_hash
    return None if same_head and same_tail else Restart.REWRITTEN


def last_line_end(file: BinaryIO, end: int) -> int:
    """The position behind the last line end before `end`, sought backwards; 0 where there is none."""
    while end > 0:
        start = max(0, end - _PIECE_BYTES)
        file.seek(start)
        piece = file.read(end - start)
        found = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _tail_hash(file: BinaryIO, position: int) -> str:
    start = max(0, position - TAIL_BYTES)
    return _hash(file, start, position - start)


def _hash(file: BinaryIO, start: int, length: int) -> str:
    file.seek(start)
    return blake2b(file.read(length), digest_size=8).hexdigest()


def _signature(stat: os.stat_result) -> tuple[int, ...]:
    return (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


def _modified_at_ms(stat: os.stat_result) -> int:
    return stat.st_mtime_ns // 1_000_000
