"""What a tool's call answers a model: always a text, also when it fails."""

from __future__ import annotations

import json
from typing import NamedTuple

from ...errors import KizukiError
from ...gateway import Gateway
from ...logs import logger
from ..toolset import Arguments, SessionTool


class ToolAnswer(NamedTuple):
    """What a model reads."""

    text: str
    """A JSON document, or what was wrong."""
    failed: bool


async def call_tool(tool: SessionTool, gateway: Gateway, caller: str, arguments: Arguments) -> ToolAnswer:
    """Call a tool in the name of the session `caller`; a failure is an answer, too, so that the model can do something else."""
    try:
        return ToolAnswer(json.dumps(await tool(gateway, caller, arguments), ensure_ascii=False), failed=False)
    except KizukiError as error:
        return ToolAnswer(str(error), failed=True)
    except Exception as error:  # noqa: BLE001 - an SDK ends the whole run for a tool that raises
        logger(session_key=caller).warning("a tool failed", tool=tool.name, error=str(error) or repr(error))
        return ToolAnswer(f"{tool.name} failed", failed=True)
