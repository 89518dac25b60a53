"""The session tools in the protocol's form: what is listed, and what a call answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations

from ...notices import Notice
from ..rows import notice_row
from ..toolset import Schema, SessionTool

_DESTRUCTIVE: Final = ("sessions_unwatch", "sessions_send")
"""What takes something away, or sets somebody else to work."""
NOTICES_SCHEMA: Final[Schema] = {
    "type": "array",
    "description": "Sessions that somebody else has changed. Each is shown until your next request.",
    "items": {
        "type": "object",
        "properties": {
            "target": {"type": "string", "description": "The session that was changed."},
            "targetAgentId": {"type": "string"},
            "changesSince": {"type": "integer", "minimum": 0, "description": "What to pass to session_status as changesSince."},
            "notified": {"type": "integer", "minimum": 0},
            "text": {"type": "string"},
        },
        "required": ["target", "targetAgentId", "changesSince", "notified", "text"],
        "additionalProperties": False,
    },
}


def listed(tool: SessionTool) -> Tool:
    """A tool as clients are told of it; every one may answer with notices, besides what it answers elsewhere."""
    properties = {**tool.output_schema["properties"], "notices": NOTICES_SCHEMA}
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema={**tool.output_schema, "properties": properties},
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.name in _DESTRUCTIVE,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.name == "sessions_send",
        ),
    )


def result(answer: dict[str, Any], notices: Sequence[Notice]) -> CallToolResult:
    """An answer as JSON text, for clients that know no structured results, and as data; notices as lines of a text of their own."""
    content = [TextContent(text=json.dumps(answer, ensure_ascii=False))]
    if not notices:
        return CallToolResult(content=list(content), structured_content=answer)
    content.append(TextContent(text="\n".join(notice.text for notice in notices)))
    rows = [notice_row(notice) for notice in notices]
    return CallToolResult(content=list(content), structured_content={**answer, "notices": rows})
