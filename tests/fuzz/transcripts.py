"""The readers of transcripts: any rows, and any bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kizuki.actors.upstream.files.follower import Follower
from kizuki.actors.upstream.files.parsing import values_on
from kizuki.actors.upstream.formats import claude, codex, contents, fields, gemini, opencode, pi
from kizuki.actors.upstream.formats.formats import CLAUDE, CODEX, GEMINI, PI, Format
from kizuki.actors.upstream.formats.opencode import SessionReader
from kizuki.actors.upstream.formats.recognise import recognise
from kizuki.actors.upstream.formats.rows import Classified, RowClass
from kizuki.actors.upstream.formats.scanning import reader_at, scan_whole_file
from kizuki.actors.upstream.formats.tables import Reader
from tests.fuzz.draws import Draws, words_of
from tests.fuzz.places import scratch
from tests.fuzz.turns import NEVER_HUMAN

NOON, BEFORE = "2026-11-02T12:00:00.000Z", "2026-11-02T11:00:00.000Z"
NOON_MS = 1_793_620_800_000
SHAPE_MAX = 1_000
ROWS_MAX = 12

CLAUDE_ROWS: tuple[Any, ...] = (
    {
        "type": "user",
        "uuid": "a",
        "timestamp": NOON,
        "origin": {"kind": "human"},
        "promptSource": "typed",
        "message": {"content": "rename"},
    },
    {
        "type": "user",
        "uuid": "b",
        "parentUuid": "a",
        "timestamp": NOON,
        "message": {"role": "user", "content": [{"type": "text", "text": "x"}]},
    },
    {"type": "user", "uuid": "c", "message": {"content": "<command-name>/init</command-name><command-args>x</command-args>"}},
    {"type": "user", "uuid": "d", "parentUuid": "c", "isMeta": True, "message": {"content": "Please analyse"}},
    {"type": "user", "uuid": "e", "isSidechain": True, "agentId": "1", "teamName": "t", "message": {"content": "go"}},
    {"type": "user", "uuid": "f", "toolUseResult": {}, "message": {"content": [{"type": "tool_result", "content": "ok"}]}},
    {"type": "user", "uuid": "g", "forkedFrom": {"sessionId": "s"}, "origin": {"kind": "peer"}, "message": {"content": "x"}},
    {"type": "user", "uuid": "h", "isCompactSummary": True, "entrypoint": "sdk-py", "timestamp": BEFORE, "message": {"content": "x"}},
    {"type": "attachment", "uuid": "i", "attachment": {"type": "queued_command", "prompt": "and", "origin": {"kind": "human"}}},
    {"type": "system", "subtype": "compact_boundary", "uuid": "j"},
    {"type": "user", "promptSource": "sdk", "message": {"content": [{"type": "image"}]}},
)
CODEX_ROWS: tuple[Any, ...] = (
    {"timestamp": NOON, "type": "session_meta", "payload": {"id": "t", "timestamp": NOON, "source": "cli", "thread_source": "user"}},
    {
        "timestamp": NOON,
        "type": "session_meta",
        "payload": {"id": "t", "forked_from_id": "o", "source": {"subagent": {"thread_spawn": {}}}},
    },
    {
        "timestamp": NOON,
        "type": "event_msg",
        "payload": {"type": "user_message", "message": "rename", "images": [], "local_images": ["/x"]},
    },
    {
        "timestamp": NOON,
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "turn_id": "r",
            "item": {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "x"}]},
        },
    },
    {
        "timestamp": BEFORE,
        "type": "response_item",
        "metadata": {"inherited_user_message": False},
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "rename"}],
            "internal_chat_message_metadata_passthrough": {"turn_id": "r", "content_item_kinds": ["user.text"]},
        },
    },
    {"timestamp": NOON, "type": "compacted", "payload": {"message": "", "replacement_history": []}},
    {"timestamp": NOON, "type": "event_msg", "payload": {"type": "task_complete", "turn_id": "r"}},
    {"timestamp": NOON, "type": "event_msg", "payload": {"type": "thread_goal_updated", "goal": {"objective": "x", "status": "active"}}},
)
PI_ROWS: tuple[Any, ...] = (
    {"type": "session", "version": 3, "id": "p", "timestamp": NOON, "cwd": "/w"},
    {"type": "session", "version": 3, "id": "p", "timestamp": NOON, "parentSession": "/x"},
    {"type": "message", "id": "a", "parentId": None, "timestamp": NOON, "message": {"role": "user", "content": "x", "timestamp": NOON_MS}},
    {
        "type": "message",
        "id": "b",
        "timestamp": BEFORE,
        "message": {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image"}]},
    },
    {"type": "compaction", "id": "c", "timestamp": NOON, "summary": "x"},
)
GEMINI_ROWS: tuple[Any, ...] = (
    {"sessionId": "g", "projectHash": "h", "startTime": NOON, "kind": "main"},
    {"id": "a", "timestamp": NOON, "type": "user", "content": [{"text": "rename"}, {"inlineData": {}}]},
    {"id": "b", "timestamp": BEFORE, "type": "user", "content": "x", "displayContent": [{"text": "y"}]},
    {"$set": {"messages": []}},
    {"$rewindTo": "a"},
    {"id": "c", "type": "user", "content": [{"functionResponse": {}}, {"text": "<session_context>"}]},
)
OPENCODE_ROWS: tuple[Any, ...] = (
    {"table": "message", "id": "m", "time_created": NOON_MS, "data": {"role": "user", "time": {"created": NOON_MS}}},
    {
        "table": "part",
        "id": "p",
        "message_id": "m",
        "time_created": NOON_MS,
        "data": {"type": "text", "text": "rename", "synthetic": False},
    },
    {"table": "part", "id": "q", "message_id": "m", "data": {"type": "text", "text": "Called the tool", "synthetic": True}},
    {"table": "session_message", "id": "s", "type": "user", "time_created": NOON_MS, "data": {"text": "rename"}},
    {"table": "part", "id": "c", "message_id": "m", "data": {"type": "compaction"}},
)


class Kind(NamedTuple):
    """A format, as far as its rows go."""

    reader: Callable[[int | None], Reader]
    examples: tuple[Any, ...]
    words: tuple[str, ...]


def _kind(form: Format, examples: tuple[Any, ...], module: Any) -> Kind:
    words = (*words_of(module, contents, fields), NOON, BEFORE, "a", "b", "c")
    return Kind(lambda adopted_at_ms: form.reader(Path("s.jsonl"), adopted_at_ms), examples, words)


KINDS = {
    "claude": _kind(CLAUDE, CLAUDE_ROWS, claude),
    "codex": _kind(CODEX, CODEX_ROWS, codex),
    "pi": _kind(PI, PI_ROWS, pi),
    "gemini": _kind(GEMINI, GEMINI_ROWS, gemini),
    "opencode": Kind(lambda adopted_at_ms: SessionReader(adopted_at_ms=adopted_at_ms), OPENCODE_ROWS, words_of(opencode, contents, fields)),
}
FORMS = {"claude": CLAUDE, "codex": CODEX, "pi": PI, "gemini": GEMINI}


def rows(name: str, data: bytes) -> None:
    """Any rows of a format: one verdict for each, no exception, no person's turn where the table excludes one, and a copied reader goes on
    as its original does."""
    kind = KINDS[name]
    draws = Draws(data, kind.words)
    adopted_at_ms = draws.pick((None, NOON_MS))
    given = [draws.like(kind.examples) for _ in range(1 + draws.below(ROWS_MAX))]
    reader = kind.reader(adopted_at_ms)
    other = reader.copy()
    verdicts: list[Classified] = []
    for row in given:
        settled = reader.feed(row)
        assert repr(other.feed(row)) == repr(settled)
        _check_turns(name, row, given, settled)
        verdicts += settled
        other = reader.copy()
    verdicts += reader.finish()
    assert len(verdicts) == len(given)
    for verdict in verdicts:
        _check_verdict(verdict)


def _check_turns(name: str, row: object, given: Sequence[object], settled: Sequence[Classified]) -> None:
    for verdict in settled:
        if verdict.row_class is RowClass.HUMAN:
            ripened = name == "claude" and verdict.rule == 18
            said = [earlier for earlier in given if isinstance(earlier, dict) and earlier.get("uuid") == verdict.id] if ripened else [row]
            assert any(not NEVER_HUMAN[name](candidate) for candidate in said), (said, verdict)


def _check_verdict(verdict: Classified) -> None:
    assert (verdict.shape is not None) == (verdict.row_class is RowClass.UNKNOWN)
    assert (verdict.confidence is not None) == (verdict.row_class is RowClass.HUMAN)
    if verdict.shape is not None:
        assert verdict.shape.isascii()
        assert verdict.shape.isprintable()
        assert len(verdict.shape) <= SHAPE_MAX
    if verdict.happening is not None:
        json.dumps([verdict.happening.id, verdict.happening.occurred_at_ms, verdict.happening.detail], allow_nan=False)


def file(name: str, data: bytes) -> None:
    """Any bytes as a transcript: read whole or from anywhere on, without an exception; each row counts once, and a person's turns are at
    most the rows that can be one."""
    form = FORMS[name]
    path = scratch() / "rollout-2026-11-02T12-00-00-s_1.jsonl"
    path.write_bytes(data)
    report = scan_whole_file(path, form)
    values = [value for line in data.splitlines() for value in values_on(line)]
    assert report.rows + report.unknown_rows >= 0
    assert report.human_turns <= sum(not NEVER_HUMAN[name](value) for value in values)
    described = form.describe(path)
    assert described is None or isinstance(described.thread_id, str)
    recognise(path)
    form.thread_id(path)
    reader_at(path, Follower(path).start(), adopted_at_ms=NOON_MS, form=form)
