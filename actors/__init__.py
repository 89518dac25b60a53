"""kizuki: session state awareness for multi-agent systems. This is the front door."""

from __future__ import annotations

from ..storage.records import StateEvent
from .clock import Clock, ManualClock, SystemClock
from .config import GatewayConfig
from .counters import GatewayStatistics
from .errors import (
    DispatchRefused,
    GatewayClosed,
    InvalidArgument,
    InvalidSessionKey,
    KizukiError,
    StoreUnavailable,
    UnknownSession,
)
from .gateway import Gateway, Session, open_gateway
from .identity import Actor
from .kinds import EventKind
from .notices import Notice, Watch
from .sending import Dispatched
from .turn import Turn

__all__ = [
    "Actor",
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
    "Turn",
    "UnknownSession",
    "Watch",
    "open_gateway",
]
