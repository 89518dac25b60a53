"""`kizuki serve-node`: this machine's catalogs for gateways on other machines."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from ..exits import CommandFailed, ExitCode
from ..serving.listening import check_installed, listening, server_config, url_of
from ..serving.token import read_token

PORT: Final = 7433
TOKEN_VARIABLE: Final = "KIZUKI_NODE_TOKEN"  # noqa: S105, a name
_HOST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def serve_node(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen. Anything but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = PORT,
    host_id: Annotated[
        str | None, typer.Option("--host-id", metavar="ID", help="What gateways call this machine. (default: its name)", show_default=False)
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help=f"Holds the token that gateways must show. ({TOKEN_VARIABLE})")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name by which the node is reached; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Answer for this machine's Claude Code, Codex, Pi, Gemini CLI and OpenCode sessions, so that a gateway elsewhere can adopt them.

    The node tells which sessions there are and what people did in them, not what was said: transcripts stay here, and nothing is stored
    or changed. It speaks plain HTTP: between machines, put it behind a tunnel (ssh -L) or a proxy with TLS. Ctrl-C ends it.
    """
    check_installed("serve-node", "http", "starlette", "uvicorn")
    name = _checked_host_id(host_id or socket.gethostname())
    token = read_token(token_file, os.environ, TOKEN_VARIABLE)
    with listening(host, port, has_token=token is not None, variable=TOKEN_VARIABLE) as listener:
        _serve(listener, name, token, [host, *(allow_host or ())], as_json=as_json)


def _serve(listener: socket.socket, host_id: str, token: str | None, names: Sequence[str], *, as_json: bool) -> None:
    import uvicorn

    from ...upstream.installed import installed_catalogs
    from ..output import printable, write_json_line
    from .app import node_app

    catalogs = installed_catalogs()
    url = url_of(listener)
    if as_json:
        write_json_line({"type": "serving", "url": url, "hostId": host_id, "catalogs": [catalog.name for catalog in catalogs]})
    else:
        print(f"node {printable(host_id)} serves {', '.join(catalog.name for catalog in catalogs)} at {url}", flush=True)  # noqa: T201, the result
    config = server_config(node_app(catalogs, host_id, token, names=names))
    uvicorn.Server(config).run(sockets=[listener])


def _checked_host_id(host_id: str) -> str:
    if not _HOST_ID.fullmatch(host_id):
        raise _usage("--host-id must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit")
    return host_id


def _usage(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
