"""The LangChain middleware on the real SDK, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain", reason="needs kizuki[langchain]")

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware, before_model, wrap_model_call
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import PrivateAttr

from kizuki.actors import Dispatched, Gateway, ManualClock, open_gateway
from kizuki.actors.hosting.integrations.child_runs import ChildKey
from kizuki.actors.hosting.integrations.langchain import SessionAwareness, ShownRun, langchain_tools
from kizuki.actors.hosting.integrations.run_turn import RunTurn
from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.integrations.staging import locked, returned, spoken_to

Step = AIMessage | Exception | Callable[[], Awaitable[AIMessage]]

NOW = 1_767_225_600_000
THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


class ModelDownError(Exception):
    """What a failing model call raises."""


class Script(BaseChatModel):
    """A model that plays its steps, one a call, and keeps what it was shown."""

    _steps: list[Step] = PrivateAttr()
    _seen: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    def __init__(self, *steps: Step | str) -> None:
        super().__init__()
        self._steps = [AIMessage(step) if isinstance(step, str) else step for step in steps]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_options: Any) -> Runnable[Any, AIMessage]:
        return self

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **_: Any
    ) -> ChatResult:
        raise AssertionError("the tests run asynchronously")

    async def _agenerate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: AsyncCallbackManagerForLLMRun | None = None, **_: Any
    ) -> ChatResult:
        self._seen.append(list(messages))
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        answer = step if isinstance(step, AIMessage) else await step()
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def lines(self, number: int = 0) -> list[str]:
        """The notices that the model was shown in one call."""
        return lines(self._seen[number])

    def answers(self) -> list[ToolMessage]:
        """What tools answered, as the last call was shown it."""
        return [message for message in self._seen[-1] if isinstance(message, ToolMessage)]


def lines(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages if "was changed by another actor" in message.text]


def call(name: str, call_id: str = "c1", **arguments: object) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": call_id}])


async def run(agent: Any, text: str = "Go on.", config: RunnableConfig | None = None) -> list[BaseMessage]:
    result = await agent.ainvoke({"messages": [("user", text)]}, config)
    messages: list[BaseMessage] = result["messages"]
    return messages


async def kinds(gateway: Gateway, key: str) -> list[str]:
    return [event["kind"] for event in (await gateway.session_status(key, changes_since=0))["stateChanges"]["events"]]


async def pending(gateway: Gateway) -> list[str]:
    return [notice.text for notice in await gateway.pending(MAIN)]


async def test_a_manager_is_shown_one_line_and_reconciles_by_its_tools(tmp_path: Path) -> None:
    """Rules 4.1, 4.8, 5.1: one line after a person spoke to the child; the model asks for the delta; then it is not told again."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        since = int(line.split()[-1].rstrip("."))
        model = Script(call("session_status", sessionKey=CHILD, changesSince=since), "reconciled", "nothing new")
        agent = create_agent(model, middleware=[SessionAwareness(gateway, MAIN)], checkpointer=InMemorySaver())
        await run(agent, config=THREAD)
        assert model.lines() == [line]
        (answered,) = model.answers()
        changes = json.loads(answered.text)["stateChanges"]["events"]
        assert [event["summary"] for event in changes] == ["human message via telegram"]
        assert await pending(gateway) == []
        await run(agent, "And now?", THREAD)
        assert model.lines(2) == [line], "it is saved with the conversation, once"


async def test_a_notice_is_acknowledged_by_the_first_answer_not_before(tmp_path: Path) -> None:
    """Rule 4.8: while the model has not answered, the notice is only taken; once it has, it is acknowledged, whatever the run comes to."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        taken: list[list[bool]] = []

        async def look() -> AIMessage:
            taken.append([watch.pending for watch in await gateway.watches(MAIN)])
            if len(taken) == 2:
                raise ModelDownError
            return call("sessions_list")

        with pytest.raises(ModelDownError):
            await run(create_agent(Script(look, look), middleware=[SessionAwareness(gateway, MAIN)]))
        assert taken == [[True], [False]]
        assert await returned(gateway) == 0


async def test_a_failing_model_call_gives_the_notice_back(tmp_path: Path) -> None:
    """Rule 4.8: the model's failure is the host's as before, the notice goes back, and the thread's next run shows it once."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        model = Script(ModelDownError(), "fine")
        agent = create_agent(model, middleware=[SessionAwareness(gateway, MAIN)], checkpointer=InMemorySaver())
        with pytest.raises(ModelDownError):
            await run(agent, config=THREAD)
        assert await returned(gateway) == 1
        assert await pending(gateway) == [line]
        await run(agent, config=THREAD)
        assert (model.lines(0), model.lines(1)) == ([line], [line])
        assert await pending(gateway) == []


async def test_a_retry_that_succeeds_has_shown_the_notice(tmp_path: Path) -> None:
    """Rule 4.5: a notice that went back with the first attempt, and that the second has shown, is acknowledged."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        model = Script(ModelDownError(), "fine")
        retrying: list[AgentMiddleware[Any, Any, Any]] = [ModelRetryMiddleware(initial_delay=0), SessionAwareness(gateway, MAIN)]
        await run(create_agent(model, middleware=retrying))
        assert (model.lines(0), model.lines(1)) == ([line], [line])
        assert await returned(gateway) == 1
        assert await pending(gateway) == []


async def test_a_cancelled_run_gives_the_notice_back(tmp_path: Path) -> None:
    """Rule 4.8: a run that is cancelled while its model thinks has shown nothing for certain."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        asked = asyncio.Event()

        async def think() -> AIMessage:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        running = asyncio.create_task(run(create_agent(Script(think), middleware=[SessionAwareness(gateway, MAIN)])))
        await asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await pending(gateway) == [line]


async def test_a_run_that_ends_before_its_model_keeps_no_notice(tmp_path: Path) -> None:
    """Rule 4.9: no hook is called for such a run; its notice goes back all the same, its watcher is woken, and the next run is shown it."""
    woken: list[str] = []
    clock = ManualClock(NOW)

    def wake(key: str, _reasons: tuple[str, ...]) -> None:
        woken.append(key)

    @before_model
    async def fails(_state: Any, _runtime: Any) -> None:
        raise ModelDownError

    async with open_gateway(tmp_path / "state.db", clock=clock, wake=wake) as gateway:
        line = await spoken_to(gateway)
        await clock.advance(1)
        with pytest.raises(ModelDownError):
            await run(create_agent(Script(), middleware=[SessionAwareness(gateway, MAIN, hold_s=0.05), fails]))
        assert await pending(gateway) == [], "held"
        async with asyncio.timeout(10):
            while not await returned(gateway):
                await clock.advance(1)
        await clock.advance(1)
        assert await pending(gateway) == [line]
        assert woken == [MAIN, MAIN]


async def test_the_next_run_takes_over_what_none_was_shown(tmp_path: Path) -> None:
    """A run that starts while an earlier one of the session holds a notice that its model was not shown takes it over at once."""
    failing = [True]

    @before_model
    async def fails(_state: Any, _runtime: Any) -> None:
        if failing.pop():
            raise ModelDownError

    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        model = Script("fine")
        agent = create_agent(model, middleware=[SessionAwareness(gateway, MAIN), fails])
        with pytest.raises(ModelDownError):
            await run(agent)
        failing.append(False)
        await run(agent)
        assert model.lines() == [line]
        assert await pending(gateway) == []


async def test_a_run_beside_an_asking_one_is_not_shown_its_notice(tmp_path: Path) -> None:
    """Rule 4.8: a notice is in one run at a time; one that starts while another's model thinks has only what is new."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        asked, answering = asyncio.Event(), asyncio.Event()

        async def think() -> AIMessage:
            asked.set()
            await answering.wait()
            return AIMessage("thought over")

        model = Script(think, "beside it")
        agent = create_agent(model, middleware=[SessionAwareness(gateway, MAIN, timeout_s=20)])
        thinking = asyncio.create_task(run(agent))
        await asked.wait()
        await gateway.watch(MAIN, OTHER)
        await gateway.human_message(OTHER, channel="telegram")
        await run(agent)
        assert [watch.pending for watch in await gateway.watches(MAIN)] == [True, False], "the child's is held, the other's was shown"
        answering.set()
        await thinking
        assert model.lines(0) == [line]
        assert [OTHER in shown for shown in model.lines(1)] == [True]
        assert [watch.pending for watch in await gateway.watches(MAIN)] == [False, False]
        assert await returned(gateway) == 0


async def test_a_model_may_think_for_longer_than_a_run_may_wait(tmp_path: Path) -> None:
    """Rule 4.8: how long a notice is held without a model call is bounded; how long a call may take is not."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        turn = RunTurn(gateway, MAIN, timeout_s=20)
        await turn.take()

        async def thinks() -> AIMessage:
            await asyncio.sleep(0.05)
            assert (await pending(gateway), await returned(gateway)) == ([], 0)
            return AIMessage("thought over")

        shown = ShownRun(turn, hold_s=0.01)
        await shown.asking([HumanMessage(line, id=name) for name in shown.unseen], thinks())
        assert [watch.pending for watch in await gateway.watches(MAIN)] == [False]


async def test_the_last_middleware_knows_what_the_model_was_given(tmp_path: Path) -> None:
    """Rule 4.7: behind a middleware that takes the line away, nothing was shown and nothing is acknowledged."""

    @wrap_model_call
    async def forgets(request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=request.messages[:1]))

    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        model = Script("fine")
        await run(create_agent(model, middleware=[forgets, SessionAwareness(gateway, MAIN, timeout_s=20)]))
        assert model.lines() == []
        assert [watch.pending for watch in await gateway.watches(MAIN)] == [True]


async def test_a_nested_agent_is_not_shown_its_parents_notice(tmp_path: Path) -> None:
    """The session key is explicit: a child agent inside a tool call, which inherits the run's configuration, has only its own notices."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        line = await spoken_to(gateway)
        await gateway.watch(OTHER, CHILD)
        await gateway.human_message(CHILD, channel="telegram")
        inner, bare, outer = Script("done"), Script("done"), Script(call("delegate"), "done")
        child = create_agent(inner, middleware=[SessionAwareness(gateway, OTHER)])
        stranger = create_agent(bare)

        @tool
        async def delegate() -> str:
            """Delegates."""
            await run(stranger)
            return (await run(child))[-1].text

        await run(
            create_agent(outer, [delegate], middleware=[SessionAwareness(gateway, MAIN)], checkpointer=InMemorySaver()), config=THREAD
        )
        assert outer.lines() == [line]
        assert bare.lines() == []
        assert len(inner.lines()) == 1
        assert inner.lines() != [line]


def delegating(gateway: Gateway, during: list[str]) -> Any:
    @tool
    async def delegate(who: str) -> str:
        """Delegates."""
        during.append((await gateway.session_status(f"agent:main:subagent:{who}"))["status"])
        if who == "other":
            raise TimeoutError
        if who == "child":
            return str(interrupt("may I?"))
        return "done"

    return delegate


CHILDREN: dict[str, ChildKey] = {"delegate": lambda arguments: f"agent:main:subagent:{arguments['who']}"}


async def test_a_declared_tool_is_a_childs_run(tmp_path: Path) -> None:
    """Rules 1.1, 3.1: a tool's run is the child's spawn and end, it is running meanwhile, and the session watches it from then on."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.open_session(MAIN)
        during: list[str] = []
        model = Script(call("delegate", who="worker"), call("delegate", "c2", who="other"))
        agent = create_agent(model, [delegating(gateway, during)], middleware=[SessionAwareness(gateway, MAIN, children=CHILDREN)])
        with pytest.raises(TimeoutError):
            await run(agent)
        assert during == ["running", "running"]
        assert await kinds(gateway, "agent:main:subagent:worker") == ["child_spawned", "run_completed"]
        assert await kinds(gateway, OTHER) == ["child_spawned", "run_failed"]
        assert [watch.target for watch in await gateway.watches(MAIN)] == [OTHER, "agent:main:subagent:worker"]


async def test_an_interrupted_child_goes_on_as_the_same_run(tmp_path: Path) -> None:
    """Rule 1.6: while a person is asked the child does not run, and the answer ends the run that was spawned, not another."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.open_session(MAIN)
        model = Script(call("delegate", who="child"), "done")
        awareness = SessionAwareness(gateway, MAIN, children=CHILDREN)
        agent = create_agent(model, [delegating(gateway, [])], middleware=[awareness], checkpointer=InMemorySaver())
        await run(agent, config=THREAD)
        assert await kinds(gateway, CHILD) == ["child_spawned"]
        assert (await gateway.session_status(CHILD))["status"] == "idle"
        await agent.ainvoke(Command(resume="yes"), THREAD)
        assert await kinds(gateway, CHILD) == ["child_spawned", "run_completed"]
        assert [answer.text for answer in model.answers()] == ["yes"]


async def test_a_failing_child_key_harms_no_tool(tmp_path: Path) -> None:
    """A host's own function that fails, or gives no session key, loses the record and nothing else."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.open_session(MAIN)

        @tool
        async def delegate(who: str) -> str:
            """Delegates."""
            return who

        for child_key in (lambda _: "no key", lambda arguments: str(arguments["absent"])):
            model = Script(call("delegate", who="a"), "done")
            await run(create_agent(model, [delegate], middleware=[SessionAwareness(gateway, MAIN, children={"delegate": child_key})]))
            assert [answer.text for answer in model.answers()] == ["a"]
        assert (await gateway.sessions_list(with_total=True))["total"] == 1


async def test_a_tools_error_is_told_to_the_model(tmp_path: Path) -> None:
    """A wrong call is answered with a sentence, not with the end of the run; sessions_send is there only where it was asked for."""

    def dispatch(_sender: str, key: str, _text: str) -> Dispatched:
        return Dispatched(session_key=key, reply="yes")

    async with open_gateway(tmp_path / "state.db", dispatch=dispatch) as gateway:
        await gateway.open_session(MAIN)
        model = Script(call("session_status", sessionKey="agent::x"), call("sessions_send", "c2", sessionKey=CHILD, message="hi"), "done")
        await run(create_agent(model, middleware=[SessionAwareness(gateway, MAIN, send=True)]))
        wrong, sent = model.answers()
        assert (wrong.status, "agent::x" in wrong.text) == ("error", True)
        assert json.loads(sent.text) == {"status": "ok", "sessionKey": CHILD, "reply": "yes"}
        assert "sessions_send" not in [offered.name for offered in langchain_tools(gateway, MAIN)]


async def test_a_closed_gateway_ends_no_run(tmp_path: Path) -> None:
    """None raises into its host: after the gateway is gone, runs, tools and children go on without it."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)

    @tool
    async def delegate(who: str) -> str:
        """Delegates."""
        return who

    model = Script(call("session_status", sessionKey=CHILD), call("delegate", who="child"), "done")
    messages = await run(create_agent(model, [delegate], middleware=[SessionAwareness(gateway, MAIN, children=CHILDREN)]))
    assert messages[-1].text == "done"
    assert model.lines() == []


async def test_a_database_that_hangs_ends_no_run_and_loses_no_notice(tmp_path: Path) -> None:
    """Bounded: while somebody else keeps the database's lock, a run waits for its notices as long as it was told, and then goes on."""
    database = tmp_path / "state.db"
    async with open_gateway(database) as gateway, open_gateway(database):
        line = await spoken_to(gateway)
        model = Script("done", "done")
        with locked(database):
            began = time.monotonic()
            await run(create_agent(model, middleware=[SessionAwareness(gateway, MAIN, timeout_s=0.05)]))
            assert time.monotonic() - began < 3.0, "the lock is waited for during 5 s"
        await gateway.idle()
        await run(create_agent(model, middleware=[SessionAwareness(gateway, MAIN, timeout_s=10)]))
        assert line in {*model.lines(0), *model.lines(1)}


async def test_a_blocking_run_is_refused(tmp_path: Path) -> None:
    """invoke() cannot wait for a gateway on a loop, and says what to call instead."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        agent: Any = create_agent(Script("done"), middleware=[SessionAwareness(gateway, MAIN)])
        with pytest.raises(RuntimeError, match="ainvoke"):
            await asyncio.to_thread(agent.invoke, {"messages": [("user", "Go on.")]})
