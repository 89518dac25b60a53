"""Opening and draining: many changed targets of one watcher, from the events to the last of its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from kizuki.actors import Gateway, open_gateway

from .databases import folder
from .naive import Naive, open_naive
from .rows import Row, paired
from .scale import Scale
from .worlds import child_key

SUITE = "turns"
WHAT = "opening a watcher's notices, and draining them in turns of 20, against the naive design"

FEWEST_EVENTS = 3_000
"""In all rounds of a size, for the naive design takes its time."""
WATCHER = "agent:main:main"
X_LABEL = "targets that one watcher watches"
NAIVE = "naive: a commit for each event, one for each turn"


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    sizes = scale.pick((10, 40), (100, 1_000), (100, 1_000, 10_000), (100, 1_000, 10_000))
    rounds = scale.pick(1, 2, 3, 5)
    rows: list[Row] = []
    for targets in sizes:
        progress(f"{targets:,} targets")
        with folder() as place:
            rows += asyncio.run(_measure(place, targets, max(1, min(rounds, FEWEST_EVENTS // targets))))
    return rows


async def _measure(place: Path, targets: int, rounds: int) -> list[Row]:
    keys = [child_key(number) for number in range(targets)]
    with open_naive(place / "naive.db") as naive:
        for key in keys:
            naive.watch([WATCHER], key)
        async with open_gateway(place / "gateway.db") as gateway:
            await gateway.open_session(WATCHER)
            await asyncio.gather(*(gateway.watch(WATCHER, key) for key in keys))
            return await _alternate(gateway, naive, keys, rounds)


async def _alternate(gateway: Gateway, naive: Naive, keys: Sequence[str], rounds: int) -> list[Row]:
    opening, draining, naive_opening, naive_draining = [], [], [], []
    shown: list[str] = []
    for _ in range(rounds):
        opening.append(await _open_us(gateway, keys))
        naive_opening.append(_naive_open_us(naive, keys))
        draining.append(await _drain_us(gateway, shown) / len(keys))
        naive_draining.append(_naive_drain_us(naive) / len(keys))
    exact = sorted(shown) == sorted(list(keys) * rounds)
    opened = paired(SUITE, f"an event that opens a notice, {len(keys):,} targets at once", "µs", opening, naive_opening)
    drained = paired(SUITE, f"a notice drained, {len(keys):,} in turns of 20", "µs", draining, naive_draining)
    return [
        opened.at("Opening: an event and its notice", len(keys), X_LABEL, beside=NAIVE),
        drained.at("Draining: a notice, in turns of 20", len(keys), X_LABEL, beside=NAIVE),
        Row(SUITE, f"each of {len(keys):,} notices shown exactly once", float(exact), "", target="1", ok=exact),
    ]


async def _open_us(gateway: Gateway, keys: Sequence[str]) -> float:
    began = perf_counter()
    await asyncio.gather(*(gateway.human_message(key, channel="telegram") for key in keys))
    await gateway.idle()
    return (perf_counter() - began) * 1e6 / len(keys)


async def _drain_us(gateway: Gateway, shown: list[str]) -> float:
    began = perf_counter()
    remaining = 1
    while remaining:
        async with gateway.turn(WATCHER) as turn:
            shown.extend(notice.target for notice in turn.notices)
            remaining = turn.remaining
    return (perf_counter() - began) * 1e6


def _naive_open_us(naive: Naive, keys: Sequence[str]) -> float:
    began = perf_counter()
    for key in keys:
        naive.human_message(key, "telegram")
    return (perf_counter() - began) * 1e6 / len(keys)


def _naive_drain_us(naive: Naive) -> float:
    began = perf_counter()
    while notices := naive.take(WATCHER):
        naive.acknowledge(notices)
    return (perf_counter() - began) * 1e6
