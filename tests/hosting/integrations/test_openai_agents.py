"""The adapter of the OpenAI Agents SDK, driven by the SDK's own runner with a scripted model: no network, no tracing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("agents", reason="needs openai-agents: pip install 'kizuki[openai]'")

from agents import Agent, RunConfig, Runner, SQLiteSession, Tool, TResponseInputItem, function_tool, handoff
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from kizuki.actors import Actor, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, open_gateway
from kizuki.actors.hosting.integrations.openai_agents import openai_run, openai_tools
from tests.hosting.cast import CHILD, MAIN, OTHER

QUIET = RunConfig(tracing_disabled=True)
PATIENT_S = 20.0
"""How long these runs wait for the gateway: a busy machine is no fault of the adapter's."""
LINE = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
ADA = Actor.human("ada")
DONE = [assistant_message("done")]
CALL = [function_call("session_status", {"sessionKey": CHILD, "changesSince": 1}, call_id="c1")]


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway on which the main session has a child, into which a person has written."""
    async with open_gateway(tmp_path / "agents.db", config=GatewayConfig(busy_timeout_s=0.2)) as opened:
        await opened.spawn(MAIN, CHILD, run_id="r1")
        await opened.human_message(CHILD, channel="telegram")
        yield opened


@pytest.fixture
def session() -> Iterator[SQLiteSession]:
    opened = SQLiteSession("conversation")
    yield opened
    opened.close()


def scripted(*steps: Any, name: str = "manager", tools: list[Tool] | None = None, **more: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel(steps)
    return Agent(name, model=model, tools=tools or [], **more), model


def lines(items: Any) -> list[str]:
    """The notices among what a model was given."""
    return [item["content"] for item in items if isinstance(item, dict) and item.get("role") == "developer"]


def outputs(call: ModelCall) -> list[str]:
    """What tools answered, among what a model was given."""
    return [item["output"] for item in call.input if item.get("type") == "function_call_output"]


async def go(gateway: Gateway, agent: Agent[Any], session: SQLiteSession | None, timeout_s: float = PATIENT_S, **more: Any) -> Any:
    async with openai_run(gateway, MAIN, actor=Actor.system(), timeout_s=timeout_s, **more) as run:
        return await Runner.run(agent, "go on", session=session, run_config=run.config(QUIET), hooks=run.hooks)


async def history(gateway: Gateway, key: str) -> list[tuple[str, str]]:
    """What was recorded of a session: kinds and summaries."""
    status = await gateway.session_status(key, changes_since=0)
    return [(event["kind"], event["summary"]) for event in status["stateChanges"]["events"]]


@contextlib.contextmanager
def locked(tmp_path: Path) -> Iterator[None]:
    """Another process writes into the database, and goes on doing so."""
    connection = sqlite3.connect(tmp_path / "agents.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()


async def acknowledged(gateway: Gateway) -> int:
    return (await gateway.statistics()).notices_acknowledged


async def test_a_manager_is_told_once_and_reads_the_delta(gateway: Gateway, session: SQLiteSession) -> None:
    """A manager's run is shown exactly one line after a person wrote to its child, and its call of `session_status` gives the delta."""
    manager, model = scripted(CALL, DONE, DONE, tools=[*openai_tools(gateway, MAIN)])
    assert (await go(gateway, manager, session)).final_output == "done"
    first, second = model.calls
    assert lines(first.input) == [LINE]
    delta = json.loads(outputs(second)[0])["stateChanges"]["events"]
    assert [(event["kind"], event["actorType"]) for event in delta] == [("human_direct_message", "human")]
    await go(gateway, manager, session)
    assert lines(model.calls[2].input) == [LINE], "the one of the first run, saved with the session"
    assert await gateway.pending(MAIN) == []


async def test_a_notice_is_acknowledged_when_the_model_has_answered(gateway: Gateway, session: SQLiteSession) -> None:
    """Rule 4.8: the acknowledgement comes with the first model call that was answered, not before, and not only at the run's end."""
    seen: list[int] = []

    def counting(step: Any) -> ModelStep:
        async def respond(_call: ModelCall) -> Any:
            seen.append(await acknowledged(gateway))
            return step

        return ModelStep.respond(respond)

    manager, _ = scripted(counting(CALL), counting(DONE), tools=[*openai_tools(gateway, MAIN)])
    await go(gateway, manager, session)
    assert seen == [0, 1]


async def test_a_failing_model_call_gives_the_notice_back(gateway: Gateway, session: SQLiteSession) -> None:
    """Rule 4.8: a run whose model call fails gives its notice back byte for byte; the next run's model reads it once, saved or not."""
    manager, model = scripted(ModelStep.raise_error(RuntimeError("model down")), DONE)
    with pytest.raises(RuntimeError, match="model down"):
        await go(gateway, manager, session)
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]
    await go(gateway, manager, session)
    assert [lines(call.input) for call in model.calls] == [[LINE], [LINE]]
    assert await gateway.pending(MAIN) == []


async def test_a_line_that_was_answered_long_ago_hides_none(gateway: Gateway, session: SQLiteSession) -> None:
    """A line that some model has answered earlier in the conversation does not stand for a notice that is pending now."""
    old: list[TResponseInputItem] = [{"role": "developer", "content": LINE}, {"role": "assistant", "content": "noted"}]
    await session.add_items(old)
    manager, model = scripted(DONE)
    await go(gateway, manager, session)
    assert lines(model.calls[0].input) == [LINE, LINE]


async def test_a_run_that_is_cancelled_gives_the_notice_back(gateway: Gateway, session: SQLiteSession) -> None:
    """Rule 4.8: a run that is cancelled while its model is called gives its notice back."""
    called = asyncio.Event()

    async def hang(_call: ModelCall) -> Any:
        called.set()
        await asyncio.Event().wait()

    manager, _ = scripted(ModelStep.respond(hang))
    running = asyncio.create_task(go(gateway, manager, session))
    await called.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]
    assert (await gateway.session_status(MAIN))["status"] == "idle"


async def test_a_block_without_a_model_call_gives_the_notice_back(gateway: Gateway) -> None:
    """A block that ends well without a model call has shown nothing."""
    async with openai_run(gateway, MAIN, actor=Actor.system(), timeout_s=PATIENT_S) as run:
        assert lines(run.input("go on")) == [LINE]
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_a_nested_agent_does_not_see_its_parents_notice(gateway: Gateway, session: SQLiteSession) -> None:
    """An agent that runs as a tool inherits the run's configuration, with a session of its own or without, but not its notices."""
    own = SQLiteSession("nested")
    nested, nested_model = scripted(DONE, DONE, name="worker")
    tools = [nested.as_tool("alone", "-"), nested.as_tool("remembering", "-", session=own)]
    calls = [function_call(name, {"input": "work"}, call_id=name) for name in ("alone", "remembering")]
    manager, model = scripted(calls, DONE, tools=[*tools])
    await go(gateway, manager, session)
    own.close()
    assert lines(model.calls[0].input) == [LINE]
    assert [lines(call.input) for call in nested_model.calls] == [[], []]


async def test_a_nested_agent_does_not_see_what_its_parent_was_not_shown(gateway: Gateway) -> None:
    """A run whose host gave its notice no way to the model, having no SDK session, does not bring it to a nested agent that has one."""
    own = SQLiteSession("nested")
    nested, nested_model = scripted(DONE, name="worker")
    calls = [function_call("remembering", {"input": "work"}, call_id="c1")]
    manager, model = scripted(calls, DONE, tools=[nested.as_tool("remembering", "-", session=own)])
    await go(gateway, manager, None)
    own.close()
    assert [lines(call.input) for call in [*model.calls, *nested_model.calls]] == [[], [], []]
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_a_streamed_run_is_told_too(gateway: Gateway, session: SQLiteSession) -> None:
    """A streamed run shows and acknowledges as another one does."""
    manager, model = scripted(DONE)
    async with openai_run(gateway, MAIN, actor=Actor.system(), timeout_s=PATIENT_S) as run:
        streamed = Runner.run_streamed(manager, "go on", session=session, run_config=run.config(QUIET), hooks=run.hooks)
        async for _ in streamed.stream_events():
            pass
        assert await acknowledged(gateway) == 1
    assert lines(model.calls[0].input) == [LINE]


async def test_a_run_without_a_session_gets_its_notice_with_the_input(gateway: Gateway) -> None:
    """Where the run has no SDK session, `run.input` brings the notice, and the answer acknowledges it."""
    manager, model = scripted(DONE)
    async with openai_run(gateway, MAIN, actor=Actor.system(), timeout_s=PATIENT_S) as run:
        await Runner.run(manager, run.input("go on"), run_config=run.config(QUIET), hooks=run.hooks)
    assert lines(model.calls[0].input) == [LINE]
    assert await gateway.pending(MAIN) == []


async def test_the_hosts_own_callback_still_decides(gateway: Gateway, session: SQLiteSession) -> None:
    """A `session_input_callback` of the host's is asked, with the notice in front of the new input."""

    def newest_only(_history: list[TResponseInputItem], new: list[TResponseInputItem]) -> list[TResponseInputItem]:
        return new

    await session.add_items([{"role": "user", "content": "long ago"}])
    manager, model = scripted(DONE)
    base = RunConfig(tracing_disabled=True, session_input_callback=newest_only)
    async with openai_run(gateway, MAIN, actor=Actor.system(), timeout_s=PATIENT_S) as run:
        await Runner.run(manager, "go on", session=session, run_config=run.config(base), hooks=run.hooks)
    assert [item["content"] for item in model.calls[0].input] == [LINE, "go on"]


@pytest.mark.parametrize(("actor", "recorded"), [(ADA, ["human message via slack"]), (Actor.agent(OTHER), []), (Actor.system(), [])])
async def test_only_a_persons_input_is_a_human_message(gateway: Gateway, actor: Actor, recorded: list[str]) -> None:
    """A run records a human message exactly if its host says that a person gave the input."""
    await gateway.watch(OTHER, MAIN)
    async with openai_run(gateway, MAIN, actor=actor, channel="slack", timeout_s=PATIENT_S):
        assert (await gateway.session_status(MAIN))["status"] == "running"
    assert (await gateway.session_status(MAIN))["status"] == "idle"
    assert [summary for _, summary in await history(gateway, MAIN)] == recorded


async def test_who_gives_the_input_must_be_said(gateway: Gateway) -> None:
    """There is no default for who gives a run its input, and a wrong argument raises at once."""
    with pytest.raises(TypeError, match="actor"):
        openai_run(gateway, MAIN)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="actor"):
        async with openai_run(gateway, MAIN, actor="ada"):  # type: ignore[arg-type]
            pass
    with pytest.raises(InvalidSessionKey):
        openai_tools(gateway, "agent:main")


async def test_an_agent_that_runs_as_a_tool_is_a_child(gateway: Gateway, session: SQLiteSession) -> None:
    """A declared agent tool is recorded as a child's run under the call's id, with its end: well, or not."""
    worker, _ = scripted(DONE, ModelStep.raise_error(RuntimeError("worker down")), name="worker")
    steps = [[function_call("work", {"input": what}, call_id=what)] for what in ("one", "two")]
    manager, _ = scripted(*steps, DONE, tools=[worker.as_tool("work", "-")])
    await go(gateway, manager, session, children={"work": lambda call: f"agent:main:subagent:{call['input']}"})
    assert await history(gateway, "agent:main:subagent:one") == [
        ("child_spawned", "child session spawned"),
        ("run_completed", "child run completed"),
    ]
    assert [kind for kind, _ in await history(gateway, "agent:main:subagent:two")] == ["child_spawned", "run_failed"]
    assert {watch.target for watch in await gateway.watches(MAIN)} >= {"agent:main:subagent:one", "agent:main:subagent:two"}


async def test_an_agent_that_takes_over_is_a_child(gateway: Gateway, session: SQLiteSession) -> None:
    """An agent that the run is handed off to is recorded as a child's run until it gives the output."""
    clerk, _ = scripted(DONE, name="clerk")
    manager, _ = scripted([function_call("transfer_to_clerk", {}, call_id="h1")], handoffs=[handoff(clerk)])
    await go(gateway, manager, session, children={"clerk": lambda _: OTHER})
    assert [kind for kind, _ in await history(gateway, OTHER)] == ["child_spawned", "run_completed"]


async def test_a_child_ends_with_the_run_that_fails(gateway: Gateway, session: SQLiteSession) -> None:
    """Rule 1.4: a child that a failing run was handed off to has failed with it."""
    clerk, _ = scripted(ModelStep.raise_error(RuntimeError("clerk down")), name="clerk")
    manager, _ = scripted([function_call("transfer_to_clerk", {}, call_id="h1")], handoffs=[handoff(clerk)])
    with pytest.raises(RuntimeError, match="clerk down"):
        await go(gateway, manager, session, children={"clerk": lambda _: OTHER})
    assert [kind for kind, _ in await history(gateway, OTHER)] == ["child_spawned", "run_failed"]


async def test_a_child_that_waits_for_a_person_goes_on(gateway: Gateway, session: SQLiteSession) -> None:
    """A child whose tool needs a person's approval has not ended with the run that asks for it, but with the one that goes on."""
    pay = function_tool(lambda: "paid", name_override="pay", needs_approval=True)
    worker, _ = scripted([function_call("pay", {}, call_id="p1")], DONE, name="worker", tools=[pay])
    manager, _ = scripted([function_call("work", {"input": "-"}, call_id="w1")], DONE, tools=[worker.as_tool("work", "-")])
    waiting = await go(gateway, manager, session, children={"work": lambda _: OTHER})
    assert [kind for kind, _ in await history(gateway, OTHER)] == ["child_spawned"]
    assert (await gateway.session_status(OTHER))["status"] == "idle"
    state = waiting.to_state()
    state.approve(waiting.interruptions[0])
    async with openai_run(gateway, MAIN, actor=ADA, children={"work": lambda _: OTHER}, timeout_s=PATIENT_S) as run:
        result = await Runner.run(manager, state, session=session, run_config=run.config(QUIET), hooks=run.hooks)
    assert result.final_output == "done"
    assert [kind for kind, _ in await history(gateway, OTHER)] == ["child_spawned", "run_completed"]


@pytest.mark.parametrize("arguments", ['{"sessionKey": "agent:main:nobody"}', "{broken", '{"sessionKey": 7}', "[]"])
async def test_a_failing_tool_is_a_sentence_for_the_model(gateway: Gateway, session: SQLiteSession, arguments: str) -> None:
    """A tool that fails answers in words, and the run goes on."""
    call = function_call("session_status", arguments, call_id="c1")
    manager, model = scripted([call], DONE, tools=[*openai_tools(gateway, MAIN)])
    assert (await go(gateway, manager, session)).final_output == "done"
    (answered,) = outputs(model.calls[1])
    assert answered
    assert not answered.startswith("{")


def test_sending_is_offered_only_where_it_can_be_done() -> None:
    """`sessions_send` is among the tools only if the host says that it can dispatch; no tool is strict, for most arguments are optional."""
    gateway: Any = None
    names = [tool.name for tool in openai_tools(gateway, MAIN)]
    assert "session_status" in names
    assert {tool.name for tool in openai_tools(gateway, MAIN, send=True)} - set(names) == {"sessions_send"}
    assert not any(tool.strict_json_schema for tool in openai_tools(gateway, MAIN, send=True))


async def test_a_closed_gateway_leaves_the_run_alone(tmp_path: Path, session: SQLiteSession) -> None:
    """A run on a gateway that is closed goes on untouched, its tools and its children, too."""
    async with open_gateway(tmp_path / "agents.db") as closed:
        await closed.open_session(MAIN)
    worker, _ = scripted(DONE, name="worker")
    work = function_call("work", {"input": "one"}, call_id="w1")
    manager, model = scripted([*CALL, work], DONE, tools=[*openai_tools(closed, MAIN), worker.as_tool("work", "-")])
    result = await go(closed, manager, session, children={"work": lambda _: CHILD})
    assert result.final_output == "done"
    assert lines(model.calls[0].input) == []
    assert "closed" in outputs(model.calls[1])[0]


async def test_a_database_that_hangs_leaves_the_run_alone(gateway: Gateway, session: SQLiteSession, tmp_path: Path) -> None:
    """A run goes on without what the gateway cannot do in time, and nothing is lost: the notice is there when the database is."""
    manager, model = scripted(DONE)
    with locked(tmp_path):
        result = await go(gateway, manager, session, timeout_s=0.02)
    assert result.final_output == "done"
    assert lines(model.calls[0].input) == []
    await gateway.idle()
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_a_lost_acknowledgement_shows_nothing_to_nested_agents(gateway: Gateway, session: SQLiteSession, tmp_path: Path) -> None:
    """Where the acknowledgement cannot be stored the notice goes back at the run's end, but no nested agent sees it meanwhile."""
    own = SQLiteSession("nested")
    nested, nested_model = scripted(DONE, name="worker")
    with contextlib.ExitStack() as held:

        def lock(_call: ModelCall) -> Any:
            held.enter_context(locked(tmp_path))
            return [function_call("work", {"input": "work"}, call_id="w1")]

        manager, _ = scripted(ModelStep.respond(lock), DONE, tools=[nested.as_tool("work", "-", session=own)])
        await go(gateway, manager, session)
    own.close()
    assert [lines(call.input) for call in nested_model.calls] == [[]]
    assert [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_a_child_key_that_cannot_be_given_leaves_the_run_alone(gateway: Gateway, session: SQLiteSession) -> None:
    """A host's function that raises, or gives no key, costs a record and nothing else."""
    worker, _ = scripted(DONE, DONE, name="worker")
    calls = [function_call(name, {"input": "-"}, call_id=name) for name in ("raising", "wrong")]
    manager, model = scripted(calls, DONE, tools=[worker.as_tool("raising", "-"), worker.as_tool("wrong", "-")])
    keys: dict[str, Callable[[Any], str]] = {"raising": lambda call: str(call["absent"]), "wrong": lambda _: "agent:main"}
    assert (await go(gateway, manager, session, children=keys)).final_output == "done"
    assert outputs(model.calls[1]) == ["done", "done"]
