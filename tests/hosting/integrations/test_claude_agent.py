"""The adapter of the Claude Agent SDK, through the SDK's own client, control protocol and MCP bridge, with a scripted Claude Code."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("claude_agent_sdk", reason="needs claude-agent-sdk: pip install 'kizuki[claude]'")

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage, query

from kizuki.actors import Actor, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, open_gateway
from kizuki.actors.hosting.claude_hook import CONTEXT_MAX
from kizuki.actors.hosting.integrations.claude_agent import claude_hooks, claude_tools
from kizuki.actors.hosting.integrations.failing_open import TIMEOUT_S
from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.integrations.scripted_claude import COMPACTION, FAILURE, SESSION_ID, Call, ScriptedClaude, Subagent

PATIENT_S = 20.0
"""How long these hooks wait for the gateway: a busy machine is no fault of the adapter's."""
LINE = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
TOLD = (
    f'kizuki: session "{CHILD}" was changed by another actor. This session last knew its state version 1; the change is version 2. '
    f'What changed after version 1 is told by: session_status sessionKey "{CHILD}" changesSince 1.'
)
"""The same for the model: a fact that stays true whenever it is read again."""
STATUS = Call("session_status", {"sessionKey": CHILD, "changesSince": 1})
ADA = Actor.human("ada")


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway on which the main session has a child, into which a person has written."""
    async with open_gateway(tmp_path / "claude.db", config=GatewayConfig(busy_timeout_s=0.2)) as opened:
        await opened.spawn(MAIN, CHILD, run_id="r1")
        await opened.human_message(CHILD, channel="telegram")
        yield opened


def options(gateway: Gateway, *, actor: Actor | None = None, timeout_s: float = PATIENT_S, **more: Any) -> ClaudeAgentOptions:
    hooks = claude_hooks(gateway, MAIN, actor=actor or Actor.system(), timeout_s=timeout_s, **more)
    return ClaudeAgentOptions(hooks=hooks, mcp_servers={"kizuki": claude_tools(gateway, MAIN)}, allowed_tools=["mcp__kizuki"])


async def ask(code: ScriptedClaude, given: ClaudeAgentOptions, prompt: str = "go on") -> list[str]:
    """One query; what its results say."""
    messages = [message async for message in query(prompt=prompt, options=given, transport=code)]
    return [str(message.result) for message in messages if isinstance(message, ResultMessage)]


async def history(gateway: Gateway, key: str) -> list[tuple[str, str]]:
    """What was recorded of a session: kinds and summaries."""
    status = await gateway.session_status(key, changes_since=0)
    return [(event["kind"], event["summary"]) for event in status["stateChanges"]["events"]]


async def pending(gateway: Gateway) -> list[str]:
    return [notice.text for notice in await gateway.pending(MAIN)]


@contextlib.contextmanager
def locked(tmp_path: Path) -> Iterator[None]:
    """Another process writes into the database, and goes on doing so."""
    connection = sqlite3.connect(tmp_path / "claude.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


async def test_a_manager_is_told_once_and_reads_the_delta(gateway: Gateway) -> None:
    """A manager's prompt brings exactly one line after a person wrote to its child, and its call of `session_status` gives the delta."""
    code = ScriptedClaude([STATUS], [])
    async with ClaudeSDKClient(options(gateway), transport=code) as client:
        for _ in range(2):
            await client.query("go on")
            assert [message async for message in client.receive_response()]
    assert code.contexts == [TOLD, ""]
    (result,) = code.results
    delta = json.loads(result["content"][0]["text"])["stateChanges"]["events"]
    assert [(event["kind"], event["actorType"]) for event in delta] == [("human_direct_message", "human")]


@pytest.mark.parametrize("steps", [[STATUS, FAILURE], []], ids=["a tool call", "the turn's end"])
async def test_a_notice_is_acknowledged_by_what_proves_that_the_model_ran(gateway: Gateway, steps: list[Any]) -> None:
    """Rule 4.8: the model's first tool call acknowledges, also where the turn fails later, and so does the regular end of a turn."""
    assert await ask(ScriptedClaude(steps), options(gateway))
    assert await pending(gateway) == []
    assert (await gateway.statistics()).notices_acknowledged == 1


async def test_a_failing_model_call_gives_the_notice_back(gateway: Gateway) -> None:
    """Rule 4.8: a notice whose model call failed is pending still, byte for byte, and the next prompt brings it again, of any client."""
    code = ScriptedClaude([FAILURE])
    assert await ask(code, options(gateway)) == ["model down"]
    assert await pending(gateway) == [LINE]
    again = ScriptedClaude([])
    await ask(again, options(gateway))
    assert (code.contexts, again.contexts) == ([TOLD], [TOLD])
    assert await pending(gateway) == []


async def test_another_sessions_events_prove_nothing(gateway: Gateway) -> None:
    """An event of another of Claude Code's sessions, or from within a sub-agent, acknowledges nothing."""
    (matcher,) = claude_hooks(gateway, MAIN, actor=ADA, timeout_s=PATIENT_S)["Stop"]
    (hook,) = matcher.hooks

    async def tell(event: str, **fields: str) -> Any:
        given: Any = {"session_id": SESSION_ID, "hook_event_name": event, **fields}
        return await hook(given, None, {"signal": None})

    await tell("UserPromptSubmit", prompt="go on")
    await tell("Stop", session_id="another")
    await tell("PreToolUse", agent_id="a1", agent_type="worker")
    assert await pending(gateway) == [LINE]
    await tell("PreToolUse")
    assert await pending(gateway) == []


async def test_a_nested_agent_does_not_see_its_parents_notice(gateway: Gateway) -> None:
    """No event of a sub-agent is answered with anything, though its parent has a notice that is not acknowledged yet."""
    code = ScriptedClaude([Subagent("a1")])
    await ask(code, options(gateway))
    assert code.answers == [{}] * 4


async def test_sub_agents_are_children(gateway: Gateway) -> None:
    """A sub-agent's start and end are recorded: in the session declared for its type, else in that which adopting would find."""
    code = ScriptedClaude([Subagent("a1", "researcher"), Subagent("b2"), Subagent("c3", "raising")])
    keys = {"researcher": lambda _: OTHER, "raising": lambda event: str(event["absent"])}
    assert await ask(code, options(gateway, children=keys)) == ["done"]
    whole = [("child_spawned", "child session spawned"), ("run_completed", "child run completed")]
    assert await history(gateway, OTHER) == whole
    (found,) = {watch.target for watch in await gateway.watches(MAIN)} - {OTHER, CHILD}
    assert found.startswith("agent:main:catalog:claude:")
    assert await history(gateway, found) == whole


async def test_every_compaction_is_recorded(gateway: Gateway) -> None:
    """Each compaction of the session's history is in its log."""
    for _ in range(2):
        await ask(ScriptedClaude([COMPACTION]), options(gateway))
    assert await history(gateway, MAIN) == [("compacted", "session compacted")] * 2


@pytest.mark.parametrize(
    ("actor", "prompt", "recorded"),
    [
        (ADA, "go on", ["human message via slack"]),
        (ADA, "<task-notification>a sub-agent has ended</task-notification>", []),
        (Actor.agent(OTHER), "go on", []),
        (Actor.system(), "go on", []),
    ],
)
async def test_only_a_persons_prompt_is_a_human_message(gateway: Gateway, actor: Actor, prompt: str, recorded: list[str]) -> None:
    """A prompt is a human message exactly if the host says that a person gives them, and Claude Code did not submit it itself."""
    await gateway.watch(OTHER, MAIN)
    await ask(ScriptedClaude([]), options(gateway, actor=actor, channel="slack"), prompt)
    assert [summary for _, summary in await history(gateway, MAIN)] == recorded


def test_who_gives_the_prompts_must_be_said() -> None:
    """There is no default for who gives the prompts, and a wrong argument raises at once."""
    gateway: Any = None
    with pytest.raises(TypeError, match="actor"):
        claude_hooks(gateway, MAIN)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="actor"):
        claude_hooks(gateway, MAIN, actor="ada")  # type: ignore[arg-type]
    with pytest.raises(InvalidSessionKey):
        claude_hooks(gateway, "agent:main", actor=ADA)
    with pytest.raises(InvalidSessionKey):
        claude_tools(gateway, "global")


async def test_what_does_not_fit_stays_pending(gateway: Gateway) -> None:
    """Rule 4.7: a prompt brings as many notices as Claude Code shows whole, and acknowledges no other."""
    for number in range(25):
        key = f"agent:main:subagent:{'x' * 400}{number}"
        await gateway.watch(MAIN, key)
        await gateway.human_message(key, channel="telegram")
    code = ScriptedClaude([])
    await ask(code, options(gateway))
    shown = code.contexts[0].splitlines()
    assert len(code.contexts[0]) <= CONTEXT_MAX + len(shown)
    assert 0 < len(shown) < 20
    assert len(await pending(gateway)) == 26 - len(shown)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (Call("session_status", {"sessionKey": "agent:main:nobody"}), "agent:main:nobody"),
        (Call("session_status", {"sessionKey": 7}), "7 is not of type"),
        (Call("sessions_send", {"sessionKey": CHILD, "message": "hello"}), "not found"),
    ],
)
async def test_a_failing_tool_is_a_sentence_for_the_model(gateway: Gateway, call: Call, says: str) -> None:
    """A tool that fails answers in words, marked as an error, and the turn goes on."""
    code = ScriptedClaude([call])
    assert await ask(code, options(gateway)) == ["done"]
    (result,) = code.results
    assert result["isError"] is True
    assert says in result["content"][0]["text"]


async def test_a_closed_gateway_leaves_the_run_alone(tmp_path: Path) -> None:
    """A run on a gateway that is closed goes on untouched, its tools and its sub-agents, too."""
    async with open_gateway(tmp_path / "claude.db") as closed:
        await closed.open_session(MAIN)
    code = ScriptedClaude([STATUS, Subagent("a1"), COMPACTION])
    assert await ask(code, options(closed, actor=ADA)) == ["done"]
    assert code.contexts == [""]
    assert code.answers == [{}] * 6
    assert "closed" in code.results[0]["content"][0]["text"]


async def test_a_database_that_hangs_leaves_the_run_alone(gateway: Gateway, tmp_path: Path) -> None:
    """Each hook answers within its bound while the database hangs; what it could not acknowledge is shown again."""
    code = ScriptedClaude([Subagent("a1"), COMPACTION])
    with locked(tmp_path):
        assert await ask(code, options(gateway, actor=ADA, timeout_s=0.02)) == ["done"]
    assert code.answers == [{}] * 5
    await gateway.idle()
    assert await pending(gateway) == [LINE]
    assert TIMEOUT_S == 0.25


async def test_an_event_that_is_none_is_answered_with_nothing(gateway: Gateway) -> None:
    """A newer Claude Code's event of another shape costs a line in the host's log and nothing else."""
    (matcher,) = claude_hooks(gateway, MAIN, actor=ADA)["UserPromptSubmit"]
    strange: Any = {"hook_event_name": "UserPromptSubmit", "prompt": ["a", "list"]}
    assert await matcher.hooks[0](strange, None, {"signal": None}) == {}
