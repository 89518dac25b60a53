"""The catalogs that a gateway was opened with, by name, and calling them: in time, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from ..callbacks import Callbacks, within
from ..clock import Clock
from ..errors import InvalidArgument, InvalidSessionKey
from ..keys import canonical_key
from .catalog import Catalog
from .thread_key import thread_key

T = TypeVar("T")


class CatalogCallError(Exception):
    """A catalog did not answer in time, or raised, or has not ended an earlier call."""


class Catalogs:
    """Every catalog by its name. Raises `InvalidArgument` for a name that is no part of a session key, or is there twice."""

    def __init__(self, catalogs: Iterable[Catalog], callbacks: Callbacks, clock: Clock, timeout_s: float) -> None:
        self._by_name: dict[str, Catalog] = {}
        for catalog in catalogs:
            self._by_name[_new_name(catalog, self._by_name)] = catalog
        self._callbacks = callbacks
        self._clock = clock
        self._timeout_s = timeout_s
        self._checking: dict[str, asyncio.Task[object]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def get(self, name: str) -> Catalog | None:
        """The catalog of this name; None if there is none."""
        return self._by_name.get(name)

    def named(self, name: object) -> Catalog:
        """The catalog of this name. Raises `InvalidArgument` that lists all there are."""
        found = self._by_name.get(name) if isinstance(name, str) else None
        if found is not None:
            return found
        allowed = f"it must be one of {', '.join(self._by_name)}" if self._by_name else "this gateway was opened without catalogs"
        raise InvalidArgument("catalog", name, allowed)

    async def ask(self, question: Callable[..., Awaitable[T]], *args: object) -> T:
        """The answer to a call of a catalog. Raises `TimeoutError`, or what the catalog raises; an answer that is late is dropped."""
        return await within(self._clock, self._timeout_s, self._callbacks.start(question, *args))

    async def check(self, name: str, probes: object) -> object:
        """The answer of the catalog to a batch of probes, whatever it is. Raises `CatalogCallError`."""
        stuck = self._checking.get(name)
        if stuck is not None and not stuck.done():
            raise CatalogCallError("its last check has not ended")
        try:
            check: Callable[..., Awaitable[object]] = self._by_name[name].check
            call = self._checking[name] = self._callbacks.start(check, probes)
            return await within(self._clock, self._timeout_s, call)
        except TimeoutError as error:
            raise CatalogCallError(f"it did not answer within {self._timeout_s:g} s") from error
        except Exception as error:  # a catalog is other people's code: whatever it raises must not harm the others
            raise CatalogCallError(f"it failed: {error!r}") from error


def _new_name(catalog: Catalog, taken: Iterable[str]) -> str:
    name: object = getattr(catalog, "name", None)
    if not isinstance(name, str) or not _fits_into_a_key(name):
        raise InvalidArgument("catalogs", name, "a catalog's name must be a text without white space and colons, fit for a session key")
    if name in taken:
        raise InvalidArgument("catalogs", name, "each catalog must have a name of its own")
    return name


def _fits_into_a_key(name: str) -> bool:
    try:
        return bool(name) and ":" not in name and len(name) <= 64 and bool(canonical_key(thread_key("main", name, "", "")))
    except InvalidSessionKey:
        return False
