"""kizuki: session state awareness for multi-agent systems. This is the front door.

What stands behind a name is imported when the name is first used: a process that needs little of it, such as a hook that a person
waits for, starts without the rest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..storage.records import StateEvent
    from .clock import Clock, ManualClock, SystemClock
    from .config import GatewayConfig
    from .counters import GatewayStatistics
    from .errors import (
        CatalogUnavailable,
        DispatchRefused,
        GatewayClosed,
        InvalidArgument,
        InvalidSessionKey,
        KizukiError,
        StoreUnavailable,
        UnknownSession,
        UnknownThread,
    )
    from .gateway import Gateway, Session, open_gateway
    from .identity import Actor
    from .kinds import EventKind
    from .notices import Notice, Watch
    from .sending import Dispatched
    from .turn import Turn
    from .upstream.catalog import Catalog, ThreadNotFound
    from .upstream.report import CatalogReport, TickReport

__all__ = [
    "Actor",
    "Catalog",
    "CatalogReport",
    "CatalogUnavailable",
    "Clock",
    "DispatchRefused",
    "Dispatched",
    "EventKind",
    "Gateway",
    "GatewayClosed",
    "GatewayConfig",
    "GatewayStatistics",
    "InvalidArgument",
    "InvalidSessionKey",
    "KizukiError",
    "ManualClock",
    "Notice",
    "Session",
    "StateEvent",
    "StoreUnavailable",
    "SystemClock",
    "ThreadNotFound",
    "TickReport",
    "Turn",
    "UnknownSession",
    "UnknownThread",
    "Watch",
    "open_gateway",
]

if not TYPE_CHECKING:  # or every name would count as one that is here
    _HOMES = {
        "Actor": ".identity",
        "Catalog": ".upstream.catalog",
        "CatalogReport": ".upstream.report",
        "CatalogUnavailable": ".errors",
        "Clock": ".clock",
        "DispatchRefused": ".errors",
        "Dispatched": ".sending",
        "EventKind": ".kinds",
        "Gateway": ".gateway",
        "GatewayClosed": ".errors",
        "GatewayConfig": ".config",
        "GatewayStatistics": ".counters",
        "InvalidArgument": ".errors",
        "InvalidSessionKey": ".errors",
        "KizukiError": ".errors",
        "ManualClock": ".clock",
        "Notice": ".notices",
        "Session": ".gateway",
        "StateEvent": "..storage.records",
        "StoreUnavailable": ".errors",
        "SystemClock": ".clock",
        "ThreadNotFound": ".upstream.catalog",
        "TickReport": ".upstream.report",
        "Turn": ".turn",
        "UnknownSession": ".errors",
        "UnknownThread": ".errors",
        "Watch": ".notices",
        "open_gateway": ".gateway",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
