"""From bytes in arbitrary pieces to whole lines, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

from .slimming import Slimmer

ROW_MAX_BYTES = 1024 * 1024
"""A longer row is cut down while it streams past."""


@dataclass(frozen=True, slots=True)
class Line:
    """One complete line."""

    position: int
    """Where it begins in the file, in bytes."""
    content: bytes | None
    """Without its end; None where it was too large to be kept even with its long strings cut."""


class LineAssembler:
    """Puts lines together. LF, CRLF and a lone CR all end one: raw line ends cannot stand inside JSON strings.

    Empty lines are none, so a LF that arrives later than its CR gives nothing new.
    """

    def __init__(self, position: int, *, row_max_bytes: int = ROW_MAX_BYTES) -> None:
        self._row_max_bytes = row_max_bytes
        self._begin(position)
        self.read_to = position
        """The position behind the last byte taken."""

    @property
    def position(self) -> int:
        """The position behind the last complete line."""
        return self._line_start

    def feed(self, piece: bytes) -> list[Line]:
        """Take the bytes that follow, and give the lines that they complete."""
        lines = []
        for part in piece.splitlines(keepends=True):
            self.read_to += len(part)
            content = part.rstrip(b"\r\n")
            self._add(content)
            if len(content) == len(part):
                break
            line = self.remainder()
            if line != b"":
                lines.append(Line(self._line_start, line))
            self._begin(self.read_to)
        return lines

    def remainder(self) -> bytes | None:
        """What has come of a line that has no end yet; None where it is too large."""
        return bytes(self._partial) if self._slimmer is None else self._slimmer.result()

    def _begin(self, position: int) -> None:
        self._line_start = position
        self._partial = bytearray()
        self._slimmer: Slimmer | None = None

    def _add(self, content: bytes) -> None:
        if self._slimmer is not None:
            self._slimmer.feed(content)
        elif len(self._partial) + len(content) <= self._row_max_bytes:
            self._partial += content
        else:
            self._slimmer = Slimmer(self._row_max_bytes)
            self._slimmer.feed(bytes(self._partial))
            self._slimmer.feed(content)
            self._partial.clear()
