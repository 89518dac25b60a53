"""The MCP server as the SDK's own client sees it, in one process, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

from mcp.types import CancelledNotification, CancelledNotificationParams

from kizuki.actors import Dispatched, Gateway, GatewayConfig, InvalidSessionKey, open_gateway
from kizuki.actors.hosting.mcp.server import SessionServer, mcp_server
from kizuki.actors.hosting.toolset import session_tools
from tests.hosting.cast import CHILD, GLOBAL, MAIN, OTHER
from tests.hosting.mcp.mcp_clients import LINE, connected, lines

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def server(gateway: Gateway) -> SessionServer:
    return mcp_server(gateway, MAIN)


async def last_seen(gateway: Gateway, target: str = CHILD) -> int:
    return next(watch.last_seen for watch in await gateway.watches(MAIN) if watch.target == target)


@MODES
async def test_one_line_end_to_end(server: SessionServer, recorder: Gateway, gateway: Gateway, mode: Any) -> None:
    """A manager sees exactly one line after a person spoke to its child elsewhere, gets the delta, and is not told again."""
    async with connected(server, mode=mode) as client:
        assert lines(await client.call_tool("sessions_list", {})) == []
        await recorder.human_message(CHILD, channel="telegram", actor_id="ada")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        status = await client.call_tool("session_status", {"sessionKey": CHILD, "changesSince": 1})
        assert lines(status) == []
        assert status.structured_content is not None
        (event,) = status.structured_content["stateChanges"]["events"]
        assert (event["sequence"], event["actorId"], event["summary"]) == (2, "ada", "human message via telegram")
        assert lines(await client.call_tool("sessions_list", {})) == []
    assert await last_seen(gateway) == 2


@MODES
async def test_acknowledged_by_the_next_request(server: SessionServer, recorder: Gateway, gateway: Gateway, mode: Any) -> None:
    """Rule 4.8: what was shown is acknowledged by the client's next request, whatever it asks, and not before."""
    async with connected(server, mode=mode) as client:
        await recorder.human_message(CHILD, channel="telegram")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        assert await last_seen(gateway) == 1
        await client.list_resource_templates()
        assert await last_seen(gateway) == 2
    assert (await gateway.statistics()).notices_returned == 0


async def test_ping_is_no_sign(server: SessionServer, recorder: Gateway, gateway: Gateway) -> None:
    """A ping is sent by a timer, so it acknowledges nothing."""
    async with connected(server, mode="legacy") as client:
        await recorder.human_message(CHILD, channel="telegram")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        await client.session.send_ping()
        assert await last_seen(gateway) == 1


@MODES
async def test_disconnection_gives_back(server: SessionServer, recorder: Gateway, gateway: Gateway, mode: Any) -> None:
    """Rule 4.8: a client that leaves before its next request has not seen the notice; the next one is shown it, byte for byte."""
    await recorder.human_message(CHILD, channel="telegram")
    for _ in range(2):
        async with connected(server, mode=mode) as client:
            assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]
    assert await last_seen(gateway) == 1


async def test_cancelled_call_gives_back(server: SessionServer, recorder: Gateway, gateway: Gateway) -> None:
    """Rule 4.8: a client that has cancelled the call whose result carries a notice does not read that result."""
    async with connected(server, mode="legacy") as client:
        await recorder.human_message(CHILD, channel="telegram")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        carrier = client.session._dispatcher._next_id  # type: ignore[attr-defined]
        await client.session.send_notification(CancelledNotification(params=CancelledNotificationParams(request_id=carrier)))
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        assert await last_seen(gateway) == 1


@MODES
async def test_one_result_of_many(server: SessionServer, recorder: Gateway, mode: Any) -> None:
    """Rule 4.8: of many calls at once one result carries the notice."""
    async with connected(server, mode=mode) as client:
        await recorder.human_message(CHILD, channel="telegram")
        results = await asyncio.gather(*(client.call_tool("sessions_list", {}) for _ in range(20)))
        assert [line for result in results for line in lines(result)] == [LINE]


async def test_two_clients(server: SessionServer, recorder: Gateway) -> None:
    """Rule 4.8: a notice that one client was shown is not shown to another one until it is given back."""
    await recorder.human_message(CHILD, channel="telegram")
    async with connected(server, mode="legacy") as other:
        async with connected(server, mode="legacy") as client:
            assert lines(await client.call_tool("sessions_list", {})) == [LINE]
            assert lines(await other.call_tool("sessions_list", {})) == []
        assert lines(await other.call_tool("sessions_list", {})) == [LINE]


async def test_no_more_than_the_most(state: Path, recorder: Gateway) -> None:
    """Rule 4.7: a result carries at most notices_max of them, the next one the rest."""
    await recorder.spawn(MAIN, OTHER, run_id="r2")
    third = "agent:main:subagent:third"
    await recorder.spawn(MAIN, third, run_id="r3")
    for key in (CHILD, OTHER, third):
        await recorder.human_message(key, channel="telegram")
    async with open_gateway(state, config=GatewayConfig(notices_max=2)) as gateway, connected(mcp_server(gateway, MAIN)) as client:
        shown = [lines(await client.call_tool("sessions_list", {})) for _ in range(3)]
    assert [len(each) for each in shown] == [2, 1, 0]


async def test_what_came_meanwhile(server: SessionServer, recorder: Gateway) -> None:
    """Rule 4.5: what came after a notice was pinned is told by the next one, which goes on where that one ended."""
    async with connected(server) as client:
        await recorder.human_message(CHILD, channel="telegram")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        await recorder.human_message(CHILD, channel="telegram")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE.replace("changesSince 1", "changesSince 2")]


@MODES
async def test_results_fit_their_schemas(gateway: Gateway, recorder: Gateway, mode: Any) -> None:
    """Every tool answers by the schema that it is listed with, which the SDK's client checks, also with a notice in the result."""
    async with connected(mcp_server(gateway, MAIN), mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        calls: dict[str, dict[str, Any]] = {
            "session_status": {"sessionKey": CHILD, "changesSince": "0", "limit": 5},
            "sessions_list": {"limit": 1, "withTotal": True},
            "sessions_watch": {"sessionKey": OTHER},
            "sessions_unwatch": {"sessionKey": OTHER},
            "sessions_acknowledge": {"sessionKey": CHILD, "changesSince": 1},
        }
        assert set(calls) == set(tools)
        for name, arguments in calls.items():
            await recorder.human_message(CHILD, channel="telegram")
            assert lines(await client.call_tool(name, arguments)), name
            tool = tools[name]
            assert tool.output_schema is not None
            assert tool.output_schema["additionalProperties"] is False
            assert "notices" in tool.output_schema["properties"]
            assert set(arguments) <= set(tool.input_schema["properties"])


async def test_annotations(server: SessionServer) -> None:
    """What a call may do is told in advance, so that a client need not ask a person before it looks."""
    by_name = {tool.name: tool for tool in session_tools(send=True)}
    async with connected(server) as client:
        for tool in (await client.list_tools()).tools:
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint is by_name[tool.name].read_only
            assert tool.annotations.idempotent_hint is by_name[tool.name].idempotent
            assert tool.annotations.destructive_hint is (tool.name == "sessions_unwatch")
            assert tool.annotations.open_world_hint is False


async def test_sending_needs_a_dispatch(state: Path, server: SessionServer) -> None:
    """`sessions_send` is listed, and delivers, where the gateway has a dispatch; elsewhere it is not there at all."""
    sent: list[tuple[str, str, str]] = []

    def dispatch(sender: str, key: str, message: str) -> Dispatched:
        sent.append((sender, key, message))
        return Dispatched(key, reply="done")

    async with connected(server) as client:
        assert "sessions_send" not in [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("sessions_send", {"sessionKey": CHILD, "message": "stop"})
        assert refused.is_error
    async with open_gateway(state, dispatch=dispatch) as gateway, connected(mcp_server(gateway, MAIN)) as client:
        assert "sessions_send" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("sessions_send", {"sessionKey": CHILD, "message": "stop", "watch": True})
    assert result.structured_content == {"status": "ok", "sessionKey": CHILD, "reply": "done", "watched": True}
    assert sent == [(MAIN, CHILD, "stop")]


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("session_status", {"sessionKey": "two words"}, "white space"),
        ("session_status", {"sessionKey": "agent:main:none"}, "agent:main:none"),
        ("session_status", {}, "sessionKey"),
        ("session_status", {"sessionKey": CHILD, "changesSince": -1}, "non-negative"),
        ("session_status", {"sessionKey": 7}, "7"),
        ("sessions_list", {"limit": 201}, "200"),
        ("sessions_list", {"session": MAIN}, "session"),
        ("sessions_watch", {"sessionKey": GLOBAL}, GLOBAL),
        ("nothing", {}, "session_status"),
    ],
)
async def test_errors_are_results(server: SessionServer, recorder: Gateway, name: str, arguments: dict[str, Any], told: str) -> None:
    """A wrong call is answered by a tool error that says what was wrong; it carries no notice, and the server goes on."""
    await recorder.human_message(CHILD, channel="telegram")
    async with connected(server) as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert told in str(result.content)
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]


async def test_a_session_without_notices(gateway: Gateway) -> None:
    """Rule 2.4: a session that cannot watch has the tools, and no notices; one that is not there yet has neither notices nor errors."""
    for key in (GLOBAL, "agent:main:new"):
        async with connected(mcp_server(gateway, key)) as client:
            assert lines(await client.call_tool("sessions_list", {})) == []
    with pytest.raises(InvalidSessionKey):
        mcp_server(gateway, "two words")


async def test_call_outside_of_a_request(server: SessionServer, recorder: Gateway, gateway: Gateway) -> None:
    """A host that calls a tool by itself takes no notices away from a client."""
    await recorder.human_message(CHILD, channel="telegram")
    assert lines(await server.call_tool("sessions_list", {})) == []
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]
