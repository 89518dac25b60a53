"""A catalog whose threads are lists of rows in memory: a real one as far as anybody can see, and it does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kizuki.actors.upstream.catalog import (
    Activity,
    Discovered,
    Happening,
    Missing,
    Nothing,
    Outcome,
    Probe,
    Start,
    ThreadNotFound,
)

Answer = Callable[[Sequence[Probe]], Any]


class ScriptedCatalog:
    """Rows are texts of a person or `Happening`s; the marker counts them. `answers` replaces what the next checks would answer."""

    def __init__(self, name: str = "fake", *threads: str) -> None:
        self.name = name
        self.threads: dict[str, list[str | Happening]] = {thread: [] for thread in threads or ("t1",)}
        self.sources: dict[str, str] = {}
        self.answers: list[Answer] = []
        self.batches: list[tuple[Probe, ...]] = []
        """What each check was asked."""
        self.asked = asyncio.Event()
        """Set by the first check."""
        self.during: Callable[[], Any] | None = None
        """Awaited in each check, after the rows were read."""

    async def list(self) -> Sequence[Discovered]:
        return [Discovered(thread, "local", self._source(thread), 0) for thread in self.threads]

    async def link(self, thread_id: str, host_id: str) -> Start:
        if thread_id not in self.threads:
            raise ThreadNotFound(thread_id)
        return Start(self._source(thread_id), {"rows": len(self.threads[thread_id])})

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        self.batches.append(tuple(probes))
        self.asked.set()
        if self.answers:
            answer = self.answers.pop(0)(probes)
            result: Sequence[Outcome] = await answer if asyncio.iscoroutine(answer) else answer
            return result
        outcomes = [self._outcome(probe) for probe in probes]
        if self.during is not None:
            await self.during()
        return outcomes

    def _source(self, thread: str) -> str:
        return self.sources.get(thread, f"/{self.name}/{thread}")

    def _outcome(self, probe: Probe) -> Outcome:
        rows = self.threads.get(probe.thread_id)
        if rows is None:
            return Missing()
        position = probe.marker["rows"]
        assert isinstance(position, int)
        return _activity(rows[position:], len(rows), probe) if len(rows) > position else Nothing()


def _activity(rows: Sequence[str | Happening], position: int, probe: Probe) -> Activity:
    own = {text: id_ for id_, text in probe.own_texts if id_ not in probe.accounted_ids}
    accounted, turns = [], 0
    for row in rows:
        if isinstance(row, str):
            id_ = own.pop(" ".join(row.split()), None)
            turns += id_ is None
            accounted += [] if id_ is None else [id_]
    happenings = tuple(row for row in rows if isinstance(row, Happening))
    return Activity({"rows": position}, turns, None, tuple(accounted), happenings)


async def never(_probes: Sequence[Probe]) -> Sequence[Outcome]:
    """Hang until cancelled."""
    await asyncio.Event().wait()
    return ()


def raising(_probes: Sequence[Probe]) -> Sequence[Outcome]:
    """Crash."""
    raise ZeroDivisionError("the catalog is broken")
