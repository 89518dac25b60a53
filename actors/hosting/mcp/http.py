"""The MCP server over streamable HTTP: to whom it answers, and for how long it keeps their sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp

from ..serving.guard import Guard
from .exchange import Exchanges
from .server import SessionServer

PATH: Final = "/mcp"
SESSIONS_MAX: Final = 64
REQUEST_BYTES_MAX: Final = 1 << 20


def http_app(server: SessionServer, token: str | None, *, names: Iterable[str] = ()) -> ASGIApp:
    """The server as an ASGI application at `/mcp`, to be run with its lifespan, once.

    `token` is what requests must show, None for nothing; `names` are those that it is reached by, besides `localhost` and addresses.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=REQUEST_BYTES_MAX,
        max_sessions=SESSIONS_MAX,
        # The guard checks names and origins, and knows those that were allowed.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return Guard(Exchanges(app), token, names)
