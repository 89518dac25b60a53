"""`kizuki serve-node`: this machine's catalogs for gateways on other machines."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Final

import typer

from ..exits import CommandFailed, ExitCode

PORT: Final = 7433
TOKEN_VARIABLE: Final = "KIZUKI_NODE_TOKEN"  # noqa: S105, a name
TOKEN_CHARACTERS_MIN: Final = 16
SHUTDOWN_S: Final = 5
CONNECTIONS_MAX: Final = 64
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
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise CommandFailed("serve-node needs starlette and uvicorn: pip install 'kizuki[http]'")
    name = _checked_host_id(host_id or socket.gethostname())
    token = read_token(token_file, os.environ)
    with listening(host, port, has_token=token is not None) as listener:
        _serve(listener, name, token, [host, *(allow_host or ())], as_json=as_json)


def read_token(file: Path | None, environ: Mapping[str, str]) -> str | None:
    """The token, which is never given on the command line, where every user of the machine could read it. Raises `CommandFailed`."""
    token = environ.get(TOKEN_VARIABLE) or None if file is None else _token_in(file)
    if token is None:
        return None
    if len(token) < TOKEN_CHARACTERS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise _usage(f"a token must have at least {TOKEN_CHARACTERS_MIN} printable ASCII characters and no blanks")
    return token


def _token_in(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            readable_by_others = stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077
            token = opened.read(4_096).strip()
    except (OSError, ValueError) as error:
        raise _usage(f"--token-file: {error}") from error
    if readable_by_others:
        raise _usage(f"--token-file: {file} can be read by others: chmod 600 {file}")
    return token


def listening(host: str, port: int, *, has_token: bool) -> socket.socket:
    """A listening socket at the address. Raises `CommandFailed`, for one that others can reach where there is no token, too."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise _usage(f"--host {host}: {error}") from error
    if not has_token and not ip_address(address[0]).is_loopback:
        raise _usage(f"--host {host} can be reached from other machines: it needs a token, in {TOKEN_VARIABLE} or --token-file")
    try:
        return socket.create_server((str(address[0]), port), family=family)
    except OSError as error:
        raise CommandFailed(f"{host}, port {port}: {error.strerror or error}") from error


def _serve(listener: socket.socket, host_id: str, token: str | None, names: Sequence[str], *, as_json: bool) -> None:
    import uvicorn

    from ...upstream.installed import installed_catalogs
    from ..output import printable, write_json_line
    from .app import node_app

    catalogs = installed_catalogs()
    address, port = listener.getsockname()[:2]
    url = f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"
    if as_json:
        write_json_line({"type": "serving", "url": url, "hostId": host_id, "catalogs": [catalog.name for catalog in catalogs]})
    else:
        print(f"node {printable(host_id)} serves {', '.join(catalog.name for catalog in catalogs)} at {url}", flush=True)  # noqa: T201, the result
    config = uvicorn.Config(
        node_app(catalogs, host_id, token, names=names),
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS_MAX,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _checked_host_id(host_id: str) -> str:
    if not _HOST_ID.fullmatch(host_id):
        raise _usage("--host-id must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit")
    return host_id


def _usage(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
