"""Cutting the supply after every single write and sync of a history, and opening what is left."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from kizuki.storage.errors import StoreError
from kizuki.storage.sqlite.files import open_for_writing
from kizuki.storage.sqlite.known import KnownFolds
from tests.consistency import violations
from tests.power.disk import Disk, Image
from tests.power.history import DATABASE, History, commit_on, dump_of
from tests.power.recorder import Synced

GO_ON = 0.2
"""Of how many images the history goes on, with the commit that was lost or not begun."""


@dataclass
class Figures:
    """What all histories together came to."""

    seeds: int = 0
    commits: int = 0
    checkpoints: int = 0
    """Syncs of the database's own file."""
    reopened: int = 0
    """How many times the database was closed and opened."""
    points: int = 0
    """Writes, syncs, truncations and removals after each of which the disk was looked at."""
    images: dict[str, int] = field(default_factory=lambda: {"dead": 0, "cut": 0})
    repeated: int = 0
    """Images like the one before, which were not opened again."""
    unreplied: int = 0
    """Images that hold a commit of which nobody had been told."""
    continued: int = 0
    wall_s: float = 0.0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        opened = sum(self.images.values())
        return (
            f"{self.seeds} histories, {self.commits:,} commits, {self.checkpoints} checkpoints, {self.reopened} openings\n"
            f"{self.points:,} points, {opened:,} images opened ({self.images['dead']:,} of a dead process, {self.images['cut']:,} of a cut "
            f"supply; {self.repeated:,} more were repetitions), {60 * opened / max(self.wall_s, 1e-9):,.0f} a minute\n"
            f"{self.unreplied:,} held a commit before its reply, on {self.continued:,} the history went on\n"
            f"{len(self.problems)} violations in {self.wall_s:.1f} s"
        )


class Search:
    """The look at one history's images."""

    def __init__(self, history: History, folder: Path, seed: int, figures: Figures, *, cuts: int, keeps_acknowledged: bool = True) -> None:
        self._history, self._folder, self._figures, self._cuts = history, folder, figures, cuts
        self._keeps_acknowledged = keeps_acknowledged
        self._chance = random.Random(f"cuts of {seed}")
        self._seed = seed
        self._sound: set[int] = set()
        """Of which states the derived parts were looked at."""
        self._last: dict[str, Image] = {}
        self._replies = {commit.acknowledged for commit in history.commits}
        """After which operations somebody was told of a commit."""
        self._acknowledged = 0

    def problems(self) -> Iterator[str]:
        """What is wrong, image by image."""
        disk = Disk()
        for count, operation in enumerate(self._history.operations, 1):
            disk.do(operation)
            self._figures.points += 1
            yield from self._look("dead", disk.after_death(), count)
            for _ in range(self._cuts):
                yield from self._look("cut", disk.after_cut(self._chance), count)

    def _look(self, kind: str, image: Image, operations: int) -> Iterator[str]:
        if image == self._last.get(kind) and operations not in self._replies:
            self._figures.repeated += 1
            return
        self._last[kind] = image
        self._figures.images[kind] += 1
        possible = self._history.allowed(operations)
        may_lose = kind == "cut" and not self._keeps_acknowledged
        self._acknowledged = possible.start
        for problem in self._wrong(image, range(possible.stop) if may_lose else possible):
            yield f"seed {self._seed}, operation {operations}, {kind}: {problem}"

    def _wrong(self, image: Image, allowed: range) -> Iterator[str]:
        path = self._rebuild(image)
        try:
            with closing(open_for_writing(path, "off")) as connection:
                yield from self._wrong_content(connection, path, allowed)
        except (sqlite3.Error, StoreError) as error:
            yield f"it cannot be opened: {error}"

    def _rebuild(self, image: Image) -> Path:
        for old in self._folder.iterdir():
            old.unlink()
        for name, content in image.items():
            (self._folder / name).write_bytes(content)
        return self._folder / DATABASE

    def _wrong_content(self, connection: sqlite3.Connection, path: Path, allowed: range) -> Iterator[str]:
        check = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if check != "ok":
            yield f"integrity_check says {check}"
            return
        dump = dump_of(connection)
        state = next((commits for commits in reversed(allowed) if dump == self._history.dump(commits)), None)
        if state is None:
            yield self._explained(dump, allowed)
            yield from violations(path)
            return
        self._figures.unreplied += state > self._acknowledged
        if state not in self._sound:
            yield from violations(path)
            self._sound.add(state)
        if state and self._chance.random() < GO_ON:
            yield from self._go_on(connection, state)

    def _explained(self, dump: dict[str, list[tuple[object, ...]]], allowed: range) -> str:
        commits = self._history.commits
        earlier = [count for count in range(len(commits) + 1) if dump == self._history.dump(count)]
        if earlier:
            return f"it holds {earlier[-1]} commits, and {allowed.start} were acknowledged"
        wanted = self._history.dump(allowed.stop - 1)
        return f"it holds part of a commit: {', '.join(name for name in wanted if dump.get(name) != wanted[name])} differ after {allowed}"

    def _go_on(self, connection: sqlite3.Connection, state: int) -> Iterator[str]:
        """The caller does what was lost once more; it comes to what it would have come to."""
        if state == len(self._history.commits):
            return
        lost = self._history.commits[state]
        commit_on(connection, self._history.presence, KnownFolds(), lost.writes, lost.first_id, lost.openings)
        self._figures.continued += 1
        if dump_of(connection) != lost.dump:
            yield f"commit {state + 1}, done again, comes to something else"


def search(history: History, folder: Path, seed: int, figures: Figures, *, cuts: int, keeps_acknowledged: bool = True) -> Iterator[str]:
    """Look at every image of a history; gives what is wrong as it is found. `cuts` is how many ways of cutting the supply are tried at
    each point. Without `keeps_acknowledged` a cut may lose commits, but leaves no part of one."""
    folder.mkdir(exist_ok=True)
    figures.seeds += 1
    figures.commits += len(history.commits)
    figures.checkpoints += sum(operation == Synced(DATABASE) for operation in history.operations)
    figures.reopened += history.reopened
    started = time.perf_counter()
    try:
        for problem in Search(history, folder, seed, figures, cuts=cuts, keeps_acknowledged=keeps_acknowledged).problems():
            figures.problems.append(problem)
            yield problem
    finally:
        figures.wall_s += time.perf_counter() - started
