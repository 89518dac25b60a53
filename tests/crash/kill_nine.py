"""Kill -9 at random moments, over and over on one database: `python -m tests.crash.kill_nine --rounds 200`.

Each round starts a host under load in a process of its own, kills it, looks at what it left behind, and lets a fresh gateway open it.
Whatever the host was told before it died must be so. Exit code 1 if anything was not.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import select
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kizuki.actors import ManualClock, UnknownSession, open_gateway
from tests.consistency import violations
from tests.crash.host import CONFIG, LEAD, OPS, STEADY, WATCHERS

READY_S = 30.0
"""How long a host may take to be ready."""
ALIVE_S = 5.0
"""How long a host that is to kill itself may take for that, before it is killed."""

Pair = tuple[str, str]


@dataclass
class Figures:
    """What all rounds together came to."""

    kills: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    recorded: int = 0
    """Events that a host was told are recorded."""
    untold_kills: int = 0
    """Kills after which the database held something committed that no host was told of."""
    untold_events: int = 0
    shown: int = 0
    acknowledged: int = 0
    pending: int = 0
    """Notices that the fresh gateways found, all rounds together."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        moments = ", ".join(f"{count} {moment}" for moment, count in sorted(self.kills.items()))
        return (
            f"{sum(self.kills.values())} kills ({moments}); {self.untold_kills} of them between a commit and its reply\n"
            f"{self.recorded:,} events told as recorded, {self.untold_events:,} more committed untold\n"
            f"{self.shown:,} notices shown, {self.acknowledged:,} acknowledged, {self.pending:,} found pending after the kills\n"
            f"{len(self.problems)} violations"
        )


class Told:
    """What the hosts were told so far, read from their journal."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._read = 0
        self.recorded: dict[str, set[int]] = defaultdict(set)
        self.acknowledged: dict[Pair, int] = defaultdict(int)
        """The highest position acknowledged."""
        self.shown: dict[Pair, set[int]] = defaultdict(set)
        self.draining: set[str] = set()
        """Watchers with a drain under way, whose answer may have been lost with the process."""

    def read_on(self, figures: Figures) -> Iterator[str]:
        """Take in what is new; gives what is wrong with it by itself."""
        with self._journal.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        complete = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        for line in complete.splitlines():
            yield from self._take(json.loads(line), figures)

    def _take(self, line: dict[str, Any], figures: Figures) -> Iterator[str]:
        match line["what"]:
            case "recorded":
                self.recorded[line["target"]].add(line["sequence"])
                figures.recorded += 1
            case "watches":
                self.shown[line["watcher"], line["target"]].add(line["last_seen"])
            case "drains":
                self.draining.add(line["watcher"])
            case "drained":
                self.draining.discard(line["watcher"])
            case "shown":
                figures.shown += len(line["notices"])
                yield from self._shown(line["notices"])
            case "acknowledged":
                figures.acknowledged += len(line["notices"])
                for watcher, target, _, notified in line["notices"]:
                    self.acknowledged[watcher, target] = max(self.acknowledged[watcher, target], notified)

    def _shown(self, notices: list[tuple[str, str, int, int]]) -> Iterator[str]:
        for watcher, target, changes_since, notified in notices:
            self.shown[watcher, target].add(notified)
            if changes_since < self.acknowledged[watcher, target]:
                yield f"{watcher} was shown {target} since {changes_since}, and had acknowledged {self.acknowledged[watcher, target]}"


class Round:
    """One database, its journal, and what has become of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.database = folder / "state.db"
        self.journal = folder / "journal.jsonl"
        self.journal.touch()
        self.told = Told(self.journal)
        self.dice = random.Random(seed)
        self.moments = itertools.cycle(("anywhere", "after", "opening", "anywhere", "after", "before"))
        self.figures = Figures()

    def run(self) -> None:
        """Start a host, kill it, check."""
        moment = next(self.moments)
        self._start_and_kill(moment)
        self.figures.kills[moment] += 1
        problems = [*self.told.read_on(self.figures)]
        if self.database.exists():
            problems += violations(self.database)
            problems += self._check_left_behind()
            problems += asyncio.run(self._check_opened())
        self.told.draining.clear()
        number = sum(self.figures.kills.values())
        self.figures.problems += [f"round {number}, killed {moment}: {problem}" for problem in problems]

    def _start_and_kill(self, moment: str) -> None:
        order = [f"{moment}:{self.dice.randrange(1, 120)}"] if moment in ("after", "before") else []
        arguments = [str(self.database), str(self.journal), str(self.dice.randrange(2**32)), *order]
        command = [sys.executable, "-m", "tests.crash.host", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as host:
            if moment == "opening":
                _dies_within(host, 0.2 + self.dice.random() * 0.4)
            elif _ready_or_dead(host):
                _dies_within(host, ALIVE_S if order else self.dice.random() * 0.4)
            host.kill()
            if host.wait() != -signal.SIGKILL:
                self.figures.problems.append(f"a host ended by itself with {host.returncode}")

    def _check_left_behind(self) -> Iterator[str]:
        """Before anybody has repaired anything."""
        with closing(sqlite3.connect(self.database)) as connection:
            events = _by_key(connection.execute("SELECT session_key, sequence FROM session_state_events"))
            pruned = dict(connection.execute("SELECT session_key, pruned_max_sequence FROM session_state_heads").fetchall())
            cursors = connection.execute(
                "SELECT watcher_session_key, target_session_key, last_seen_sequence FROM session_watch_cursors"
            ).fetchall()
        for target, sequences in self.told.recorded.items():
            lost = {sequence for sequence in sequences - events[target] if sequence > pruned.get(target, 0)}
            if lost:
                yield f"{target}: {sorted(lost)} were told as recorded, and are gone"
        for watcher, target, last_seen in cursors:
            yield from self._check_cursor(watcher, target, last_seen)
        self._count_untold(events)

    def _check_cursor(self, watcher: str, target: str, last_seen: int) -> Iterator[str]:
        acknowledged = self.told.acknowledged[watcher, target]
        if last_seen < acknowledged:
            yield f"{watcher} on {target}: acknowledged up to {acknowledged}, and last seen says {last_seen}"
        steady = watcher == OPS and target in STEADY
        if steady and last_seen not in self.told.shown[watcher, target]:
            if watcher in self.told.draining:  # shown by a drain whose answer was lost with the process
                self.told.shown[watcher, target].add(last_seen)
            else:
                yield f"{watcher} on {target}: was never shown anything up to {last_seen}, and that counts as seen"

    def _count_untold(self, events: dict[str, set[int]]) -> None:
        highest = max((max(sequences) for sequences in self.told.recorded.values()), default=0)
        untold = sum(sequence > highest for sequences in events.values() for sequence in sequences)
        self.figures.untold_events += untold
        self.figures.untold_kills += untold > 0

    async def _check_opened(self) -> list[str]:
        """With a fresh gateway: exactly one notice for each pair with something unseen, and a wake for who can be woken."""
        problems: list[str] = []
        woken: set[str] = set()
        clock = ManualClock(time.time_ns() // 1_000_000)
        async with open_gateway(self.database, clock=clock, config=CONFIG, wake=lambda key, reasons: woken.add(key)) as gateway:
            await clock.advance(0.25)
            for watcher in WATCHERS:
                watches = await gateway.watches(watcher)
                try:
                    notices = await gateway.pending(watcher)
                except UnknownSession:
                    continue
                self.figures.pending += len(notices)
                unseen = sorted((watch.target, watch.last_seen, watch.material) for watch in watches if watch.material > watch.last_seen)
                shown = sorted((notice.target, notice.changes_since, notice.notified) for notice in notices)
                if unseen != shown:
                    problems.append(f"{watcher}: unseen are {unseen}, noticed are {shown}")
                if watcher != LEAD and (watcher in woken) != bool(shown):
                    problems.append(f"{watcher}: {len(shown)} notices, {'woken' if watcher in woken else 'not woken'}")
        return problems + violations(self.database)


def _by_key(rows: sqlite3.Cursor) -> dict[str, set[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for key, sequence in rows:
        found[key].add(sequence)
    return found


def _ready_or_dead(host: subprocess.Popen[bytes]) -> bool:
    assert host.stdout is not None
    ready, _, _ = select.select([host.stdout], [], [], READY_S)
    return bool(ready) and host.stdout.readline() == b"ready\n"


def _dies_within(host: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        host.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def kill_nine(folder: Path, rounds: int, seed: int) -> Figures:
    """Run the rounds in a folder."""
    round_ = Round(folder, seed)
    for _ in range(rounds):
        round_.run()
    return round_.figures


def main(arguments: list[str]) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.kill_nine", description="Kill a host under load, again and again.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="what the dice start with (default: another each time)")
    parser.add_argument("--folder", type=Path, help="where the database and the journal are kept (default: a folder that is removed)")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        figures = kill_nine(given.folder or Path(temporary), given.rounds, given.seed)
    print(f"seed {given.seed}, {time.monotonic() - began:.0f} s\n{figures}")  # noqa: T201
    for problem in figures.problems:
        print(problem)  # noqa: T201
    return 1 if figures.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
