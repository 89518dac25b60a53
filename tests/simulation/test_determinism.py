"""A run is a pure function of its story, its seed and its faults."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kizuki.actors.simulation.disk import Disk
from tests.simulation.stories import trace_of

SEEDS = range(1, 13)
PRINT_TRACES = Path(__file__).with_name("print_traces.py")


def printed(hash_seed: str) -> str:
    """The traces as a process of its own gives them."""
    path = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    command = [sys.executable, str(PRINT_TRACES), str(SEEDS[0]), str(SEEDS[-1])]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


def test_one_seed_gives_the_same_bytes_in_two_processes() -> None:
    """Same seed, same bytes of trace, in two processes with different hash seeds, with crashes and other faults in it."""
    one, another = printed("0"), printed("4711")
    assert one == another
    assert one.count(" crash ") >= len(SEEDS) / 2
    assert one.count(" fault ") > len(SEEDS)


def test_what_ran_before_leaves_no_trace(tmp_path: Path) -> None:
    """A world on a database that others have used gives the trace that it gives on a new one, in memory or in a file."""
    with Disk() as used, Disk() as new, Disk(tmp_path / "state.db") as file:
        for seed in (1, 2, 3):
            trace_of(seed, used)
        assert trace_of(7, used) == trace_of(7, new) == trace_of(7, file)


def test_another_seed_is_another_history() -> None:
    """The seed decides something."""
    with Disk() as disk:
        assert len({trace_of(seed, disk) for seed in SEEDS}) == len(SEEDS)
