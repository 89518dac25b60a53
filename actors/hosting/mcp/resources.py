"""Sessions and watchers as resources: their addresses, what is in them, and what of it tells that they have changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, unquote

from mcp.types import Resource, ResourceTemplate

from ...errors import UnknownSession
from ...gateway import Gateway
from ...keys import is_qualified
from ..rows import notice_row, watch_row

SCHEME: Final = "kizuki://"
MIME_TYPE: Final = "application/json"
PAGE_SESSIONS: Final = 50

TEMPLATES: Final = (
    ResourceTemplate(
        name="session",
        title="A session",
        uri_template=f"{SCHEME}session/{{key}}{{?agent}}",
        description="A session's status and state version. agent: its agent's id, for a key without the agent: prefix.",
        mime_type=MIME_TYPE,
    ),
    ResourceTemplate(
        name="watcher",
        title="A watcher",
        uri_template=f"{SCHEME}watcher/{{key}}",
        description="What a session watches, and the notices that are pending for it.",
        mime_type=MIME_TYPE,
    ),
)


class Place(NamedTuple):
    """What a URI names."""

    kind: Literal["session", "watcher"]
    key: str
    agent_id: str | None = None

    @property
    def uri(self) -> str:
        """The URI, with everything in the key percent-encoded that is not a letter, a digit or one of `_.-~`."""
        agent = "" if self.agent_id is None else f"?agent={quote(self.agent_id, safe='')}"
        return f"{SCHEME}{self.kind}/{quote(self.key, safe='')}{agent}"


def place_of(uri: str) -> Place | None:
    """What the URI names; None for one that is not ours."""
    kind, slash, rest = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slash:
        return None
    path, _, query = rest.partition("?")
    try:
        key = unquote(path, errors="strict")
        agent_id = unquote(query.removeprefix("agent="), errors="strict") if query.startswith("agent=") else None
    except UnicodeDecodeError:
        return None
    if kind == "session" and (not query or agent_id):
        return Place("session", key, agent_id)
    return Place("watcher", key) if kind == "watcher" and not query else None


async def page(gateway: Gateway, watcher: str, after: str | None) -> tuple[list[Resource], str | None]:
    """Some sessions, and those of them that watch; and behind which key the next ones come. Raises `KizukiError`."""
    answer = await gateway.sessions_list(limit=PAGE_SESSIONS, after=after)
    found: list[Resource] = []
    for row in answer["sessions"]:
        key = row["sessionKey"]
        found.append(_session(row))
        if is_qualified(key) and (key == watcher or await gateway.watches(key)):
            found.append(_watcher(key))
    return found, answer.get("nextAfter")


async def read(gateway: Gateway, place: Place) -> dict[str, Any]:
    """What is in a resource. Raises `KizukiError`."""
    if place.kind == "session":
        return await gateway.session_status(place.key, agent_id=place.agent_id)
    pending = [notice_row(notice) for notice in await gateway.pending(place.key)]
    return {"sessionKey": place.key, "notices": pending, "watches": [watch_row(each) for each in await gateway.watches(place.key)]}


async def state(gateway: Gateway, place: Place) -> Hashable:
    """What is another one once the resource has changed; None where there is no such session.

    Raises `KizukiError` where it cannot be told now.
    """
    try:
        if place.kind == "watcher":
            return tuple(await gateway.watches(place.key))
        status = await gateway.session_status(place.key, agent_id=place.agent_id)
    except UnknownSession:
        return None
    return status["stateVersion"], status["status"], status["sessionId"]


def _session(row: dict[str, Any]) -> Resource:
    key = row["sessionKey"]
    place = Place("session", key, None if is_qualified(key) else row["agentId"])
    return Resource(name=key, title=row.get("label"), uri=place.uri, mime_type=MIME_TYPE, description=f"A {row['kind']} session.")


def _watcher(key: str) -> Resource:
    description = "What this session watches, and its pending notices."
    return Resource(name=f"{key} as a watcher", uri=Place("watcher", key).uri, mime_type=MIME_TYPE, description=description)
