"""The page and the API of a gateway as an ASGI application: served by `kizuki serve`, or mounted in a host's own server.

Needs starlette, which comes with `kizuki[http]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby

from ...clock import Clock, SystemClock
from ...gateway import Gateway

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import BaseRoute, Mount, Route, Router

    from .asking import Answering
    from .endpoint import Endpoint
    from .failures import not_served
    from .follower import Follower
    from .guard import PathAsSent, PlaceGuard, SafeHeaders, TokenGuard
    from .leases import LeasedTurns
    from .live import live_endpoints
    from .login import Login
    from .metrics_route import metrics_routes
    from .openapi import openapi_document
    from .page_files import page_routes
    from .reading import reading_endpoints
    from .recording import recording_endpoints
    from .streaming import stream_endpoint
    from .tool_endpoints import tool_endpoints
    from .turn_endpoints import turn_endpoints
    from .validation import check_schema
except ImportError as error:
    raise ImportError("the HTTP API needs starlette: pip install 'kizuki[http]'") from error


class HttpApp(Starlette):
    """The application, with what it keeps beside the gateway: turns of other hosts, and those who follow the log."""

    def __init__(self, turns: LeasedTurns, follower: Follower, routes: Sequence[BaseRoute], names: Iterable[str]) -> None:
        self._turns = turns
        self._follower = follower
        super().__init__(
            routes=routes,
            middleware=[Middleware(SafeHeaders), Middleware(PlaceGuard, names=tuple(names)), Middleware(PathAsSent)],
            exception_handlers={HTTPException: not_served},
            lifespan=_lifespan,
        )
        self.router.redirect_slashes = False

    async def close(self) -> None:
        """End the streams, and give open turns back. A host that mounts the application calls it before it leaves the gateway."""
        await self._follower.close()
        await self._turns.close()


@asynccontextmanager
async def _lifespan(app: HttpApp) -> AsyncIterator[None]:
    yield
    await app.close()


def http_app(
    gateway: Gateway, *, token: str | None = None, names: Iterable[str] = (), send: bool = False, clock: Clock | None = None
) -> HttpApp:
    """The application of a gateway.

    `token` is what requests must show, as `Authorization: Bearer ...`; without one everybody who reaches the port may ask. `names` are
    those that the host is reached by, besides `localhost` and addresses. `send` offers `sessions_send`: for a gateway with a dispatch.
    """
    clock = clock or SystemClock()
    turns, follower = LeasedTurns(gateway, clock), Follower(gateway.store, gateway.language, clock)
    endpoints = [
        *reading_endpoints(gateway),
        stream_endpoint(follower),
        *recording_endpoints(gateway),
        *turn_endpoints(gateway, turns),
        *tool_endpoints(gateway, send=send),
        *live_endpoints(gateway),
    ]
    asked = Router([*_routes(endpoints), *metrics_routes(gateway)], redirect_slashes=False)
    guarded = Mount("", asked, middleware=[Middleware(TokenGuard, token=token)])
    routes: list[BaseRoute] = [
        *page_routes(),
        Login(token).route(),
        _document(openapi_document(endpoints, has_token=token is not None)),
        guarded,
    ]
    return HttpApp(turns, follower, routes, names)


def _routes(endpoints: Iterable[Endpoint]) -> list[Route]:
    """One for each path, so that it knows all its methods."""
    by_path = groupby(sorted(endpoints, key=lambda endpoint: endpoint.path), key=lambda endpoint: endpoint.path)
    return [_route(path, list(group)) for path, group in by_path]


def _route(path: str, endpoints: list[Endpoint]) -> Route:
    for endpoint in endpoints:
        for schema in (endpoint.query, endpoint.body):
            if schema is not None:
                check_schema(schema)
    return Route(path, Answering(endpoints).answer, methods=[endpoint.method for endpoint in endpoints])


def _document(document: dict[str, object]) -> Route:
    async def answer(_request: Request) -> Response:
        return JSONResponse(document)

    return Route("/openapi.json", answer, methods=["GET"])
