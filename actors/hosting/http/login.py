"""The page's way in where there is a token: it is shown once, and a cookie that scripts cannot read stands for it from then on."""

from __future__ import annotations

import hmac
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..serving.answers import refusal
from .asking import content_of
from .failures import failure
from .guard import COOKIE, cookie_of
from .schemas import fields, text
from .validation import check

_CONTENT = fields(("token",), token=text())


class Login:
    """`POST /login` with `{"token": "..."}`: 204 and the cookie. `DELETE /login` takes it away."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def route(self) -> Route:
        """Where it is."""
        return Route("/login", self.answer, methods=["POST", "DELETE"])

    async def answer(self, request: Request) -> Response:
        """204, or why not."""
        response = Response(status_code=204)
        if request.method == "DELETE":
            response.delete_cookie(COOKIE, httponly=True, samesite="strict")
            return response
        try:
            content: Any = await content_of(request)
            check(content, _CONTENT, "the content")
        except Exception as error:  # noqa: BLE001 - every failure is an answer
            return failure(error, "login")
        if self._token is not None:
            if not hmac.compare_digest(content["token"].strip().encode(), self._token.encode()):
                return refusal(401, "the token is wrong", reason="wrong_token")
            secure = request.url.scheme == "https"
            response.set_cookie(COOKIE, cookie_of(self._token), httponly=True, samesite="strict", secure=secure)
        return response
