"""Print the traces of some seeds: `python print_traces.py FIRST LAST`. A process of its own for the tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kizuki.actors.simulation.disk import Disk
from tests.simulation.stories import trace_of

if __name__ == "__main__":
    with Disk() as disk:
        for seed in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
            sys.stdout.write(trace_of(seed, disk))
