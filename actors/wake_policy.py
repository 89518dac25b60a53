"""When a watcher's host is woken, and why (rule 4.9): pure decisions over a small frozen value. Times are monotonic seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

BUSY_FIRST_S = 1.0
BUSY_MAX_S = 60.0
# 2 ** 6 seconds is past the maximum, so counting further changes nothing.
_DOUBLINGS_MAX = 6


@dataclass(frozen=True, slots=True)
class WakeRequest:
    """A wake that is due at a moment."""

    due: float
    reasons: tuple[str, ...]
    """The keys of the targets with notices, each once, in the order in which they were first named."""
    failures: int = 0
    """How many times in a row the host was found busy."""


def request(existing: WakeRequest | None, now: float, reasons: Iterable[str], coalesce_s: float) -> WakeRequest:
    """Merge further reasons into the watcher's request, or begin one. A request that exists is never put off, and one that waits
    for a busy host is not brought forward either."""
    if existing is None:
        return WakeRequest(now + coalesce_s, _each_once(reasons))
    return replace(existing, reasons=_each_once((*existing.reasons, *reasons)))


def busy(request: WakeRequest, now: float) -> WakeRequest:
    """The request after the host was found busy at `now`: again after 1 s, then 2, 4, ... up to 60 s."""
    delay_s = min(BUSY_MAX_S, BUSY_FIRST_S * 2.0 ** min(request.failures, _DOUBLINGS_MAX))
    return replace(request, due=now + delay_s, failures=request.failures + 1)


def _each_once(reasons: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reasons))
