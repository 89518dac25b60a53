"""Playing many seeds, on all cores. What a seed comes to does not depend on who plays it, nor on what was played before."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from ..disk import Disk
from ..plan import FaultKind
from .figures import Figures
from .histories import History, long_history, short_history
from .trial import play

SHORT_PER_TASK: Final = 20
"""How many short histories a process plays before it tells."""


def history_of(seed: int, kinds: Sequence[FaultKind], *, long: bool) -> History:
    """What a seed is."""
    return (long_history if long else short_history)(seed, kinds)


def play_seeds(seeds: Sequence[int], kinds: Sequence[FaultKind], *, long: bool) -> Figures:
    """Play these in this process."""
    figures = Figures()
    with Disk() as disk:
        for seed in seeds:
            history = history_of(seed, kinds, long=long)
            figures.add(history, play(history, disk))
    return figures


def search(
    seeds: range, kinds: Sequence[FaultKind], *, long: bool = False, processes: int | None = None, progress: Callable[[Figures], None]
) -> Figures:
    """Play them all; `progress` is given the sums so far."""
    figures = Figures()
    with _results(seeds, kinds, long, processes or os.cpu_count() or 1) as results:
        for part in results:
            figures.add_all(part)
            progress(figures)
    return figures


@contextmanager
def _results(seeds: range, kinds: Sequence[FaultKind], long: bool, processes: int) -> Iterator[Iterator[Figures]]:
    work = partial(play_seeds, kinds=tuple(kinds), long=long)
    size = 1 if long else SHORT_PER_TASK
    tasks = (seeds[start : start + size] for start in range(0, len(seeds), size))
    if processes == 1 or len(seeds) <= size:
        yield map(work, tasks)
        return
    # A fresh interpreter for each: a fork would copy whatever threads and locks the caller has.
    # Ctrl-C reaches them all; the one that asked ends the others, and they have nothing to say about it.
    with multiprocessing.get_context("spawn").Pool(processes, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield pool.imap_unordered(work, tasks)
