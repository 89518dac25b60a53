"""`kizuki adopt`: which sessions of an agent's tool can be adopted, and adopting one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from ...storage.records import Address
from ..clock import SystemClock
from ..errors import UnknownThread
from ..gateway import Session, open_gateway
from ..keys import canonical_agent_id, watcher_address
from ..upstream.adoption import adopted_address
from ..upstream.catalog import Catalog, ThreadNotFound
from .columns import Column, flexible, folded
from .discovery import UNREADABLE, discovered, named_catalog, persons_own, thread_row
from .exits import CommandFailed, ExitCode
from .output import Cut, console, printable, since, table, text, write_json
from .settings import Settings

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Adoption:
    """How a thread is to be adopted."""

    agent_id: str
    host_id: str
    key: str | None
    watcher: str | None
    """Who is to watch the session from then on."""


def run_list(catalog: str, agent_id: str, limit: int, *, with_children: bool, as_json: bool) -> ExitCode:
    """Print the threads that can be adopted, newest first."""
    document = asyncio.run(_threads(named_catalog(catalog), canonical_agent_id(agent_id), limit, with_children=with_children))
    if as_json:
        write_json(document)
    else:
        _show_threads(console(), document, SystemClock().now_ms())
    return ExitCode.OK


def run_adopt(settings: Settings, catalog: str, thread_id: str, adoption: Adoption, *, as_json: bool) -> ExitCode:
    """Adopt a thread into the database, and print its session."""
    source = named_catalog(catalog)
    if adoption.watcher is not None:
        address = adopted_address(catalog, adoption.host_id, thread_id, adoption.agent_id, adoption.key)
        _check_watcher(adoption.watcher, address)
    try:
        asyncio.run(_look(source, thread_id, adoption.host_id))
        document = asyncio.run(_adopt(settings, source, thread_id, adoption))
    except UnknownThread as error:
        raise CommandFailed(f"{error}: kizuki adopt {catalog}", ExitCode.NOT_FOUND) from error
    if as_json:
        write_json(document)
    else:
        _show_adopted(console(), document)
    return ExitCode.OK


def _check_watcher(watcher: str, adopted: Address) -> None:
    address = watcher_address(watcher)
    if address is None:
        raise CommandFailed(f"{printable(watcher)} cannot watch: only keys like agent:main:main can", ExitCode.USAGE)
    if address == adopted:
        raise CommandFailed(f"{printable(watcher)} is the adopted session itself, which cannot watch itself", ExitCode.USAGE)


async def _look(catalog: Catalog, thread_id: str, host_id: str) -> None:
    """Raise `UnknownThread` where there is no such thread: a gateway that is opened to say so would leave a database behind."""
    try:
        await catalog.link(thread_id, host_id)
    except ThreadNotFound as error:
        raise UnknownThread(catalog.name, thread_id, host_id) from error
    except UNREADABLE as error:
        raise CommandFailed(f"{catalog.name} cannot be read: {printable(error)}") from error


async def _threads(catalog: Catalog, agent_id: str, limit: int, *, with_children: bool) -> Document:
    found = await discovered(catalog)
    threads = list(found) if with_children else persons_own(found)
    rows = [thread_row(catalog.name, thread, agent_id) for thread in threads[:limit]]
    return {"catalog": catalog.name, "threads": rows, "total": len(threads)}


async def _adopt(settings: Settings, catalog: Catalog, thread_id: str, adoption: Adoption) -> Document:
    async with open_gateway(settings.db, config=settings.config, catalogs=[catalog]) as gateway:
        session = await gateway.adopt(catalog.name, thread_id, host_id=adoption.host_id, agent_id=adoption.agent_id, key=adoption.key)
        document = _adopted(catalog.name, thread_id, session)
        if adoption.watcher is not None:
            watched = await gateway.watch(adoption.watcher, session.key, target_agent_id=session.agent_id)
            document |= {"watcher": adoption.watcher, "watched": watched}
        return document


def _adopted(catalog: str, thread_id: str, session: Session) -> Document:
    keys = {"sessionKey": session.key, "agentId": session.agent_id, "sessionId": session.session_id}
    return {"catalog": catalog, "threadId": thread_id} | keys


def _show_threads(output: Console, document: Document, now_ms: int) -> None:
    if not document["threads"]:
        output.print(Text("no sessions", "dim"))
        return
    made = table(Column("UPDATED", goes=1), folded("THREAD"), flexible("TITLE"), folded("SESSION"))
    for row in document["threads"]:
        updated = text(since(row["updatedAt"], now_ms), "dim")
        made.add_row(updated, text(row["threadId"]), Cut(row["title"] or ""), text(row["sessionKey"]))
    output.print(made)
    left = document["total"] - len(document["threads"])
    if left:
        output.print(Text(f"{left} more: --limit {document['total']}", "yellow"))


def _show_adopted(output: Console, document: Document) -> None:
    output.print(Text.assemble(("adopted  ", "green"), text(document["sessionKey"], "bold")), soft_wrap=True)
    if document.get("watched"):
        output.print(Text.assemble(("watched by  ", "dim"), text(document["watcher"])), soft_wrap=True)
