"""Several hosts on one database, as processes: `python -m tests.processes.several --events 20000 [--kills 40] [--database URL]`.

They record, read, take turns on each other's watchers and wake each other; with `--kills` they are killed with SIGKILL meanwhile, and
started again. What each of them saw is in its journal, with the time, and everything in all of them is checked in the end. Exit code 1
if anything was not as it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from kizuki.storage import Store, StoreError, open_store
from kizuki.storage.records import Address
from tests.processes.host import TARGETS, WATCHERS, watched

T = TypeVar("T")

PROCESSES = 4
STARTED_S = 60.0
QUIET_S = 90.0
"""How long all notices may take to be seen once everything is recorded; failed turns are woken for again after seconds."""
STOPPED_S = 60.0

Pair = tuple[str, str]


class Notice(NamedTuple):
    """What a journal says of a notice."""

    watcher: str
    target: str
    changes_since: int
    notified: int


class Showing(NamedTuple):
    """A notice in a turn: from when to when, and of which run of which process."""

    begins: int
    ends: int
    run: str


@dataclass
class Run:
    """One process, from its start to its end, as its journal tells it."""

    name: str
    killed_at: int | None = None
    recorded: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    read: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    showings: dict[Notice, list[Showing]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: list[tuple[int, Notice]] = field(default_factory=list)
    _open: dict[Notice, int] = field(default_factory=dict)

    def take(self, line: dict[str, Any]) -> None:
        """One line of the journal."""
        notices = [Notice(*row) for row in line.get("notices", ())]
        match line["what"]:
            case "recorded":
                self.recorded[line["target"]].add(line["sequence"])
            case "read":
                self.read[line["target"]] += line["sequences"]
            case "shown":
                self._open |= dict.fromkeys(notices, line["at"])
            case "acknowledged":
                self.acknowledged += [(line["at"], notice) for notice in notices]
            case "over":
                for notice in notices:
                    self._close(notice, line["at"])

    def end(self, killed_at: int | None) -> None:
        """What a killed process had in its turns was there until then."""
        self.killed_at = killed_at
        for notice in list(self._open):
            self._close(notice, killed_at or time.monotonic_ns())

    def _close(self, notice: Notice, at: int) -> None:
        self.showings[notice].append(Showing(self._open.pop(notice), at, self.name))


@dataclass
class Member:
    """One of the processes, which may be started several times."""

    number: int
    journal: Path
    process: subprocess.Popen[bytes] | None = None
    recorded: bool = False
    kills: list[int] = field(default_factory=list)


class Fleet:
    """The processes on one database."""

    def __init__(self, database: str, folder: Path, events: int, seed: int) -> None:
        self.database = database
        self.events = events
        self.dice = random.Random(seed)
        self.members = [Member(number, folder / f"journal{number}.jsonl") for number in range(PROCESSES)]
        self.problems: list[str] = []

    def start(self, member: Member) -> None:
        """Start a process; it is ready when this returns."""
        share = self.events // PROCESSES
        numbers = (member.number, PROCESSES, share, self.dice.randrange(2**32))
        command = [sys.executable, "-m", "tests.processes.host", self.database, str(member.journal), *map(str, numbers)]
        root = Path(__file__).parents[2]
        member.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        self._hear(member, b"ready\n")

    def go(self, member: Member) -> None:
        """Let it record."""
        pipe = _there(_there(member.process).stdin)
        pipe.write(b"go\n")
        pipe.flush()

    def kill_one(self) -> None:
        """Kill any of them at any moment, and start it again."""
        member = self.dice.choice(self.members)
        process = _there(member.process)
        member.kills.append(time.monotonic_ns())
        process.kill()
        if process.wait() != -signal.SIGKILL:
            self.problems.append(f"process {member.number} ended by itself with {process.returncode}")
        _close(process)
        member.recorded = False
        self.start(member)
        self.go(member)

    def wait_until_recorded(self) -> None:
        """Until each has recorded its share."""
        for member in self.members:
            if not member.recorded:
                self._hear(member, b"recorded\n")
                member.recorded = True

    def stop(self) -> None:
        """End all of them in good order."""
        for member in self.members:
            _there(_there(member.process).stdin).close()
        for member in self.members:
            process = _there(member.process)
            if process.wait(STOPPED_S):
                self.problems.append(f"process {member.number} ended with {process.returncode}")
            _close(process)

    def end(self) -> None:
        """Leave none behind."""
        for member in self.members:
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                member.process.wait()
                _close(member.process)

    def _hear(self, member: Member, word: bytes) -> None:
        heard = _there(_there(member.process).stdout).readline()
        if heard != word:
            raise RuntimeError(f"process {member.number} said {heard!r} instead of {word!r}")


def _there(value: T | None) -> T:
    assert value is not None
    return value


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def runs_of(member: Member) -> list[Run]:
    """What the journal tells, run by run."""
    runs: list[Run] = []
    kills: list[int | None] = [*member.kills, None]
    for text in member.journal.read_text("utf-8").splitlines():
        line = _parsed(text)
        if line is None:
            continue
        if not runs or (line["what"] == "started" and len(runs) < len(kills)):
            runs.append(Run(f"{member.number}.{len(runs)}"))
        runs[-1].take(line)
    for run, killed_at in zip(runs, kills, strict=True):
        run.end(killed_at)
    return runs


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(text))
    except ValueError:  # empty, or torn by a kill
        return None


class Log(NamedTuple):
    """What the database holds in the end."""

    sequences: dict[str, list[int]]
    unseen: list[str]
    """Pairs with something pending, and pairs that are missing."""
    seen: dict[Pair, int]


async def read_log(database: str) -> Log:
    """Read everything from the database, with nobody there any more."""
    async with open_store(database, read_only=True) as store:
        sequences = {target: [sequence async for sequence in _sequences(store, target)] for target in TARGETS}
        seen, unseen = {}, []
        for cursor in await store.cursors(None):
            positions = cursor.positions
            seen[cursor.watcher, cursor.target.session_key] = positions.last_seen
            if positions.material > positions.last_seen:
                unseen.append(f"{cursor.watcher} has not seen {cursor.target.session_key}: {positions}")
        missing = {(watcher, target) for watcher in WATCHERS for target in watched(watcher)} - seen.keys()
        return Log(sequences, [*unseen, *(f"no cursor of {watcher} on {target}" for watcher, target in missing)], seen)


async def _sequences(store: Store, target: str) -> Any:
    since, more = 0, True
    while more:
        read = _there(await store.status(Address(target, "main"), changes_since=since, limit=200))
        for event in read.events:
            yield event.sequence
            since = event.sequence
        more = read.more


def check(runs: list[Run], log: Log) -> Iterator[str]:
    """Everything that is wrong, in sentences."""
    yield from log.unseen
    for run in runs:
        yield from _check_recorded(run, log)
        yield from _check_read(run, log)
    yield from _check_shown(runs, log)
    yield from _check_turns(runs)
    yield from _check_returns(runs)


def _check_recorded(run: Run, log: Log) -> Iterator[str]:
    for target, sequences in run.recorded.items():
        lost = sequences - set(log.sequences[target])
        if lost:
            yield f"{run.name} was told that {sorted(lost)[:5]} of {target} are recorded, and they are gone"


def _check_read(run: Run, log: Log) -> Iterator[str]:
    """A reader that follows the log sees all of it from the beginning on, in its order; one that was not killed sees it to the end."""
    for target, all_of_it in log.sequences.items():
        read = run.read[target]
        if read != all_of_it[: len(read)]:
            skipped = sorted(set(all_of_it[: len(read)]) - set(read))
            yield f"{run.name} did not read {target} in the order of its commits: skipped {skipped[:5]}"
        elif run.killed_at is None and len(read) < len(all_of_it):
            yield f"{run.name} read {len(read)} of {len(all_of_it)} events of {target}"


def _check_shown(runs: list[Run], log: Log) -> Iterator[str]:
    """What counts as seen was shown, by whichever process."""
    shown: dict[Pair, int] = defaultdict(int)
    for run in runs:
        for notice in run.showings:
            pair = notice.watcher, notice.target
            shown[pair] = max(shown[pair], notice.notified)
    for pair, last_seen in log.seen.items():
        if log.sequences[pair[1]] and last_seen > shown[pair]:
            yield f"{pair[0]} was shown {pair[1]} up to {shown[pair]}, and {last_seen} counts as seen"


def _check_turns(runs: list[Run]) -> Iterator[str]:
    """No two turns have one notice at the same time."""
    showings: dict[Notice, list[Showing]] = defaultdict(list)
    for run in runs:
        for notice, found in run.showings.items():
            showings[notice] += found
    for notice, found in showings.items():
        for earlier, later in pairwise(sorted(found)):
            if later.begins < earlier.ends:
                yield f"{notice} was in a turn of {earlier.run} and in one of {later.run} at the same time"


def _check_returns(runs: list[Run]) -> Iterator[str]:
    """What was acknowledged never returns."""
    acknowledged: dict[Pair, list[tuple[int, int]]] = defaultdict(list)
    for run in runs:
        for at, notice in run.acknowledged:
            acknowledged[notice.watcher, notice.target].append((at, notice.notified))
    for run in runs:
        for notice, found in run.showings.items():
            for at, notified in acknowledged[notice.watcher, notice.target]:
                if notified > notice.changes_since and any(showing.begins > at for showing in found):
                    yield f"{notice} was shown by {run.name} after {notified} had been acknowledged"


@dataclass(frozen=True, slots=True)
class Figures:
    """What came of it."""

    runs: int
    kills: int
    events: int
    read: int
    shown: int
    shown_by_several: int
    """Notices that more than one run showed, one after the other."""
    acknowledged: int
    seconds: float
    problems: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{PROCESSES} processes, {len(TARGETS)} targets, {len(WATCHERS)} watchers, {self.kills} kills, {self.seconds:.0f} s\n"
            f"{self.events:,} events in the log, {self.read:,} read by {self.runs} followers of each target\n"
            f"{self.shown:,} notices shown, {self.shown_by_several:,} of them by more than one process in turn; "
            f"{self.acknowledged:,} acknowledged by hand\n{len(self.problems)} violations"
        )


def _figures(fleet: Fleet, runs: list[Run], log: Log, seconds: float) -> Figures:
    shown: dict[Notice, int] = defaultdict(int)
    for run in runs:
        for notice in run.showings:
            shown[notice] += 1
    return Figures(
        runs=len(runs),
        kills=sum(len(member.kills) for member in fleet.members),
        events=sum(map(len, log.sequences.values())),
        read=sum(len(read) for run in runs for read in run.read.values()),
        shown=len(shown),
        shown_by_several=sum(count > 1 for count in shown.values()),
        acknowledged=sum(len(run.acknowledged) for run in runs),
        seconds=seconds,
        problems=(*fleet.problems, *check(runs, log)),
    )


def several(
    database: str, folder: Path, events: int, seed: int, disturbances: int = 0, disturb: Callable[[Fleet], None] | None = None
) -> Figures:
    """Let the processes do their work, `disturb` them so many times meanwhile, by default by a kill, and look at what they saw."""
    began = time.monotonic()
    fleet = Fleet(database, folder, events, seed)
    try:
        for member in fleet.members:
            fleet.start(member)
        for member in fleet.members:
            fleet.go(member)
        for _ in range(disturbances):
            time.sleep(fleet.dice.random() * 1.5)
            (disturb or Fleet.kill_one)(fleet)
        fleet.wait_until_recorded()
        asyncio.run(_until_quiet(database))
        fleet.stop()
    finally:
        fleet.end()
    log = asyncio.run(read_log(database))
    runs = [run for member in fleet.members for run in runs_of(member)]
    return _figures(fleet, runs, log, time.monotonic() - began)


async def _until_quiet(database: str) -> None:
    """Until nothing is pending any more: nobody looks for notices, so this shows that everybody is woken."""
    async with open_store(database, read_only=True) as store:
        deadline = time.monotonic() + QUIET_S
        while time.monotonic() < deadline:
            try:
                if not (await store.statistics()).pending:
                    return
            except StoreError:
                pass
            await asyncio.sleep(0.05)


def main(arguments: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.processes.several", description="Several hosts on one database.")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="what the dice start with (default: another each time)")
    parser.add_argument("--database", help="a path or a URL of an empty database (default: a file that is removed)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        database = given.database or f"{temporary}/state.db"
        figures = several(database, Path(temporary), given.events, given.seed, given.kills)
    print(f"seed {given.seed}\n{figures}")  # noqa: T201
    for problem in figures.problems:
        print(problem)  # noqa: T201
    return 1 if figures.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
