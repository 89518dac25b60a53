"""What a host may set when it opens a gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import InvalidArgument
from .identifiers import one_of
from .summaries import Language

_FOREVER_S = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Settings of one gateway; wrong ones raise `InvalidArgument` at once. Seconds are finite numbers, at most ten years."""

    language: Language = "en"
    """Of notices and summaries, when they are read."""
    notices_max: int = 20
    """Notices that one turn takes."""
    busy_timeout_s: float = 5.0
    """How long a transaction waits for another process's lock on the database."""
    synchronous: Literal["full", "normal"] = "full"
    """`normal` trades the last commits before a power cut for speed."""
    retention_days: float = 30
    """Age at which events are pruned and cursors expire."""
    retention_rows: int = 50_000
    """Events kept, at most, after a pruning."""
    prune_interval_s: float = 3600.0
    wake_coalesce_s: float = 0.25
    """Wake requests for one watcher are merged for this long from the first."""
    record_unwatched: bool = False
    """Whether human turns are recorded of sessions with neither parent nor watcher, too."""
    upstream_interval_s: float = 60.0
    upstream_first_s: float = 15.0
    catalog_timeout_s: float = 45.0
    poll_interval_s: float = 0.1
    """How often to look whether another gateway has committed to the same database."""
    idle_actor_s: float = 300.0
    """An actor that had no mail for this long is put away."""

    def __post_init__(self) -> None:
        one_of(self.language, "language", ("en", "ja"))
        one_of(self.synchronous, "synchronous", ("full", "normal"))
        _check_flag(self.record_unwatched, "record_unwatched")
        _check_count(self.notices_max, "notices_max", 10_000)
        _check_count(self.retention_rows, "retention_rows", 2**53)
        _check_number(self.retention_days, "retention_days", _FOREVER_S / 86_400)
        for name in ("prune_interval_s", "upstream_interval_s", "catalog_timeout_s", "poll_interval_s", "idle_actor_s"):
            _check_number(getattr(self, name), name, _FOREVER_S)
        for name in ("busy_timeout_s", "wake_coalesce_s", "upstream_first_s"):
            _check_number(getattr(self, name), name, _FOREVER_S, zero=True)


def _check_flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidArgument(name, value, "it must be True or False")


def _check_count(value: object, name: str, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise InvalidArgument(name, value, f"it must be an integer from 1 to {most}")


def _check_number(value: object, name: str, most: float, *, zero: bool = False) -> None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    # Neither infinity nor a NaN lies within the limits.
    if not fits or (value == 0 and not zero):
        raise InvalidArgument(name, value, f"it must be a finite number {'from' if zero else 'above'} 0 to {most:.0f}")
