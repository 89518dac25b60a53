"""A short form of `python -m tests.soak`, and how it judges."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.soak.verdict import MIB, Bound, judged

BOUND = Bound(MIB, 0.1, 20 * MIB)
MOMENTS = [float(second) for second in range(100)]


def _ok(values: list[float]) -> bool:
    return judged("memory", BOUND, MOMENTS, [round(value * MIB) for value in values]).ok


def test_what_levels_off_is_well() -> None:
    """A series that grows in its first half and is level after it, single peaks or not, has levelled off."""
    assert _ok([min(10.0, second / 4) for second in MOMENTS])
    assert _ok([10.0 + 5 * (second % 10 == 0) for second in MOMENTS])


def test_what_goes_on_growing_is_noticed() -> None:
    """A series that grows by more than the bound over its last half, slowly or in steps, has not."""
    assert not _ok([10.0 + second / 20 for second in MOMENTS])
    assert not _ok([10.0 + 2 * (second // 25) for second in MOMENTS])


def test_what_exceeds_its_limit_is_noticed() -> None:
    """A series that was once higher than it may ever be is not well, however level it is."""
    assert not _ok([10.0 + 11 * (second == 3) for second in MOMENTS])


def test_a_few_seconds(tmp_path: Path) -> None:
    """Two hosts under a mixed load leave a sound database and end when they are told to; their memory and files are recorded."""
    records = tmp_path / "soak.jsonl"
    command = [sys.executable, "-m", "tests.soak", "--minutes", "0.07", "--seed", "5", "--folder", str(tmp_path), "--output", str(records)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert "WRONG" not in done.stdout, done.stdout
    samples = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    assert len(samples) >= 3, done.stderr
    assert samples[-1]["database_bytes"] > 0
    assert all(host["rss_bytes"] > MIB and host["done"] for host in samples[-1]["hosts"])


def test_it_can_be_ended_early(tmp_path: Path) -> None:
    """Ctrl-C ends an hour at once, in good order, and what was seen is judged."""
    command = [sys.executable, "-m", "tests.soak", "--minutes", "60", "--folder", str(tmp_path), "--output", str(tmp_path / "soak.jsonl")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as running:
        assert running.stderr is not None
        assert "memory" in running.stderr.readline()
        running.send_signal(signal.SIGINT)
        told, _ = running.communicate(timeout=60)
    assert " minutes" in told
    assert "calls" in told
    assert "WRONG" not in told
