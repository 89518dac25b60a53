"""OpenTelemetry spans around a gateway's operations and commits. Needs `pip install 'kizuki[observability]'`.

Only the API is used (`opentelemetry-api`): without a tracer provider of the host's, spans cost little and go nowhere. A span is a child of
the caller's current span, and not made current itself: a turn may end in another task than it began in. A commit writes for many
callers at once, so its span is nobody's child.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from ...gateway import Gateway
from ...observing import Ended

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer
except ImportError as error:
    raise ImportError("tracing needs opentelemetry-api: pip install 'kizuki[observability]'") from error

SCOPE: Final = "kizuki"


class GatewayTracing:
    """Makes the spans. Made by `trace_gateway`."""

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = get_tracer(SCOPE, tracer_provider=provider)

    def operation(self, name: str, /) -> Ended:
        return partial(_end, self._tracer.start_span(f"kizuki.{name}", attributes={"kizuki.operation": name}))

    def commit(self, writes: int, /) -> Ended:
        attributes = {"kizuki.commit.writes": writes}
        return partial(_end, self._tracer.start_span("kizuki.commit", Context(), SpanKind.CLIENT, attributes))

    def woken(self, latency_s: float, /) -> None:
        """A wake has a span as an operation; how long it was asked for before is a metric."""


def trace_gateway(gateway: Gateway, *, provider: TracerProvider | None = None) -> Callable[[], None]:
    """Make spans of what the gateway does from now on, through `provider` or else the global one; call what is returned to stop."""
    return gateway.observe(GatewayTracing(provider))


def _end(span: Span, error: BaseException | None) -> None:
    """An error is named by its type: its text can hold a session key."""
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
        if not isinstance(error, asyncio.CancelledError | GeneratorExit):
            span.set_status(Status(StatusCode.ERROR))
    span.end()
