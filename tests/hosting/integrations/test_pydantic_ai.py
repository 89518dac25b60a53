"""The Pydantic AI capability on the real SDK, with a scripted model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs kizuki[pydantic-ai]")

from pydantic_ai import Agent, RunContext, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from kizuki.actors import Dispatched, Gateway, open_gateway
from kizuki.actors.hosting.integrations.pydantic_ai import SessionAwareness
from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.integrations.staging import locked, returned, spoken_to

Step = Callable[[list[ModelMessage]], ModelResponse]


class ModelDownError(Exception):
    """What a failing model call raises."""


class Script:
    """A model that plays its steps, one a request, and keeps what it was shown."""

    def __init__(self, *steps: Step | str) -> None:
        self._steps = list(steps)
        self.seen: list[list[ModelMessage]] = []
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        step = self._steps.pop(0)
        return ModelResponse([TextPart(step)]) if isinstance(step, str) else step(messages)

    def lines(self, request: int = 0) -> list[str]:
        """The notices that the model was shown in one request."""
        return lines(self.seen[request])


def lines(messages: list[ModelMessage]) -> list[str]:
    parts = (part for message in messages if isinstance(message, ModelRequest) for part in message.parts)
    texts = (part.content for part in parts if isinstance(part, SystemPromptPart | UserPromptPart) and isinstance(part.content, str))
    return [text.removeprefix("<system>").removesuffix("</system>") for text in texts if "was changed by another actor" in text]


def call(tool: str, **arguments: object) -> Step:
    return lambda _messages: ModelResponse([ToolCallPart(tool, arguments)])


def fail(_messages: list[ModelMessage]) -> ModelResponse:
    raise ModelDownError


async def test_a_manager_is_shown_one_line_and_reconciles_by_its_tools(tmp_path: Path) -> None:
    """Rules 4.1, 4.8, 5.1: one line after a person spoke to the child; the model asks for the delta; then it is not told again."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        since = int(line.split()[-1].rstrip("."))
        script = Script(call("session_status", sessionKey=CHILD, changesSince=since), "reconciled", "nothing new")
        agent = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN)])
        first = await agent.run("Go on.")
        assert script.lines() == [line]
        (answered,) = [part for part in script.seen[1][-1].parts if isinstance(part, ToolReturnPart)]
        changes = answered.model_response_object()["stateChanges"]["events"]
        assert [event["summary"] for event in changes] == ["human message via telegram"]
        assert await gateway.pending(MAIN) == []
        await agent.run("And now?")
        assert script.lines(2) == []
        assert lines(first.all_messages()) == [line], "it is saved with the conversation"


async def test_a_notice_is_acknowledged_by_the_first_answer_not_before(tmp_path: Path) -> None:
    """Rule 4.8: while the model has not answered, the notice is only taken; once it has, it is acknowledged, whatever the run comes to."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)

        async def look(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            taken.append([watch.pending for watch in await gateway.watches(MAIN)])
            if len(taken) == 2:
                raise ModelDownError
            return ModelResponse([ToolCallPart("sessions_list", {})])

        taken: list[list[bool]] = []
        agent = Agent(FunctionModel(look), capabilities=[SessionAwareness(gateway, MAIN)])
        with pytest.raises(ModelDownError):
            await agent.run("Go on.")
        assert taken == [[True], [False]]
        assert await returned(gateway) == 0


async def test_a_failing_model_call_gives_the_notice_back(tmp_path: Path) -> None:
    """Rule 4.8: the model's failure is the host's as before, the notice goes back, and the next run is shown it byte for byte."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        script = Script(fail, "fine")
        agent = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN)])
        with pytest.raises(ModelDownError):
            await agent.run("Go on.")
        assert await returned(gateway) == 1
        assert [notice.text for notice in await gateway.pending(MAIN)] == [line]
        await agent.run("Go on.")
        assert (script.lines(0), script.lines(1)) == ([line], [line])


async def test_a_failed_runs_saved_messages_hold_the_line_once(tmp_path: Path) -> None:
    """A run that goes on from the messages of a failed one has the line in them already: it is shown once, and acknowledged."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        script = Script(fail, "fine")
        agent = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN)])
        with capture_run_messages() as failed, pytest.raises(ModelDownError):
            await agent.run("Go on.")
        await agent.run("Again.", message_history=failed)
        assert script.lines(1) == [line]
        assert await gateway.pending(MAIN) == []


async def test_a_cancelled_run_gives_the_notice_back(tmp_path: Path) -> None:
    """Rule 4.8: a run that is cancelled while its model thinks has shown nothing for certain."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        asked = asyncio.Event()

        async def think(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        run = asyncio.create_task(Agent(FunctionModel(think), capabilities=[SessionAwareness(gateway, MAIN)]).run("Go on."))
        await asked.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [notice.text for notice in await gateway.pending(MAIN)] == [line]


async def test_a_streamed_run_is_shown_its_notice_too(tmp_path: Path) -> None:
    """Rule 4.8: a streamed answer acknowledges once it is there."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        seen: list[list[ModelMessage]] = []

        async def stream(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
            seen.append(list(messages))
            yield "word "
            yield "by word"

        agent = Agent(FunctionModel(stream_function=stream), capabilities=[SessionAwareness(gateway, MAIN)])
        async with agent.run_stream("Go on.") as result:
            assert await result.get_output() == "word by word"
        assert lines(seen[0]) == [line]
        assert await gateway.pending(MAIN) == []


async def test_a_nested_agent_is_not_shown_its_parents_notice(tmp_path: Path) -> None:
    """The session key is explicit: a child agent that runs inside a tool call has its own notices, and no others."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        await gateway.watch(OTHER, CHILD)
        await gateway.human_message(CHILD, channel="telegram")
        inner, bare = Script("done"), Script("done")
        outer = Script(call("delegate"), "done")
        child = Agent(inner.model, capabilities=[SessionAwareness(gateway, OTHER)])
        stranger = Agent(bare.model)
        manager = Agent(outer.model, capabilities=[SessionAwareness(gateway, MAIN)])

        @manager.tool
        async def delegate(_ctx: RunContext[None]) -> str:
            await stranger.run("Work.")
            return (await child.run("Work.")).output

        await manager.run("Go on.")
        assert outer.lines() == [line]
        assert bare.lines() == []
        assert len(inner.lines()) == 1
        assert inner.lines() != [line]


async def test_a_declared_tool_is_a_childs_run(tmp_path: Path) -> None:
    """Rules 1.1, 3.1: a tool's run is the child's spawn and end, it is running meanwhile, and the session watches it from then on."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.open_session(MAIN)
        children = {"delegate": lambda arguments: f"agent:main:subagent:{arguments['who']}"}
        script = Script(call("delegate", who="child"), "done", call("delegate", who="other"), "done")
        manager = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, children=children)])
        during: list[str] = []

        @manager.tool_plain
        async def delegate(who: str) -> str:
            during.append((await gateway.session_status(f"agent:main:subagent:{who}"))["status"])
            if who == "other":
                raise TimeoutError
            return "done"

        await manager.run("Go on.")
        with pytest.raises(TimeoutError):
            await manager.run("Go on.")
        assert during == ["running", "running"]
        assert await kinds(gateway, CHILD) == ["child_spawned", "run_completed"]
        assert await kinds(gateway, OTHER) == ["child_spawned", "run_failed"]
        assert [watch.target for watch in await gateway.watches(MAIN)] == [CHILD, OTHER]


async def kinds(gateway: Gateway, key: str) -> list[str]:
    return [event["kind"] for event in (await gateway.session_status(key, changes_since=0))["stateChanges"]["events"]]


def done() -> str:
    return "done"


async def test_a_failing_child_key_harms_no_tool(tmp_path: Path) -> None:
    """A host's own function that fails, or gives no session key, loses the record and nothing else."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.open_session(MAIN)
        script = Script(call("wrong"), call("raising"), "done")
        children = {"wrong": lambda _: "no key", "raising": lambda arguments: str(arguments["absent"])}
        manager = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, children=children)])
        manager.tool_plain(name="wrong")(done)
        manager.tool_plain(name="raising")(done)
        assert (await manager.run("Go on.")).output == "done"
        assert (await gateway.sessions_list())["sessions"][0]["sessionKey"] == MAIN


async def test_a_tools_error_is_told_to_the_model(tmp_path: Path) -> None:
    """A wrong call is answered with a sentence, not with the end of the run; sessions_send is there only where it was asked for."""

    def dispatch(_sender: str, key: str, _text: str) -> Dispatched:
        return Dispatched(session_key=key, reply="yes")

    async with open_gateway(tmp_path / "state.db", dispatch=dispatch) as gateway:
        await gateway.open_session(MAIN)
        script = Script(call("session_status", sessionKey="agent::x"), call("sessions_send", sessionKey=CHILD, message="hi"), "done")
        agent = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, send=True)])
        await agent.run("Go on.")
        answers = [part for request in script.seen[1:] for part in request[-1].parts if isinstance(part, ToolReturnPart)]
        assert "agent::x" in str(answers[0].content)
        assert answers[1].content == {"status": "ok", "sessionKey": CHILD, "reply": "yes"}


async def test_a_closed_gateway_ends_no_run(tmp_path: Path) -> None:
    """None raises into its host: after the gateway is gone, runs, tools and children go on without it."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
    script = Script(call("session_status", sessionKey=CHILD), call("delegate"), "done")
    manager = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, children={"delegate": lambda _: CHILD})])
    manager.tool_plain(name="delegate")(done)
    assert (await manager.run("Go on.")).output == "done"
    assert script.lines() == []


async def test_a_database_that_hangs_ends_no_run_and_loses_no_notice(tmp_path: Path) -> None:
    """Bounded: while somebody else keeps the database's lock, a run waits for its notices as long as it was told, and then goes on."""
    database = tmp_path / "state.db"
    async with open_gateway(database) as gateway, open_gateway(database):
        line = await spoken_to(gateway)
        script = Script("done", "done")
        agent = Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, timeout_s=0.05)])
        with locked(database):
            began = time.monotonic()
            assert (await agent.run("Go on.")).output == "done"
            assert time.monotonic() - began < 3.0, "the lock is waited for during 5 s"
        await gateway.idle()
        await Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN, timeout_s=10)]).run("Go on.")
        assert line in {*script.lines(0), *script.lines(1)}


async def test_what_was_not_in_the_request_is_not_acknowledged(tmp_path: Path) -> None:
    """Rule 4.7: what is acknowledged is what was shown; a history processor that drops the line leaves the notice pending."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)

        def without(messages: list[ModelMessage]) -> list[ModelMessage]:
            for message in messages:
                if isinstance(message, ModelRequest):
                    message.parts = [part for part in message.parts if not isinstance(part, SystemPromptPart)]
            return [message for message in messages if message.parts]

        from pydantic_ai.capabilities import ProcessHistory

        script = Script("done")
        await Agent(script.model, capabilities=[SessionAwareness(gateway, MAIN), ProcessHistory(without)]).run("Go on.")
        assert script.lines() == []
        assert [notice.text for notice in await gateway.pending(MAIN)] == [line]
