"""Cutting an oversized row down while it streams past.

A row grows large by its strings: a pasted picture, the output of a tool. What a row is, is told by its small fields. So the
row is copied with its long strings cut, which keeps it valid JSON, and what is left is classified like any other row. The
result does not depend on how the bytes were divided into pieces.
"""

from __future__ import annotations

import re

STRING_SHARE = 16
"""While the row is less than half full, a string may take one in so many of its bytes."""
LATE_STRING_SHARE = 4096
"""After that one in so many, so that a row with many pictures still fits."""

_string_body = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_whole_characters = re.compile(rb"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+", re.DOTALL)


class Slimmer:
    """Takes a row's bytes piece by piece, in memory bounded by `row_max_bytes` and one piece."""

    def __init__(self, row_max_bytes: int) -> None:
        self._row_max_bytes = row_max_bytes
        self._kept = bytearray()
        self._held = b""
        self._in_string = False
        self._cutting = False
        self._string_start = 0
        self._overflowed = False

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the row."""
        if self._overflowed:
            return
        piece = self._held + piece
        self._held = b""
        at = 0
        while at < len(piece):
            at = self._string(piece, at) if self._in_string else self._structure(piece, at)

    def result(self) -> bytes | None:
        """The row with its long strings cut; None where it is too large even so."""
        return None if self._overflowed else bytes(self._kept)

    def _structure(self, piece: bytes, at: int) -> int:
        quote = piece.find(b'"', at)
        end = len(piece) if quote < 0 else quote + 1
        self._kept += piece[at:end]
        if len(self._kept) > self._row_max_bytes:
            self._overflowed = True
            self._kept.clear()
            return len(piece)
        self._in_string, self._cutting, self._string_start = quote >= 0, False, len(self._kept)
        return end

    def _string(self, piece: bytes, at: int) -> int:
        match = _string_body.match(piece, at)
        end = match.end() if match else at
        if not self._cutting:
            self._kept += piece[at:end]
            self._cut()
        if end == len(piece):
            return end
        if piece[end : end + 1] == b"\\":
            # An escape is divided between two pieces: its first byte waits for the second.
            self._held = piece[end:]
            return len(piece)
        self._kept += b'"'
        self._in_string = False
        return end + 1

    def _cut(self) -> None:
        share = STRING_SHARE if self._string_start < self._row_max_bytes // 2 else LATE_STRING_SHARE
        limit = self._row_max_bytes // share
        if len(self._kept) - self._string_start <= limit:
            return
        match = _whole_characters.match(self._kept, self._string_start, self._string_start + limit)
        del self._kept[match.end() if match else self._string_start :]
        self._cutting = True
