"""Short ways of adopting scripted threads, watching them, and looking at their links from outside."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from kizuki.actors import Gateway, ManualClock, TickReport
from tests.system.cast import MAIN, changes

TIMEOUT_S = 45.0
"""How long a catalog may take by default."""


class Link(NamedTuple):
    """What the documented view shows of a link."""

    session_key: str
    agent_id: str
    catalog: str
    thread_id: str
    source: str
    marker: dict[str, Any]
    generation: int
    missing_count: int
    own_ids: list[str]


def links(database: Path) -> list[Link]:
    """Every link, as another program reads it."""
    sql = (
        "SELECT session_key, agent_id, catalog, thread_id, source, marker_json, generation, missing_count, own_ids_json "
        "FROM session_upstream_links ORDER BY session_key, agent_id"
    )
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(sql).fetchall()
    return [Link._make((*row[:5], json.loads(row[5]), *row[6:8], json.loads(row[8]))) for row in rows]


def link_of(database: Path, key: str) -> Link:
    """The one link of a session."""
    (found,) = [link for link in links(database) if link.session_key == key]
    return found


async def adopted(gateway: Gateway, thread: str = "t1", catalog: str = "fake", **options: Any) -> str:
    """Adopt a thread and have the main session watch it; the session's key."""
    session = await gateway.adopt(catalog, thread, **options)
    await gateway.watch(MAIN, session.key, target_agent_id=session.agent_id)
    return session.key


async def kinds(gateway: Gateway, key: str, **options: Any) -> list[str]:
    """The kinds of the session's events, in their order."""
    return [event["kind"] for event in (await changes(gateway, key, **options))["events"]]


async def turns(gateway: Gateway, key: str, **options: Any) -> list[int]:
    """How many turns of a person each of the session's human events stands for."""
    events = (await changes(gateway, key, **options))["events"]
    return [event.get("payload", {}).get("turns", 1) for event in events if event["kind"] == "human_direct_message"]


async def overdue(gateway: Gateway, clock: ManualClock, seconds: float = TIMEOUT_S) -> TickReport:
    """A check in which somebody has to be waited for in vain."""
    check = asyncio.create_task(gateway.check_upstream())
    await clock.advance(seconds)
    return await check
