"""What a node knows: the threads of this machine's catalogs, a page at a time, and what was appended behind positions.

Whoever asks names a thread by its id. The source that a link was given comes back with it and is a path, so it is not believed: what is
looked at lies in the catalog's own folders, and is the transcript of the thread that was named.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...upstream.catalog import Catalog, Discovered, Failed, Outcome, Probe, Start, ThreadNotFound
from ...upstream.files.catalog import LOCAL_HOST, FileCatalog
from ...upstream.files.threads import in_thread
from ...upstream.opencode.catalog import OpenCodeCatalog

LocalCatalog = FileCatalog | OpenCodeCatalog


class ServedCatalog:
    """One catalog of this machine. Questions about it are answered one after another, for it makes one check at a time."""

    def __init__(self, catalog: LocalCatalog) -> None:
        self.name = catalog.name
        self._catalog = catalog
        self._turn = asyncio.Lock()

    async def threads(self, after: str | None, limit: int) -> tuple[Sequence[Discovered], str | None]:
        """A page of threads, ordered by their ids, and behind which the next begins; None where this is the last.

        Pages are cut by id, not by count: a thread that is there all the time is on one of them, whatever comes, goes or grows meanwhile.
        """
        listed = await self._catalog.list()
        inside = await in_thread(lambda _: [thread for thread in listed if _is_inside(self._catalog, Path(thread.source))])
        behind = sorted((each for each in inside if after is None or each.thread_id > after), key=lambda each: each.thread_id)
        page = behind[:limit]
        return page, page[-1].thread_id if len(behind) > limit else None

    async def end(self, thread_id: str) -> Start:
        """Where to begin with a thread. Raises `ThreadNotFound`, and what the catalog raises."""
        start = await self._catalog.link(thread_id, LOCAL_HOST)
        if not await in_thread(lambda _: _is_inside(self._catalog, Path(start.source))):
            raise ThreadNotFound(f"{self.name}: the thread {thread_id!r} is outside of the catalog's folders")
        return start

    async def read(self, probes: Sequence[Probe]) -> list[Outcome]:
        """One outcome for each probe, in their order. Raises what the catalog raises."""
        async with self._turn:
            allowed = await in_thread(lambda _: [_may_read(self._catalog, probe) for probe in probes])
            checked = iter(await self._catalog.check([probe for probe, may in zip(probes, allowed, strict=True) if may]))
            elsewhere = Failed(f"{self.name}: its source is no place of that thread in the catalog's folders")
            return [next(checked) if may else elsewhere for may in allowed]


def served(catalogs: Iterable[Catalog]) -> dict[str, ServedCatalog]:
    """The catalogs of this machine, by name."""
    return {catalog.name: ServedCatalog(catalog) for catalog in catalogs if isinstance(catalog, LocalCatalog)}


def _may_read(catalog: LocalCatalog, probe: Probe) -> bool:
    """Blocks on the file system. A transcript that is gone is known by its name alone, if the format tells that."""
    source = Path(probe.source)
    if not _is_inside(catalog, source):
        return False
    if isinstance(catalog, OpenCodeCatalog):
        return True
    try:
        return catalog.form.thread_id(source) == probe.thread_id
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _is_inside(catalog: LocalCatalog, source: Path) -> bool:
    """Whether what the path leads to lies in the catalog's folders. Blocks on the file system."""
    try:
        if isinstance(catalog, OpenCodeCatalog):
            return source == catalog.database
        place = source.resolve()
        return any(place.is_relative_to(root.resolve()) for root in catalog.roots)
    except (OSError, ValueError, RuntimeError):
        return False
