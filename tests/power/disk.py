"""What a disk may hold after a journal's operations, if the process dies there, or if the supply is cut. Pure.

A dead process leaves every write behind. A cut supply leaves what was synced for certain; of each sector of every write since, it leaves
all, nothing or a torn beginning. Files that were made or removed since their folder was synced may be there or not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.power.recorder import Deleted, Opened, Operation, Synced, Truncated, Written

Image = Mapping[str, bytes]
"""What is in each file of the folder."""


@dataclass(slots=True, eq=False)
class _File:
    """One file from its making on, also after its removal."""

    now: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Written | Truncated] = field(default_factory=list)
    syncs_folder: bool = False
    """Whether the first sync takes the folder with it, as SQLite's does for journals and logs."""


class Disk:
    """The files of one folder."""

    def __init__(self) -> None:
        self._entries: dict[str, _File] = {}
        self._durable_entries: dict[str, _File] = {}

    def do(self, operation: Operation) -> None:
        """Take in the next operation."""
        match operation:
            case Opened(name):
                if name not in self._entries:
                    self._entries[name] = _File(syncs_folder=name.endswith(("-wal", "-journal")))
            case Written() | Truncated():
                file = self._entries[operation.name]
                file.unsynced.append(operation)
                _apply(file.now, operation)
            case Synced(name):
                self._sync(self._entries[name])
            case Deleted(name, folder_synced):
                self._entries.pop(name, None)
                if folder_synced:
                    self._durable_entries = dict(self._entries)

    def _sync(self, file: _File) -> None:
        file.durable = bytearray(file.now)
        file.unsynced.clear()
        if file.syncs_folder:
            file.syncs_folder = False
            self._durable_entries = dict(self._entries)

    def after_death(self) -> Image:
        """What a process that died here has left."""
        return {name: bytes(file.now) for name, file in self._entries.items()}

    def after_cut(self, chance: random.Random) -> Image:
        """One of the many things that the disk may hold if the supply is cut here."""
        sector = chance.choice((512, 4096))
        keeps = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        entries = {name: self._entry(name, chance) for name in sorted(self._entries.keys() | self._durable_entries.keys())}
        return {name: bytes(_survives(file, chance, sector, keeps)) for name, file in entries.items() if file is not None}

    def _entry(self, name: str, chance: random.Random) -> _File | None:
        return chance.choice((self._entries.get(name), self._durable_entries.get(name)))


def _survives(file: _File, chance: random.Random, sector: int, keeps: float) -> bytearray:
    content = bytearray(file.durable)
    for operation in file.unsynced:
        for piece in _pieces(operation, sector):
            if chance.random() < keeps:
                _apply(content, piece)
            elif isinstance(piece, Written) and chance.random() < 0.1:
                _apply(content, Written(piece.name, piece.offset, piece.data[: chance.randrange(len(piece.data))]))
    return content


def _pieces(operation: Written | Truncated, sector: int) -> Iterator[Written | Truncated]:
    """A write by sectors of the disk."""
    if isinstance(operation, Truncated):
        yield operation
        return
    start, end = operation.offset, operation.offset + len(operation.data)
    while start < end:
        stop = min(end, (start // sector + 1) * sector)
        yield Written(operation.name, start, operation.data[start - operation.offset : stop - operation.offset])
        start = stop


def _apply(content: bytearray, operation: Written | Truncated) -> None:
    if isinstance(operation, Truncated):
        del content[operation.size :]
        content.extend(bytes(operation.size - len(content)))
        return
    content.extend(bytes(max(0, operation.offset - len(content))))
    content[operation.offset : operation.offset + len(operation.data)] = operation.data
