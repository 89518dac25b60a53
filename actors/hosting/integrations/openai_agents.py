"""The OpenAI Agents SDK: one run of a session. Needs `pip install 'kizuki[openai]'`.

    async with openai_run(gateway, "agent:main:main", actor=Actor.human("ada")) as run:
        await Runner.run(agent, "Go on.", session=session, run_config=run.config(), hooks=run.hooks)

Facts of the SDK (0.24, `agents/run_internal/session_persistence.py`, `agents/agent.py`): what a `session_input_callback` adds is saved with
the session; it is called only where the run has a session. A run's configuration is inherited by agents that run as its tools, its hooks
are not. What an input filter adds is saved nowhere, and shown to nested agents, too. Each failure of an agent that runs as a tool is a
text for the model, unless the host wants otherwise.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import itertools
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from ...errors import InvalidArgument
from ...gateway import Gateway
from ...identity import Actor
from ...keys import parse_address
from ..toolset import SessionTool, session_tools
from .child_runs import ChildKey, ChildRun, Outcome, outcome_of
from .failing_open import TIMEOUT_S, fail_open
from .run_turn import RunTurn
from .tool_answers import answer

try:
    from agents import (
        Agent,
        AgentHookContext,
        FunctionTool,
        ModelResponse,
        RunConfig,
        RunContextWrapper,
        RunHooks,
        Tool,
        TResponseInputItem,
        default_tool_error_function,
    )
    from agents.memory import SessionInputCallback
    from agents.tool_context import ToolContext
    from typing_extensions import override
except ImportError as error:
    raise ImportError("the OpenAI Agents adapter needs openai-agents: pip install 'kizuki[openai]'") from error

CHANNEL: Final = "openai"
_ASKING: Final = ("user", "developer", "system")


def openai_tools(gateway: Gateway, session_key: str, *, send: bool = False) -> list[FunctionTool]:
    """The session tools, for a model that acts in the name of the session `session_key`.

    `send` offers `sessions_send`, too: for gateways that were opened with a `dispatch`. Raises `InvalidSessionKey`.
    """
    caller = parse_address(session_key).session_key
    return [_function_tool(tool, gateway, caller) for tool in session_tools(send=send)]


@asynccontextmanager
async def openai_run(
    gateway: Gateway,
    session_key: str,
    *,
    actor: Actor,
    channel: str = CHANNEL,
    children: Mapping[str, ChildKey] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> AsyncIterator[OpenAIRun]:
    """One run of the session: its notices, and what is recorded of it and of its children.

    - `actor` is who gives the run its input, since the SDK cannot tell a person from a program. What a person gives is recorded as a
      human message via `channel`.
    - `children` names the tools that run a child agent, and the agents that the run is handed off to, each with a function that gives
      the child's session key for the call's arguments (a handoff has none).
    - Streamed runs are read to their end inside the block.

    Nothing of it fails a run: what the gateway cannot do in `timeout_s` seconds is logged and left out. Only wrong arguments raise:
    `InvalidArgument`, `InvalidSessionKey`.
    """
    if not isinstance(actor, Actor):
        raise InvalidArgument("actor", actor, "it must be Actor.human(...), Actor.agent(key) or Actor.system()")
    run = OpenAIRun(gateway, parse_address(session_key).session_key, children or {}, timeout_s)
    ended: Outcome = "ok"
    try:
        await run.begin(actor, channel)
        yield run
    except BaseException as error:
        ended = outcome_of(error)
        raise
    finally:
        await run.end(ended)


class OpenAIRun:
    """What one run of the SDK is given: a configuration, and hooks."""

    def __init__(self, gateway: Gateway, session_key: str, children: Mapping[str, ChildKey], timeout_s: float) -> None:
        self._gateway = gateway
        self._session_key = session_key
        self._timeout_s = timeout_s
        self._run_id = uuid.uuid4().hex
        self._turn = RunTurn(gateway, session_key, timeout_s)
        self.hooks = OpenAIRunHooks(self._turn, Children(gateway, session_key, children, self._run_id, timeout_s))
        """For `Runner.run(hooks=...)`. A host with `RunHooks` of its own awaits the methods of these from them."""

    def config(self, base: RunConfig | None = None) -> RunConfig:
        """The run's configuration, with the notices in front of the new input; everything else is as in `base`."""
        base = base or RunConfig()
        return dataclasses.replace(base, session_input_callback=self._merging(base.session_input_callback))

    def input(self, given: str | list[TResponseInputItem]) -> list[TResponseInputItem]:
        """The run's input with the notices in front, for runs without an SDK session."""
        items = [cast(TResponseInputItem, {"role": "user", "content": given})] if isinstance(given, str) else given
        return [*self._notices(items), *items]

    async def begin(self, actor: Actor, channel: str) -> None:
        """Record who gives the input, and take the notices."""
        await fail_open("recording a run's start", self._record(actor, channel), self._timeout_s, session=self._session_key)
        await self._turn.take()

    async def end(self, outcome: Outcome) -> None:
        """Give back what the model was not shown, and end what is still open."""
        await self._turn.end(well=outcome == "ok")
        await self.hooks.children.end_all(outcome)
        finished = self._gateway.run_finished(self._session_key, self._run_id)
        await fail_open("recording a run's end", finished, self._timeout_s, session=self._session_key)

    async def _record(self, actor: Actor, channel: str) -> None:
        await self._gateway.open_session(self._session_key)
        await self._gateway.run_started(self._session_key, self._run_id)
        if actor.type == "human":
            await self._gateway.human_message(self._session_key, channel=channel, actor_id=actor.id, run_id=self._run_id)

    def _merging(self, inner: SessionInputCallback | None) -> SessionInputCallback:
        async def merge(history: list[TResponseInputItem], new: list[TResponseInputItem]) -> list[TResponseInputItem]:
            given = [*self._notices([*_unanswered(history), *new]), *new]
            if inner is None:
                return history + given
            merged = inner(history, given)
            return await merged if inspect.isawaitable(merged) else merged

        return merge

    def _notices(self, items: Iterable[TResponseInputItem]) -> list[TResponseInputItem]:
        """An item for each notice that the model was not shown yet, those left out that are among the items already."""
        there = _texts(items)
        lines = [notice.text for notice in self.hooks.unseen if notice.text not in there]
        return [cast(TResponseInputItem, {"role": "developer", "content": line}) for line in lines]


class OpenAIRunHooks(RunHooks[Any]):
    """Finds out what the model was shown, and records the run's children. No method raises."""

    def __init__(self, turn: RunTurn, children: Children) -> None:
        self.children = children
        self._turn = turn
        self._sent = turn.notices
        self._answered = False

    @property
    def unseen(self) -> tuple[Any, ...]:
        """The notices that go into the next model call: none once the model has answered, so that a nested agent never has them."""
        return () if self._answered else self._turn.notices

    @override
    async def on_llm_start(
        self,
        context: RunContextWrapper[Any],
        agent: Agent[Any],
        system_prompt: str | None,
        input_items: list[TResponseInputItem],
    ) -> None:
        sent = _texts(input_items)
        self._sent = tuple(notice for notice in self._turn.notices if notice.text in sent)

    @override
    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Only an answer proves that a model was shown the input: a call can fail, and be tried again."""
        self._answered = True
        sent, self._sent = self._sent, ()
        await self._turn.acknowledge(sent)

    @override
    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        if isinstance(context, ToolContext):
            await self.children.start(tool.name, context.tool_call_id, _arguments(context.tool_arguments))

    @override
    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        if isinstance(context, ToolContext):
            failed = isinstance(result, str) and result == _failure(context)
            await self.children.start(tool.name, context.tool_call_id, _arguments(context.tool_arguments))
            await self.children.end(context.tool_call_id, "error" if failed else "ok")

    @override
    async def on_handoff(self, context: RunContextWrapper[Any], from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        await self.children.hand_over(to_agent.name)

    @override
    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: Any) -> None:
        await self.children.hand_back(agent.name)


class Children:
    """The child agents of one run: those that run as tools, by the call's id, and the one that the run was handed off to."""

    def __init__(self, gateway: Gateway, parent: str, keys: Mapping[str, ChildKey], run_id: str, timeout_s: float) -> None:
        self._gateway = gateway
        self._parent = parent
        self._keys = dict(keys)
        self._run_id = run_id
        self._timeout_s = timeout_s
        self._open: dict[str, ChildRun] = {}
        self._handed_to: tuple[str, str] | None = None
        self._handoffs = 0

    async def start(self, name: str, run_id: str, arguments: Mapping[str, Any]) -> None:
        """A child's run begins, if the name is a child's. One that waited for a person has begun before, under the same id."""
        child_key = self._keys.get(name)
        if child_key is not None and run_id not in self._open:
            self._open[run_id] = run = ChildRun(self._gateway, self._parent, run_id, self._timeout_s)
            await run.started(child_key, arguments)

    async def end(self, run_id: str, outcome: Outcome) -> None:
        """A child's run is over, if it was one's."""
        run = self._open.pop(run_id, None)
        if run is not None:
            await run.ended(outcome)

    async def hand_over(self, name: str) -> None:
        """Another agent goes on with the run; the one that had it before has done its part."""
        await self._hand_back()
        self._handoffs += 1
        self._handed_to = name, f"{self._run_id}:{self._handoffs}"
        await self.start(*self._handed_to, {})

    async def hand_back(self, name: str) -> None:
        """An agent has given the run's output."""
        if self._handed_to is not None and self._handed_to[0] == name:
            await self._hand_back()

    async def end_all(self, outcome: Outcome) -> None:
        """The run is over, and with it what is still open; after one that ended well that waits for a person."""
        left, self._open = tuple(self._open.values()), {}
        await asyncio.gather(*(run.paused() if outcome == "ok" else run.ended(outcome) for run in left))

    async def _hand_back(self) -> None:
        handed_to, self._handed_to = self._handed_to, None
        if handed_to is not None:
            await self.end(handed_to[1], "ok")


def _function_tool(tool: SessionTool, gateway: Gateway, caller: str) -> FunctionTool:
    async def invoke(_context: ToolContext[Any], arguments: str) -> str:
        answered = await answer(tool, gateway, caller, _arguments(arguments))
        return json.dumps(answered.result, ensure_ascii=False) if answered.error is None else answered.error

    # Not strict: in the SDK's strict mode no argument can be left out.
    schema = copy.deepcopy(dict(tool.input_schema))
    return FunctionTool(tool.name, tool.description, schema, invoke, strict_json_schema=False)


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments; none where the model wrote something else than a JSON object."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}


def _failure(context: ToolContext[Any]) -> str:
    """What the SDK tells the model of a tool that failed, where the host did not choose other words."""
    return default_tool_error_function(context, Exception())


def _unanswered(history: Sequence[TResponseInputItem]) -> Iterable[TResponseInputItem]:
    """The end of a history that no model has answered: a failed run leaves its input there, and its notices with it."""
    return itertools.takewhile(lambda item: isinstance(item, dict) and item.get("role") in _ASKING, reversed(history))


def _texts(items: Iterable[TResponseInputItem]) -> set[str]:
    return {text for item in items for text in _item_texts(item)}


def _item_texts(item: TResponseInputItem) -> list[str]:
    content = item.get("content") if isinstance(item, dict) else None
    parts = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
