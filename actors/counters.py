"""What a gateway has done since it was opened."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Running totals; they start at 0 with the gateway and only grow."""

    events_recorded: int = 0
    recordings_lost: int = 0
    notices_opened: int = 0
    notices_acknowledged: int = 0
    notices_returned: int = 0
    wakes: int = 0


@dataclass(frozen=True, slots=True)
class GatewayCounts:
    """What one gateway knows of itself without asking its database: its counters, and what there is right now."""

    events_recorded: int
    recordings_lost: int
    notices_opened: int
    notices_acknowledged: int
    notices_returned: int
    wakes: int
    actors_resident: int
    mail_waiting: int


@dataclass(frozen=True, slots=True)
class GatewayStatistics:
    """A snapshot of one gateway: its counters, and what there is right now."""

    events_recorded: int
    recordings_lost: int
    notices_opened: int
    notices_acknowledged: int
    notices_returned: int
    notices_pending: int
    """Pending pairs in the database, taken ones included."""
    wakes: int
    actors_resident: int
    mail_waiting: int
