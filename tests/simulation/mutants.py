"""Whether the oracle has teeth: `python -m tests.simulation.mutants` breaks the system in one way after the other, and looks how many seeds
it takes until that is found. Exit code 1 if a mutant lives.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from kizuki.actors.simulation.disk import Disk
from kizuki.actors.simulation.search.histories import short_history
from kizuki.actors.simulation.search.trial import play
from tests.simulation.mutations import MUTATIONS

SEEDS_MAX = 1_000


class Verdict(NamedTuple):
    """What became of one mutant."""

    name: str
    seed: int | None
    """The first that found it; None: it lives."""
    rule: str
    problem: str
    wall_s: float


def hunt(name: str, seeds_max: int = SEEDS_MAX, first: int = 1) -> Verdict:
    """Play seed after seed until the mutant is found."""
    started = time.perf_counter()
    with MUTATIONS[name].applied(), Disk() as disk:
        for seed in range(first, first + seeds_max):
            outcome = play(short_history(seed), disk)
            if outcome.problem is not None:
                return Verdict(name, seed, outcome.rule or "", outcome.problem, time.perf_counter() - started)
    return Verdict(name, None, "", "", time.perf_counter() - started)


def main() -> int:
    """Hunt them all, on all cores."""
    arguments = _parsed()
    names = arguments.names or list(MUTATIONS)
    living = 0
    with multiprocessing.Pool(arguments.processes) as pool:
        for verdict in pool.imap(hunt, names):
            living += verdict.seed is None
            sys.stdout.write(_line(verdict, arguments.verbose))
            sys.stdout.flush()
    sys.stdout.write(f"{len(names) - living} of {len(names)} mutants caught within {SEEDS_MAX} seeds\n")
    return 1 if living else 0


def _line(verdict: Verdict, verbose: bool) -> str:
    what = MUTATIONS[verdict.name].what
    if verdict.seed is None:
        return f"{verdict.name:34} LIVES ({verdict.wall_s:.0f} s): {what}\n"
    found = f"{verdict.name:34} seed {verdict.seed:>4}, rule {verdict.rule:<6} ({verdict.wall_s:5.1f} s): {what}\n"
    return found + (f"{'':36}{verdict.problem[:400]}\n" if verbose else "")


def _parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="print what was found of each")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
