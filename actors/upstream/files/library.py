"""All transcripts of one format on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..catalog import Discovered
from ..formats.formats import Format
from . import compressed


@dataclass(frozen=True, slots=True)
class Library:
    """The transcripts below some folders. Everything here blocks on the file system, and raises its `OSError`."""

    form: Format
    roots: tuple[Path, ...]

    def by_thread(self) -> dict[str, Path]:
        """The transcript of every thread: of two of one thread the plain one, or else the newer one."""
        found: dict[str, Path] = {}
        for path in (path for root in self.roots for path in self.form.transcripts(root)):
            thread_id = self._thread_id(path)
            if thread_id is not None and (thread_id not in found or _preference(path) > _preference(found[thread_id])):
                found[thread_id] = path
        return found

    def discovered(self, host_id: str) -> list[Discovered]:
        """Every thread that can be followed, newest first. One that goes meanwhile, or is not ours to read, is none of them."""
        threads: list[Discovered] = []
        for path in self.by_thread().values():
            with suppress(FileNotFoundError, PermissionError):
                threads += self._discovered(path, host_id)
        return sorted(threads, key=lambda thread: -thread.updated_at_ms)

    def is_there(self, source: Path) -> bool:
        """Whether the place is there that the source would be in: if not, nothing can be said of what is in it."""
        return source.parent.is_dir() or any(root.is_dir() for root in self.roots)

    def _discovered(self, path: Path, host_id: str) -> Sequence[Discovered]:
        described = self.form.describe(path)
        if described is None or described.refused is not None:
            return ()
        updated_at_ms = path.stat().st_mtime_ns // 1_000_000
        return (Discovered(described.thread_id, host_id, str(path), updated_at_ms, described.title, described.parent_thread_id),)

    def _thread_id(self, path: Path) -> str | None:
        with suppress(FileNotFoundError):
            return self.form.thread_id(path)
        return None


def _preference(path: Path) -> tuple[bool, int]:
    with suppress(FileNotFoundError):
        return path.suffix != compressed.SUFFIX, path.stat().st_mtime_ns
    return False, 0
