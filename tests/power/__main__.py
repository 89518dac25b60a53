"""The long form of the test: `python -m tests.power --seeds 100`. Exit code 1 if anything is wrong, with how to see it again."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.power.history import recorded
from tests.power.search import Figures, search


def main() -> int:
    """Play the histories of the seeds, and print figures."""
    arguments = _parsed()
    figures = Figures()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for problem in _problems(seed, arguments, figures):
            _say(f"{problem}; again: python -m tests.power --first {seed} --seeds 1 --synchronous {arguments.synchronous}")
        if arguments.verbose:
            _say(f"after seed {seed}: {figures}")
    _say(str(figures))
    return 1 if figures.problems else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _problems(seed: int, arguments: argparse.Namespace, figures: Figures) -> list[str]:
    with (
        tempfile.TemporaryDirectory(dir=arguments.folder) as folder,
        recorded(Path(folder), seed, commits=arguments.commits, synchronous=arguments.synchronous) as history,
    ):
        keeps = arguments.synchronous == "full"
        return list(search(history, Path(folder) / "image", seed, figures, cuts=arguments.cuts, keeps_acknowledged=keeps))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.power", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many histories")
    parser.add_argument("--first", type=int, default=1, help="the first one's seed")
    parser.add_argument("--commits", type=int, default=40, help="in each history")
    parser.add_argument("--cuts", type=int, default=2, help="ways of cutting the supply at each point")
    parser.add_argument("--synchronous", choices=("full", "normal", "off"), default="full")
    parser.add_argument("--folder", type=Path, help="where the images are made; a memory file system is the fastest")
    parser.add_argument("--verbose", action="store_true", help="print the figures after each seed")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
