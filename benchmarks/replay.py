"""A start on a database full of cursors: how soon it serves, how soon it tells, and what it takes meanwhile.

Each start is a process of its own (`starting.py`). *Ready*: `open_gateway` has returned, and every call is served. *First notice*: the
host's wake callback was called for a pending watcher, with the merging of wakes switched off. Both count from the call of `open_gateway`.
*All replayed*: every pending pair has its notice; until then turns and events are measured as they come. Baselines: a start that loads
every cursor from the same file with `sqlite3`, as a design without replay by query would, in time and in memory.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from .children import run_child
from .databases import folder
from .rows import Row, compared
from .scale import Scale
from .worlds import build_cursors

SUITE = "replay"
WHAT = "a start with up to a million cursors, 1 % or all of them pending, against loading every cursor"

SHARES = (0.01, 1.0)
MOST_READY_S = 3.0
MOST_FIRST_S = 0.6
MOST_ALL_S = 30.0
MOST_MEMORY = 2.0
ONCE_FROM = 1_000_000
"""Pending pairs from which on one start is enough: it takes long, and tells much."""
X_LABEL = "cursors"

Start = Mapping[str, Any]


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    sizes = scale.pick((100,), (1_000, 10_000), (1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000))
    rounds = scale.pick(1, 1, 3, 3)
    starts: dict[tuple[int, float], list[Start]] = {}
    for size in sizes:
        for share in SHARES:
            pending = max(1, round(size * share))
            times = rounds if pending < ONCE_FROM else 1
            progress(f"{size:,} cursors, {share:.0%} pending: building, then {times} starts")
            starts[size, share] = _starts(size, pending, times)
    return _rows(sizes, starts)


def _starts(cursors: int, pending: int, rounds: int) -> list[Start]:
    with folder() as place:
        build_cursors(place / "built.db", cursors, pending)
        return [_start(place, cursors) for _ in range(rounds)]


def _start(place: Path, cursors: int) -> Start:
    """On a copy, for a start changes the database."""
    path = place / "started.db"
    for left in place.glob("started.db*"):
        left.unlink()
    shutil.copy(place / "built.db", path)
    naive = asyncio.run(run_child("starting", "naive", place / "built.db", cursors))
    ours = asyncio.run(run_child("starting", "gateway", path, cursors))
    return {**ours, "naive_s": naive["ready_s"], "naive_mib": naive["mib"]}


def _rows(sizes: Sequence[int], starts: Mapping[tuple[int, float], Sequence[Start]]) -> list[Row]:
    rows: list[Row] = []
    for size in sizes:
        for share in SHARES:
            rows += _start_rows(f"{size:,} cursors, {share:.0%} pending", size, share, starts[size, share])
    return [*rows, *_in_proportion(sizes, starts)]


def _of(starts: Sequence[Start], name: str) -> float:
    return float(median(start[name] for start in starts))


def _start_rows(name: str, size: int, share: float, starts: Sequence[Start]) -> list[Row]:
    loading, line = "loading every cursor", f"{share:.0%} pending"
    ready = compared(SUITE, f"{name}: ready, against loading every cursor", "s", _of(starts, "ready_s"), _of(starts, "naive_s"))
    first = Row(SUITE, f"{name}: first notice", _of(starts, "first_s"), "s")
    done = Row(SUITE, f"{name}: all replayed", _of(starts, "all_s"), "s")
    memory = compared(SUITE, f"{name}: memory, against loading every cursor", "MiB", _of(starts, "mib"), _of(starts, "naive_mib"))
    rows = [
        ready.at("A start until it serves", size, X_LABEL, line=line, beside=loading).at_most(MOST_READY_S),
        first.at("A start until the first notice", size, X_LABEL, line=line),
        done.at("A start until all is replayed", size, X_LABEL, line=line).at_most(MOST_ALL_S),
        memory.at("Memory that a start takes", size, X_LABEL, line=line, beside=loading),
    ]
    if share < 1:  # What is promised is promised of a start of which one pair in a hundred is pending.
        rows[1] = rows[1].at_most(MOST_FIRST_S)
    turns = [ms for start in starts for ms in start["turns_ms"]]
    if turns:
        rows.append(Row(SUITE, f"{name}: a turn during the replay, median of {len(turns)}", median(turns), "ms"))
        rows.append(Row(SUITE, f"{name}: a turn during the replay, the longest", max(turns), "ms"))
    return rows


def _in_proportion(sizes: Sequence[int], starts: Mapping[tuple[int, float], Sequence[Start]]) -> list[Row]:
    """The same number pending, among a hundred times the cursors, takes the same memory."""
    rows = []
    for size in sizes:
        if (size // 100, 1.0) in starts:
            few, all_ = _of(starts[size, 0.01], "mib"), _of(starts[size // 100, 1.0], "mib")
            name = f"memory with {size // 100:,} pending of {size:,}, against {size // 100:,} of {size // 100:,}"
            rows.append(compared(SUITE, name, "MiB", few, all_).ratio_at_most(MOST_MEMORY))
    return rows
