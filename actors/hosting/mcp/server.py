"""The MCP server of one session: its tools, its resources, and its notices riding along."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from ...errors import InvalidArgument, InvalidSessionKey, KizukiError, UnknownSession
from ...gateway import Gateway
from ...keys import canonical_key
from ..toolset import session_tools

try:
    from mcp.server.lowlevel.helper_types import ReadResourceContents
    from mcp.server.mcpserver import Context as CallContext
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
    from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
    from mcp.shared.exceptions import MCPError
    from mcp.types import (
        INTERNAL_ERROR,
        INVALID_PARAMS,
        CallToolResult,
        EmptyResult,
        ListResourcesResult,
        PaginatedRequestParams,
        ResourceTemplate,
        SubscribeRequestParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        Tool,
        UnsubscribeRequestParams,
    )

    from . import resources
    from .clients import Clients, Context, exchange
    from .delivery import LEASE_S, Delivery
    from .tools import listed, result
    from .updates import POLL_INTERVAL_S, Updates
except ImportError as error:
    raise ImportError("the MCP server needs mcp 2.3 or newer: pip install 'kizuki[mcp]'") from error

STREAMS_MAX: Final = 64
_WRONG: Final = (InvalidArgument, InvalidSessionKey, UnknownSession)
_INSTRUCTIONS: Final = (
    "You are one of several sessions that run at once; {key} is yours. People and other agents change sessions behind your back. "
    "When a result carries a notice, the session it names is not in the state that you believe it to be in: before you act on it, call "
    "session_status with the sessionKey and changesSince that the notice gives, and go by what it answers."
)


def _version() -> str:
    try:
        return version("kizuki")
    except PackageNotFoundError:
        return ""


_VERSION: Final = _version()
"""Read once, for it is in a file."""


def mcp_server(gateway: Gateway, session_key: str, *, lease_s: float = LEASE_S, poll_interval_s: float = POLL_INTERVAL_S) -> SessionServer:
    """A server that speaks for the session `session_key`: run it with the SDK, before the gateway is left.

    Its calls are made in the name of that session, whose notices ride along in their results. `sessions_send` is listed if the
    gateway has a dispatch. Raises `InvalidSessionKey`. Not for the SDK's `stateless_http`, where every request is a client of its own
    that goes away at once: there a notice would be shown again and again.
    """
    return SessionServer(gateway, canonical_key(session_key), lease_s=lease_s, poll_interval_s=poll_interval_s)


class SessionServer(MCPServer[Delivery]):
    """The SDK's server over a gateway. Tools and resources are data here, so that what lists and calls them is replaced."""

    def __init__(self, gateway: Gateway, session_key: str, *, lease_s: float, poll_interval_s: float) -> None:
        bus = InMemorySubscriptionBus()
        self._gateway = gateway
        self._session_key = session_key
        self._tools = {tool.name: tool for tool in session_tools(send=gateway.can_dispatch)}
        self._updates = Updates(gateway, bus, interval_s=poll_interval_s)
        self._clients = Clients(lambda: Delivery(gateway, session_key, lease_s=lease_s), self._updates)
        self._listening = ListenHandler(bus, max_subscriptions=STREAMS_MAX)
        with _logging_left_alone():
            super().__init__(
                "kizuki",
                title="kizuki: session state awareness",
                version=_VERSION,
                instructions=_INSTRUCTIONS.format(key=session_key),
                lifespan=self._clients.lifespan,
                middleware=[self._clients],
                subscriptions=bus,
            )
        self._handle_what_the_sdk_leaves_open()

    async def list_tools(self) -> list[Tool]:
        """The session tools; each may answer with notices."""
        return [listed(tool) for tool in self._tools.values()]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: CallContext[Delivery, Any] | None = None) -> CallToolResult:
        """Call a tool in the session's name. Outside of a request it takes no notices. Raises `ToolError`."""
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name!r}: there are {', '.join(self._tools)}")
        try:
            answer = await tool(self._gateway, self._session_key, arguments)
        except KizukiError as error:
            raise ToolError(str(error)) from error
        if context is None:
            return result(answer, ())
        request = context.request_context
        notices = await self._clients.delivery(request).take(request.request_id, exchange(request))
        return result(answer, notices)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """What sessions and watchers are addressed by."""
        return list(resources.TEMPLATES)

    async def read_resource(self, uri: object, context: CallContext[Delivery, Any] | None = None) -> Iterable[ReadResourceContents]:  # noqa: ARG002
        """A session's status, or a watcher's notices and watches. Raises `ResourceError`."""
        place = resources.place_of(str(uri))
        if place is None:
            raise ResourceNotFoundError(f"Unknown resource: {uri}")
        try:
            document = await resources.read(self._gateway, place)
        except KizukiError as error:
            raise (ResourceNotFoundError if isinstance(error, _WRONG) else ResourceError)(str(error)) from error
        return [ReadResourceContents(json.dumps(document, ensure_ascii=False), resources.MIME_TYPE)]

    def _handle_what_the_sdk_leaves_open(self) -> None:
        """Its own class pages no lists, serves no subscriptions of the handshake era, and does not say what is listened for."""
        add = self._lowlevel_server.add_request_handler
        add("resources/list", PaginatedRequestParams, self._list_page)
        add("resources/subscribe", SubscribeRequestParams, self._subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self._unsubscribe)
        add("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)

    async def _list_page(self, _context: Context, params: PaginatedRequestParams) -> ListResourcesResult:
        with _as_protocol_errors():
            page, after = await resources.page(self._gateway, self._session_key, params.cursor)
        return ListResourcesResult(resources=page, next_cursor=after)

    async def _subscribe(self, context: Context, params: SubscribeRequestParams) -> EmptyResult:
        with _as_protocol_errors():
            await self._updates.subscribe(params.uri, self._clients.delivery(context), context.session.send_resource_updated)
        return EmptyResult()

    async def _unsubscribe(self, context: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._updates.unsubscribe(params.uri, self._clients.delivery(context))
        return EmptyResult()

    async def _listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        stream = object()
        try:
            for uri in params.notifications.resource_subscriptions or ():
                with _as_protocol_errors():
                    await self._updates.subscribe(uri, stream, None)
            return await self._listening(context, params)
        finally:
            self._updates.forget(stream)


@contextmanager
def _as_protocol_errors() -> Iterator[None]:
    try:
        yield
    except KizukiError as error:
        raise MCPError(INVALID_PARAMS if isinstance(error, _WRONG) else INTERNAL_ERROR, str(error)) from error


@contextmanager
def _logging_left_alone() -> Iterator[None]:
    """The SDK configures the root logger when a server is made, which is for the host to do."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:], root.level = handlers, level
