"""The OpenAPI document is whole, and whatever is asked the application answers as the document says (Schemathesis)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kizuki.actors import Gateway
from kizuki.actors.hosting.http.app import http_app
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.http.asking import Api
from tests.hosting.http.serve_process import ServeProcess, serve_process

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
requests = pytest.importorskip("requests", reason="requests, which schemathesis asks with, is not installed")

EXAMPLES = 5
"""For each operation, of what fits its schema and of what does not."""
ENDLESS = "stream"
KEYS = ("sessionKey", "child", "target", "parent", "key")
IDS = ("runId", "sessionId", "operationId", "actorId", "dedupeKey", "label")
AGENTS = ("agentId", "parentAgentId", "targetAgentId")
STRANGE = "agent:main:telegram:group:-100/7"


@pytest.fixture
def server(database: Path) -> Iterator[ServeProcess]:
    """A server on a database in which things have happened."""
    with serve_process(database) as server:
        yield server


def checks() -> list[Any]:
    """No failure of the server, no answer that is not documented, and nothing accepted that the document forbids."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as openapi

    return [
        not_a_server_error,
        openapi.status_code_conformance,
        openapi.content_type_conformance,
        openapi.response_schema_conformance,
        openapi.response_headers_conformance,
    ]


def with_session(case: Any, key: str | None) -> None:
    """Name a session that is there, and ids that can be, so that the call is not refused for those alone."""
    if key is None:
        return
    if "key" in (case.path_parameters or {}):
        case.path_parameters["key"] = quote(key, safe="")
    for sent in (case.body, case.query):
        if isinstance(sent, dict):
            sent.update({name: key for name in KEYS if isinstance(sent.get(name), str)})
            sent.update({name: "r1" for name in IDS if isinstance(sent.get(name), str)})
            for name in AGENTS:
                sent.pop(name, None)


def test_whatever_is_asked(server: ServeProcess) -> None:
    """Over all operations: no 5xx and no undocumented answer, for what fits the schema and for what does not."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    asked: dict[str, set[int]] = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        if name != ENDLESS:
            asked[name] = _asked(operation, server.url)
    assert len(asked) > 25
    # What the document promises was reached, and not only refused.
    assert {name for name, statuses in asked.items() if not any(status < 300 for status in statuses)} <= {"adopt"} | TURN_CALLS
    assert {name for name, statuses in asked.items() if max(statuses) >= 500} == set()
    with server.client() as client:
        assert client.get("/api/statistics").json()["recordingsLost"] == 0


TURN_CALLS = {"renew_turn", "acknowledge_turn", "end_turn"}
"""Nobody can guess a turn's id."""


def _asked(operation: Any, url: str) -> set[int]:
    """Ask for one operation in many ways; the statuses of the answers."""
    statuses: set[int] = set()
    modes = schemathesis.GenerationMode
    wanted = checks()
    with requests.Session() as session:
        for key in (MAIN, CHILD, STRANGE):  # They may have been deleted meanwhile.
            session.put(f"{url}/api/sessions/{quote(key, safe='')}", json={}).raise_for_status()
        for mode in (modes.POSITIVE, modes.NEGATIVE) if _can_be_wrong(operation) else (modes.POSITIVE,):

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            )
            @given(case=operation.as_strategy(generation_mode=mode), key=st.sampled_from([MAIN, None, CHILD, STRANGE]))
            def ask(case: Any, key: str | None) -> None:
                with_session(case, key)
                statuses.add(case.call_and_validate(checks=wanted, session=session).status_code)

            ask()
    return statuses


def _can_be_wrong(operation: Any) -> bool:
    """Whether there is anything in what is asked but texts in the path, of which all are texts."""
    raw = operation.definition.raw
    return "requestBody" in raw or any(parameter["in"] == "query" for parameter in raw["parameters"])


async def test_the_document(api: Api, gateway: Gateway) -> None:
    """It names every path that is served below /api, with its methods, and each operation once."""
    document = (await api.client.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(operations) == len(set(operations))
    served = {path: set(methods) for path, methods in document["paths"].items()}
    for path, methods in served.items():
        response = await api.client.request("TRACE", path.replace("{key}", quote(MAIN)).replace("{turn}", "t"))
        assert {name.lower() for name in response.headers["allow"].split(", ")} - {"head"} == methods
    assert ("security", []) in document.items()
    guarded = http_app(gateway, token="t" * 16)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://localhost") as client:
        assert (await client.get("/openapi.json")).json()["security"] == [{"token": []}, {"cookie": []}]


async def test_the_tools(gateway: Gateway) -> None:
    """Sending is documented and served only where the host can dispatch."""
    for send in (True, False):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(http_app(gateway, send=send)), base_url="http://localhost") as client:
            assert ("/api/sessions/{key}/tools/sessions_send" in (await client.get("/openapi.json")).json()["paths"]) is send
