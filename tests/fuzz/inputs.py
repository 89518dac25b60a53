"""What is typed, configured or sent: keys, settings, hook events, and what nodes say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kizuki.actors import keys
from kizuki.actors.drafts import draft
from kizuki.actors.errors import InvalidArgument, InvalidSessionKey
from kizuki.actors.hosting import claude_hook, settings
from kizuki.actors.hosting.claude_hook import answer, heard
from kizuki.actors.hosting.exits import CommandFailed
from kizuki.actors.hosting.settings import load_settings
from kizuki.actors.identifiers import IDENTIFIER_MAX
from kizuki.actors.keys import agent_of, canonical_agent_id, canonical_key, is_subagent, parse_address, session_kind, watcher_address
from kizuki.actors.upstream import catalog
from kizuki.actors.upstream.answers import outcomes_of, start_of
from kizuki.actors.upstream.files.marker import FileMarker
from kizuki.actors.upstream.opencode.catalog import SessionMarker
from kizuki.actors.upstream.remote import wire
from kizuki.actors.upstream.remote.wire import WireError
from kizuki.actors.upstream.thread_key import thread_key
from kizuki.storage.records import Address, Cursor, Positions
from tests.fuzz.draws import Draws, words_of
from tests.fuzz.places import scratch

NOW = 1_793_620_800_000
KEY_WORDS = (*words_of(keys), "agent:main:main", "agent:main:subagent:a", "AGENT:", "\u0130", "\u200b", "\u2028", " ", '"', ":", "\ud800")
SETTINGS_WORDS = (*words_of(settings), "db", "language", "notices_max", "retention_days", "true", "ja", "0", "1e400", "nan", "-1")
WIRE_WORDS = (*words_of(wire, catalog), "thread", "marker", "compacted", "child_spawned", "run_ended", "ok")
MARKER = {
    "file": {"inode": 1, "position": 0, "head_bytes": 0, "head_hash": "", "tail_hash": "", "generation": 1},
    "children": ["c"],
}
SESSION_MARKER = {"inode": 1, "created_at_ms": 0, "seen": ["s"], "children": [], "goal": "", "generation": 1}
ACTIVITY = {
    "type": "activity",
    "marker": MARKER,
    "humanTurns": 1,
    "occurredAtMs": NOW,
    "accountedIds": ["a"],
    "happenings": [["compacted", "c", NOW, ""], ["run_ended", "r", None, "ok"]],
    "restarted": None,
    "more": False,
}
PROBE = {
    "sessionKey": "agent:main:main",
    "agentId": "main",
    "thread": "t",
    "source": "/x",
    "marker": MARKER,
    "adoptedAtMs": NOW,
    "ownDigests": [["a", "b"]],
    "accountedIds": ["a"],
}
THREAD = {"thread": "t", "source": "/x", "updatedAtMs": NOW, "title": None, "parent": "p"}
HOOK_EVENTS: tuple[Any, ...] = (
    {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "rename the flag", "source": "user"},
    {"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"},
    {"hook_event_name": "PostToolUse", "session_id": "s", "agent_id": "a"},
    {"hook_event_name": "PreCompact", "session_id": "s", "trigger": "auto"},
    {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a", "agent_transcript_path": "/x/agent-1.jsonl"},
    {"hook_event_name": "SubagentStop", "session_id": "s", "agent_id": "agent-a"},
)


def session_keys(data: bytes) -> None:
    """Any text as a key and an agent id: refused with the errors declared, or brought to a form that is its own, is one word of at most 512
    characters, and can stand in a prompt."""
    draws = Draws(data, KEY_WORDS)
    key, agent = "".join(draws.text() for _ in range(1 + draws.below(6))), draws.text() if draws.chance(3) else None
    try:
        address = parse_address(key, agent)
    except (InvalidArgument, InvalidSessionKey) as error:
        assert str(error)  # noqa: PT017 - a refusal says why
        return
    assert parse_address(address.session_key, address.agent_id) == address
    assert canonical_key(address.session_key) == address.session_key == canonical_key(f" {address.session_key}\n")
    assert canonical_agent_id(address.agent_id) == address.agent_id
    for text in address:
        assert 0 < len(text) <= IDENTIFIER_MAX
        assert text.isprintable() or not any(map(str.isspace, text))
        assert not set(text) & set('"\n\r\t \u2028\u2029\u200b\u202e\x00')
        text.encode()
    assert session_kind(address.session_key)
    watcher = watcher_address(key)
    assert (watcher is None) == (agent_of(address.session_key) is None)
    assert watcher is None or (watcher == address and (session_kind(watcher.session_key) == "subagent") == is_subagent(watcher.session_key))


def thread_keys(data: bytes) -> None:
    """Any thread gives a key that is canonical, and no other thread the same."""
    draws = Draws(data, KEY_WORDS)
    one, other = (tuple(draws.text() for _ in range(2)) for _ in range(2))
    first, second = (thread_key("main", "claude", host, thread) for host, thread in (one, other))
    assert canonical_key(first) == first
    assert "\0" in "".join(one + other) or (first == second) == (one == other)


def settings_file(data: bytes) -> None:
    """Any bytes as a settings file, and any variables: settings, or a usage error that names the source."""
    draws = Draws(data, SETTINGS_WORDS)
    environment = {f"KIZUKI_{draws.pick(SETTINGS_WORDS).upper()}": draws.text() for _ in range(draws.below(4))}
    path = scratch() / "kizuki.toml"
    path.write_bytes(_toml(draws))
    try:
        loaded = load_settings({}, path, environment)
    except CommandFailed as error:
        assert "KIZUKI_" in str(error) or "kizuki.toml" in str(error)  # noqa: PT017
        return
    assert loaded.db


def _toml(draws: Draws) -> bytes:
    if draws.chance(2):
        return draws.take(draws.left())
    values = (json.dumps(draws.json()) if draws.chance(2) else draws.text() for _ in range(4))
    return "".join(f"{draws.text()} = {value}\n" for value in values).encode("utf-8", "surrogateescape")


def hook_event(data: bytes) -> None:
    """Any JSON as a hook event: nothing to do with us, refused, or reports that can be recorded and an answer that is JSON."""
    draws = Draws(data, (*words_of(claude_hook), "source", "sdk-cli", "agent-", "/x/agent-.jsonl"))
    event = draws.like(HOOK_EVENTS)
    try:
        said = heard(event, draws.pick(("main", "Main ", "", "a:b")), draws.pick(("cli", "sdk-py")), NOW)
    except (ValueError, InvalidArgument):
        return
    if said is None:
        return
    for address, report in said.reports:
        write = draft(address, report, NOW)
        assert write.target == address
        assert len(write.summary.splitlines()) == 1
        assert len(write.summary) <= 200
    target = Address(draws.pick(("agent:main:main", "global", "agent:main:'; rm -rf")), "main")
    text, told = answer(said, [Cursor("agent:main:main", target, Positions(1, 2, 2))] * draws.below(200), "/x'y/state.db", "en")
    assert set(json.loads(text)) == {"hookSpecificOutput"}
    assert len(text) < 10_000 or not told


def remote_answers(data: bytes) -> None:
    """Any JSON from a node or a gateway: refused with a `WireError`, or a value that goes over the wire and comes back the same."""
    draws = Draws(data, WIRE_WORDS)
    which: int = draws.below(4)
    _check_wire(*_WIRES[which], draws.like(_EXAMPLES[which]))


def _check_wire(read: Callable[[object], Any], written: Callable[[Any], Any], value: object) -> None:
    try:
        found = read(value)
    except WireError as error:
        assert str(error)  # noqa: PT017
        return
    again = json.loads(json.dumps(written(found)))
    assert repr(written(read(again))) == repr(written(found))


def _checked_outcome(value: object) -> catalog.Outcome:
    found = wire.outcome_from_json(value)
    (checked,) = outcomes_of([found], 1)
    assert (checked == found or repr(checked) == repr(found)) or isinstance(checked, catalog.Failed | catalog.Activity | catalog.Nothing)
    return found


def _probe(value: object) -> catalog.Probe:
    return wire.probe_from_json(value, "local")


def _probe_back(probe: catalog.Probe) -> Any:
    """Texts go out as digests, and digests of digests come back."""
    told = dict(wire.probe_to_json(probe))
    return told | {"ownDigests": []} if len(probe.own_texts) > 10 else told


_WIRES: tuple[tuple[Callable[[object], Any], Callable[[Any], Any]], ...] = (
    (_checked_outcome, wire.outcome_to_json),
    (_probe, _probe_back),
    (lambda value: wire.thread_from_json(value, "box"), wire.thread_to_json),
    (wire.start_from_json, wire.start_to_json),
)
_EXAMPLES: tuple[tuple[Any, ...], ...] = (
    (ACTIVITY, {"type": "nothing", "marker": MARKER}, {"type": "failed", "reason": "x"}, {"type": "missing"}),
    (PROBE,),
    (THREAD,),
    ({"source": "/x", "marker": MARKER},),
)


def markers(data: bytes) -> None:
    """Any JSON object as a marker: refused with a `ValueError`, or one that is written as it was read."""
    draws = Draws(data, WIRE_WORDS)
    value = draws.like((MARKER, SESSION_MARKER))
    if not isinstance(value, dict):
        return
    for read in (FileMarker.from_json, SessionMarker.from_json):
        try:
            marker = read(value)
        except ValueError:
            continue
        assert read(json.loads(json.dumps(marker.to_json()))) == marker
        assert start_of(catalog.Start("/x", marker.to_json()))
