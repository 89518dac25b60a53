"""How connections to the server are made."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg

from ..errors import StoreError
from .line import Database

CONNECT_S = 5.0
COMMAND_S = 30.0
"""An answer that takes longer will not come: the server, or the way to it, is gone without a word. Waiting for locks ends sooner."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where the database is, and how this process wants it."""

    url: str
    """What follows ? and is not known to asyncpg is a setting of the session, such as search_path."""
    settings: tuple[tuple[str, str], ...]

    async def connect(self) -> Database:
        """A new connection. Keys and texts are UTF-8, whatever the server's default is."""
        settings = {"application_name": "kizuki", **dict(self.settings)}
        return await asyncpg.connect(self.url, timeout=CONNECT_S, command_timeout=COMMAND_S, server_settings=settings)


def server_at(url: str, *, synchronous: str, read_only: bool) -> Server:
    """The server behind a URL such as `postgresql://user:password@host/database`. `StoreError` if that is none."""
    scheme, _, rest = url.partition("://")
    try:
        urlsplit(url).port  # noqa: B018 - it is a property, and says whether the URL can be read
    except ValueError as error:
        raise StoreError(f"cannot open the database: its URL is broken: {error}") from error
    settings = {"synchronous_commit": "on" if synchronous == "full" else "off"}
    if read_only:
        settings["default_transaction_read_only"] = "on"
    return Server(f"postgresql://{rest}" if scheme else url, tuple(settings.items()))
