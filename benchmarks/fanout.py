"""What an event costs when many watch its session: when their notices are pending already, and when each has to be opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from kizuki.actors import Gateway, open_gateway

from .databases import folder
from .naive import Naive, open_naive
from .rows import Row, compared, paired
from .scale import Scale
from .worlds import build_watched, watcher_key

SUITE = "fanout"
WHAT = "an event on a session with up to 100,000 watchers, pending or clean, against one with a single watcher"

MOST_COST = 1.2
MOST_OPENING_US = 20.0
MOST_GROWTH = 1.5
"""Of the cost for each watcher, from the smallest crowd to the largest."""
CROWD = 100
"""Watchers from which on the cost for each of them is no longer that of the commit."""
X_LABEL = "watchers"


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    crowds = scale.pick((1, 100), (1, 100, 2_000), (1, 100, 1_000, 10_000), (1, 100, 1_000, 10_000, 100_000))
    rounds, openings = scale.pick((1, 1), (40, 3), (100, 5), (200, 5))
    with folder() as place:
        progress(f"building sessions with {', '.join(f'{crowd:,}' for crowd in crowds)} watchers")
        targets = {_pending(crowd): crowd for crowd in crowds}
        targets |= {_clean(crowd, number): crowd for number in range(openings) for crowd in crowds}
        targets |= {_alone(crowd, number): 1 for number in range(openings) for crowd in crowds}
        build_watched(place / "gateway.db", targets)
        return asyncio.run(_measure(place, crowds, rounds, openings, progress))


def _watchers(crowd: int) -> str:
    return "one watcher" if crowd == 1 else f"{crowd:,} watchers"


def _pending(crowd: int) -> str:
    return f"agent:main:subagent:pending-{crowd}"


def _clean(crowd: int, number: int) -> str:
    return f"agent:main:subagent:clean-{crowd}-{number}"


def _alone(crowd: int, number: int) -> str:
    return f"agent:main:subagent:alone-{crowd}-{number}"


async def _measure(place: Path, crowds: Sequence[int], rounds: int, openings: int, progress: Callable[[str], None]) -> list[Row]:
    async with open_gateway(place / "gateway.db") as gateway:
        await gateway.idle()
        for crowd in crowds:
            await _settled(gateway, _pending(crowd))
        progress(f"{rounds} rounds of an event on each, all watchers pending")
        rows = await _all_pending(gateway, crowds, rounds)
        progress(f"{openings} rounds of an event on each, all watchers clean")
        with open_naive(place / "naive-openings.db") as naive:
            rows += await _all_clean(gateway, naive, crowds, openings)
        progress("beside the naive design")
        return rows + await _beside_naive(gateway, place, crowds, max(1, rounds // 10))


async def _all_pending(gateway: Gateway, crowds: Sequence[int], rounds: int) -> list[Row]:
    elapsed: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    for _ in range(rounds):
        for crowd in crowds:
            elapsed[crowd].append(await _event_us(gateway, _pending(crowd)))
    rows = []
    for crowd in crowds[1:]:
        row = paired(SUITE, f"an event, {_watchers(crowd)} pending, against one watcher", "µs", elapsed[crowd], elapsed[1])
        rows.append(row.ratio_at_most(MOST_COST))
    return rows


async def _all_clean(gateway: Gateway, naive: Naive, crowds: Sequence[int], openings: int) -> list[Row]:
    """A gateway that opens for many does so after the commit of the event, in commits of its own; both are seen here."""
    append: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    alone: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    cpu_us: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    naive_us: dict[int, list[float]] = {crowd: [] for crowd in crowds}
    opened = (await gateway.statistics()).notices_opened
    for number in range(openings):
        for crowd in crowds:
            alone[crowd].append(await _event_us(gateway, _alone(crowd, number)))
            await gateway.idle()
            began_s = process_time()
            append[crowd].append(await _event_us(gateway, _clean(crowd, number)))
            await gateway.idle()
            cpu_us[crowd].append((process_time() - began_s) * 1e6 / crowd)
            naive.watch(map(watcher_key, range(crowd)), _clean(crowd, number))
            began_s = process_time()
            naive.human_message(_clean(crowd, number), "telegram")
            naive_us[crowd].append((process_time() - began_s) * 1e6 / crowd)
    opened = (await gateway.statistics()).notices_opened - opened
    exact = opened == openings * sum(crowd + 1 for crowd in crowds)
    return [*_delays(crowds, append, alone), *_opening_costs(crowds, cpu_us, naive_us, exact=exact)]


def _delays(crowds: Sequence[int], append: dict[int, list[float]], alone: dict[int, list[float]]) -> list[Row]:
    rows = []
    for crowd in crowds[1:]:
        row = paired(SUITE, f"the append that opens for {crowd:,}, against one that opens for one", "µs", append[crowd], alone[crowd])
        rows.append(row.at("The append that opens notices", crowd, X_LABEL, line="watchers clean", beside="one watcher"))
    return [*rows[:-1], rows[-1].ratio_at_most(MOST_GROWTH)]


def _opening_costs(crowds: Sequence[int], cpu_us: dict[int, list[float]], naive_us: dict[int, list[float]], *, exact: bool) -> list[Row]:
    """`exact`: each watcher got its one notice."""
    rows = []
    for crowd in (crowd for crowd in crowds if crowd >= CROWD):
        name = f"opening for {crowd:,} clean watchers, CPU time for each, against the naive design"
        row = paired(SUITE, name, "µs", cpu_us[crowd], naive_us[crowd])
        placed = row.at("CPU time to open a notice, for each watcher", crowd, X_LABEL, beside="naive: one UPDATE for all")
        rows.append(placed.at_most(MOST_OPENING_US))
    first, last = (median(cpu_us[crowd]) for crowd in (CROWD, crowds[-1]))
    linear = compared(SUITE, f"CPU time for each of {crowds[-1]:,}, against each of {CROWD:,}", "µs", last, first).ratio_at_most(
        MOST_GROWTH
    )
    told = Row(SUITE, "each clean watcher got exactly one notice", float(exact), "", target="1", ok=exact)
    return [*rows, linear, told]


async def _beside_naive(gateway: Gateway, place: Path, crowds: Sequence[int], rounds: int) -> list[Row]:
    with ExitStack() as stack:
        naive = stack.enter_context(open_naive(place / "naive.db"))
        for crowd in crowds:
            naive.watch(map(watcher_key, range(crowd)), _pending(crowd))
            naive.human_message(_pending(crowd), "telegram")
        rows = []
        for crowd in crowds:
            ours, plain = [], []
            for _ in range(rounds):
                ours.append(await _event_us(gateway, _pending(crowd)))
                plain.append(_naive_us(naive, _pending(crowd)))
            row = paired(SUITE, f"an event, {_watchers(crowd)} pending, against the naive design", "µs", ours, plain)
            rows.append(
                row.at("An event on a session whose watchers are all pending", crowd, X_LABEL, beside="naive: updates every watcher's row")
            )
        return rows


def _naive_us(naive: Naive, target: str) -> float:
    began = perf_counter()
    naive.human_message(target, "telegram")
    return (perf_counter() - began) * 1e6


async def _event_us(gateway: Gateway, target: str) -> float:
    began = perf_counter()
    await gateway.human_message(target, channel="telegram")
    return (perf_counter() - began) * 1e6


async def _settled(gateway: Gateway, target: str) -> None:
    """Record an event, and wait until every notice that it calls for is open."""
    await gateway.human_message(target, channel="telegram")
    await gateway.idle()
