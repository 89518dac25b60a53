"""kizuki: session state awareness for multi-agent systems. This is the front door."""

from __future__ import annotations

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
