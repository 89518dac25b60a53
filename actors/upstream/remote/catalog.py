"""The catalog of another machine, for which a node there answers (`kizuki serve-node`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..answers import GarbageError, outcomes_of
from ..catalog import Discovered, Failed, Outcome, Probe, Start, ThreadNotFound
from ..own_host import check_own
from .http import Ask, HttpNode, NodeUnavailable
from .wire import PROBES_MAX, THREADS_MAX, Fields, WireError, outcome_from_json, probe_to_json, start_from_json, thread_from_json

PAGES_MAX: Final = 2_000
"""A list that is longer than so many pages is none."""


class RemoteCatalog:
    """A `Catalog` of the threads that one host has in its catalog of the same name.

    `url` is the node's, `token` what it was started with (None where it has none), and `host_id` what the node is called: one that is
    called otherwise refuses to answer, so that nothing is believed missing because a port has become another machine's.
    Only what the node says that it looked for and did not find is missing. A node that cannot be reached, refuses the token or fails
    is an error instead: of the whole batch if nothing of it could be asked, else of what was left to ask.
    """

    def __init__(self, name: str, url: str, token: str | None, host_id: str) -> None:
        self.name = name
        self.host_id = host_id
        self._node = HttpNode(url, token, host_id, name)

    async def list(self) -> Sequence[Discovered]:
        """Every thread that can be followed, newest first. Raises `NodeUnavailable`."""
        threads: list[Discovered] = []
        after: str | None = None
        async with self._node.asking() as ask:
            for _ in range(PAGES_MAX):
                page, after = self._page(await ask("threads", {"after": after, "limit": THREADS_MAX}))
                threads += page
                if after is None:
                    return sorted(threads, key=lambda thread: -thread.updated_at_ms)
        raise NodeUnavailable(f"its list of threads has no end within {PAGES_MAX} pages")

    async def link(self, thread_id: str, host_id: str) -> Start:
        """At the end of the last complete row. Raises `ThreadNotFound`, `NodeUnavailable`."""
        if host_id != self.host_id:
            raise ThreadNotFound(f"{self.name}: there is no host {host_id!r} but {self.host_id!r}")
        async with self._node.asking() as ask:
            answer = await ask("end", {"thread": thread_id})
            try:
                return start_from_json(answer.of)
            except WireError as error:
                raise self._node.garbage(error) from error

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        """One outcome for each probe. Raises `NodeUnavailable` if there is none at all."""
        return await check_own(self.host_id, probes, self._check)

    async def _check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        outcomes: list[Outcome] = []
        async with self._node.asking() as ask:
            for first in range(0, len(probes), PROBES_MAX):
                try:
                    outcomes += await self._read(ask, probes[first : first + PROBES_MAX])
                except NodeUnavailable as error:
                    if not outcomes:
                        raise
                    return outcomes + [Failed(str(error))] * (len(probes) - len(outcomes))
        return outcomes

    async def _read(self, ask: Ask, probes: Sequence[Probe]) -> Sequence[Outcome]:
        answer = await ask("read", {"probes": [probe_to_json(probe) for probe in probes]})
        try:
            return outcomes_of([_outcome(item) for item in answer.items("outcomes")], len(probes))
        except (WireError, GarbageError) as error:
            raise self._node.garbage(error) from error

    def _page(self, answer: Fields) -> tuple[Sequence[Discovered], str | None]:
        try:
            return [thread_from_json(item, self.host_id) for item in answer.items("threads")], answer.optional_text("next")
        except WireError as error:
            raise self._node.garbage(error) from error


def _outcome(item: object) -> Outcome:
    """An outcome that makes no sense is that probe's failure alone."""
    try:
        return outcome_from_json(item)
    except WireError as error:
        return Failed(f"the node answered what no node may: {error}")
