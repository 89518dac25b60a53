"""What was seen of one run in one mode. Times are seconds since the run began; agents and people are called by their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .modes import Mode

TurnKind = Literal["plan", "catch-up", "wake", "poll"]
Ended = Literal["well", "failed", "died", "open"]


class EventSeen(NamedTuple):
    """An event was committed."""

    at_s: float
    happened_s: float
    """When what it tells happened; earlier than that only in an adopted session."""
    sequence: int
    target: str
    kind: str
    summary: str
    actor: str
    """An agent's or a person's name, or `system`."""
    notifies: bool


@dataclass(slots=True)
class TurnSeen:
    """An agent had a turn."""

    agent: str
    kind: TurnKind
    begins_s: float
    ends_s: float | None = None
    ended: Ended = "open"
    lines: int = 0


class ActSeen(NamedTuple):
    """An agent acted."""

    at_s: float
    agent: str
    does: str
    assumes: tuple[str, ...]
    stale: tuple[str, ...]
    """Those of them that had material changes by others after the state that the agent last reconciled with."""
    preventable: tuple[str, ...]
    """Those of the stale ones whose changes were committed before the turn began, at whose start the agent could have been told."""
    informed: tuple[str, ...]
    """Those that had changed during the agent's life, and that it knew to have."""


class NoticeSeen(NamedTuple):
    """A line about a target was put into an agent's prompt."""

    at_s: float
    agent: str
    target: str


class Learned(NamedTuple):
    """From here on an agent knew a target's state up to this version; whoever's turn fails or dies has not learned."""

    at_s: float
    agent: str
    target: str
    version: int


class VisitSeen(NamedTuple):
    """A person stepped in."""

    at_s: float
    person: str
    target: str
    does: str


class Sent(NamedTuple):
    """A message was sent by `sessions_send`."""

    at_s: float
    sender: str
    receiver: str


class Woken(NamedTuple):
    """An agent was woken."""

    at_s: float
    agent: str


class Forgot(NamedTuple):
    """Lines that waited for an agent were lost: its process died, or its turn failed."""

    at_s: float
    agent: str


class GatewaySeen(NamedTuple):
    """A gateway's process started, or died."""

    at_s: float
    gateway: str
    up: bool


@dataclass(slots=True)
class Record:
    """All of it, in the order in which it happened."""

    mode: Mode
    seed: int
    lasts_s: float
    events: list[EventSeen] = field(default_factory=list)
    turns: list[TurnSeen] = field(default_factory=list)
    acts: list[ActSeen] = field(default_factory=list)
    notices: list[NoticeSeen] = field(default_factory=list)
    learned: list[Learned] = field(default_factory=list)
    visits: list[VisitSeen] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    woken: list[Woken] = field(default_factory=list)
    forgot: list[Forgot] = field(default_factory=list)
    gateways: list[GatewaySeen] = field(default_factory=list)
    status_calls: int = 0
    """How often agents asked `session_status`."""
    rows_read: int = 0
    """How many events they were given in answer."""
