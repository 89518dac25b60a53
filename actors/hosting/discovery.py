"""What the catalogs on this machine know of, as the command line shows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from ..upstream.catalog import Catalog, Discovered
from ..upstream.installed import installed_catalogs
from ..upstream.thread_key import thread_key
from .exits import CommandFailed, ExitCode
from .output import printable

UNREADABLE = (OSError, sqlite3.Error)
"""What a catalog raises where its tool's folder or database is there and cannot be read."""


def named_catalog(name: str) -> Catalog:
    """The catalog of this name; `CommandFailed` (usage) that lists all there are."""
    catalogs = {catalog.name: catalog for catalog in installed_catalogs()}
    if name not in catalogs:
        raise CommandFailed(f"there is no catalog {printable(name)}: there are {', '.join(catalogs)}", ExitCode.USAGE)
    return catalogs[name]


async def discovered(catalog: Catalog) -> Sequence[Discovered]:
    """Every thread of the catalog, newest first. Raises `CommandFailed` where it cannot be read."""
    try:
        return await catalog.list()
    except UNREADABLE as error:
        raise CommandFailed(f"{catalog.name} cannot be read: {printable(error)}") from error


def persons_own(threads: Iterable[Discovered]) -> list[Discovered]:
    """Those that a person can have begun: the others are sub-agents of these."""
    return [thread for thread in threads if thread.parent_thread_id is None]


def thread_row(catalog: str, thread: Discovered, agent_id: str) -> dict[str, Any]:
    """A thread as JSON shows it, with the key of the session that adopting it gives."""
    row: dict[str, Any] = {
        "threadId": thread.thread_id,
        "hostId": thread.host_id,
        "title": thread.title,
        "updatedAt": thread.updated_at_ms,
        "source": thread.source,
        "sessionKey": thread_key(agent_id, catalog, thread.host_id, thread.thread_id),
    }
    return row if thread.parent_thread_id is None else row | {"parentThreadId": thread.parent_thread_id}
