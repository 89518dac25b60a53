"""What stands before a node's answers: which names it is reached by, the token, and what a request must look like."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import blake2b
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .answers import refusal


class NodeGuard:
    """Lets through what is asked by somebody who has the token, under a name that is the node's.

    A page in a browser can reach loopback addresses under a name of its own (DNS rebinding), and can send plain requests without
    asking first: so the name in the Host header must be an address, `localhost` or one that was allowed, and the content must be declared
    as JSON. The port in that header does not count, for the node may be reached through a tunnel.
    """

    def __init__(self, app: ASGIApp, token: str | None, names: Iterable[str]) -> None:
        self._app = app
        self._digest = None if token is None else _digest(token.encode())
        self._names = frozenset({"localhost", *(name.lower() for name in names)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._is_named(headers.getlist("host")):
                answer = refusal(421, "this node does not answer to the name in the Host header")
            elif not self._is_authorized(headers.getlist("authorization")):
                answer = refusal(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
            elif headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                answer = refusal(415, "the content must be application/json")
        await answer(scope, receive, send)

    def _is_named(self, given: list[str]) -> bool:
        if len(given) != 1:
            return False
        name = _without_port(given[0]).lower()
        return name in self._names or is_address(name)

    def _is_authorized(self, given: list[str]) -> bool:
        """Digests of equal length are compared, in constant time, so that nothing is told of the token."""
        if self._digest is None:
            return True
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        return hmac.compare_digest(_digest(token.strip().encode("latin-1")), self._digest) and scheme.lower() == "bearer"


def is_address(name: str) -> bool:
    """Whether the name is the address of a machine rather than a name that could come to mean another one."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _digest(token: bytes) -> bytes:
    return blake2b(token).digest()
