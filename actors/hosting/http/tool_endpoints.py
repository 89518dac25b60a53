"""The session tools over HTTP: for a host that lets its models call them, each in the name of the session in the path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ...gateway import Gateway
from ..toolset import SessionTool, session_tools
from .endpoint import Asked, Endpoint


def tool_endpoints(gateway: Gateway, *, send: bool) -> list[Endpoint]:
    """One for each tool; `sessions_send` only where the host can dispatch."""
    return [
        Endpoint(
            method="POST",
            path=f"/api/sessions/{{key}}/tools/{tool.name}",
            name=f"tool_{tool.name}",
            tag="tools",
            summary=tool.description,
            handle=_calling(gateway, tool),
            answer=tool.output_schema,
            body=tool.input_schema,
            refusals={404: "No such session."},
        )
        for tool in session_tools(send=send)
    ]


def _calling(gateway: Gateway, tool: SessionTool) -> Callable[[Asked], Awaitable[Any]]:
    async def call(asked: Asked) -> Any:
        return await tool(gateway, asked.key, asked.body)

    return call
