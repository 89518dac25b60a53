"""What stands before the API and the page: the names they are reached by, pages of other origins, the token, and safe headers."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serving.answers import refusal
from ..serving.guard import WITH_CONTENT, BearerToken, is_json, is_named, is_own_page, own_names

COOKIE: Final = "kizuki"

SAFE_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer, unless it has such a header itself: nothing inline, nothing from elsewhere, in no frame, and kept by nobody."""


class SafeHeaders:
    """Adds `SAFE_HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFE_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_safely if scope["type"] == "http" else send)


class PathAsSent:
    """Has the path taken apart as it was sent, percent-encoded: in a session key an encoded slash is not the end of a segment."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # A server need not give it; then a slash in a key cannot be told from one between segments.
            raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
            scope = {**scope, "path": raw.decode("latin-1")}
        await self._app(scope, receive, send)


class PlaceGuard:
    """Lets through what is asked under our own names and not by a page of another origin.

    A browser says by `Sec-Fetch-Site` whose page asks. Going to the page from elsewhere, as by a link, is allowed.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = own_names(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not is_named(headers, self._names):
                answer = refusal(421, "there is nothing here under the name in the Host header", reason="wrong_host")
            elif not is_own_page(headers) or not _is_own_site(scope["method"], headers):
                answer = refusal(403, "pages of another origin may not ask", reason="other_origin")
            elif scope["method"] in WITH_CONTENT and not is_json(headers):
                answer = refusal(415, "the content must be application/json", reason="not_json")
        await answer(scope, receive, send)


class TokenGuard:
    """Lets through who shows the token, or the cookie that a login with the token gave."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._bearer = BearerToken(token)
        self._cookie = None if token is None else cookie_of(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http" and not self._is_allowed(Headers(scope=scope)):
            answer = refusal(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"}, reason="wrong_token")
        await answer(scope, receive, send)

    def _is_allowed(self, headers: Headers) -> bool:
        return self._bearer.is_in(headers) or (self._cookie is not None and _is_in_cookies(headers, self._cookie))


def cookie_of(token: str) -> str:
    """What the cookie holds: it proves that the token was shown, without being it, and is void once the token is another."""
    return hmac.new(token.encode(), b"kizuki page", hashlib.sha256).hexdigest()


def _is_in_cookies(headers: Headers, cookie: str) -> bool:
    """Whether one of the cookies of our name is that one.

    A browser sends every port of a host the same cookies, so that those of other servers come along, whatever they look like.
    `http.cookies` gives up at the first that is not in order, and would not find ours behind it.
    """
    pairs = [pair.strip().partition("=") for header in headers.getlist("cookie") for pair in header.split(";")]
    return any(hmac.compare_digest(value.encode("latin-1"), cookie.encode()) for name, _, value in pairs if name == COOKIE)


def _is_own_site(method: str, headers: Headers) -> bool:
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return True
    return method == "GET" and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
