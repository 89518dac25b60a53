"""`kizuki mcp --http`: whom it answers, and how notices ride along where a client is many requests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from kizuki.actors import Gateway
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.mcp.mcp_clients import LINE, HttpServer, connected, http_server, lines

TOKEN = "c3d4e5f6a7b8c9d0e1"
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
AUTHORIZED = {**JSON, "Authorization": f"Bearer {TOKEN}"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}},
}


@pytest.fixture
def server(state: Path, recorder: Gateway) -> Iterator[HttpServer]:
    with http_server(state, TOKEN) as server:
        yield server


@asynccontextmanager
async def client(server: HttpServer, mode: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30) as http,
        connected(streamable_http_client(server.url, http_client=http), mode=mode) as client,
    ):
        yield client


async def last_seen(recorder: Gateway) -> int:
    (watch,) = await recorder.watches(MAIN)
    return watch.last_seen


@MODES
async def test_story_over_http(server: HttpServer, recorder: Gateway, mode: Any) -> None:
    """Rule 4.8: one result carries the line; it is shown again to a client that begins anew, and acknowledged by the next request."""
    await recorder.human_message(CHILD, channel="telegram", actor_id="ada")
    for _ in range(2):
        async with client(server, mode) as asking:
            assert lines(await asking.call_tool("sessions_list", {})) == [LINE]
        assert await last_seen(recorder) == 1
    async with client(server, mode) as asking:
        assert lines(await asking.call_tool("sessions_list", {})) == [LINE]
        status = await asking.call_tool("session_status", {"sessionKey": CHILD, "changesSince": 1})
        assert lines(status) == []
        assert status.structured_content is not None
        assert [event["actorId"] for event in status.structured_content["stateChanges"]["events"]] == ["ada"]
        assert await last_seen(recorder) == 2


async def test_sessions_are_clients(state: Path, recorder: Gateway) -> None:
    """Rule 4.8: a notice is in one session's result; others neither show nor acknowledge it. On loopback no token is needed."""
    await recorder.human_message(CHILD, channel="telegram")
    with http_server(state) as server:
        clients = [connected(server.url, mode=mode) for mode in ("legacy", "legacy", "auto")]
        async with clients[0] as first, clients[1] as second, clients[2] as third:
            assert lines(await first.call_tool("sessions_list", {})) == [LINE]
            for other in (second, third):
                assert lines(await other.call_tool("sessions_list", {})) == []
            assert await last_seen(recorder) == 1
        code, logged = server.end()
    assert (code, "Traceback" in logged) == (0, False), logged


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (AUTHORIZED, 200),
        (JSON, 401),
        ({**JSON, "Authorization": f"Bearer {TOKEN}x"}, 401),
        ({**AUTHORIZED, "Host": "evil.example"}, 421),
        ({**AUTHORIZED, "Origin": "http://evil.example"}, 403),
        ({**AUTHORIZED, "Content-Type": "text/plain"}, 415),
    ],
)
def test_who_may_ask(server_alone: HttpServer, headers: dict[str, str], status: int) -> None:
    """Without the token, under a foreign name, from a foreign page, or as a form nothing is answered."""
    answered = httpx.post(server_alone.url, content=json.dumps(INITIALIZE), headers=headers, trust_env=False)
    assert answered.status_code == status
    assert TOKEN not in answered.text


@pytest.fixture(scope="module")
def server_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(tmp_path_factory.mktemp("mcp") / "state.db", TOKEN) as server:
        yield server
