"""What stands before an application's answers: which names it is reached by, the token, and what a request must look like.

Needs starlette.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from hashlib import blake2b
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .answers import refusal

WITH_CONTENT: Final = ("POST", "PUT", "PATCH")
_HOST: Final = re.compile(r"(?:\[(?P<ipv6>[^\[\]]*:[^\[\]]*)\]|(?P<name>[^:\[\]@]*))(?::[0-9]*)?", re.ASCII)


class BearerToken:
    """A token that requests must show in their Authorization header; None lets everybody in."""

    def __init__(self, token: str | None) -> None:
        self._digest = None if token is None else _digest(token.encode())

    def is_in(self, headers: Headers) -> bool:
        """Digests of equal length are compared, in constant time, so that nothing is told of the token."""
        if self._digest is None:
            return True
        given = headers.getlist("authorization")
        scheme, _, token = (given[0] if len(given) == 1 else "").partition(" ")
        return hmac.compare_digest(_digest(token.strip().encode("latin-1")), self._digest) and scheme.lower() == "bearer"


class Guard:
    """Lets through what is asked by somebody who has the token, under a name that is ours, from no foreign page.

    A page in a browser can reach loopback addresses under a name of its own (DNS rebinding), and can send plain requests without
    asking first. So the name in the Host header must be an address, `localhost` or one that was allowed; the Origin header, which
    browsers add, must be the same place as the Host header; and content must be declared as JSON. The port in the Host header does not
    count, for we may be reached through a tunnel.
    """

    def __init__(self, app: ASGIApp, token: str | None, names: Iterable[str]) -> None:
        self._app = app
        self._token = BearerToken(token)
        self._names = own_names(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not is_named(headers, self._names):
                answer = refusal(421, "there is nothing here under the name in the Host header")
            elif not is_own_page(headers):
                answer = refusal(403, "pages of another origin may not ask")
            elif not self._token.is_in(headers):
                answer = refusal(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
            elif scope["method"] in WITH_CONTENT and not is_json(headers):
                answer = refusal(415, "the content must be application/json")
        await answer(scope, receive, send)


def own_names(names: Iterable[str]) -> frozenset[str]:
    """The names to be reached by: those given, and `localhost`."""
    return frozenset({"localhost", *(name.lower() for name in names)})


def is_named(headers: Headers, names: frozenset[str]) -> bool:
    """Whether the Host header holds an address or one of the names; its port does not count."""
    given = headers.getlist("host")
    if len(given) != 1:
        return False
    name = _without_port(given[0]).lower()
    return name in names or is_address(name)


def is_address(name: str) -> bool:
    """Whether the name is the address of a machine rather than a name that could come to mean another one."""
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def is_own_page(headers: Headers) -> bool:
    """Whether the Origin header, where there is one, is the same place as the Host header. Programs send none."""
    origins = headers.getlist("origin")
    host = headers["host"].lower()
    return all(origin.lower() in {f"http://{host}", f"https://{host}"} for origin in origins)


def is_json(headers: Headers) -> bool:
    """Whether the content is declared as JSON, which a page of another origin cannot do without asking first."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _without_port(host: str) -> str:
    """The name; an empty one where something else than a port stands behind it, for then somebody else may read another name."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found["ipv6"] or found["name"]


def _digest(token: bytes) -> bytes:
    return blake2b(token).digest()
