"""What is kept of a transcript between two checks, so that the second reads only what was appended."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path

from ..formats.tables import Reader
from .follower import Follower, Marker

TRACKED_MAX = 20_000


class TrackedFile:
    """A follower, and readers at the last marker and at the one that was offered in its place.

    Which of the two the next check begins with is decided by whether the offered one was stored. Losing a tracked file costs
    reading some of the transcript again, and nothing else.
    """

    def __init__(self, path: Path) -> None:
        self.follower = Follower(path)
        self._readers: list[tuple[Marker, Reader]] = []

    def reader(self, marker: Marker, make: Callable[[], Reader]) -> Reader:
        """A reader for the rows behind the marker, to be used up."""
        known = next((reader for at, reader in self._readers if at == marker), None)
        if known is None:
            known = make()
            self._readers = [(marker, known)]
        return known.copy()

    def offer(self, begun: Marker, marker: Marker, reader: Reader) -> None:
        """Remember the reader that has read on from one marker to another."""
        base = [(at, kept) for at, kept in self._readers if at == begun]
        self._readers = [*base, (marker, reader)]


class TrackedFiles:
    """The latest tracked files, by whom they are followed for."""

    def __init__(self, files_max: int = TRACKED_MAX) -> None:
        self._files: OrderedDict[Hashable, TrackedFile] = OrderedDict()
        self._files_max = files_max

    def get(self, key: Hashable, path: Path) -> TrackedFile:
        """The tracked file of the key, a new one if the path is another."""
        file = self._files.get(key)
        if file is None or file.follower.path != path:
            file = self._files[key] = TrackedFile(path)
        self._files.move_to_end(key)
        if len(self._files) > self._files_max:
            self._files.popitem(last=False)
        return file
