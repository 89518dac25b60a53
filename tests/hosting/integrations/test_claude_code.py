"""The adapter of the Claude Agent SDK in the Claude Code that the SDK brings along: a real process, with a scripted model on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk: pip install 'kizuki[claude]'")

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ResultError, ResultMessage, query

from kizuki.actors import Actor, Gateway, open_gateway
from kizuki.actors.hosting.integrations.claude_agent import claude_hooks, claude_tools
from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.integrations.scripted_api import ScriptedApi

BUNDLED = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
pytestmark = pytest.mark.skipif(not BUNDLED.exists(), reason="needs a claude-agent-sdk that brings Claude Code along")

QUIET = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY")
"""What keeps Claude Code from asking any other server than its model's."""
STATUS = ("mcp__kizuki__session_status", {"sessionKey": CHILD, "changesSince": 1})
AGENT = ("Agent", {"description": "work", "prompt": "work", "subagent_type": "general-purpose", "run_in_background": False})
LINE = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
TOLD = (
    f'kizuki: session "{CHILD}" was changed by another actor. This session last knew its state version 1; the change is version 2. '
    f'What changed after version 1 is told by: session_status sessionKey "{CHILD}" changesSince 1.'
)
"""The same for the model: a fact that stays true whenever it is read again."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedApi]:
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "CLAUDE"))]:
        monkeypatch.delenv(name)
    served = ScriptedApi()
    with served.running():
        yield served


async def ask(gateway: Gateway, api: ScriptedApi, home: Path, *steps: Any) -> bool:
    """One query, answered by these steps of the model; whether it ended well."""
    api.steps[:] = steps
    api.requests.clear()
    model = {"ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_API_KEY": "scripted", "HOME": str(home), "CLAUDE_CODE_MAX_RETRIES": "0"}
    options = ClaudeAgentOptions(
        hooks=claude_hooks(gateway, MAIN, actor=Actor.human("ada"), children={"general-purpose": lambda _: OTHER}, timeout_s=20),
        mcp_servers={"kizuki": claude_tools(gateway, MAIN)},
        allowed_tools=["mcp__kizuki", "Agent"],
        cli_path=BUNDLED,
        cwd=home,
        env=model | dict.fromkeys(QUIET, "1"),
        setting_sources=[],
        model="claude-sonnet-4-5",
    )
    try:
        return not [message async for message in query(prompt="go on", options=options) if isinstance(message, ResultMessage)][-1].is_error
    except ResultError:
        return False


async def pending(gateway: Gateway) -> list[str]:
    return [notice.text for notice in await gateway.pending(MAIN)]


async def test_claude_code_tells_its_model_once(api: ScriptedApi, tmp_path: Path) -> None:
    """A failing model gives the notice back; the next reads exactly one line and the delta; its sub-agent reads no line and is recorded."""
    async with open_gateway(tmp_path / "code.db") as gateway:
        await gateway.spawn(MAIN, CHILD, run_id="r1")
        await gateway.human_message(CHILD, channel="telegram")
        await gateway.watch(OTHER, MAIN)
        assert not await ask(gateway, api, tmp_path, None)
        assert await pending(gateway) == [LINE]
        assert await ask(gateway, api, tmp_path, STATUS, AGENT, "nested", "done")
        assert await pending(gateway) == []
        asked = [json.dumps(request["messages"]) for request in api.requests]
        assert [text.count(json.dumps(TOLD)[1:-1]) for text in asked] == [1, 1, 0, 1]
        assert "human message via telegram" in asked[1]
        status = await gateway.session_status(OTHER, changes_since=0)
        assert [event["kind"] for event in status["stateChanges"]["events"]] == ["child_spawned", "run_completed"]
        status = await gateway.session_status(MAIN, changes_since=0)
        assert [event["summary"] for event in status["stateChanges"]["events"]] == ["human message via claude"] * 2
