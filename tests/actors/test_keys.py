"""Session keys: canonical form, refusals, and what a key tells."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kizuki.actors.errors import InvalidArgument, InvalidSessionKey
from kizuki.actors.keys import (
    agent_of,
    canonical_agent_id,
    canonical_key,
    is_qualified,
    is_subagent,
    parse_address,
    session_kind,
    watcher_address,
)
from kizuki.storage.records import Address

REFUSED = [
    "",
    "   ",
    "agent:",
    "agent:main",
    "agent:main:",
    "agent::x",
    "agent:main::x",
    "AGENT:main",
    "agent:main:x:",
    ":x",
    "global:",
    "agent:main:a b",
    "agent :main:x",
    "agent: main:x",
    "agent:main:a\u00a0b",
    "agent:main:a\tb",
    "agent:main:a\nb",
    'agent:main:a"b',
    "agent:main:\x00",
    "agent:main:a\x7fb",
    "agent:main:a\u202eb",
    "agent:main:a\u200bb",
    "agent:main:\ud800",
    "agent:main:a\u2028b",
    "agent:main:a\u2029b",
    "agent:main:" + "x" * 502,
    "x" * 1_000_000,
    None,
    5,
    b"agent:main:x",
]


@pytest.mark.parametrize(
    ("given_key", "canonical"),
    [
        ("agent:main:main", "agent:main:main"),
        ("  AGENT:Main:SubAgent:Child\n", "agent:main:subagent:Child"),
        ("agent:main:subagent:A:subagent:B", "agent:main:subagent:A:subagent:B"),
        ("agent:Ops:Telegram:Group:AbC", "agent:ops:telegram:Group:AbC"),
        ("agent:main:MAIN", "agent:main:main"),
        ("agent:main:matrix:channel:!Room:server::x", "agent:main:matrix:channel:!Room:server::x"),
        ("agent:日本:セッション", "agent:日本:セッション"),
        ("agent:main:it's", "agent:main:it's"),
        ("Global", "Global"),
        (" global ", "global"),
        ("agents:main:X", "agents:main:X"),
        ("agent:main:" + "x" * 501, "agent:main:" + "x" * 501),
        (" " * 2000 + "agent:main:x", "agent:main:x"),
    ],
)
def test_canonical_form(given_key: str, canonical: str) -> None:
    """Rule 2.2: outer space goes; the word agent, the agent id and the first word of the rest are lower-cased; the rest is kept."""
    assert canonical_key(given_key) == canonical


@pytest.mark.parametrize("key", REFUSED, ids=lambda key: repr(key)[:40])
def test_refused_keys(key: object) -> None:
    """Rule 2.3: empty parts, inner white space, quotes, control and formatting characters, too much and what is no text is refused."""
    with pytest.raises(InvalidSessionKey, match=" is not a session key: "):
        canonical_key(key)


@given(st.text() | st.builds("agent:{}:{}".format, st.text(min_size=1), st.text(min_size=1)))
@example("agent:İ:" + "x" * 500)
@example("agent:x:" + "İ" * 300)
@example("AGENT:ΑΣ:ΑΣ:x")
def test_canonicalising_twice_changes_nothing(key: str) -> None:
    """Rule 2.2: what is accepted once is accepted again, unchanged, also where lower-casing makes a text longer."""
    try:
        once = canonical_key(key)
    except InvalidSessionKey:
        return
    assert canonical_key(once) == once
    assert 1 <= len(once) <= 512


WORD = st.text(st.characters(categories=["L", "Nd", "So"]), min_size=1, max_size=20)


@given(WORD, WORD, st.text(st.characters(categories=["L", "Nd"], include_characters=":"), max_size=20))
def test_peers_keep_their_case(agent: str, word: str, peer: str) -> None:
    """Rule 2.2: everything behind the first word of the rest is kept as it is, colons included."""
    key = canonical_key(f"Agent:{agent}:{word}:{peer}x")
    assert key == f"agent:{agent.lower()}:{word.lower()}:{peer}x"


def test_an_address_is_canonical() -> None:
    """Rule 2.2: a qualified key gives its own agent id, and may be accompanied by the same one in any case."""
    expected = Address("agent:main:subagent:Child", "main")
    assert parse_address(" Agent:MAIN:Subagent:Child") == expected
    assert parse_address("agent:main:subagent:Child", " Main ") == expected


def test_an_address_with_two_agents_is_refused() -> None:
    """Rule 2.3: an agent id beside a key that names another agent is a clear error."""
    with pytest.raises(InvalidArgument, match="agent_id is 'ops': the key names the agent 'main'"):
        parse_address("agent:main:main", "ops")


def test_a_key_without_prefix_needs_an_agent() -> None:
    """Rule 2.4: a key without the prefix is an address only together with an agent id."""
    assert parse_address("global", "Main") == Address("global", "main")
    with pytest.raises(InvalidSessionKey, match="needs an agent id beside it"):
        parse_address("global")


@pytest.mark.parametrize("agent_id", ["", " ", "a:b", "a b", 'a"b', "a\x00", "a\u202e", "x" * 513, 5])
def test_refused_agent_ids(agent_id: object) -> None:
    """Rule 2.3: an agent id obeys the rules of a key's characters, and has no colon."""
    with pytest.raises(InvalidArgument, match=r"^agent_id is "):
        parse_address("global", agent_id)


@given(st.text())
def test_canonical_agent_ids_stay(agent_id: str) -> None:
    """Rule 2.2: canonicalising an agent id twice changes nothing, and it fits into a key."""
    try:
        once = canonical_agent_id(agent_id)
    except InvalidArgument:
        return
    assert canonical_agent_id(once) == once
    assert ":" not in once


def test_only_qualified_keys_can_watch() -> None:
    """Rule 2.4: a key without the prefix can never be a watcher."""
    assert watcher_address("Agent:main:Main") == Address("agent:main:main", "main")
    assert watcher_address("global") is None
    with pytest.raises(InvalidSessionKey):
        watcher_address("agent:main")


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", "main"),
        ("agent:main:subagent:a", "subagent"),
        ("agent:main:subagent:a:subagent:b", "subagent"),
        ("agent:main:subagent:a:thread:b", "subagent"),
        ("agent:main:acp:1", "acp"),
        ("agent:main:cron:daily", "cron"),
        ("agent:main:catalog:claude:ab12", "catalog"),
        ("agent:main:telegram:group:G", "group"),
        ("agent:main:slack:channel:C", "channel"),
        ("agent:main:telegram:direct:P", "direct"),
        ("agent:main:slack:channel:C:thread:17.5", "thread"),
        ("agent:main:slack:thread", "other"),
        ("agent:main:telegram:group", "other"),
        ("agent:main:anything", "other"),
        ("agent:main:mainly", "other"),
        ("global", "global"),
    ],
)
def test_the_kind_of_a_session(key: str, kind: str) -> None:
    """Rule 2.1: the key tells the kind of its session."""
    assert session_kind(key) == kind


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:subagent:a", True),
        ("agent:main:subagent:a:subagent:b", True),
        ("agent:main:subagents:a", False),
        ("agent:main:telegram:subagent:a", False),
        ("agent:subagent:main", False),
        ("agent:main:subagent", False),
        ("subagent:a", False),
    ],
)
def test_which_keys_are_sub_agents(key: str, expected: bool) -> None:
    """Rule 2.1: a sub-agent's rest starts with `subagent:`, and only that makes one."""
    assert is_subagent(key) is expected


def test_the_agent_of_a_key() -> None:
    """Rule 2.1: a qualified key names its agent, another does not."""
    assert agent_of("agent:ops:main") == "ops"
    assert agent_of("global") is None
    assert is_qualified("agent:ops:main")
    assert not is_qualified("agents:ops:main")
