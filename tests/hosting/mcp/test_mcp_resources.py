"""Sessions and watchers as MCP resources: listed, read, and told of when they change, whoever changed them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp.types import ResourceUpdatedNotification, TextResourceContents

from kizuki.actors import Actor, Gateway
from kizuki.actors.hosting.mcp import resources, updates
from kizuki.actors.hosting.mcp.resources import Place, place_of
from kizuki.actors.hosting.mcp.server import SessionServer, mcp_server
from tests.hosting.cast import CHILD, GLOBAL, MAIN, OTHER
from tests.hosting.mcp.mcp_clients import LINE, connected

# The SDK's client warns of what the newest protocol version has no more; clients of the versions before it are still served.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

CHILD_URI = Place("session", CHILD).uri
MAIN_AS_WATCHER = Place("watcher", MAIN).uri


@pytest.fixture
def server(gateway: Gateway) -> SessionServer:
    return mcp_server(gateway, MAIN, poll_interval_s=0.01)


class Told:
    """What a client of the handshake era is told of."""

    def __init__(self) -> None:
        self.uris: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.uris.put_nowait(message.params.uri)


async def text(client: Any, uri: str) -> Any:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.mime_type == "application/json"
    return json.loads(contents.text)


@given(
    st.builds(
        Place,
        st.just("session"),
        st.text(st.characters(exclude_categories=["Cs"])),
        st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    )
)
def test_uris(place: Place) -> None:
    """Every key has a URI of its own, in plain ASCII without a slash in the key, and comes out of it again."""
    assert place_of(place.uri) == place
    assert place.uri.isascii()
    assert place.uri.count("/") == 3


WRONG = (
    "",
    "kizuki://",
    "kizuki://session",
    "kizuki://other/a",
    "http://session/a",
    "kizuki://session/%ff",
    "kizuki://watcher/a?agent=b",
    "kizuki://session/a?b=c",
)


@pytest.mark.parametrize("uri", WRONG)
async def test_what_is_no_resource(server: SessionServer, uri: str) -> None:
    """A URI that names nothing of ours is an error that says so, to read as to subscribe to."""
    async with connected(server, mode="legacy") as client:
        for ask in (client.read_resource, client.subscribe_resource):
            with pytest.raises(MCPError):
                await ask(uri)


async def test_unknown_and_invalid_keys(server: SessionServer) -> None:
    """A session that is not there is not found, and what is no key is said to be none."""
    async with connected(server) as client:
        for key, told in (("agent:main:none", "agent:main:none"), ("two words", "white space")):
            for kind in ("session", "watcher"):
                with pytest.raises(MCPError, match=told):
                    await client.read_resource(Place(kind, key).uri)


async def test_reading(server: SessionServer, recorder: Gateway, gateway: Gateway) -> None:
    """A session is its status; a watcher is what it watches and what is pending for it, and reading it takes nothing."""
    await recorder.human_message(CHILD, channel="telegram")
    await recorder.goal_changed(GLOBAL, "created", actor=Actor.system(), agent_id="ops")
    async with connected(server) as client:
        assert (await text(client, CHILD_URI))["stateVersion"] == 2
        assert (await text(client, Place("session", GLOBAL, "ops").uri))["agentId"] == "ops"
        for _ in range(2):
            watcher = await text(client, MAIN_AS_WATCHER)
            assert [notice["text"] for notice in watcher["notices"]] == [LINE]
            assert [(row["target"], row["pending"]) for row in watcher["watches"]] == [(CHILD, True)]
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_listing(server: SessionServer, recorder: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session is listed once, page by page, and beside it the watcher that it is; each can be read."""
    monkeypatch.setattr(resources, "PAGE_SESSIONS", 2)
    for number in range(5):
        await recorder.open_session(f"agent:main:subagent:s{number}")
    await recorder.goal_changed(GLOBAL, "created", actor=Actor.system(), agent_id="ops")
    await recorder.watch(OTHER, CHILD)
    async with connected(server) as client:
        templates = {template.uri_template for template in (await client.list_resource_templates()).resource_templates}
        page = await client.list_resources()
        uris = [resource.uri for resource in page.resources]
        while page.next_cursor is not None:
            page = await client.list_resources(cursor=page.next_cursor)
            uris += [resource.uri for resource in page.resources]
        for uri in uris:
            await client.read_resource(uri)
    keys = [MAIN, CHILD, OTHER, *(f"agent:main:subagent:s{number}" for number in range(5))]
    expected = [*(Place("session", key).uri for key in keys), Place("session", GLOBAL, "ops").uri]
    assert sorted(uris) == sorted([*expected, Place("watcher", MAIN).uri, Place("watcher", OTHER).uri])
    assert templates == {"kizuki://session/{key}{?agent}", "kizuki://watcher/{key}"}


async def test_told_in_the_handshake_era(server: SessionServer, recorder: Gateway) -> None:
    """A subscriber is told when another process has changed the session, and no more once it has unsubscribed."""
    told = Told()
    async with connected(server, mode="legacy", message_handler=told) as client:
        for uri in (CHILD_URI, CHILD_URI, MAIN_AS_WATCHER):
            await client.subscribe_resource(uri)
        await recorder.human_message(CHILD, channel="telegram")
        async with asyncio.timeout(5):
            assert {await told.uris.get(), await told.uris.get()} == {CHILD_URI, MAIN_AS_WATCHER}
        await client.unsubscribe_resource(CHILD_URI)
        await recorder.unwatch(MAIN, CHILD)
        async with asyncio.timeout(5):
            assert await told.uris.get() == MAIN_AS_WATCHER
        await recorder.human_message(CHILD, channel="telegram")
        await recorder.watch(MAIN, OTHER)
        async with asyncio.timeout(5):
            assert await told.uris.get() == MAIN_AS_WATCHER
        assert told.uris.empty()


async def test_told_in_the_modern_era(server: SessionServer, recorder: Gateway) -> None:
    """A stream that listens for a resource is sent an event when another process has changed it, or has made it."""
    async with connected(server) as client, client.listen(resource_subscriptions=[CHILD_URI, Place("session", OTHER).uri]) as events:
        await recorder.human_message(CHILD, channel="telegram")
        async with asyncio.timeout(5):
            assert await anext(events) == ResourceUpdated(CHILD_URI)
        await recorder.open_session(OTHER)
        async with asyncio.timeout(5):
            assert await anext(events) == ResourceUpdated(Place("session", OTHER).uri)


async def test_no_more_than_the_most(server: SessionServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subscriptions are bounded over all clients, and those of a client that has left are free again."""
    monkeypatch.setattr(updates, "SUBSCRIPTIONS_MAX", 3)
    uris = [Place("session", f"agent:main:subagent:s{number}").uri for number in range(4)]
    for _ in range(2):
        async with connected(server, mode="legacy") as client:
            for uri in uris[:3]:
                await client.subscribe_resource(uri)
            with pytest.raises(MCPError, match="3 subscriptions"):
                await client.subscribe_resource(uris[3])


async def test_nothing_runs_unasked(server: SessionServer) -> None:
    """While nobody has subscribed, nothing is looked at."""

    def looking() -> int:
        return sum("Updates._follow" in repr(task) for task in asyncio.all_tasks() if not task.cancelling())

    async with connected(server, mode="legacy") as client:
        assert looking() == 0
        for uri in (CHILD_URI, MAIN_AS_WATCHER):
            await client.subscribe_resource(uri)
            assert looking() == 1
        await client.unsubscribe_resource(CHILD_URI)
        assert looking() == 1
        await client.unsubscribe_resource(MAIN_AS_WATCHER)
        assert looking() == 0
