"""Prometheus metrics of a gateway. Needs `pip install 'kizuki[observability]'`.

What the gateway counts anyway is read when the metrics are collected; durations and sizes are observed as they come. The only label is the
name of an operation, of which there are as many as `Gateway` has methods. `NAMES` is the table of all metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter
from typing import Final

from ...counters import GatewayCounts
from ...errors import KizukiError
from ...gateway import Gateway
from ...observing import Ended

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram
    from prometheus_client.core import REGISTRY, CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.metrics_core import Metric
except ImportError as error:
    raise ImportError("metrics need prometheus-client: pip install 'kizuki[observability]'") from error

_COUNTERS: Final = {
    "events_recorded": "Events written to the signal log.",
    "recordings_lost": "Recordings that the database could not take.",
    "notices_opened": "Notices opened by this gateway, and by others for sessions that it hosts.",
    "notices_acknowledged": "Notices that a model was shown.",
    "notices_returned": "Notices that turns gave back.",
    "wakes": "Calls of the host's wake callback.",
}
_GAUGES: Final = {
    "actors_resident": "Session and watcher actors in memory.",
    "mail_waiting": "Messages between actors that wait.",
}
_PENDING: Final = ("kizuki_notices_pending", "Pending pairs in the database; there once refresh() has read it.")
_COMMIT_SECONDS: Final = ("kizuki_commit_seconds", "How long a transaction took, failed ones included.")
_COMMIT_WRITES: Final = ("kizuki_commit_writes", "How many writes a transaction had.")
_WAKE_SECONDS: Final = (
    "kizuki_wake_latency_seconds",
    "From asking for a wake to the call of the host's callback, 0.25 s of merging included.",
)
_OPERATION_SECONDS: Final = ("kizuki_operation_seconds", "How long a method of the gateway took, or the host's wake callback.")
_TURN_SECONDS: Final = ("kizuki_turn_seconds", "How long a turn was open, its model's run included.")
_FAILED: Final = ("kizuki_operations_failed", "Methods of the gateway, turns included, that ended with an error other than a cancellation.")

NAMES: Final[dict[str, str]] = {
    **{f"kizuki_{name}_total": text for name, text in _COUNTERS.items()},
    **{f"kizuki_{name}": text for name, text in _GAUGES.items()},
    **dict((_PENDING, _COMMIT_SECONDS, _COMMIT_WRITES, _WAKE_SECONDS, _OPERATION_SECONDS, _TURN_SECONDS)),
    f"{_FAILED[0]}_total": _FAILED[1],
}
"""Every metric and what it says."""

_COMMIT_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
_WRITES_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_WAKE_BUCKETS: Final = (0.25, 0.26, 0.3, 0.4, 0.5, 1.0, 2.5, 10.0, 60.0)
_OPERATION_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
_TURN_BUCKETS: Final = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0)


class GatewayMetrics:
    """One gateway's metrics in one registry: a collector of its counts, and an observer of its durations.

    A second gateway of the process needs a registry of its own, for a name is there once in each. Raises `ValueError` for that.
    """

    def __init__(self, gateway: Gateway, registry: CollectorRegistry = REGISTRY) -> None:
        self._gateway = gateway
        self._registry = registry
        self._pending: int | None = None
        registry.register(self)  # first, since it may be refused
        self._commit_seconds = Histogram(*_COMMIT_SECONDS, registry=registry, buckets=_COMMIT_BUCKETS)
        self._commit_writes = Histogram(*_COMMIT_WRITES, registry=registry, buckets=_WRITES_BUCKETS)
        self._wake_seconds = Histogram(*_WAKE_SECONDS, registry=registry, buckets=_WAKE_BUCKETS)
        self._operation_seconds = Histogram(*_OPERATION_SECONDS, ["operation"], registry=registry, buckets=_OPERATION_BUCKETS)
        self._turn_seconds = Histogram(*_TURN_SECONDS, registry=registry, buckets=_TURN_BUCKETS)
        self._failed = Counter(*_FAILED, ["operation"], registry=registry)
        self._stop = gateway.observe(self)

    def close(self) -> None:
        """Observe no more, and leave the registry."""
        self._stop()
        durations = self._commit_seconds, self._wake_seconds, self._operation_seconds, self._turn_seconds
        for collector in (self, self._commit_writes, self._failed, *durations):
            self._registry.unregister(collector)

    async def refresh(self) -> None:
        """Read from the database what only it knows; where it cannot say, the metric is left out."""
        self._pending = None
        with suppress(KizukiError):
            self._pending = (await self._gateway.statistics()).notices_pending

    async def exposition(self) -> tuple[bytes, str]:
        """The whole registry as Prometheus reads it, and its content type."""
        await self.refresh()
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    # -- a collector ---------------------------------------------------------------------------------------------------------

    def describe(self) -> Iterator[Metric]:
        """What a registry needs in order to refuse a second gateway before anything is registered."""
        yield from self.collect()
        yield GaugeMetricFamily(*_PENDING)

    def collect(self) -> Iterator[Metric]:
        counts: GatewayCounts = self._gateway.counts()
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(f"kizuki_{name}", text, value=getattr(counts, name))
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(f"kizuki_{name}", text, value=getattr(counts, name))
        pending = self._pending
        if pending is not None:
            yield GaugeMetricFamily(*_PENDING, value=pending)

    # -- an observer ---------------------------------------------------------------------------------------------------------

    def operation(self, name: str, /) -> Ended:
        began = perf_counter()
        seconds = self._turn_seconds if name == "turn" else self._operation_seconds.labels(name)

        def ended(error: BaseException | None) -> None:
            seconds.observe(perf_counter() - began)
            if error is not None and not isinstance(error, asyncio.CancelledError | GeneratorExit):
                self._failed.labels(name).inc()

        return ended

    def commit(self, writes: int, /) -> Ended:
        began = perf_counter()
        self._commit_writes.observe(writes)
        return lambda _error: self._commit_seconds.observe(perf_counter() - began)

    def woken(self, latency_s: float, /) -> None:
        self._wake_seconds.observe(latency_s)
