"""A node: answers, over HTTP, for the catalogs of this machine to gateways on others.

What is asked and answered is in `upstream.remote.wire`.

It stores nothing and changes nothing. Work on files is done in threads, each question has its time, and what a question may hold is
bounded. Needs starlette, which comes with `kizuki[http]`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ...logs import logger
from ...upstream.catalog import Catalog, JsonObject, ThreadNotFound
from ...upstream.files.catalog import LOCAL_HOST
from ...upstream.remote.wire import (
    NO_THREAD,
    PROBES_MAX,
    REQUEST_BYTES_MAX,
    THREADS_MAX,
    Fields,
    WireError,
    outcome_to_json,
    probe_from_json,
    start_to_json,
    thread_to_json,
)
from ..serving.answers import answer, refusal
from ..serving.guard import Guard
from .catalogs import ServedCatalog, served

QUESTION_TIMEOUT_S: Final = 25.0
"""How long a question may take, from its first byte to its answer: less than a gateway waits for one."""

Answer = Callable[[ServedCatalog, Fields], Awaitable[JsonObject]]


def node_app(
    catalogs: Iterable[Catalog], host_id: str, token: str | None, *, names: Iterable[str] = (), timeout_s: float = QUESTION_TIMEOUT_S
) -> Starlette:
    """The node as an ASGI application. `names` are those that it is reached by, besides `localhost` and addresses."""
    node = _Node(host_id, served(catalogs), timeout_s)
    route = Route("/v1/hosts/{host}/catalogs/{catalog}/{question}", node.answer, methods=["POST"])
    return Starlette(routes=[route], middleware=[Middleware(Guard, token=token, names=tuple(names))])


class _Node:
    def __init__(self, host_id: str, catalogs: Mapping[str, ServedCatalog], timeout_s: float) -> None:
        self._host_id = host_id
        self._catalogs = catalogs
        self._timeout_s = timeout_s

    async def answer(self, request: Request) -> Response:
        host, catalog, question = (request.path_params[name] for name in ("host", "catalog", "question"))
        if host != self._host_id:
            return refusal(421, f"this node is called {self._host_id!r}")
        if catalog not in self._catalogs or question not in _ANSWERS:
            return refusal(404, f"there are the catalogs {', '.join(self._catalogs)} and the questions {', '.join(_ANSWERS)}")
        try:
            async with asyncio.timeout(self._timeout_s):
                return answer(await _ANSWERS[question](self._catalogs[catalog], await _asked(request)))
        except Exception as error:  # noqa: BLE001 - whatever a catalog raises must become an answer that says nothing of its threads
            return _failure(error, catalog, question)


def _failure(error: Exception, catalog: str, question: str) -> Response:
    match error:
        case ThreadNotFound():
            return refusal(404, str(error), reason=NO_THREAD)
        case WireError():
            return refusal(400, str(error))
        case _RequestTooLargeError():
            return refusal(413, f"a question may have {REQUEST_BYTES_MAX} bytes")
        case ClientDisconnect():
            return refusal(400, "the question was not asked to its end")
    logger(catalog=catalog, question=question).warning("question not answered", error=repr(error))
    return refusal(503, f"{type(error).__name__}: {error}")


class _RequestTooLargeError(Exception):
    """A request is larger than any that is well meant."""


async def _asked(request: Request) -> Fields:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > REQUEST_BYTES_MAX:
            raise _RequestTooLargeError
    try:
        return Fields.in_(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise WireError(f"the content must be a JSON object: {error}") from error


async def _threads(catalog: ServedCatalog, asked: Fields) -> JsonObject:
    limit = asked.number("limit")
    if not 1 <= limit <= THREADS_MAX:
        raise WireError(f"limit must be from 1 to {THREADS_MAX}")
    page, after = await catalog.threads(asked.optional_text("after"), limit)
    return {"threads": [thread_to_json(thread) for thread in page], "next": after}


async def _end(catalog: ServedCatalog, asked: Fields) -> JsonObject:
    return start_to_json(await catalog.end(asked.text("thread")))


async def _read(catalog: ServedCatalog, asked: Fields) -> JsonObject:
    probes = [probe_from_json(item, LOCAL_HOST) for item in asked.items("probes")]
    if len(probes) > PROBES_MAX:
        raise WireError(f"there may be {PROBES_MAX} probes")
    return {"outcomes": [outcome_to_json(outcome) for outcome in await catalog.read(probes)]}


_ANSWERS: Final[Mapping[str, Answer]] = {"threads": _threads, "end": _end, "read": _read}
