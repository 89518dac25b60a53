"""`kizuki serve`: the HTTP API and the live page of a database."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....storage.urls import without_password
from ..serving.listening import check_installed, listening, server_config, url_of
from ..serving.token import read_token
from ..settings import Settings

if TYPE_CHECKING:
    from .app import HttpApp

PORT: Final = 7435
TOKEN_VARIABLE: Final = "KIZUKI_SERVE_TOKEN"  # noqa: S105, a name
CONNECTIONS_MAX: Final = 512
"""Streams are few (`follower.LISTENERS_MAX`), so that there is always room for requests."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where to serve, and to whom."""

    host: str
    port: int
    token_file: Path | None
    names: Sequence[str]


def run_serve(settings: Settings, place: Place, *, as_json: bool) -> None:
    """Serve until the process is told to end. Raises `CommandFailed`, `KizukiError`."""
    check_installed("serve", "http", "starlette", "uvicorn")
    # Imported before there is a loop, for it reads the page's files.
    from . import app  # noqa: F401

    token = read_token(place.token_file, os.environ, TOKEN_VARIABLE)
    with listening(place.host, place.port, has_token=token is not None, variable=TOKEN_VARIABLE) as listener:
        asyncio.run(_serve(listener, settings, token, [place.host, *place.names], as_json=as_json))


async def _serve(listener: socket.socket, settings: Settings, token: str | None, names: Sequence[str], *, as_json: bool) -> None:
    from ...gateway import open_gateway
    from .app import http_app

    async with open_gateway(settings.db, config=settings.config) as gateway:
        app = http_app(gateway, token=token, names=names)
        _say(url_of(listener), settings.db, has_token=token is not None, as_json=as_json)
        await _until_told_to_end(app, listener)


async def _until_told_to_end(app: HttpApp, listener: socket.socket) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves signals to us: uvicorn would send them again at its end, before the gateway is closed."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Streams never end by themselves, and would be waited for.
            await app.close()
            await super().shutdown(sockets)

    server = Server(server_config(app, connections_max=CONNECTIONS_MAX))

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, end)
    await server.serve(sockets=[listener])


def _say(url: str, db: str, *, has_token: bool, as_json: bool) -> None:
    from ..output import printable, write_json_line

    if as_json:
        write_json_line({"type": "serving", "url": url, "database": without_password(db), "token": has_token})
        return
    asked = ", which asks for the token" if has_token else ""
    print(f"kizuki serves {printable(without_password(db))}: the page is {url}/{asked}", flush=True)  # noqa: T201, the result
    print(f"the API is described at {url}/openapi.json. Ctrl-C ends it.", flush=True)  # noqa: T201
