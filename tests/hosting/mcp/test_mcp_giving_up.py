"""Clients over HTTP that give up on a call: what it would have carried is not lost with its answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

import httpx
import uvicorn

from kizuki.actors import Dispatched, Gateway, open_gateway
from kizuki.actors.hosting.mcp.http import http_app
from kizuki.actors.hosting.mcp.server import mcp_server
from kizuki.actors.hosting.serving.listening import server_config, url_of
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.mcp.mcp_clients import LINE

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PREFIX = "io.modelcontextprotocol/"
META = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}, f"{PREFIX}clientInfo": {"name": "a", "version": "1"}}


class Host:
    """A host whose dispatch waits until it may deliver, and its server."""

    def __init__(self) -> None:
        self.may_deliver = asyncio.Event()
        self.delivering = asyncio.Event()
        self.url = ""

    async def dispatch(self, _sender: str, key: str, _message: str) -> Dispatched:
        self.delivering.set()
        await self.may_deliver.wait()
        return Dispatched(key)


@pytest.fixture
def host() -> Host:
    return Host()


@pytest_asyncio.fixture
async def gateway(state: Path, recorder: Gateway, host: Host) -> AsyncIterator[Gateway]:
    await recorder.human_message(CHILD, channel="telegram")
    async with open_gateway(state, dispatch=host.dispatch) as gateway:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = uvicorn.Server(server_config(http_app(mcp_server(gateway, MAIN), None), lifespan="on"))
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            host.url = f"{url_of(listener)}/mcp"
            yield gateway
            server.should_exit = True
            await serving
    for task in asyncio.all_tasks():  # what streams the answers leaves a task that waits for the end of the process
        if "_shutdown_watcher" in repr(task):
            task.cancel()


def request(number: int, method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


SEND = {"name": "sessions_send", "arguments": {"sessionKey": CHILD, "message": "stop"}}


async def give_up(client: httpx.AsyncClient, host: Host, message: dict[str, Any], headers: dict[str, str]) -> None:
    """Ask, go away while the message is being delivered, and let it be delivered then."""
    asking = asyncio.create_task(client.post(host.url, json=message, headers=headers))
    await host.delivering.wait()
    asking.cancel()
    await asyncio.wait([asking])
    for _ in range(3):  # the server hears of it in the order in which things happen: by now it has
        await client.get(f"{host.url}/none")
    host.may_deliver.set()


async def shown(gateway: Gateway) -> list[str]:
    return [notice.text for notice in await gateway.pending(MAIN)]


async def test_request_that_stands_for_itself(gateway: Gateway, host: Host) -> None:
    """Rule 4.8: a client of the modern era that goes away ends its call, which then carries nothing."""
    headers = {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "sessions_send"}
    async with httpx.AsyncClient(trust_env=False) as client:
        await give_up(client, host, request(1, "tools/call", **SEND, _meta=META), headers)
        await gateway.idle()
        assert await shown(gateway) == [LINE]


async def test_request_of_a_session(gateway: Gateway, host: Host) -> None:
    """Rule 4.8: in a session the call goes on after its client has gone away from it; the notice waits for the next one."""
    async with httpx.AsyncClient(trust_env=False) as client:
        named = {"name": "a", "version": "1"}
        asked = request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=named)
        headers = {**JSON, "Mcp-Session-Id": (await client.post(host.url, json=asked, headers=JSON)).headers["mcp-session-id"]}
        await client.post(host.url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
        await give_up(client, host, request(2, "tools/call", **SEND), headers)
        asked = request(3, "tools/call", name="sessions_list", arguments={})
        async with asyncio.timeout(10):
            # While the call that was given up is being ended, it may still be the one that would carry the notice.
            while "changesSince 1" not in (await client.post(host.url, json=asked, headers=headers)).text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await gateway.statistics()).notices_acknowledged == 0
        assert await shown(gateway) == []
        assert (await client.delete(host.url, headers=headers)).status_code == 200
        assert await shown(gateway) == [LINE]
