"""Durable events: throughput, latency and group size by the number of producers, each against `sqlite3` by hand in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain, cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter

from kizuki.actors import Gateway, open_gateway

from .databases import RawDatabase, folder, raw_database
from .naive import Naive, open_naive
from .rows import Row, compared, paired, percentile
from .scale import Scale

SUITE = "commits"
WHAT = "durable events a second, and how long each takes, with 1 to 256 producers, against raw sqlite3"

WATCHER = "agent:main:main"
PRODUCERS = 64
EVENTS_EACH = 25
ROUND_EVENTS = 1_024
LEAST_THROUGHPUT = 0.7
MOST_LATENCY = 2.5
NAIVE_EVENTS = 10
LEAST_GROUP = 32

X_LABEL = "producers"
BATCHES = "sqlite3, as many rows a commit"


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    counts = scale.pick((1, 4), (1, 16, 64), (1, 4, 16, 64, 256), (1, 4, 16, 64, 256))
    rounds = scale.pick(1, 4, 12, 30)
    with folder() as place, raw_database(place / "raw.db") as raw, open_naive(place / "naive.db") as naive:
        return asyncio.run(_measure(place, raw, naive, counts, rounds, progress))


async def _measure(
    place: Path, raw: RawDatabase, naive: Naive, counts: Sequence[int], rounds: int, progress: Callable[[str], None]
) -> list[Row]:
    keys = [f"agent:main:subagent:child-{number}" for number in range(max(counts))]
    async with open_gateway(place / "gateway.db") as gateway:
        await asyncio.gather(*(gateway.watch(WATCHER, key) for key in keys))
        for key in keys:
            naive.watch([WATCHER], key)
        await produce(gateway, keys, 4)
        rows = []
        for count in counts:
            progress(f"{count} producers")
            rows += await _by_producers(gateway, raw, naive, keys[:count], rounds)
        return rows


class _Rounds:
    """What alternating rounds came to; seconds of each event or commit, by round."""

    def __init__(self) -> None:
        self.rate: list[float] = []
        self.each: list[list[float]] = []

    def add(self, events: int, elapsed_s: float, each: list[float]) -> None:
        self.rate.append(events / elapsed_s)
        self.each.append(each)

    @property
    def all_us(self) -> list[float]:
        return [seconds * 1e6 for seconds in chain.from_iterable(self.each)]

    @property
    def medians_us(self) -> list[float]:
        return [median(each) * 1e6 for each in self.each]


async def _by_producers(gateway: Gateway, raw: RawDatabase, naive: Naive, keys: Sequence[str], rounds: int) -> list[Row]:
    each = max(4, min(EVENTS_EACH, ROUND_EVENTS // len(keys)))
    ours, text, inner, plain = _Rounds(), _Rounds(), _Rounds(), _Rounds()
    for _ in range(rounds):
        latencies: list[float] = []
        elapsed_s = await produce(gateway, keys, each, latencies)
        ours.add(each * len(keys), elapsed_s, latencies)
        for baseline, commit in ((text, raw.text_table), (inner, raw.same_table)):
            commits = commit(keys, each)
            baseline.add(each * len(keys), sum(commits), commits)
        naive_s = [_timed(naive.human_message, key, "telegram") for key in islice(cycle(keys), NAIVE_EVENTS)]
        plain.add(NAIVE_EVENTS, sum(naive_s), naive_s)
    group = await _group_size(gateway, keys, each)
    return [*_throughput(len(keys), ours, text, inner, plain), *_latency(len(keys), ours, text, inner), group]


def _timed(call: Callable[..., object], *arguments: object) -> float:
    began = perf_counter()
    call(*arguments)
    return perf_counter() - began


def _name(count: int) -> str:
    return "one producer" if count == 1 else f"{count} producers"


def _rows_of(count: int) -> str:
    return "one row" if count == 1 else f"{count} rows"


def _throughput(count: int, ours: _Rounds, text: _Rounds, inner: _Rounds, plain: _Rounds) -> list[Row]:
    def row(against: str, baseline: _Rounds, beside: str) -> Row:
        made = paired(SUITE, f"{_name(count)}, against {against}", "events/s", ours.rate, baseline.rate)
        return made.at("Durable events a second", count, X_LABEL, beside=beside)

    rows = [
        row(f"sqlite3 by hand, {_rows_of(count)} a commit", text, BATCHES),
        row(f"sqlite3 by hand, {_rows_of(count)} a commit, the bare inner table", inner, "the same, into the bare inner table"),
        row("the naive design", plain, "naive: a commit for each event"),
    ]
    return [rows[0].ratio_at_least(LEAST_THROUGHPUT), *rows[1:]] if count == PRODUCERS else rows


def _latency(count: int, ours: _Rounds, text: _Rounds, inner: _Rounds) -> list[Row]:
    chart = "From the call to durable: median and 99th percentile"
    middle = paired(SUITE, f"{_name(count)}, median, against a commit of {_rows_of(count)}", "µs", ours.medians_us, text.medians_us)
    worst = compared(
        SUITE, f"{_name(count)}, 99th percentile, of all rounds", "µs", percentile(ours.all_us, 0.99), percentile(text.all_us, 0.99)
    )
    rows = [
        middle.at(chart, count, X_LABEL, line="kizuki, median", beside="a raw commit, median"),
        worst.at(chart, count, X_LABEL, line="kizuki, 99th percentile", beside="a raw commit, 99th percentile"),
    ]
    if count == 1:
        alone = paired(SUITE, "one producer, median, against a raw commit of one row", "µs", ours.medians_us, inner.medians_us)
        rows.append(alone.ratio_at_most(MOST_LATENCY))
    return rows


class _Sizes:
    """Observes how many writes each commit has."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def operation(self, _name: str, /) -> Callable[[BaseException | None], None]:
        return _unheard

    def commit(self, writes: int, /) -> Callable[[BaseException | None], None]:
        self.seen.append(writes)
        return _unheard

    def woken(self, _latency_s: float, /) -> None:
        pass


def _unheard(_error: BaseException | None) -> None:
    """Of no interest."""


async def _group_size(gateway: Gateway, keys: Sequence[str], each: int) -> Row:
    """In a round of its own, so that nobody observes the ones that are timed."""
    sizes = _Sizes()
    remove = gateway.observe(sizes)
    await produce(gateway, keys, each)
    remove()
    row = Row(SUITE, f"{_name(len(keys))}, events a commit, median", median(sizes.seen), "events")
    row = row.at("Events a commit", len(keys), X_LABEL)
    if len(keys) == 1:
        return row.at_most(1)
    return row.at_least(LEAST_GROUP) if len(keys) == PRODUCERS else row


async def produce(gateway: Gateway, keys: Sequence[str], each: int = EVENTS_EACH, latencies: list[float] | None = None) -> float:
    """Seconds until every producer has recorded its events, each waiting for its own to be durable before the next."""
    kept = [] if latencies is None else latencies
    began = perf_counter()
    await asyncio.gather(*(_producer(gateway, key, each, kept) for key in keys))
    return perf_counter() - began


async def _producer(gateway: Gateway, key: str, each: int, latencies: list[float]) -> None:
    for _ in range(each):
        began = perf_counter()
        await gateway.human_message(key, channel="telegram")
        latencies.append(perf_counter() - began)
