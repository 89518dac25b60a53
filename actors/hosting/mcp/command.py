"""`kizuki mcp`: the session tools for an agent's own tool that speaks the Model Context Protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from ...errors import InvalidArgument
from ...keys import watcher_address
from ..exits import CommandFailed, ExitCode
from ..serving.listening import check_installed, listening, serve, server_config, url_of
from ..serving.token import read_token

if TYPE_CHECKING:
    from ..settings import Settings

TOKEN_VARIABLE: Final = "KIZUKI_MCP_TOKEN"  # noqa: S105, a name
SESSION_VARIABLE: Final = "KIZUKI_SESSION"


def mcp(
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="KEY", envvar=SESSION_VARIABLE, help="The session that calls are made for, such as agent:main:main."
        ),
    ],
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Streamable HTTP instead of standard input and output. Port 0: any that is free."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help=f"With --http: holds the token that clients must show. ({TOKEN_VARIABLE})"),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="With --http: a name it is reached by; may be repeated.")
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(
            "--db", metavar="PATH", help="The database: a path, sqlite:///path or postgresql://... (KIZUKI_DB; default: kizuki.db)"
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A TOML file with settings. (default: kizuki.toml, if it is there)")
    ] = None,
    language: Annotated[
        Literal["en", "ja"] | None, typer.Option("--language", help="Of notices and summaries. (KIZUKI_LANGUAGE; default: en)")
    ] = None,
) -> None:
    """Give an agent the session tools over the Model Context Protocol, in the name of one session.

    When somebody else has changed a session that it watches, one line about it rides along in the result of its next call. It is
    acknowledged by the request after that one; if the agent goes away before, it is shown again.

    It speaks on standard input and output until its input ends, and logs to standard error. With --http it listens, on loopback unless
    there is a token; Ctrl-C ends it.
    """
    from ..settings import Flag, load_settings

    _check_sdk()
    settings = load_settings({"db": Flag("--db", db), "language": Flag("--language", language)}, config, os.environ)
    if watcher_address(session) is None:
        raise InvalidArgument("--session", session, "it must begin with agent:<agentId>:, for no other session can be told of anything")
    if http is not None:
        _run_http(settings, session, *_host_and_port(http), token_file, allow_host or ())
        return
    if token_file is not None or allow_host:
        raise _usage("--token-file and --allow-host go with --http")
    # What reads standard input cannot be interrupted. A process that is ended acknowledges nothing, so no notice is lost by it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(_stdio(settings, session))


def _check_sdk() -> None:
    """It may be missing, or be an older one: agents' own tools often have that."""
    check_installed("kizuki mcp", "mcp", "mcp")
    try:
        from . import server  # noqa: F401 - to see whether it can be imported, before a database is made
    except ImportError as error:
        raise CommandFailed(str(error)) from error


async def _stdio(settings: Settings, session: str) -> None:
    from ...gateway import open_gateway
    from .server import mcp_server

    async with open_gateway(settings.db, config=settings.config) as gateway:
        await gateway.open_session(session)
        await mcp_server(gateway, session).run_stdio_async()


def _run_http(settings: Settings, session: str, host: str, port: int, token_file: Path | None, names: Sequence[str]) -> None:
    token = read_token(token_file, os.environ, TOKEN_VARIABLE)
    with listening(host, port, has_token=token is not None, variable=TOKEN_VARIABLE, option="--http") as listener:
        asyncio.run(_http(settings, session, listener, token, [host, *names]))


async def _http(settings: Settings, session: str, listener: socket.socket, token: str | None, names: Sequence[str]) -> None:
    from ...gateway import open_gateway
    from ..output import printable
    from .http import PATH, http_app
    from .server import mcp_server

    async with open_gateway(settings.db, config=settings.config) as gateway:
        await gateway.open_session(session)
        app = http_app(mcp_server(gateway, session), token, names=names)
        print(f"MCP for {printable(session)} at {url_of(listener)}{PATH}", flush=True)  # noqa: T201, the result
        await serve(server_config(app, lifespan="on"), listener)


def _host_and_port(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise _usage(f"--http {given}: it must be HOST:PORT, such as 127.0.0.1:7434 or [::1]:7434")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _usage(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
