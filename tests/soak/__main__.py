"""A soak: two gateways in two processes, everything that hosts do, as long as you like: `python -m tests.soak --minutes 60`.

Memory of both, the database and its write-ahead log are recorded in lines of JSON and, where matplotlib is installed, drawn. In the end the
database is looked at as after a crash. Exit code 1 if anything goes on growing or is wrong in the database, or a host has ended.

Growing is judged by the last half: the slope (the median over all pairs of samples) times its length, against a bound of bytes or a share
of the level. The first half is for what is filled once: caches, the rows that retention allows, the sessions that the load knows.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import random
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.consistency import violations
from tests.soak.verdict import BOUNDS, MIB, Verdict, judged

HOSTS = 2
SAMPLES = 300
READY_S = 60.0
END_S = 60.0


class Soak:
    """One run."""

    def __init__(self, folder: Path, arguments: argparse.Namespace) -> None:
        self.database = folder / "state.db"
        self.records = arguments.output
        self.samples: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._arguments = arguments
        self._transcripts = folder / "projects" / "-w"
        self._latest: list[dict[str, Any]] = [{} for _ in range(HOSTS)]
        self._told = [asyncio.Event() for _ in range(HOSTS)]

    async def run(self) -> None:
        """Start the hosts, look at them, and end them."""
        self._transcripts.mkdir(parents=True)
        hosts = [await self._started(number) for number in range(HOSTS)]
        readers = [asyncio.create_task(self._read(host, number)) for number, host in enumerate(hosts)]
        try:
            await self._ready()
            await self._watch(hosts)
        finally:
            await asyncio.gather(*(self._end(host) for host in hosts))
            await asyncio.gather(*readers)
        self.problems += [f"host {number} ended with {host.returncode}" for number, host in enumerate(hosts) if host.returncode]
        self.problems += violations(self.database)

    async def _started(self, number: int) -> Process:
        given = (str(self.database), str(self._transcripts), str(number), str(self._arguments.seed), str(self._arguments.rate / HOSTS))
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.soak.host", *given, stdin=PIPE, stdout=PIPE, start_new_session=True
        )

    async def _read(self, host: Process, number: int) -> None:
        assert host.stdout is not None
        async for line in host.stdout:
            self._latest[number] = json.loads(line)
            self._told[number].set()

    async def _ready(self) -> None:
        async with asyncio.timeout(READY_S):
            await asyncio.gather(*(event.wait() for event in self._told))

    async def _watch(self, hosts: Sequence[Process]) -> None:
        """Ctrl-C ends it early, and what was seen until then is judged."""
        enough = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, enough.set)
        began, seconds = time.monotonic(), 60 * self._arguments.minutes
        with self.records.open("w", encoding="utf-8") as records:
            while (at := time.monotonic() - began) < seconds and all(host.returncode is None for host in hosts) and not enough.is_set():
                self.samples.append(self._sample(at))
                records.write(json.dumps(self.samples[-1]) + "\n")
                records.flush()
                _say(self.samples[-1])
                with suppress(TimeoutError):
                    await asyncio.wait_for(enough.wait(), max(1.0, seconds / SAMPLES))
        self.problems += [f"host {number} has ended by itself" for number, host in enumerate(hosts) if host.returncode is not None]

    def _sample(self, at: float) -> dict[str, Any]:
        wal = self.database.with_name("state.db-wal")
        return {
            "at_s": round(at, 3),
            "wal_bytes": wal.stat().st_size if wal.exists() else 0,
            "database_bytes": self.database.stat().st_size,
            "hosts": list(self._latest),
        }

    async def _end(self, host: Process) -> None:
        assert host.stdin is not None
        host.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                await host.wait()
        except TimeoutError:
            self.problems.append("a host did not end when it was told to")
            host.kill()
            await host.wait()

    def verdicts(self) -> list[Verdict]:
        """On each series."""
        moments = [sample["at_s"] for sample in self.samples]
        series = [
            (f"memory of host {number}", "memory", [s["hosts"][number]["rss_bytes"] for s in self.samples]) for number in range(HOSTS)
        ]
        series += [(name, name, [sample[f"{name}_bytes"] for sample in self.samples]) for name in ("wal", "database")]
        return [judged(name, BOUNDS[kind], moments, values) for name, kind, values in series]

    def done(self) -> str:
        """What the hosts did."""
        done: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        for latest in self._latest:
            done.update(latest["done"])
            refused.update(latest["refused"])
        lost = sum(latest["statistics"]["recordings_lost"] for latest in self._latest)
        counted = ", ".join(f"{count:,} {name}" for name, count in done.most_common())
        return f"{done.total():,} calls: {counted}\nrefused: {dict(refused) or 'none'}\n{lost} recordings lost"


def _say(sample: dict[str, Any]) -> None:
    """Progress, on standard error."""
    memory = " and ".join(f"{host['rss_bytes'] / MIB:.1f}" for host in sample["hosts"])
    files = f"database {sample['database_bytes'] / MIB:.1f}, write-ahead log {sample['wal_bytes'] / MIB:.1f}"
    sys.stderr.write(f"{sample['at_s'] / 60:6.1f} min: memory {memory} MiB, {files} MiB\n")


def drawn(samples: Sequence[dict[str, Any]], path: Path) -> bool:
    """Draw the samples, if matplotlib is there."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    minutes = [sample["at_s"] / 60 for sample in samples]
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6), layout="constrained")
    for number in range(HOSTS):
        above.plot(minutes, [sample["hosts"][number]["rss_bytes"] / MIB for sample in samples], label=f"gateway {number}")
    for name, label in (("database", "database"), ("wal", "write-ahead log")):
        below.plot(minutes, [sample[f"{name}_bytes"] / MIB for sample in samples], label=label)
    for axes, title in ((above, "memory (RSS), MiB"), (below, "files, MiB")):
        axes.axvspan(minutes[len(minutes) // 2], minutes[-1], alpha=0.08, label="judged")
        axes.set(title=title, ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
    below.set_xlabel("minutes")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def main() -> int:
    """Run one, and say what it came to."""
    arguments = _parsed()
    with tempfile.TemporaryDirectory(prefix="kizuki-soak-", dir=arguments.folder) as folder:
        soak = Soak(Path(folder), arguments)
        asyncio.run(soak.run())
    verdicts = soak.verdicts() if len(soak.samples) > 3 else []
    minutes = soak.samples[-1]["at_s"] / 60 if soak.samples else 0.0
    lines = [soak.done(), *map(str, verdicts), *(f"WRONG {problem}" for problem in soak.problems), f"samples: {arguments.output}"]
    picture = arguments.output.with_suffix(".png")
    if soak.samples and drawn(soak.samples, picture):
        lines.append(f"drawn: {picture}")
    sys.stdout.write("\n".join([f"seed {arguments.seed}, {minutes:.1f} minutes", *lines]) + "\n")
    return 1 if soak.problems or not verdicts or not all(verdict.ok for verdict in verdicts) else 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=200.0, help="calls a second, of both hosts together")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--folder", type=Path, help="where the database is made")
    parser.add_argument("--output", type=Path, default=Path("soak.jsonl"), help="the samples; the picture goes beside them")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
