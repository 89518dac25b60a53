"""Settings and their limits."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from kizuki.actors.config import GatewayConfig
from kizuki.actors.errors import InvalidArgument


def test_the_defaults() -> None:
    """The settings have the documented defaults."""
    assert dataclasses.asdict(GatewayConfig()) == {
        "language": "en",
        "notices_max": 20,
        "busy_timeout_s": 5.0,
        "synchronous": "full",
        "retention_days": 30,
        "retention_rows": 50_000,
        "prune_interval_s": 3600.0,
        "wake_coalesce_s": 0.25,
        "record_unwatched": False,
        "upstream_interval_s": 60.0,
        "upstream_first_s": 15.0,
        "catalog_timeout_s": 45.0,
        "poll_interval_s": 0.1,
        "idle_actor_s": 300.0,
    }


SECONDS = [
    "busy_timeout_s",
    "prune_interval_s",
    "wake_coalesce_s",
    "upstream_interval_s",
    "upstream_first_s",
    "catalog_timeout_s",
    "idle_actor_s",
]
WRONG: list[tuple[str, object]] = [
    *((name, value) for name in SECONDS for value in (-1, math.nan, math.inf, "1", None, True, 1e12)),
    *((name, 0) for name in ("prune_interval_s", "upstream_interval_s", "catalog_timeout_s", "idle_actor_s", "retention_days")),
    *((name, value) for name in ("notices_max", "retention_rows") for value in (0, -1, 1.0, "1", None, True, 2**60)),
    *(("retention_days", value) for value in (-1, math.nan, "30", None, True)),
    *(("language", value) for value in ("de", "EN", None, ["en"])),
    *(("synchronous", value) for value in ("off", "FULL", None)),
    *(("record_unwatched", value) for value in (0, 1, "yes", None)),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_settings_are_refused(name: str, value: object) -> None:
    """A setting of a wrong type or outside its range raises at once, and the error names it."""
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(InvalidArgument, match=f"^{name} is "):
        GatewayConfig(**arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("language", "ja"),
        ("synchronous", "normal"),
        ("notices_max", 1),
        ("busy_timeout_s", 0),
        ("wake_coalesce_s", 0),
        ("retention_days", 0.5),
        ("record_unwatched", True),
    ],
)
def test_limits_are_accepted(name: str, value: object) -> None:
    """The other words, the smallest values, and fractions of days are allowed."""
    arguments: dict[str, Any] = {name: value}
    assert getattr(GatewayConfig(**arguments), name) == value


def test_the_configuration_is_frozen() -> None:
    """A gateway's settings do not change under it."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        GatewayConfig().notices_max = 5  # type: ignore[misc]
