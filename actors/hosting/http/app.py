"""The HTTP API as an ASGI application, to be served by `kizuki serve` or mounted in a host's own server. Needs starlette."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.applications import Starlette

from ...gateway import Gateway
from .live import live_routes
from .page_files import page_routes


def http_app(gateway: Gateway, *, token: str | None = None, names: Iterable[str] = ()) -> Starlette:  # noqa: ARG001
    """The page and the API of a gateway."""
    return Starlette(routes=[*page_routes(), *live_routes(gateway)])
