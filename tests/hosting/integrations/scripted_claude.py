"""Claude Code as the SDK sees it, without a process and without a model: the control protocol over the SDK's own transport seam."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from claude_agent_sdk import Transport

SESSION_ID = "3a7f2c9e-6c1d-4e5f-9a8b-0d1e2f3a4b5c"
FAILURE = object()
"""A step: the model's call fails, and the turn with it."""
COMPACTION = object()
"""A step: the history is compacted before the model goes on."""


@dataclass(frozen=True, slots=True)
class Call:
    """A step: the model calls a tool of the server `kizuki`."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subagent:
    """A step: the model starts a sub-agent, which calls a tool of its own."""

    agent_id: str
    agent_type: str = "general-purpose"


class ScriptedClaude(Transport):
    """Plays one turn, a list of steps, for each prompt; a turn that does not fail ends as Claude Code ends one."""

    def __init__(self, *turns: list[Any]) -> None:
        self.contexts: list[str] = []
        """The additional context of each prompt; empty where the hooks had none."""
        self.answers: list[Any] = []
        """What hooks other than a prompt's answered."""
        self.results: list[dict[str, Any]] = []
        """What the tools answered."""
        self._turns = iter(turns)
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._prompts: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)
        self._hooks: dict[str, Any] = {}
        self._playing: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self._playing = asyncio.create_task(self._play())

    async def write(self, data: str) -> None:
        written = json.loads(data)
        match written["type"]:
            case "control_request":
                self._hooks = written["request"].get("hooks") or self._hooks
                answer = {"subtype": "success", "request_id": written["request_id"], "response": {}}
                self._out.put_nowait({"type": "control_response", "response": answer})
            case "control_response":
                self._waiting.pop(written["response"]["request_id"]).set_result(written["response"])
            case "user":
                self._prompts.put_nowait(written["message"]["content"])

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (message := await self._out.get()) is not None:
            yield message

    async def end_input(self) -> None:
        self._prompts.put_nowait(None)

    async def close(self) -> None:
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.wait([self._playing])

    def is_ready(self) -> bool:
        return True

    async def _play(self) -> None:
        while (prompt := await self._prompts.get()) is not None:
            answered = await self.hook("UserPromptSubmit", prompt=prompt)
            self.contexts.append(answered.get("hookSpecificOutput", {}).get("additionalContext", ""))
            steps = next(self._turns)
            for step in steps:
                await self._step(step)
            if FAILURE not in steps:
                self.answers.append(await self.hook("Stop", stop_hook_active=False))
            self._end_turn(failed=FAILURE in steps)
        self._out.put_nowait(None)

    async def _step(self, step: Any) -> None:
        match step:
            case Call(tool, arguments):
                self.answers.append(await self.hook("PreToolUse", tool_name=f"mcp__kizuki__{tool}", tool_input=arguments, tool_use_id="t1"))
                self.results.append(await self._call(tool, arguments))
            case Subagent(agent_id, agent_type):
                who = {"agent_id": agent_id, "agent_type": agent_type}
                self.answers.append(await self.hook("SubagentStart", **who))
                self.answers.append(await self.hook("PreToolUse", tool_name="Read", tool_input={}, tool_use_id="t2", **who))
                path = f"/transcripts/agent-{agent_id}.jsonl"
                self.answers.append(await self.hook("SubagentStop", agent_transcript_path=path, stop_hook_active=False, **who))
            case _ if step is COMPACTION:
                self.answers.append(await self.hook("PreCompact", trigger="auto", custom_instructions=None))

    async def hook(self, event: str, **fields: Any) -> dict[str, Any]:
        """Call the hooks of an event as Claude Code does; an error of theirs is one of the test."""
        given = {"session_id": SESSION_ID, "transcript_path": "", "cwd": "/", "hook_event_name": event, **fields}
        answered: dict[str, Any] = {}
        for matcher in self._hooks.get(event, []):
            for callback in matcher["hookCallbackIds"]:
                answered |= await self._ask({"subtype": "hook_callback", "callback_id": callback, "input": given, "tool_use_id": None})
        return answered

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "scripted", "version": "1"}}
        await self._mcp("initialize", client)
        await self._ask({"subtype": "mcp_message", "server_name": "kizuki", "message": _rpc("notifications/initialized", {})})
        return await self._mcp("tools/call", {"name": tool, "arguments": arguments})

    async def _mcp(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {**_rpc(method, params), "id": next(self._numbers)}
        answered = await self._ask({"subtype": "mcp_message", "server_name": "kizuki", "message": message})
        result: dict[str, Any] = answered["mcp_response"]["result"]
        return result

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        request_id = f"asked-{next(self._numbers)}"
        self._waiting[request_id] = answer = asyncio.get_running_loop().create_future()
        self._out.put_nowait({"type": "control_request", "request_id": request_id, "request": request})
        answered = await answer
        if answered["subtype"] != "success":
            raise AssertionError(answered["error"])
        response: dict[str, Any] = answered["response"]
        return response

    def _end_turn(self, *, failed: bool) -> None:
        result = {"subtype": "success", "is_error": failed, "num_turns": 1, "duration_ms": 1, "duration_api_ms": 1}
        self._out.put_nowait({"type": "result", "session_id": SESSION_ID, "result": "model down" if failed else "done", **result})


def _rpc(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}
