"""The OpenAPI document: made of the very schemas that requests are checked against."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from .endpoint import Endpoint
from .schemas import COMPONENTS, KEY, Schema, named, text

_PARAMETERS: Final[Mapping[str, Schema]] = {
    "key": {**KEY, "description": f"{KEY['description']} Percent-encoded, also its slashes.", "minLength": 1},
    "turn": text("A turn's id.", minLength=1),
}
_ALWAYS: Final = {
    400: "A parameter, the content or a value in it is wrong.",
    401: "The token is missing or wrong.",
    403: "Asked by a page of another origin.",
    421: "Asked under a name in the Host header that is not ours.",
    503: "The database failed, or the gateway is closing: the call may be tried again.",
}
_WITH_CONTENT: Final = {
    408: "The content did not come in time.",
    413: "The content is too large.",
    415: "The content is not declared as application/json.",
}


def openapi_document(endpoints: Iterable[Endpoint], *, has_token: bool) -> dict[str, Any]:
    """The document, as version 3.1 of the specification wants it."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kizuki",
            "version": VERSION,
            "summary": "Session state awareness for multi-agent systems: record what happened, take notices, read exact deltas.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": dict(COMPONENTS), "securitySchemes": _SCHEMES},
        "security": [{"token": []}, {"cookie": []}] if has_token else [],
    }


_SCHEMES: Final = {
    "token": {"type": "http", "scheme": "bearer"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "kizuki", "description": "What POST /login gives a browser."},
}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": [*_in_path(endpoint), *_in_query(endpoint)],
        "responses": {str(status): answer for status, answer in _answers(endpoint).items()},
    }
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": endpoint.body}}}
    return operation


def _in_path(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [_parameter(name, "path", _PARAMETERS[name], required=True) for name in re.findall(r"{(\w+)}", endpoint.path)]


def _in_query(endpoint: Endpoint) -> list[dict[str, Any]]:
    required = endpoint.query["required"]
    return [_parameter(name, "query", schema, required=name in required) for name, schema in endpoint.query["properties"].items()]


def _parameter(name: str, place: str, schema: Schema, *, required: bool) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": dict(schema)}


def _answers(endpoint: Endpoint) -> dict[int, dict[str, Any]]:
    texts = {**_ALWAYS, **(_WITH_CONTENT if endpoint.body is not None else {}), **endpoint.refusals}
    refusals = {status: {"description": described, "content": _json(named("Error"))} for status, described in texts.items()}
    return {endpoint.status if endpoint.answer is not None else 204: _success(endpoint), **dict(sorted(refusals.items()))}


def _success(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.answer is None:
        return {"description": "Done."}
    media_type = {"text/event-stream": {"schema": endpoint.answer}} if endpoint.streams else _json(endpoint.answer)
    return {"description": endpoint.summary, "content": media_type}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": dict(schema)}}


def _version() -> str:
    try:
        return version("kizuki")
    except PackageNotFoundError:
        return "0"


VERSION: Final = _version()
"""Found out when this module is imported: it reads files, which a loop must not."""
