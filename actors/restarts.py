"""Restart policy: how long to wait before a failed actor is started again, and when to give up."""

from __future__ import annotations

from dataclasses import dataclass

# Doubling stops here: past it every sensible first delay has reached any sensible limit, and floats would overflow.
_DOUBLINGS_MAX = 64


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """At most `max_restarts` within any `within_s` seconds; the delay doubles with each restart in that time."""

    max_restarts: int = 5
    within_s: float = 60.0
    first_delay_s: float = 0.05
    max_delay_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the actor again after `delay_s`."""

    delay_s: float
    history: tuple[float, ...]
    """The moments of the restarts that still count, this one last: what the next decision is given."""


@dataclass(frozen=True, slots=True)
class Escalate:
    """Restarting does not help: `restarts` of them within the policy's time have failed."""

    restarts: int


def decide(history: tuple[float, ...], now: float, policy: RestartPolicy) -> Restart | Escalate:
    """What to do about an actor that failed at `now`, a monotonic time in seconds, after restarts at the moments in `history`."""
    recent = tuple(moment for moment in history if moment > now - policy.within_s)
    if len(recent) >= policy.max_restarts:
        return Escalate(len(recent))
    return Restart(_delay_s(len(recent), policy), (*recent, now))


def _delay_s(restarts: int, policy: RestartPolicy) -> float:
    return min(policy.max_delay_s, policy.first_delay_s * 2.0 ** min(restarts, _DOUBLINGS_MAX))
