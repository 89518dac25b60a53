"""Which client a request came from, and what its coming says about the notices that this client was shown.

Up to protocol version 2025-11-25 a client is a connection that the SDK keeps: the pipe, or a session of streamable HTTP. From 2026-07-28 on
every request stands for itself: over a pipe, all of them are one client's; over HTTP nothing tells two clients apart, and since
this server speaks for one session, they are taken for one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from .delivery import Delivery
from .exchange import Exchange, exchange_of
from .updates import Updates

_IN_CONNECTION: Final = "kizuki.delivery"
_BEGINNINGS: Final = ("initialize", "server/discover")
"""What a client asks first: whoever was shown something before is another one, or has lost it."""
_NO_SIGN: Final = ("ping",)
"""Sent by a timer, whatever became of the last result."""

Context = ServerRequestContext[Delivery, Any]


class Clients:
    """Middleware before every request: acknowledges, or gives back, what the client was shown before."""

    def __init__(self, new_delivery: Callable[[], Delivery], updates: Updates) -> None:
        self._new_delivery = new_delivery
        self._updates = updates

    @asynccontextmanager
    async def lifespan(self, _server: object) -> AsyncIterator[Delivery]:
        """What requests share that stand for themselves."""
        delivery = self._new_delivery()
        try:
            yield delivery
        finally:
            self._updates.forget(delivery)
            await delivery.leave()

    def delivery(self, context: Context) -> Delivery:
        """What brings notices to the client that sent this; also a name for it."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return context.lifespan_context
        connection: Connection = context.session._connection  # noqa: SLF001 - the SDK has no other way to a connection's end
        found: Delivery | None = connection.state.get(_IN_CONNECTION)
        return found if found is not None else self._arrived(connection)

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        delivery = self.delivery(ctx)
        if ctx.request_id is None:
            if ctx.method == "notifications/cancelled":
                await delivery.give_back_from(_request_id(ctx.params))
            return await call_next(ctx)
        if ctx.method in _BEGINNINGS:
            await delivery.give_back()
        elif ctx.method not in _NO_SIGN:
            await delivery.acknowledge()
        try:
            return await call_next(ctx)
        except BaseException:
            await delivery.give_back_from(ctx.request_id)
            raise

    def _arrived(self, connection: Connection) -> Delivery:
        delivery = self._new_delivery()
        connection.state[_IN_CONNECTION] = delivery
        connection.exit_stack.push_async_callback(delivery.leave)
        connection.exit_stack.callback(self._updates.forget, delivery)
        return delivery


def exchange(context: Context) -> Exchange | None:
    """The HTTP exchange that this request came with; None over a pipe, and where the host's own application serves it."""
    return None if context.request is None else exchange_of(context.request.scope)


def _request_id(params: Mapping[str, Any] | None) -> object:
    return (params or {}).get("requestId")
