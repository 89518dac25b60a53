"""An SQLite file system that keeps a journal of all that is done to a database's files, and does it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import apsw


@dataclass(frozen=True, slots=True)
class Opened:
    """A file was opened, and made if it was not there."""

    name: str


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes were written at an offset."""

    name: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncated:
    """A file was cut to a size in bytes."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Synced:
    """What a file holds is on the disk, and so is the folder's entry of a journal or a log that is synced for the first time."""

    name: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """A file was removed; with `folder_synced` for good, else perhaps not."""

    name: str
    folder_synced: bool


Operation = Opened | Written | Truncated | Synced | Deleted


@dataclass
class Journal:
    """The operations on the files of one folder, in their order."""

    operations: list[Operation] = field(default_factory=list)
    drops_syncs: bool = False
    """A disk that promises and does not keep it: to see that this is noticed."""

    def note(self, operation: Operation) -> None:
        """Add one."""
        if not (self.drops_syncs and isinstance(operation, Synced)):
            self.operations.append(operation)


class RecordingVFS(apsw.VFS):
    """The system's own file system, with a journal of the database, its write-ahead log and its rollback journal. Nothing is really
    synced, since the disk whose supply is cut is made of the journal.

    The index of the log (`-shm`) is shared memory, which nobody who opens the database first relies on, so it is not recorded.
    """

    def __init__(self, name: str, journal: Journal) -> None:
        super().__init__(name, "")
        self._journal = journal

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        file = RecordedFile("", name, flags)
        file.attach(_file_name(name), self._journal)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self._journal.note(Deleted(Path(filename).name, bool(syncdir)))


class RecordedFile(apsw.VFSFile):
    """An open file."""

    _name = ""
    _journal = Journal()

    def attach(self, name: str, journal: Journal) -> None:
        """Say which file it is, and where to note."""
        self._name, self._journal = name, journal
        journal.note(Opened(name))

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._journal.note(Written(self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        super().xTruncate(newsize)
        self._journal.note(Truncated(self._name, newsize))

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._journal.note(Synced(self._name))


def _file_name(name: str | apsw.URIFilename | None) -> str:
    if name is None:
        return "temporary"
    return Path(name if isinstance(name, str) else name.filename()).name
