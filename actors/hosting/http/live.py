"""What the live page reads at its start."""

from __future__ import annotations

from starlette.routing import Route

from ...gateway import Gateway


def live_routes(gateway: Gateway) -> list[Route]:  # noqa: ARG001 - the page's reads are mounted here
    """The page's own read endpoints, below `/api/live/`."""
    return []
