"""Durable state: the signal log, sessions, heads and cursors.

`open_store` opens a database; `Store` says what can be done with it, `kizuki.storage.writes` what can be written. What opens it is
imported when it is first asked for: a process that comes for one transaction has no use for a loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .errors import CommitUnknownError, StoreBusyError, StoreError, WriteRefusedError
    from .opening import open_store
    from .protocol import Store
    from .urls import is_postgres

__all__ = ["CommitUnknownError", "Store", "StoreBusyError", "StoreError", "WriteRefusedError", "is_postgres", "open_store"]

if not TYPE_CHECKING:  # or every name would count as one that is here
    _HOMES = {"Store": ".protocol", "is_postgres": ".urls", "open_store": ".opening"}

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES.get(name, ".errors"), __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
