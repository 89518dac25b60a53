"""What a session tool answers a model: a result, or one sentence that says what was wrong. Never an error of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...errors import KizukiError
from ...gateway import Gateway
from ...logs import logger
from ..toolset import SessionTool

ANSWER_TIMEOUT_S: Final = 5.0
"""For tools that only ask the database."""


class Answer(NamedTuple):
    """Exactly one of the two is there."""

    result: dict[str, Any] | None
    error: str | None


async def answer(tool: SessionTool, gateway: Gateway, caller: str, arguments: Mapping[str, Any]) -> Answer:
    """Call the tool in the name of the session `caller`, an explicit key.

    A message is delivered by the host's own `dispatch`, and its reply is waited for as long as the model asked for; everything else is
    bounded here.
    """
    try:
        async with asyncio.timeout(None if tool.name == "sessions_send" else ANSWER_TIMEOUT_S):
            return Answer(await tool(gateway, caller, arguments), None)
    except KizukiError as error:
        return Answer(None, str(error))
    except TimeoutError:
        return Answer(None, f"{tool.name} did not answer within {ANSWER_TIMEOUT_S:g} s; the call may be tried again")
    except Exception as error:  # noqa: BLE001 - the model is told that it failed, and the host's log why
        logger(caller=caller, tool=tool.name).error("session tool failed", error=repr(error))
        return Answer(None, f"{tool.name} failed; the host's log says why")
