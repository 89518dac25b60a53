"""Where a server listens, and how it is run."""

from __future__ import annotations

import asyncio
import signal
import socket
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Literal

from ..exits import CommandFailed, ExitCode

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

SHUTDOWN_S: Final = 5
"""How long requests under way may take to end once the server is to end."""
CONNECTIONS_MAX: Final = 64


def check_installed(command: str, extra: str, *packages: str) -> None:
    """Raise `CommandFailed` that names the extra if a package that the command needs is not installed."""
    if any(find_spec(package) is None for package in packages):
        raise CommandFailed(f"{command} needs {' and '.join(packages)}: pip install 'kizuki[{extra}]'")


def listening(host: str, port: int, *, has_token: bool, variable: str, option: str = "--host") -> socket.socket:
    """A listening socket at the address.

    Raises `CommandFailed`, also for an address that others can reach where there is no token: it then names the `variable` that would
    hold one. `option` is what the host was given with.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise _usage(f"{option} {host}: {error}") from error
    if not has_token and not ip_address(address[0]).is_loopback:
        raise _usage(f"{option} {host} can be reached from other machines: it needs a token, in {variable} or --token-file")
    try:
        return socket.create_server((str(address[0]), port), family=family)
    except OSError as error:
        raise CommandFailed(f"{host}, port {port}: {error.strerror or error}") from error


def url_of(listener: socket.socket) -> str:
    """The address that is really listened at, as a URL without a path."""
    address, port = listener.getsockname()[:2]
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def server_config(app: ASGIApp, *, lifespan: Literal["on", "off"] = "off", connections_max: int = CONNECTIONS_MAX) -> uvicorn.Config:
    """How uvicorn serves our applications: nothing on standard output, no trust in forwarding headers, bounded. Needs uvicorn."""
    import uvicorn

    return uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan=lifespan,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections_max,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


async def serve(config: uvicorn.Config, listener: socket.socket) -> None:
    """Serve on the running loop until the process is asked to end, and return then, so that what stands around it can end as well."""
    import uvicorn

    loop = asyncio.get_running_loop()
    for asked in (signal.SIGINT, signal.SIGTERM):
        # uvicorn raises the signal again when it has ended, which would end the process there and then.
        loop.add_signal_handler(asked, lambda: None)
    try:
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        for asked in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(asked)


def _usage(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
