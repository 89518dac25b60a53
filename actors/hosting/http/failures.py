"""Failures as answers, in one shape: `{"error": what was wrong, "reason": a word for programs}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ....storage.errors import StoreError
from ...errors import (
    CatalogUnavailable,
    GatewayClosed,
    InvalidArgument,
    InvalidSessionKey,
    StoreUnavailable,
    UnknownSession,
    UnknownThread,
)
from ...logs import logger
from ..serving.answers import refusal
from .endpoint import Refused

_KINDS: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (InvalidSessionKey, 400, "invalid_session_key"),
    (InvalidArgument, 400, "invalid_argument"),
    (UnknownThread, 404, "unknown_thread"),
    (UnknownSession, 404, "unknown_session"),
    (CatalogUnavailable, 503, "catalog_unavailable"),
    (GatewayClosed, 503, "gateway_closed"),
    (StoreUnavailable, 503, "store_unavailable"),
    (StoreError, 503, "store_unavailable"),
)
_UNREAD: Final[Mapping[int, Mapping[str, str]]] = {status: {"Connection": "close"} for status in (408, 413)}
"""Where content was not read to its end the connection is of no more use, and its rest is not waited for."""
_WORDS: Final[Mapping[int, str]] = {404: "not_found", 405: "method_not_allowed"}


def failure(error: Exception, name: str) -> Response:
    """The answer that says why the operation `name` failed. What was not foreseen is logged, and told no further."""
    if isinstance(error, Refused):
        return refusal(error.status, error.error, _UNREAD.get(error.status), reason=error.reason)
    if isinstance(error, ClientDisconnect):
        return refusal(400, "the request was not sent to its end", reason="incomplete")
    for kind, status, reason in _KINDS:
        if isinstance(error, kind):
            return refusal(status, str(error), reason=reason)
    logger(operation=name).error("request failed", error=repr(error), exc_info=error)
    return refusal(500, "an error that is told in the server's own log", reason="internal_error")


async def not_served(_request: Request, error: Exception) -> Response:
    """What the router refuses: a path that is none, or a method that the path does not have."""
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these alone
    text = {404: "there is nothing at this path: see /openapi.json", 405: "this path has other methods"}.get(error.status_code)
    return refusal(error.status_code, text or error.detail, error.headers, reason=_WORDS.get(error.status_code, "refused"))
