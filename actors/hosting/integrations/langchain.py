"""LangChain: one middleware gives an agent's runs their session. Needs `pip install 'kizuki[langchain]'`.

Facts of the SDK (langchain 1.5, `langchain/agents/factory.py`; langgraph 1.2, `langgraph/graph/message.py`): what `abefore_agent` adds to
the messages is saved with the thread before the model is called, and a message with a known id replaces the one in its place;
`awrap_model_call` encloses one model call and is given its messages; no hook is called for a run that fails between the two;
what a run is configured with is inherited by runs that are nested in it, so the session key does not come from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from ...gateway import Gateway
from ...notices import Notice
from ..toolset import SessionTool, session_tools
from .child_runs import ChildKey, ChildRun, outcome_of
from .failing_open import TIMEOUT_S
from .run_turn import HeldTurn, RunTurn
from .tool_answers import answer

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ExtendedModelResponse
    from langchain.tools.tool_node import ToolCallRequest
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise ImportError("the LangChain adapter needs langchain: pip install 'kizuki[langchain]'") from error

HOLD_S: Final = 60.0
"""How long a run may take from its start to its first model call before its notices go back."""

ModelResult = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]
ToolResult = ToolMessage | Command[Any]


class SessionAwareness(AgentMiddleware[AgentState[Any], Any, Any]):
    """Shows an agent's runs the notices of one session, gives its model the session tools, and records its child agents.

    - Each pending notice is one message behind the run's input. It is acknowledged when a model call that held it has answered, and
      given back when the call fails, when no call comes within a minute, or when the next run starts before one. A run that starts
      while a call is under way has only what that one was not given. It is to be the last middleware of the list, behind those that
      change what the model is given: what they take away from the messages later than here would count as shown.
    - `children` names the tools that run a child agent, each with a function that gives the child's session key for the call's
      arguments. Its spawn and its end are recorded, with the call's id as the run id; the session watches it from then on.
    - `send` offers `sessions_send`, too: for gateways that were opened with a `dispatch`.

    Nothing of it fails a run: what the gateway cannot do in `timeout_s` seconds is logged and left out. The one exception is a run by
    `invoke` or `stream`, which could not wait for the gateway's loop without blocking it: that is a programming error, and says so.
    """

    def __init__(
        self,
        gateway: Gateway,
        session_key: str,
        *,
        children: Mapping[str, ChildKey] | None = None,
        send: bool = False,
        timeout_s: float = TIMEOUT_S,
        hold_s: float = HOLD_S,
    ) -> None:
        super().__init__()
        self.tools: Sequence[BaseTool] = langchain_tools(gateway, session_key, send=send)
        self._gateway = gateway
        self._session_key = session_key
        self._children = dict(children or {})
        self._timeout_s = timeout_s
        self._hold_s = hold_s
        self._runs: list[ShownRun] = []
        """Those with notices that no model call was proved to have held yet."""

    async def abefore_agent(
        self,
        state: AgentState[Any],  # noqa: ARG002 - the SDK passes it by position
        runtime: Runtime[Any],  # noqa: ARG002 - as above
    ) -> dict[str, Any] | None:
        """Take the notices into the run. What an earlier run took and never showed its model is taken over."""
        await self._give_back_unasked()
        turn = RunTurn(self._gateway, self._session_key, self._timeout_s)
        await turn.take()
        if not turn.notices:
            await turn.end(well=True)
            return None
        run = ShownRun(turn, self._hold_s)
        self._runs.append(run)
        return {"messages": [HumanMessage(notice.text, id=name) for name, notice in run.unseen.items()]}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResult:
        """Let the model answer, and acknowledge what it was shown by that. A retry that succeeds after a failure counts as well."""
        run = next((run for run in self._runs if run.shown(request.messages)), None)
        if run is None:
            return await handler(request)
        response = await run.asking(request.messages, handler(request))
        if not run.unseen and run in self._runs:
            self._runs.remove(run)
        return response

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]) -> ToolResult:
        """Record what a declared tool does as the run of a child."""
        call = request.tool_call
        child_key = self._children.get(call["name"])
        if child_key is None:
            return await handler(request)
        run = ChildRun(self._gateway, self._session_key, str(call["id"]), self._timeout_s)
        await run.started(child_key, call["args"])
        try:
            result = await handler(request)
        except GraphBubbleUp:  # an interrupt: a person is asked, and the tool is called again with the answer
            await run.paused()
            raise
        except BaseException as error:
            await run.ended(outcome_of(error))
            raise
        await run.ended("error" if isinstance(result, ToolMessage) and result.status == "error" else "ok")
        return result

    def before_agent(
        self,
        state: AgentState[Any],  # noqa: ARG002 - the SDK passes it by position
        runtime: Runtime[Any],  # noqa: ARG002 - as above
    ) -> NoReturn:
        """Raises `RuntimeError`: the gateway lives on a loop, and a run that blocks it would wait for itself."""
        raise RuntimeError("kizuki's middleware needs an asynchronous run: call ainvoke() or astream() instead of invoke() or stream()")

    async def _give_back_unasked(self) -> None:
        unasked = [run for run in self._runs if not run.is_asking]
        self._runs = [run for run in self._runs if run.is_asking]
        for run in unasked:
            await run.give_back()


class ShownRun:
    """The notices that one run was given, until a model call has proved that the model was shown them.

    Runs of one session can overlap, and no hook tells which run it is called for: the ids of the messages do.
    """

    def __init__(self, turn: RunTurn, hold_s: float) -> None:
        self._turn = turn
        self._held = HeldTurn(turn, hold_s)
        self._calls = 0
        self.unseen = {_message_id(notice): notice for notice in turn.notices}
        """By the message's id."""

    @property
    def is_asking(self) -> bool:
        """Whether a model call that holds a notice is under way."""
        return self._calls > 0

    def shown(self, messages: Sequence[AnyMessage]) -> dict[str, Notice]:
        """What of it is among the messages."""
        present = {message.id for message in messages}
        return {name: notice for name, notice in self.unseen.items() if name in present}

    async def asking(self, messages: Sequence[AnyMessage], call: Awaitable[ModelResult]) -> ModelResult:
        """A model call's answer, which acknowledges; the notices are held for as long as it takes, and go back if it fails."""
        shown = self.shown(messages)
        self._held.keep()
        self._calls += 1
        try:
            response = await call
        except BaseException:
            await self.give_back()
            raise
        finally:
            self._calls -= 1
        await self._acknowledge(shown)
        return response

    async def give_back(self) -> None:
        await self._held.end(well=False)

    async def _acknowledge(self, shown: Mapping[str, Notice]) -> None:
        await self._turn.acknowledge(tuple(shown.values()))
        self.unseen = {name: notice for name, notice in self.unseen.items() if name not in shown}
        await self._held.end(well=True)


def langchain_tools(gateway: Gateway, session_key: str, *, send: bool = False) -> list[BaseTool]:
    """The session tools, which speak in the name of the session. The middleware brings them along; other graphs may bind them."""
    return [_structured(tool, gateway, session_key) for tool in session_tools(send=send)]


def _structured(tool: SessionTool, gateway: Gateway, session_key: str) -> BaseTool:
    async def call(**arguments: Any) -> str:
        answered = await answer(tool, gateway, session_key, arguments)
        if answered.result is None:
            raise ToolException(answered.error)
        return json.dumps(answered.result, ensure_ascii=False)

    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=dict(tool.input_schema), coroutine=call, handle_tool_error=True
    )


def _message_id(notice: Notice) -> str:
    """The same for the same notice: one that is shown again replaces the message that nobody has answered yet."""
    named = json.dumps([notice.watcher, notice.target, notice.target_agent_id, notice.changes_since, notice.notified])
    return f"kizuki-{hashlib.sha256(named.encode()).hexdigest()[:32]}"
