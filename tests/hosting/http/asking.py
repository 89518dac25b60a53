"""Asking the HTTP application: in memory, on the loop of its gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx
from starlette.types import ASGIApp, Message

from kizuki.actors import ManualClock
from kizuki.actors.hosting.http.app import HttpApp

HERE = "http://127.0.0.1:7435"
WAIT_S = 10.0
LOOK_S = 0.11
"""A little more than a follower's pause between two looks."""
TOKEN = "c3d4e5f6a7b8c9d0e1"


def session(key: str, *rest: str) -> str:
    """The path of a session, its key percent-encoded to its last slash."""
    return "/".join(["/api/sessions", quote(key, safe=""), *rest])


class Api:
    """An application that is asked."""

    def __init__(self, app: HttpApp, client: httpx.AsyncClient) -> None:
        self.app = app
        self.client = client

    async def get(self, path: str, **query: object) -> Any:
        """The document at the path; it must be there."""
        response = await self.client.get(path, params={name: str(value) for name, value in query.items()})
        assert response.status_code == 200, response.text
        return response.json()

    async def tell(self, path: str, method: str = "POST", **content: object) -> Any:
        """What is answered; it must be a success."""
        response = await self.client.request(method, path, json=content)
        assert response.is_success, response.text
        return response.json() if response.content else None

    async def refused(self, path: str, method: str = "POST", content: object = None) -> tuple[int, str]:
        """How something is refused: the status and the word for programs."""
        response = await self.client.request(method, path, json={} if content is None else content)
        document = response.json()
        assert set(document) == {"error", "reason"}, document
        return response.status_code, document["reason"]


@asynccontextmanager
async def asking(app: HttpApp) -> AsyncIterator[Api]:
    """Ask the application, and close it at the end."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
        try:
            yield Api(app, client)
        finally:
            await app.close()


class Streamed:
    """One client's stream, as it comes. While nothing does, time goes on."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.status = 0
        self._came: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._rest = b""

    async def next(self) -> tuple[str, Any, int]:
        """The next event: its kind, its data and its id. Signs of life are passed over."""
        while True:
            block = await self.block()
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                return fields["event"], json.loads(fields["data"]), int(fields["id"])

    async def block(self) -> str:
        """What comes up to the next empty line."""
        while b"\n\n" not in self._rest:
            piece = await self._piece()
            if piece is None:
                raise EOFError
            self._rest += piece
        block, _, self._rest = self._rest.partition(b"\n\n")
        return block.decode()

    async def _piece(self) -> bytes | None:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    return await asyncio.wait_for(self._came.get(), 0.02)
                except TimeoutError:
                    await self._clock.advance(LOOK_S)

    async def send(self, message: Message) -> None:
        """What the application sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await self._came.put(message["body"])
            if not message.get("more_body"):
                await self._came.put(None)


@asynccontextmanager
async def streaming(app: ASGIApp, clock: ManualClock, *, query: str = "", last_event_id: str | None = None) -> AsyncIterator[Streamed]:
    """Listen to the stream; the client goes away at the end."""
    gone = asyncio.Event()
    headers = [(b"host", b"127.0.0.1"), *([] if last_event_id is None else [(b"last-event-id", last_event_id.encode())])]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/stream",
        "raw_path": b"/api/stream",
        "query_string": query.encode(),
        "root_path": "",
        "headers": headers,
        "server": ("127.0.0.1", 7435),
        "client": ("127.0.0.1", 1),
    }

    async def receive() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    stream = Streamed(clock)

    async def ask() -> None:
        await app(scope, receive, stream.send)

    task = asyncio.create_task(ask())
    try:
        yield stream
    finally:
        gone.set()
        await asyncio.wait_for(task, 10)
