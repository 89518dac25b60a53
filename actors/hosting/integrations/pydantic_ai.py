"""Pydantic AI: one capability gives an agent's runs their session. Needs `pip install 'kizuki[pydantic-ai]'`.

Facts of the SDK (2.68, `pydantic_ai/capabilities/abstract.py`): `wrap_run` encloses a whole run, its cancellation included;
`ctx.enqueue` puts a part into the next request and into the run's saved history; `after_model_request` is given the messages that the
model has just answered; `ctx.run_id` is each run's own, also of a run nested in a tool call of another.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...gateway import Gateway
from ..toolset import SessionTool, session_tools
from .child_runs import ChildKey, ChildRun, outcome_of
from .failing_open import TIMEOUT_S
from .run_turn import RunTurn
from .tool_answers import answer

try:
    from pydantic_ai import CallDeferred, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import WrapRunHandler, WrapToolExecuteHandler
    from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
    from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import Tool, ToolDefinition
    from pydantic_ai.toolsets import FunctionToolset
except ImportError as error:
    raise ImportError("the Pydantic AI adapter needs pydantic-ai-slim: pip install 'kizuki[pydantic-ai]'") from error


class SessionAwareness(AbstractCapability[Any]):
    """Shows an agent's runs the notices of one session, gives its model the session tools, and records its child agents.

    - Each pending notice is one line, a system part of the run's first request. It is acknowledged when the model has answered a
      request that held it, and given back if the run ends without that: it failed, was cancelled, or never asked its model.
    - `children` names the tools that run a child agent, each with a function that gives the child's session key for the call's
      arguments. Its spawn and its end are recorded, with the call's id as the run id; the session watches it from then on.
    - `send` offers `sessions_send`, too: for gateways that were opened with a `dispatch`.

    Nothing of it fails a run: what the gateway cannot do in `timeout_s` seconds is logged and left out.
    """

    def __init__(
        self,
        gateway: Gateway,
        session_key: str,
        *,
        children: Mapping[str, ChildKey] | None = None,
        send: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._gateway = gateway
        self._session_key = session_key
        self._children = dict(children or {})
        self._send = send
        self._timeout_s = timeout_s
        self._turns: dict[str, RunTurn] = {}
        """The open turns, by the SDK's run id."""

    def get_toolset(self) -> FunctionToolset[Any]:
        """The session tools, which speak in the name of this session."""
        return FunctionToolset([_tool(tool, self._gateway, self._session_key) for tool in session_tools(send=self._send)])

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        turn = RunTurn(self._gateway, self._session_key, self._timeout_s)
        run_id = str(ctx.run_id)
        well = False
        try:
            await turn.take()
            self._turns[run_id] = turn
            waiting = _unanswered(ctx.messages)
            for notice in turn.notices:
                if not _is_in(notice.text, waiting):
                    ctx.enqueue(SystemPromptPart(content=notice.text))
            result = await handler()
            well = True
            return result
        finally:
            self._turns.pop(run_id, None)
            await turn.end(well=well)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        turn = self._turns.get(str(ctx.run_id))
        if turn is not None and turn.notices:
            await turn.acknowledge(tuple(notice for notice in turn.notices if _is_in(notice.text, request_context.messages)))
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the SDK names what it passes
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        child_key = self._children.get(tool_def.name)
        if child_key is None:
            return await handler(args)
        run = ChildRun(self._gateway, self._session_key, call.tool_call_id, self._timeout_s)
        await run.started(child_key, args)
        try:
            result = await handler(args)
        except (CallDeferred, ApprovalRequired):
            await run.paused()
            raise
        except BaseException as error:
            await run.ended(outcome_of(error))
            raise
        await run.ended("ok")
        return result


def _tool(tool: SessionTool, gateway: Gateway, session_key: str) -> Tool[Any]:
    call = partial(_call, tool, gateway, session_key)
    return Tool.from_schema(call, tool.name, tool.description, dict(tool.input_schema))


async def _call(tool: SessionTool, gateway: Gateway, session_key: str, /, **arguments: Any) -> dict[str, Any]:
    answered = await answer(tool, gateway, session_key, arguments)
    if answered.result is None:
        raise ToolFailed(str(answered.error))
    return answered.result


def _unanswered(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The end of a history that no model has answered: a host that saves a failed run's messages has that run's notices there."""
    return list(itertools.takewhile(lambda message: not isinstance(message, ModelResponse), reversed(history)))


def _is_in(text: str, messages: list[ModelMessage]) -> bool:
    """Whether the model was shown it. For a model without system parts inside a conversation the SDK wraps it into a user's part."""
    return any(isinstance(content := getattr(part, "content", None), str) and text in content for it in messages for part in it.parts)
