"""The LangGraph checkpointer on real graphs: what a person edits by hand is recorded, and saving stays what it was."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="needs kizuki[langchain]")

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from kizuki.actors import Gateway, open_gateway
from kizuki.actors.hosting.integrations.langgraph import NoticingCheckpointer
from tests.hosting.cast import CHILD, MAIN


def _joined(left: str, right: str) -> str:
    return left + right


class State(TypedDict):
    """One text that nodes and people add to."""

    text: Annotated[str, _joined]


def config(thread_id: str = "child") -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def session_of(given: RunnableConfig) -> str | None:
    name = given["configurable"]["thread_id"]
    return None if name == "not ours" else f"agent:main:subagent:{name}"


def graph(saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("work", lambda _state: {"text": "worked "})
    builder.add_edge(START, "work")
    builder.add_edge("work", END)
    return builder.compile(checkpointer=saver)


async def watched(gateway: Gateway) -> None:
    await gateway.open_session(MAIN)
    await gateway.watch(MAIN, CHILD)


async def events(gateway: Gateway) -> list[tuple[str, str, str]]:
    found = (await gateway.session_status(CHILD, changes_since=0))["stateChanges"]["events"]
    return [(event["kind"], event["actorType"], event["summary"]) for event in found]


EDIT = ("human_direct_message", "human", "human message via langgraph")


async def test_a_hand_edit_is_a_human_message(tmp_path: Path) -> None:
    """Rule 1.1: runs record nothing, an edit of the thread is one human message of its session, and the watcher is told of it."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await watched(gateway)
        app = graph(NoticingCheckpointer(InMemorySaver(), gateway, session_of))
        await app.ainvoke({"text": "begin "}, config())
        assert await events(gateway) == []
        await app.aupdate_state(config(), {"text": "edited "})
        assert await events(gateway) == [EDIT]
        assert len(await gateway.pending(MAIN)) == 1
        assert (await app.aget_state(config())).values["text"] == "begin worked edited "


async def test_the_same_checkpoint_is_one_edit(tmp_path: Path) -> None:
    """Rule 1.6: a checkpoint that is saved again, as by a retry, is not another edit."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await watched(gateway)
        saver = NoticingCheckpointer(InMemorySaver(), gateway, session_of)
        app = graph(saver)
        await app.aupdate_state(config(), {"text": "edited "})
        saved = await saver.aget_tuple(config())
        assert saved is not None
        parent: RunnableConfig = {"configurable": {"thread_id": "child", "checkpoint_ns": ""}}
        await saver.aput(parent, saved.checkpoint, saved.metadata, {})
        assert await events(gateway) == [EDIT]


async def test_edits_from_other_threads_and_from_the_loop_itself_are_recorded(tmp_path: Path) -> None:
    """The synchronous interface records in the background, wherever it is called, and blocks nobody."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await watched(gateway)
        saver = NoticingCheckpointer(InMemorySaver(), gateway, session_of)
        app = graph(saver)
        app.update_state(config(), {"text": "on the loop "})
        await saver.recorded()
        await asyncio.to_thread(app.update_state, config(), {"text": "in a thread "})
        await saver.recorded()
        elsewhere = threading.Thread(target=lambda: asyncio.run(app.aupdate_state(config(), {"text": "on another loop "})))
        elsewhere.start()
        await asyncio.to_thread(elsewhere.join)
        await saver.recorded()
        assert await events(gateway) == [EDIT, EDIT, EDIT]


async def test_the_hosts_function_decides_whose_edit_it_is(tmp_path: Path) -> None:
    """None is no session of ours; a function that raises or gives no key is logged, and the edit is saved all the same."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await watched(gateway)

        def raises(given: RunnableConfig) -> str:
            raise KeyError(given["configurable"]["thread_id"])

        for chosen, thread_id in ((session_of, "not ours"), (raises, "child"), (lambda _config: "no key", "child")):
            app = graph(NoticingCheckpointer(InMemorySaver(), gateway, chosen))
            await app.aupdate_state(config(thread_id), {"text": "edited "})
            assert (await app.aget_state(config(thread_id))).values["text"] == "edited "
        assert await events(gateway) == []


async def test_a_closed_gateway_fails_no_edit(tmp_path: Path) -> None:
    """None raises into its host: after the gateway is gone, edits are saved as before."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        saver = NoticingCheckpointer(InMemorySaver(), gateway, session_of)
    app = graph(saver)
    await app.aupdate_state(config(), {"text": "edited "})
    app.update_state(config(), {"text": "again "})
    await saver.recorded()
    assert (await app.aget_state(config())).values["text"] == "edited again "


async def test_a_loop_that_is_gone_fails_no_edit(tmp_path: Path) -> None:
    """A process that goes on after its gateway's loop was closed saves its edits."""

    async def make() -> NoticingCheckpointer:
        async with open_gateway(tmp_path / "state.db") as gateway:
            return NoticingCheckpointer(InMemorySaver(), gateway, session_of)

    saver = await asyncio.to_thread(lambda: asyncio.run(make()))
    app = graph(saver)
    app.update_state(config(), {"text": "edited "})
    assert app.get_state(config()).values["text"] == "edited "


async def test_everything_else_is_the_other_checkpointers(tmp_path: Path) -> None:
    """Reading, listing and deleting answer as the wrapped checkpointer does, in both interfaces."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        plain = InMemorySaver()
        saver = NoticingCheckpointer(plain, gateway, session_of)
        app = graph(saver)
        await app.ainvoke({"text": "begin "}, config())
        assert saver.get_tuple(config()) == await saver.aget_tuple(config()) == plain.get_tuple(config())
        assert list(saver.list(config())) == [found async for found in saver.alist(config())] == list(plain.list(config()))
        assert isinstance(saver.get_next_version(None, None), str), "this one's versions are texts"
        assert saver.config_specs == plain.config_specs
        assert saver.get_delta_channel_history(config=config(), channels=["text"]) == await saver.aget_delta_channel_history(
            config=config(), channels=["text"]
        )
        saver.delete_thread("child")
        assert saver.get_tuple(config()) is None
        app.invoke({"text": "begin "}, config())
        await saver.adelete_thread("child")
        assert plain.get_tuple(config()) is None


def test_every_public_method_of_a_checkpointer_is_passed_on() -> None:
    """A method of the SDK's checkpointers that the wrapper does not know of would answer for the wrapper, which saves nothing."""
    from langgraph.checkpoint.base import BaseCheckpointSaver

    built_on_others = {"get", "aget", "serde"}
    public = {name for name in vars(BaseCheckpointSaver) if not name.startswith("_")} - built_on_others
    assert public <= set(vars(NoticingCheckpointer))
