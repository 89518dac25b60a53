"""`/metrics`, for Prometheus: there if prometheus-client is installed, which comes with `kizuki[observability]`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...gateway import Gateway

try:
    # Imported here and not where it is needed: it reads files, which a loop must not.
    from prometheus_client import CollectorRegistry

    from ..observability.metrics import GatewayMetrics
except ModuleNotFoundError as error:
    if error.name != "prometheus_client":
        raise
    AVAILABLE = False
else:
    AVAILABLE = True


def metrics_routes(gateway: Gateway) -> list[Route]:
    """The route, or none. The registry holds this gateway's metrics and no others of the process."""
    if not AVAILABLE:
        return []
    metrics = GatewayMetrics(gateway, CollectorRegistry())

    async def answer(_request: Request) -> Response:
        text, content_type = await metrics.exposition()
        return Response(text, headers={"Content-Type": content_type})

    return [Route("/metrics", answer, methods=["GET"])]
