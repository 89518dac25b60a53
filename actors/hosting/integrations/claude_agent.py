"""The Claude Agent SDK: hooks that tell a session's model what changed, and the session tools. Needs `pip install 'kizuki[claude]'`.

    options = ClaudeAgentOptions(
        hooks=claude_hooks(gateway, "agent:main:main", actor=Actor.human("ada")),
        mcp_servers={"kizuki": claude_tools(gateway, "agent:main:main")},
        allowed_tools=["mcp__kizuki"],
    )

Facts of the SDK (0.2.189, `claude_agent_sdk/types.py`, `_internal/query.py`): hooks are called by Claude Code, which waits for each and
gives the model the additional context of a prompt's hook beside the prompt; events from within a sub-agent carry its `agent_id`. A turn
whose model call fails ends without the event `Stop` (tried with Claude Code 2.1.332). There is no hook for the end of the client, so
nothing is taken that would have to be given back: a notice stays pending until the model has certainly been shown it, which its next tool
call or the regular end of its turn proves.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from typing import Any, Final

from ....storage.records import Address
from ...config import GatewayConfig
from ...drafts import Report
from ...errors import InvalidArgument
from ...gateway import Gateway
from ...identity import Actor
from ...keys import parse_address
from ...messages import Compacted, HumanTurn, RunEnded, Spawned
from ...notices import Notice
from ..claude_hook import CATALOG, PROGRAMS, fact, fitting, is_of_subagent, reports_of
from ..toolset import SessionTool, session_tools
from .child_runs import ChildKey
from .failing_open import TIMEOUT_S, fail_open
from .tool_answers import answer

try:
    from claude_agent_sdk import HookMatcher, SdkMcpTool, ToolAnnotations, create_sdk_mcp_server
    from claude_agent_sdk.types import HookContext, HookEvent, HookInput, HookJSONOutput, McpSdkServerConfig
except ImportError as error:
    raise ImportError("the Claude Agent adapter needs claude-agent-sdk: pip install 'kizuki[claude]'") from error

EVENTS: Final[tuple[HookEvent, ...]] = ("UserPromptSubmit", "PreToolUse", "Stop", "SubagentStart", "SubagentStop", "PreCompact")
NOTICES_MAX: Final = GatewayConfig().notices_max
PROVING: Final = frozenset({"PreToolUse", "Stop"})
"""Events that come only after the model has answered."""


def claude_tools(gateway: Gateway, session_key: str, *, send: bool = False) -> McpSdkServerConfig:
    """The session tools as an in-process server, for a model that acts in the name of the session `session_key`.

    `send` offers `sessions_send`, too: for gateways that were opened with a `dispatch`. Raises `InvalidSessionKey`.
    """
    caller = parse_address(session_key).session_key
    return create_sdk_mcp_server("kizuki", tools=[_sdk_tool(tool, gateway, caller) for tool in session_tools(send=send)])


def claude_hooks(
    gateway: Gateway,
    session_key: str,
    *,
    actor: Actor,
    channel: str = CATALOG,
    children: Mapping[str, ChildKey] | None = None,
    notices_max: int = NOTICES_MAX,
    timeout_s: float = TIMEOUT_S,
) -> dict[HookEvent, list[HookMatcher]]:
    """Hooks for one client or query of the session: its notices, and what is recorded of it and of its sub-agents.

    - Each notice is one line of additional context at a prompt, `notices_max` at most. It states facts, with version numbers, for Claude
      Code saves it and shows it again on resume. What the model was not shown, since its call failed or the client ended, is pending
      still.
    - `actor` is who gives the prompts, since the SDK cannot tell a person from a program. What a person gives is recorded as a human
      message via `channel`; prompts that Claude Code submits itself are not.
    - `children` are functions, by the sub-agent's type, that give its session key for the event of its start or end. Any other sub-agent
      is the session that the check of an adopted transcript finds: `agent:<agentId>:catalog:claude:<hash>`.

    A host with hooks of its own appends these to its lists. Each answers within `timeout_s` seconds and never fails: what the gateway
    cannot do in time is logged and left out. Only wrong arguments raise: `InvalidArgument`, `InvalidSessionKey`.
    """
    if not isinstance(actor, Actor):
        raise InvalidArgument("actor", actor, "it must be Actor.human(...), Actor.agent(key) or Actor.system()")
    hook = ClaudeHook(gateway, parse_address(session_key), actor, channel, children or {}, notices_max, timeout_s)
    return {event: [HookMatcher(hooks=[hook])] for event in EVENTS}


class ClaudeHook:
    """Answers the hook events of one client."""

    def __init__(
        self,
        gateway: Gateway,
        session: Address,
        actor: Actor,
        channel: str,
        children: Mapping[str, ChildKey],
        notices_max: int,
        timeout_s: float,
    ) -> None:
        self._gateway = gateway
        self._session = session
        self._actor = actor
        self._channel = channel
        self._children = dict(children)
        self._notices_max = notices_max
        self._timeout_s = timeout_s
        self._shown: tuple[object, tuple[Notice, ...]] = None, ()
        """Claude Code's own id of the session, and the notices that the latest prompt there has brought."""

    async def __call__(self, event: HookInput, _tool_use_id: str | None, _context: HookContext, /) -> HookJSONOutput:
        answered = await fail_open("hook", self._answer(event), self._timeout_s, session=self._session.session_key)
        return {} if answered is None else answered

    async def _answer(self, event: HookInput) -> HookJSONOutput:
        name, within = event["hook_event_name"], is_of_subagent(event)
        if name in PROVING and not within:
            await self._acknowledge(event["session_id"])
        for address, report in reports_of(event, self._session, self._entrypoint, time.time_ns() // 1_000_000):
            await self._record(address, report, event)
        return await self._show(event["session_id"]) if name == "UserPromptSubmit" and not within else {}

    @property
    def _entrypoint(self) -> str:
        return "" if self._actor.type == "human" else PROGRAMS

    async def _show(self, session_id: str) -> HookJSONOutput:
        key = self._session.session_key
        await self._gateway.open_session(key)
        pending = await self._gateway.pending(key, notices_max=self._notices_max)
        lines = fitting([self._line(notice) for notice in pending])
        self._shown = session_id, tuple(pending[: len(lines)])
        if not lines:
            return {}
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "\n".join(lines)}}

    def _line(self, notice: Notice) -> str:
        target = Address(notice.target, notice.target_agent_id)
        return fact(target, notice.changes_since, notice.notified, self._gateway.language)

    async def _acknowledge(self, session_id: str) -> None:
        """The model has answered what it was given with the latest prompt of this session."""
        shown_in, notices = self._shown
        if notices and shown_in == session_id:
            await self._gateway.acknowledge(self._session.session_key, notices)
            self._shown = None, ()

    async def _record(self, address: Address, report: Report, event: Mapping[str, Any]) -> None:
        key = self._session.session_key
        match report:
            case HumanTurn():
                await self._gateway.human_message(key, channel=self._channel, actor_id=self._actor.id)
            case Compacted(operation_id):
                await self._gateway.compacted(key, operation_id=operation_id)
            case Spawned(run_id=run_id):
                await self._gateway.spawn(key, self._child(address, event), run_id=run_id)
            case RunEnded(run_id):
                await self._gateway.run_ended(self._child(address, event), run_id=run_id, outcome="ok")

    def _child(self, address: Address, event: Mapping[str, Any]) -> str:
        child_key = self._children.get(event["agent_type"])
        return address.session_key if child_key is None else child_key(event)


def _sdk_tool(tool: SessionTool, gateway: Gateway, caller: str) -> SdkMcpTool[Any]:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        answered = await answer(tool, gateway, caller, arguments)
        text = json.dumps(answered.result, ensure_ascii=False) if answered.error is None else answered.error
        return {"content": [{"type": "text", "text": text}], "is_error": answered.error is not None}

    hints = ToolAnnotations(title=tool.title, readOnlyHint=tool.read_only, idempotentHint=tool.idempotent)
    return SdkMcpTool(tool.name, tool.description, copy.deepcopy(dict(tool.input_schema)), call, hints)
