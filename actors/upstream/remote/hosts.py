"""One catalog over several hosts: this machine's and those of others, under one name."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from ...errors import InvalidArgument
from ...logs import logger
from ..catalog import Catalog, Discovered, Failed, Outcome, Probe, Start, ThreadNotFound
from ..files.catalog import LOCAL_HOST

HOST_TIMEOUT_S: Final = 40.0
"""How long one host may keep the others of its catalog waiting: less than the gateway waits for a catalog, which is 45 s by default."""


class OneHostCatalog(Catalog, Protocol):
    """A catalog of one host that says which, as `RemoteCatalog` does."""

    host_id: str


class HostsCatalog:
    """A `Catalog` that asks, for each thread, the catalog of its host. All hosts are asked at once, and none waits for one that hangs.

    `timeout_s` are real seconds, for it is the network that is waited for; it must be less than the gateway's `catalog_timeout_s`.
    """

    def __init__(self, name: str, by_host: Mapping[str, Catalog], *, timeout_s: float = HOST_TIMEOUT_S) -> None:
        self.name = name
        self._by_host = dict(by_host)
        self._timeout_s = timeout_s

    async def list(self) -> Sequence[Discovered]:
        """The threads of all hosts that answer, newest first; of the others a warning tells. Raises what the only host raises."""
        listed = await asyncio.gather(*(self._listed(host_id) for host_id in self._by_host))
        return sorted((thread for threads in listed for thread in threads), key=lambda thread: -thread.updated_at_ms)

    async def link(self, thread_id: str, host_id: str) -> Start:
        """As the host's catalog does. Raises `ThreadNotFound` for a host that is not known, too."""
        catalog = self._by_host.get(host_id)
        if catalog is None:
            raise ThreadNotFound(f"{self.name}: there is no host {host_id!r}: there are {', '.join(self._by_host)}")
        return await catalog.link(thread_id, host_id)

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        """One outcome for each probe. What goes wrong with a host is the failure of its own probes."""
        by_host: defaultdict[str, list[int]] = defaultdict(list)
        for index, probe in enumerate(probes):
            by_host[probe.host_id].append(index)
        outcomes: list[Outcome] = [Failed("not checked")] * len(probes)

        async def check_host(host_id: str, indices: Sequence[int]) -> None:
            found = await self._checked(host_id, [probes[index] for index in indices])
            for index, outcome in zip(indices, found, strict=True):
                outcomes[index] = outcome

        async with asyncio.TaskGroup() as group:
            for host_id, indices in by_host.items():
                group.create_task(check_host(host_id, indices), name=f"kizuki check of {self.name} on {host_id}")
        return outcomes

    async def _listed(self, host_id: str) -> Sequence[Discovered]:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._by_host[host_id].list()
        except Exception as error:  # one host must not hide the threads of the others
            if len(self._by_host) == 1:
                raise
            logger(catalog=self.name, host=host_id).warning("host left out of the list", reason=_told(error, self._timeout_s))
            return ()

    async def _checked(self, host_id: str, probes: Sequence[Probe]) -> Sequence[Outcome]:
        catalog = self._by_host.get(host_id)
        if catalog is None:
            return [Failed(f"there is no host {host_id!r}: there are {', '.join(self._by_host)}")] * len(probes)
        try:
            async with asyncio.timeout(self._timeout_s):
                outcomes = list(await catalog.check(probes))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one host concerns no other
            return [Failed(_told(error, self._timeout_s))] * len(probes)
        answered = len(outcomes) == len(probes)
        return outcomes if answered else [Failed(f"it answered {len(outcomes)} outcomes to {len(probes)} probes")] * len(probes)


def across_hosts(local: Iterable[Catalog], remote: Iterable[OneHostCatalog], *, timeout_s: float = HOST_TIMEOUT_S) -> tuple[Catalog, ...]:
    """The catalogs of this machine and those of other hosts, one for each name. Raises `InvalidArgument` for a host that is there twice."""
    by_name: defaultdict[str, dict[str, Catalog]] = defaultdict(dict)
    for catalog in local:
        by_name[catalog.name][LOCAL_HOST] = catalog
    for catalog in remote:
        if catalog.host_id in by_name[catalog.name]:
            raise InvalidArgument("host_id", catalog.host_id, f"each host must be there once in the catalog {catalog.name!r}")
        by_name[catalog.name][catalog.host_id] = catalog
    return tuple(HostsCatalog(name, hosts, timeout_s=timeout_s) for name, hosts in by_name.items())


def _told(error: Exception, timeout_s: float) -> str:
    return f"it did not answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
