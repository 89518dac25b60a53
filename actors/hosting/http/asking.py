"""From a request to what was asked, and from an answer to a response."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response

from ...errors import InvalidArgument
from .endpoint import Asked, Endpoint, Refused
from .failures import failure
from .schemas import Schema
from .validation import check

BODY_BYTES_MAX: Final = 1_048_576
BODY_S: Final = 30.0
"""How long content may take to come: a connection of somebody who has vanished half-way would stay for good."""
_BOOLEANS: Final = {"true": True, "false": False}


class Answering:
    """The endpoints of one path, by method."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = {endpoint.method: endpoint for endpoint in endpoints}

    async def answer(self, request: Request) -> Response:
        """What the endpoint of the request's method answers, or why it does not. HEAD is GET without the content."""
        endpoint = self._endpoints["GET" if request.method == "HEAD" else request.method]
        if endpoint.streams and request.method == "HEAD":
            # A stream without its content would have no end that a client could wait for.
            response = Response(media_type="text/event-stream")
            del response.headers["content-length"]
            return response
        try:
            return _response(endpoint, await endpoint.handle(await _asked(endpoint, request)))
        except Exception as error:  # noqa: BLE001 - every failure is an answer
            return failure(error, endpoint.name)


def _response(endpoint: Endpoint, document: Any) -> Response:
    if isinstance(document, Response):
        return document
    if endpoint.answer is None:
        return Response(status_code=204)
    return Response(json.dumps(document), endpoint.status, media_type="application/json")


async def _asked(endpoint: Endpoint, request: Request) -> Asked:
    query = _query(request, endpoint.query)
    check(query, endpoint.query, "the query")
    body: Mapping[str, Any] = {}
    if endpoint.body is not None:
        body = await content_of(request)
        check(body, endpoint.body, "the content")
    path = {name: _decoded(name, value) for name, value in request.path_params.items()}
    return Asked(path, query, body, request.headers.get("last-event-id"))


def _decoded(name: str, segment: str) -> str:
    """A segment of the path, which is not decoded before the path is taken apart: a key may hold slashes."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidArgument(name, segment, "it must be percent-encoded UTF-8") from error


def _query(request: Request, schema: Schema) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise InvalidArgument(name, value, "it may be given once")
        given[name] = _typed(value, schema["properties"].get(name, {}).get("type"))
    return given


def _typed(value: str, kind: str | None) -> Any:
    """A value as its schema wants it; what cannot be it stays a text, and is refused as such."""
    if kind == "integer":
        # Longer ones than any number of ours are not even converted.
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 40 else value
    return _BOOLEANS.get(value, value) if kind == "boolean" else value


async def content_of(request: Request) -> Any:
    """The content, as JSON. Raises `Refused` if there is too much of it or it does not come, `InvalidArgument` if it is not JSON."""
    content = await _read(request)
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("the content", content[:100], f"it must be a JSON object: {error}") from error


async def _read(request: Request) -> bytes:
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                content += piece
                if len(content) > BODY_BYTES_MAX:
                    raise Refused(413, "too_large", f"the content may have {BODY_BYTES_MAX} bytes")
    except TimeoutError as error:
        raise Refused(408, "too_slow", f"the content may take {BODY_S:g} s") from error
    return bytes(content)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
