"""The catalog of a format that keeps each thread in a file."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from ..catalog import Discovered, Outcome, Probe, Start, ThreadNotFound
from ..formats.formats import CannotFollow, Format
from ..own_host import check_own
from . import compressed
from .check import FileChecker, end_of
from .follower import SCAN_MAX_BYTES
from .library import Library
from .marker import FileMarker
from .threads import in_thread

CHECK_MAX_BYTES = 64 * 1024 * 1024
LOCAL_HOST = "local"


class CatalogBusy(Exception):
    """A check that nobody waits for any more has not ended."""


class FileCatalog:
    """A `Catalog` of the transcripts below the given roots, on this machine.

    The source of a thread is the path of its transcript when it was linked. All work is done in threads of its own.
    """

    def __init__(
        self,
        form: Format,
        roots: Sequence[Path],
        *,
        host_id: str = LOCAL_HOST,
        probe_max_bytes: int = SCAN_MAX_BYTES,
        check_max_bytes: int = CHECK_MAX_BYTES,
    ) -> None:
        self.name = form.name
        self.roots = tuple(roots)
        self.form = form
        self._host_id = host_id
        self._library = Library(form, self.roots)
        self._checker = FileChecker(form, self._library, probe_max_bytes=probe_max_bytes, check_max_bytes=check_max_bytes)
        self._checking = threading.Lock()

    @property
    def bytes_read(self) -> int:
        """How many bytes checks have read of what was appended."""
        return self._checker.bytes_read

    async def list(self) -> Sequence[Discovered]:
        """Every thread that can be followed, newest first. Raises `OSError` where a folder is there and cannot be listed."""
        return await in_thread(lambda _: self._library.discovered(self._host_id))

    async def link(self, thread_id: str, host_id: str) -> Start:
        """At the end of the last complete row. Raises `ThreadNotFound`, `CannotFollow`, `OSError`."""
        if host_id != self._host_id:
            raise ThreadNotFound(f"{self.name}: there is no host {host_id!r} but {self._host_id!r}")
        return await in_thread(lambda _: self._link(thread_id))

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        """One outcome for each probe. Raises `CatalogBusy`."""
        return await check_own(self._host_id, probes, lambda own: in_thread(lambda abandoned: self._check(tuple(own), abandoned)))

    def _link(self, thread_id: str) -> Start:
        path = self._library.by_thread().get(thread_id)
        if path is None:
            raise ThreadNotFound(f"{self.name}: there is no thread {thread_id!r} in {', '.join(map(str, self.roots))}")
        described = self.form.describe(path)
        if described is not None and described.refused is not None:
            raise CannotFollow(f"{self.name}: the thread {thread_id!r} cannot be followed: {described.refused}")
        if path.suffix == compressed.SUFFIX and not compressed.can_expand():
            raise CannotFollow(f"{self.name}: the thread {thread_id!r} is compressed: it needs the package zstandard, kizuki[codex]")
        return Start(str(path), FileMarker(end_of(path)).having(self.form.children(path, thread_id)).to_json())

    def _check(self, probes: tuple[Probe, ...], abandoned: threading.Event) -> Sequence[Outcome]:
        if not self._checking.acquire(blocking=False):
            raise CatalogBusy(f"{self.name}: a check that was given up has not ended")
        try:
            return self._checker.check(probes, abandoned)
        finally:
            self._checking.release()
