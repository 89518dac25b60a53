"""Whether the answer to an HTTP request has got out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_IN_SCOPE: Final = "kizuki.exchange"


class Exchange:
    """One HTTP request and its answer."""

    def __init__(self) -> None:
        self.completed = False
        """Whether the whole answer was sent."""
        self.over = False
        """Whether the request is no longer served; without an answer, if it was not completed before."""
        self._on_failure: list[Callable[[Exchange], Awaitable[None]]] = []

    def on_failure(self, callback: Callable[[Exchange], Awaitable[None]]) -> None:
        """Have this awaited if the answer does not get out."""
        self._on_failure.append(callback)

    async def end(self) -> None:
        self.over = True
        if not self.completed:
            for callback in self._on_failure:
                await callback(self)


class Exchanges:
    """Puts an `Exchange` into the scope of each request. A client that goes away ends the application before its last piece is sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = scope[_IN_SCOPE] = Exchange()

        async def sent(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                exchange.completed = True

        try:
            await self._app(scope, receive, sent)
        finally:
            await exchange.end()


def exchange_of(scope: Scope) -> Exchange | None:
    """The exchange of a request; None where no `Exchanges` stands before the application."""
    found: Exchange | None = scope.get(_IN_SCOPE)
    return found
