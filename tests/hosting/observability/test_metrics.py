"""Metrics of a gateway in a real Prometheus registry, as a server would read them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs kizuki[observability]")

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from kizuki.actors import InvalidArgument, ManualClock, open_gateway
from kizuki.actors.hosting.observability.metrics import NAMES, GatewayMetrics
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.integrations.staging import spoken_to

NOW = 1_767_225_600_000


async def test_a_scrape_tells_what_the_gateway_did(tmp_path: Path) -> None:
    """Counters, gauges and histograms agree with what happened, read back by Prometheus' own parser."""
    clock, registry = ManualClock(NOW), CollectorRegistry()
    async with open_gateway(tmp_path / "state.db", clock=clock, wake=lambda _key, _reasons: None) as gateway:
        metrics = GatewayMetrics(gateway, registry)
        await spoken_to(gateway)
        await clock.advance(1)
        with pytest.raises(InvalidArgument):
            await gateway.session_status(CHILD, changes_since=-1)
        text, content_type = await metrics.exposition()
        assert content_type.startswith("text/plain")
        assert _value(registry, "kizuki_events_recorded_total") == 2
        assert _value(registry, "kizuki_notices_opened_total") == 1
        assert _value(registry, "kizuki_notices_pending") == 1
        assert _value(registry, "kizuki_wakes_total") == 1
        assert _value(registry, "kizuki_wake_latency_seconds_count") == 1
        assert 0.25 <= (_value(registry, "kizuki_wake_latency_seconds_sum") or 0) <= 1
        assert _value(registry, "kizuki_operation_seconds_count", operation="human_message") == 1
        assert _value(registry, "kizuki_operations_failed_total", operation="session_status") == 1
        assert _value(registry, "kizuki_commit_seconds_count") == _value(registry, "kizuki_commit_writes_count")
        async with gateway.turn(MAIN):
            pass
        assert _value(registry, "kizuki_turn_seconds_count") == 1
        assert _value(registry, "kizuki_notices_acknowledged_total") == 1
        assert sum(1 for _ in text_string_to_metric_families(text.decode())) > 10


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


async def test_every_metric_is_in_the_table_and_no_label_is_without_bound(tmp_path: Path) -> None:
    """What is exposed is what is documented, and nothing is labelled but by an operation's name: no session key can be found in it."""
    registry = CollectorRegistry()
    async with open_gateway(tmp_path / "state.db") as gateway:
        metrics = GatewayMetrics(gateway, registry)
        await spoken_to(gateway)
        async with gateway.turn(MAIN):
            pass
        text, _ = await metrics.exposition()
    families = list(registry.collect())
    assert {family.name if family.type != "counter" else f"{family.name}_total" for family in families} == set(NAMES)
    labels = {name for family in families for sample in family.samples for name in sample.labels} - {"le"}
    assert labels == {"operation"}
    assert b"agent:" not in text


async def test_what_the_database_cannot_say_is_left_out(tmp_path: Path) -> None:
    """A closed gateway still tells its counts; how many notices are pending nobody knows any more."""
    registry = CollectorRegistry()
    async with open_gateway(tmp_path / "state.db") as gateway:
        metrics = GatewayMetrics(gateway, registry)
        await spoken_to(gateway)
        await metrics.exposition()
        assert _value(registry, "kizuki_notices_pending") == 1
    await metrics.exposition()
    assert _value(registry, "kizuki_notices_pending") is None
    assert _value(registry, "kizuki_events_recorded_total") == 2


async def test_closed_metrics_leave_the_registry(tmp_path: Path) -> None:
    """One registry holds one gateway's metrics at a time; once they are closed, another's can take their place."""
    registry = CollectorRegistry()
    async with open_gateway(tmp_path / "state.db") as gateway:
        metrics = GatewayMetrics(gateway, registry)
        with pytest.raises(ValueError, match="Duplicated"):
            GatewayMetrics(gateway, registry)
        metrics.close()
        assert list(registry.collect()) == []
        GatewayMetrics(gateway, registry)
