"""One writer at a time, its checkpoints included, over all processes.

SQLite lets one transaction write at a time by itself, but a process may checkpoint while another one commits, and before 3.51.3 that can
reset the write-ahead log at the wrong moment and damage the database. So with such a version each transaction, which ends with
its checkpoint, holds a lock of ours besides. It is on a file of its own: closing any descriptor of the database's files would
give up the locks that SQLite itself has on them in this process.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType

from ..errors import StoreBusyError

SQLITE_WAL_RESET = (3, 51, 3)
"""The first version without the fault."""
ASK_AGAIN_S = 0.0005


class WriterLock:
    """The lock of one store, to be held around its write transactions; it costs nothing where it is not needed."""

    def __init__(self, database: Path, *, needed: bool = sqlite3.sqlite_version_info < SQLITE_WAL_RESET) -> None:
        self._path = database.absolute()
        self._resolved: Path | None = None
        self._needed = needed
        self._file: int | None = None
        self._opened_as: os.stat_result | None = None

    def held(self, timeout_s: float) -> AbstractContextManager[None]:
        """Hold it; `StoreBusyError` if another one does for longer than this. Blocks the thread."""
        return _Held(self, timeout_s) if self._needed else nullcontext()

    def take(self, timeout_s: float) -> None:
        """Begin to hold it, as `held` says."""
        deadline = time.monotonic() + timeout_s
        while True:
            file = self._opened()
            if not _locked(file):
                _wait(deadline)
            elif self._is_current():
                return
            else:  # somebody closed its store meanwhile, and took the file away
                self._close_file(file)

    def release(self) -> None:
        """Hold it no longer."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave no file behind, unless somebody else is using it."""
        file = self._file
        if file is None:
            return
        try:
            if _locked(file) and self._is_current():
                self._name().unlink()
        finally:
            self._close_file(file)

    def _close_file(self, file: int) -> None:
        os.close(file)
        self._file = self._opened_as = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._name(), os.O_RDWR | os.O_CREAT, 0o666)
            self._opened_as = os.fstat(self._file)
        return self._file

    def _is_current(self) -> bool:
        """Whether what was opened is still the file of that name; which file was opened never changes."""
        try:
            return self._opened_as is not None and os.path.samestat(self._opened_as, self._name().stat())
        except FileNotFoundError:
            return False

    def _name(self) -> Path:
        """Made once: it is looked at for each transaction, and to make it takes longer than the look."""
        if self._resolved is None:
            resolved = self._path.resolve()
            self._resolved = resolved.with_name(f"{resolved.name}-writer")
        return self._resolved


class _Held(AbstractContextManager[None]):
    """Around what needs the lock."""

    __slots__ = ("_lock", "_timeout_s")

    def __init__(self, lock: WriterLock, timeout_s: float) -> None:
        self._lock = lock
        self._timeout_s = timeout_s

    def __enter__(self) -> None:
        self._lock.take(self._timeout_s)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._lock.release()


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(deadline: float) -> None:
    if time.monotonic() >= deadline:
        raise StoreBusyError("the database is held by another process")
    time.sleep(ASK_AGAIN_S)
