"""Rules 2.1 to 2.4: session keys, as they go in and come out of a gateway."""

from __future__ import annotations

from typing import Any

import pytest

from kizuki.actors import Actor, Dispatched, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, ManualClock, UnknownSession
from tests.system.cast import CHILD, GLOBAL, MAIN, OPS, PERSON, changes, family, human, pair, positions, show, there, version
from tests.system.conftest import Opening

# -- 2.1 what there is ---------------------------------------------------------------------------------------------------------

KINDS = {
    "agent:main:main": "main",
    "agent:main:subagent:a": "subagent",
    "agent:main:subagent:a:subagent:b": "subagent",
    "agent:codex:acp:1": "acp",
    "agent:main:cron:daily": "cron",
    "agent:main:telegram:group:-100123": "group",
    "agent:main:discord:channel:42": "channel",
    "agent:main:telegram:group:1:thread:7": "thread",
    "agent:main:catalog:claude:0123abcd": "catalog",
}


@pytest.mark.parametrize("key", KINDS)
async def test_every_kind_of_key_lives(gateway: Gateway, key: str) -> None:
    """Rule 2.1: a session of every kind of key can be opened, watched, written to and read."""
    session = await gateway.open_session(key)
    assert (session.key, session.agent_id, session.kind) == (key, key.split(":")[1], KINDS[key])
    await gateway.watch("agent:lead:main", key)
    await human(gateway, key)
    assert len((await changes(gateway, key))["events"]) == 1
    assert len(await gateway.pending("agent:lead:main")) == 1


async def test_nested_subagent_watches_and_is_never_woken(opening: Opening, clock: ManualClock) -> None:
    """Rules 2.1, 4.9: a sub-agent's sub-agent is a sub-agent, too."""
    woken: list[str] = []
    nested = "agent:main:subagent:a:subagent:b"
    async with opening(wake=lambda key, reasons: woken.append(key)) as gateway:
        await gateway.spawn("agent:main:subagent:a", nested, run_id="r")
        await gateway.watch(nested, OPS)
        await human(gateway, nested)
        await human(gateway, OPS)
        await clock.advance(120)
        assert len(await gateway.pending("agent:main:subagent:a")) == 1
        assert len(await gateway.pending(nested)) == 1
    assert woken == []


# -- 2.2 canonical form -------------------------------------------------------------------------------------------------------

CANONICAL = {
    "  agent:main:main\n": "agent:main:main",
    "AGENT:Main:MAIN": "agent:main:main",
    "Agent:OPS:Telegram:Group:AbC": "agent:ops:telegram:Group:AbC",
    "agent:main:SubAgent:Child": "agent:main:subagent:Child",
    "agent:main:whatsapp:group:X:Thread:Y": "agent:main:whatsapp:group:X:Thread:Y",
    "agent:main:slack:channel:C0:B:D:": None,
    "agent:main:matrix:channel:!Room:Example.org": "agent:main:matrix:channel:!Room:Example.org",
    "agent:main:x::Y": "agent:main:x::Y",
    "\u3000agent:main:main\u00a0": "agent:main:main",
}


@pytest.mark.parametrize(("given", "canonical"), [(given, kept) for given, kept in CANONICAL.items() if kept])
async def test_canonical_form(gateway: Gateway, given: str, canonical: str) -> None:
    """Rule 2.2: trimmed, the first three parts lower-cased, the rest as it is; and the same again."""
    assert (await gateway.open_session(given)).key == canonical
    assert (await gateway.open_session(canonical)).key == canonical
    assert len((await gateway.sessions_list())["sessions"]) == 1


async def test_peer_ids_are_case_sensitive(gateway: Gateway) -> None:
    """Rule 2.2: keys that differ in the case of a later part are different sessions."""
    one, two = "agent:main:whatsapp:group:ABC", "agent:main:whatsapp:group:abc"
    await gateway.compacted(one, operation_id="c")
    await gateway.open_session(two)
    assert (await version(gateway, one), await version(gateway, two)) == (1, 0)


async def test_key_without_prefix_keeps_its_case(gateway: Gateway) -> None:
    """Rule 2.2: without the prefix nothing but the outer white space changes."""
    assert (await gateway.open_session(" Global ", agent_id="Main ")).key == "Global"
    assert (await gateway.open_session("Global", agent_id="main")).agent_id == "main"
    assert len((await gateway.sessions_list())["sessions"]) == 1


@pytest.mark.parametrize("spelt", [" Agent:MAIN:SUBAGENT:child", "agent:main:Subagent:child\t"])
async def test_every_call_canonicalises(gateway: Gateway, spelt: str) -> None:
    """Rule 2.2: however a key is spelt, every call means the same session."""
    main = " AGENT:Main:Main "
    await gateway.spawn(main, spelt, run_id="r1")
    await gateway.human_message(spelt, channel="c")
    await gateway.goal_changed(spelt, "created", actor=PERSON)
    await gateway.run_ended(spelt, run_id="r1", outcome="ok")
    await gateway.compacted(spelt, operation_id="c")
    await gateway.run_started(spelt, "r2")
    assert (await gateway.session_status(CHILD))["status"] == "running"
    await gateway.run_finished(spelt, "r2")
    assert [watch.target for watch in await gateway.watches(main)] == [CHILD]
    assert [(notice.watcher, notice.target) for notice in await gateway.pending(main)] == [(MAIN, CHILD)]
    assert await gateway.acknowledge(main, await gateway.pending(MAIN)) == 1
    async with gateway.turn(main) as turn:
        assert [notice.watcher for notice in turn.notices] == [MAIN]
    assert await version(gateway, spelt) == 5
    assert [row["sessionKey"] for row in (await gateway.sessions_list(parent=main))["sessions"]] == [CHILD]
    assert await gateway.unwatch(main, spelt) is True
    assert (await gateway.reset_session(spelt)).key == CHILD
    assert await gateway.delete_session(spelt) is True


# -- 2.3 what is refused --------------------------------------------------------------------------------------------------------

REFUSED: list[Any] = [
    "",
    "   ",
    "agent",
    "agent:",
    "agent:main",
    "agent:main:",
    "agent::x",
    "agent:main::x",
    "agent: main:main",
    "agent:main:ma in",
    "agent:main:a\tb",
    "agent:main:a\nb",
    "agent:main:a\u00a0b",
    'agent:main:"x"',
    "agent:main:a\x00b",
    "agent:main:a\x7fb",
    "agent:main:a\u200bb",
    "agent:main:a\u202eb",
    "agent:main:a\u2028b",
    "agent:main:a\u2029b",
    "agent:main:a\ud800b",
    "agent:main:\U000e0001",
    "agent:main:" + "x" * 502,
    "x" * 513,
    None,
    5,
    b"agent:main:main",
    ["agent:main:main"],
]


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: ascii(key)[:30])
async def test_refused_key(gateway: Gateway, key: Any) -> None:
    """Rule 2.3: what is no key is refused, with an error that is one short line and says what is allowed."""
    if key != "agent":  # a key without prefix, and so far a good one: it needs an agent id
        with pytest.raises(InvalidSessionKey) as refusal:
            await gateway.open_session(key, agent_id="main")
        message = str(refusal.value)
        assert "it must" in message
        assert message.isprintable()
        assert len(message) < 300
    with pytest.raises(InvalidSessionKey):
        await gateway.watch(key, MAIN) if key != "agent" else await gateway.open_session(key)
    assert (await gateway.sessions_list())["sessions"] == []


async def test_longest_key(gateway: Gateway) -> None:
    """Rule 2.3: 512 characters are still a key."""
    key = "agent:main:" + "x" * 501
    assert (await gateway.open_session(key)).key == key


BAD_LINES: list[Any] = ["a\nb", "a\rb", "a\x00b", "a\x1bb", "a\u2028b", "a\u2029b", "a\u202eb", "a\ud800b", "x" * 513, 5, b"x"]


@pytest.mark.parametrize("bad", BAD_LINES, ids=lambda bad: ascii(bad)[:20])
async def test_refused_ids_and_labels(gateway: Gateway, bad: Any) -> None:
    """Rule 2.3: run, actor and operation ids and labels are one line of at most 512 characters, else `InvalidArgument`."""
    for call in (
        lambda: gateway.open_session(MAIN, label=bad),
        lambda: gateway.open_session(MAIN, session_id=bad),
        lambda: gateway.spawn(MAIN, CHILD, run_id=bad),
        lambda: gateway.human_message(CHILD, channel="c", actor_id=bad),
        lambda: gateway.human_message(CHILD, channel="c", run_id=bad),
        lambda: gateway.run_ended(CHILD, run_id=bad, outcome="ok"),
        lambda: gateway.compacted(CHILD, operation_id=bad),
        lambda: gateway.run_started(CHILD, bad),
        lambda: gateway.run_finished(CHILD, bad),
    ):
        with pytest.raises(InvalidArgument):
            await call()
    with pytest.raises(InvalidArgument):
        Actor.human(bad)


async def test_longest_ids(gateway: Gateway) -> None:
    """Rule 2.3: ids and labels of 512 characters are good, with spaces and quotes inside."""
    long = ('a "b" ' * 100)[:512].replace(" ", "_", 1)[:511] + "x"
    assert (await gateway.open_session(MAIN, label=long)).label == long
    assert there(await gateway.run_ended(CHILD, run_id=long, outcome="ok")).run_id == long


async def test_nothing_unescaped_reaches_a_prompt(gateway: Gateway) -> None:
    """Rule 2.3: whatever a key holds that is allowed, its notice is one line with exactly the quotes of the template."""
    key = "agent:main:x:'`$(rm)\\n%s{}<b>&amp;;--日本語🎉"
    await gateway.watch(MAIN, key)
    await human(gateway, key)
    (line,) = await show(gateway)
    assert line.count('"') == 4
    assert line.count(key) == 2
    assert line.isprintable()


# -- 2.4 keys without prefix ---------------------------------------------------------------------------------------------------


async def test_needs_an_agent(gateway: Gateway) -> None:
    """Rule 2.4: a key without the prefix may be a target only when an agent id is given with it."""
    for call in (
        lambda: gateway.open_session(GLOBAL),
        lambda: gateway.watch(MAIN, GLOBAL),
        lambda: gateway.unwatch(MAIN, GLOBAL),
        lambda: gateway.session_status(GLOBAL),
        lambda: gateway.compacted(GLOBAL, operation_id="c"),
        lambda: gateway.reset_session(GLOBAL),
        lambda: gateway.delete_session(GLOBAL),
        lambda: gateway.spawn(MAIN, GLOBAL, run_id="r"),
        lambda: gateway.spawn(GLOBAL, CHILD, run_id="r"),
    ):
        with pytest.raises(InvalidSessionKey, match="agent id"):
            await call()


@pytest.mark.parametrize("agent_id", ["", " ", "a:b", "a b", 'a"b', "a\nb", "x" * 513, 5])
async def test_bad_agent_id(gateway: Gateway, agent_id: Any) -> None:
    """Rule 2.4: an agent id is one part of a key, and what cannot be one is refused."""
    with pytest.raises(InvalidArgument):
        await gateway.open_session(GLOBAL, agent_id=agent_id)


async def test_contradicting_agent_id(gateway: Gateway) -> None:
    """Rule 2.4: an agent id that contradicts the key's own is refused; the same one is allowed."""
    with pytest.raises(InvalidArgument):
        await gateway.open_session(MAIN, agent_id="ops")
    assert (await gateway.open_session(MAIN, agent_id=" MAIN")).agent_id == "main"


async def test_kept_per_agent(gateway: Gateway) -> None:
    """Rule 2.4: head, events and cursors of one key are kept per agent."""
    await gateway.watch(MAIN, GLOBAL, target_agent_id="main")
    await gateway.watch(OPS, GLOBAL, target_agent_id="ops")
    one = await human(gateway, GLOBAL, agent_id="main")
    assert (await version(gateway, GLOBAL, agent_id="main"), await version(gateway, GLOBAL, agent_id="ops")) == (one.sequence, 0)
    assert len(await gateway.pending(MAIN)) == 1
    assert await gateway.pending(OPS) == []
    assert (await gateway.session_status(GLOBAL, agent_id="ops", changes_since=0))["stateChanges"]["events"] == []


async def test_one_watcher_both_agents(gateway: Gateway) -> None:
    """Rule 2.4: a watcher can hold a cursor on the key under each agent, and tells the notices apart."""
    for agent in ("main", "ops"):
        await gateway.watch(MAIN, GLOBAL, target_agent_id=agent)
    await human(gateway, GLOBAL, agent_id="ops")
    await human(gateway, GLOBAL, agent_id="main")
    async with gateway.turn(MAIN) as turn:
        assert [notice.target_agent_id for notice in turn.notices] == ["ops", "main"]
        assert len(set(turn.prompt_lines())) == 2


async def test_acknowledging_one_agent_s(gateway: Gateway) -> None:
    """Rule 2.4: acknowledging the notice of one agent's session leaves the other's pending."""
    for agent in ("main", "ops"):
        await gateway.watch(MAIN, GLOBAL, target_agent_id=agent)
        await human(gateway, GLOBAL, agent_id=agent)
    first, second = await gateway.pending(MAIN)
    assert await gateway.acknowledge(MAIN, [second]) == 1
    assert await gateway.pending(MAIN) == [first]


async def test_deleting_one_agent_s(gateway: Gateway) -> None:
    """Rules 2.4, 3.5: deleting one agent's session leaves the other's, with its events and cursors."""
    for agent in ("main", "ops"):
        await gateway.watch(MAIN, GLOBAL, target_agent_id=agent)
        await human(gateway, GLOBAL, agent_id=agent)
    assert await gateway.delete_session(GLOBAL, agent_id="main") is True
    assert [watch.target_agent_id for watch in await gateway.watches(MAIN)] == ["ops"]
    assert [notice.target_agent_id for notice in await gateway.pending(MAIN)] == ["ops"]
    assert (await gateway.session_status(GLOBAL, agent_id="ops", changes_since=0))["stateChanges"]["historyGap"] is False


async def test_never_a_watcher(gateway: Gateway) -> None:
    """Rule 2.4: a session without prefix can never be a watcher."""
    await gateway.open_session(GLOBAL, agent_id="main")
    assert await gateway.watch(GLOBAL, CHILD) is False
    assert await gateway.unwatch(GLOBAL, CHILD) is False
    assert await gateway.watches(GLOBAL) == []


async def test_has_the_log_and_no_notices(gateway: Gateway) -> None:
    """Rule 2.4: a session without prefix has its log, `changesSince`, and turns without notices."""
    await gateway.open_session(GLOBAL, agent_id="main")
    await gateway.compacted(GLOBAL, operation_id="c", agent_id="main")
    delta = (await gateway.session_status(GLOBAL, agent_id="main", changes_since=0))["stateChanges"]
    assert len(delta["events"]) == 1
    async with gateway.turn(GLOBAL) as turn:
        assert (turn.notices, turn.remaining, turn.prompt_lines()) == ((), 0, [])
        await turn.acknowledge()
    assert await gateway.drain(GLOBAL) == []
    assert await gateway.pending(GLOBAL) == []


@pytest.mark.parametrize("call", ["turn", "drain", "pending"])
async def test_unknown_without_prefix(gateway: Gateway, call: str) -> None:
    """Rule 2.4: a key without prefix under which no agent has a session is unknown."""
    with pytest.raises(UnknownSession):
        if call == "turn":
            async with gateway.turn(GLOBAL):
                pass
        else:
            await getattr(gateway, call)(GLOBAL)


async def test_parent_without_prefix(gateway: Gateway) -> None:
    """Rules 2.4, 3.1: a parent without prefix has children, their lineage and their log, and no cursor."""
    event = there(await gateway.spawn(GLOBAL, CHILD, run_id="r", parent_agent_id="main"))
    assert (event.actor_type, event.actor_id) == ("agent", GLOBAL)
    assert (await gateway.open_session(CHILD)).parent == GLOBAL
    assert await gateway.watches(GLOBAL) == []
    assert (await human(gateway)).sequence == event.sequence + 1
    assert (await gateway.statistics()).notices_opened == 0


async def test_child_without_prefix(gateway: Gateway) -> None:
    """Rule 2.4: a child without prefix is a target of its parent, under the agent that was given."""
    await gateway.spawn(MAIN, GLOBAL, run_id="r", agent_id="Ops")
    await human(gateway, GLOBAL, agent_id="ops")
    (notice,) = await gateway.pending(MAIN)
    assert (notice.target, notice.target_agent_id) == (GLOBAL, "ops")


@pytest.mark.parametrize(("language", "quoted"), [("en", "session_status sessionKey "), ("ja", "session_status sessionKey ")])
async def test_notice_names_the_agent(opening: Opening, language: Any, quoted: str) -> None:
    """Rules 2.4, 4.2: in the notice of a target without prefix the key is followed by the agent id."""
    async with opening(config=GatewayConfig(language=language)) as gateway:
        await gateway.watch(MAIN, GLOBAL, target_agent_id="ops")
        await human(gateway, GLOBAL, agent_id="ops")
        (line,) = await show(gateway)
    assert f'{quoted}"global" agentId "ops" changesSince 0.' in line


async def test_two_agents_on_one_key_do_not_suppress_each_other(gateway: Gateway) -> None:
    """Rules 2.4, 4.6: an agent whose key has no prefix is nobody's self, so whoever watches is told."""
    await gateway.watch(MAIN, GLOBAL, target_agent_id="ops")
    await gateway.goal_changed(GLOBAL, "updated", actor=Actor.agent(GLOBAL), agent_id="ops")
    assert len(await gateway.pending(MAIN)) == 1


async def test_family_is_qualified(gateway: Gateway) -> None:
    """Rule 2.1: the agent id of a qualified key is the one in it."""
    await family(gateway)
    watch = await pair(gateway)
    assert watch is not None
    assert watch.target_agent_id == "main"
    assert await positions(gateway) == (1, 1, 1)


async def test_send_to_a_key_without_prefix(opening: Opening) -> None:
    """Rules 2.4, 3.3: a message that a session without prefix received is delivered; it cannot be watched without its agent."""
    async with opening(dispatch=lambda sender, key, message: Dispatched(key, "r")) as gateway:
        answer = await gateway.sessions_send(MAIN, GLOBAL, "hello", watch=True)
    assert (answer["status"], answer["sessionKey"], answer["watched"]) == ("accepted", GLOBAL, False)
