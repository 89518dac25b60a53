"""Clients of `kizuki mcp`: the SDK's own, and a bare one that can be cut off at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client._transport import Transport
from mcp.types import CallToolResult, TextContent

from kizuki.actors.hosting.mcp.server import SessionServer
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.conftest import command

LINE = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
"""The notice of the first thing that happens to the child after its spawn."""


def lines(result: CallToolResult) -> list[str]:
    """The notices that ride along in a result, which are the same as text and as data."""
    assert not result.is_error, result.content
    texts = [block.text for block in result.content[1:] if isinstance(block, TextContent)]
    told = [line for text in texts for line in text.splitlines()]
    assert told == [row["text"] for row in (result.structured_content or {}).get("notices", [])]
    return told


@asynccontextmanager
async def connected(
    server: SessionServer | StdioServerParameters | Transport | str, mode: Any = "auto", **options: Any
) -> AsyncIterator[Client]:
    """The SDK's client. It has listed the tools: else it would do so after its first call, which is a next request."""
    async with Client(server, mode=mode, **options) as client:
        await client.list_tools()
        yield client


def stdio(database: Path, *arguments: str) -> StdioServerParameters:
    """How the SDK's client starts the server."""
    executable, *rest = command("mcp", "--db", database, "--session", MAIN, *arguments)
    return StdioServerParameters(command=executable, args=rest, env={**os.environ}, cwd=database.parent)


class Wire:
    """A client that speaks the handshake era's protocol on the pipes of a server process."""

    def __init__(self, database: Path) -> None:
        arguments = command("mcp", "--db", database, "--session", MAIN)
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._number = 0
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "wire", "version": "1"}}
        self.told = self.ask("initialize", client)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask, and wait for the answer; whatever comes on standard output must be a message of the protocol."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params or {}})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == self._number:
                result: dict[str, Any] = message["result"]
                return result
        raise AssertionError(self.process.communicate()[1])

    def call(self, tool: str, **arguments: object) -> list[str]:
        """Call a tool; the notices that ride along."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return [row["text"] for row in result["structuredContent"].get("notices", [])]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> tuple[int, str]:
        """Close its input; its exit code and what it logged."""
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()


@contextmanager
def wire(database: Path) -> Iterator[Wire]:
    """A client and its server, which is gone afterwards."""
    client = Wire(database)
    try:
        yield client
    finally:
        client.kill()


class HttpServer:
    """`kizuki mcp --http` as a process, on any port of loopback that is free."""

    def __init__(self, database: Path, token: str | None) -> None:
        env = {**os.environ} | ({} if token is None else {"KIZUKI_MCP_TOKEN": token})
        arguments = command("mcp", "--db", database, "--session", MAIN, "--http", "127.0.0.1:0")
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.url = line.split()[-1]

    def end(self) -> tuple[int, str]:
        """Ask it to end; its exit code and what it logged."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


@contextmanager
def http_server(database: Path, token: str | None = None) -> Iterator[HttpServer]:
    """A server over HTTP, which is gone afterwards."""
    server = HttpServer(database, token)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()
