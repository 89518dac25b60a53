"""Gemini CLI sessions: each rule of the table, each trap, on rows made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kizuki.actors.upstream.formats.gemini import TranscriptReader, is_subagent_path
from kizuki.actors.upstream.formats.rows import Classified, Confidence, RowClass

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000


def header(**fields: object) -> dict[str, object]:
    return {"sessionId": "g-1", "projectHash": "h", "startTime": NOON, "kind": "main", **fields}


def message(content: object = "rename the flag", kind: str = "user", **fields: object) -> dict[str, object]:
    return {"id": "m1", "timestamp": NOON, "type": kind, "content": content, **fields}


def read(*rows: object, reader: TranscriptReader | None = None) -> list[Classified]:
    reader = reader or TranscriptReader()
    return [classified for row in rows for classified in reader.feed(row)] + reader.finish()


def verdict(row: object) -> tuple[RowClass, int]:
    classified = read(header(), row)[1]
    return classified.row_class, classified.rule


SYNTHETIC = """
{"sessionId":"g-1","projectHash":"h","startTime":"2026-11-02T10:00:00.000Z","lastUpdated":"2026-11-02T10:00:00.000Z","kind":"main"}
{"id":"m1","timestamp":"2026-11-02T10:00:01.000Z","type":"user","content":[{"text":"<session_context>...</session_context>"}]}
{"id":"m2","timestamp":"2026-11-02T10:00:05.000Z","type":"user","content":[{"text":"rename the flag"}]}
{"$rewindTo":"m2"}
"""


def test_synthetic_rows() -> None:
    """Metadata, injected context, a turn, a rewind."""
    rows = read(*(json.loads(row) for row in SYNTHETIC.strip().splitlines()))
    expected = [RowClass.NOT_A_TURN, RowClass.MACHINE, RowClass.HUMAN, RowClass.NOT_A_TURN]
    assert [classified.row_class for classified in rows] == expected
    assert [classified.rule for classified in rows] == [3, 11, 13, 1]


@pytest.mark.parametrize(("row", "shape"), [(None, "null"), ([1], "array"), ("text", "string")])
def test_no_objects(row: object, shape: str) -> None:
    """A row that is no object is declined by its type."""
    assert [(verdict.row_class, verdict.rule, verdict.shape) for verdict in read(row)] == [(RowClass.UNKNOWN, 0, shape)]


@pytest.mark.parametrize("content", ["rename", {"text": "rename"}, [{"text": "rename"}], ["rename"]])
def test_user_message(content: object) -> None:
    """A user's message is a turn, as a text, a part, or a list of both; nothing says who sent it, so it carries its text."""
    classified = read(header(), message(content))[1]
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 13, Confidence.UNATTRIBUTED)
    assert (classified.text, classified.id, classified.occurred_at_ms) == ("rename", "m1", NOON_MS)


def test_displayed_text() -> None:
    """Rule 7.5: what was typed is what a mention of a file was before the file was read into it."""
    row = message([{"text": "look at @a.py"}, {"text": "content of a.py"}], displayContent=[{"text": "look at @a.py"}])
    assert read(header(), row)[1].text == "look at @a.py"


@pytest.mark.parametrize("part", [{"inlineData": {"data": "A"}}, {"fileData": {"fileUri": "x"}}])
def test_pictures_only(part: object) -> None:
    """A picture or file without a text is a turn, beside injected context, too."""
    assert verdict(message([part])) == (RowClass.HUMAN, 13)
    assert verdict(message([{"text": "<session_context>x"}, part])) == (RowClass.HUMAN, 13)


@pytest.mark.parametrize("text", ["<session_context>x", "<hook_context>x", " \n<Hook_Context>x"])
def test_injected_context(text: str) -> None:
    """Context of the session or of a hook is injected; a text that quotes it, or stands beside it, is a person's."""
    assert verdict(message([{"text": text}])) == (RowClass.MACHINE, 11)
    assert verdict(message(f"what is {text}?")) == verdict(message([{"text": text}, {"text": "rename"}])) == (RowClass.HUMAN, 13)


@pytest.mark.parametrize("text", ["/clear", "?", " /help"])
def test_commands(text: str) -> None:
    """A command to the tool is no turn; a path or a question in mid-sentence is one."""
    assert verdict(message(text)) == (RowClass.NOT_A_TURN, 12)
    assert verdict(message(f"is it in {text}")) == (RowClass.HUMAN, 13)


@pytest.mark.parametrize("content", ["", " ", [], [{"text": "\n"}], {"text": ""}])
def test_blank_messages(content: object) -> None:
    """A message that says nothing is no turn."""
    assert verdict(message(content)) == (RowClass.NOT_A_TURN, 10)


@pytest.mark.parametrize("content", [None, 7])
def test_unknown_content(content: object) -> None:
    """A content of a shape never seen is counted."""
    assert verdict(message(content)) == (RowClass.UNKNOWN, 10)


def test_unknown_part() -> None:
    """A message of a kind of part never seen is counted by its name."""
    classified = read(header(), message([{"hologram": {}}]))[1]
    assert (classified.rule, classified.shape) == (0, "type=user kind=main content=[hologram]")


def test_tool_results() -> None:
    """The answer of a tool stands in a user's message, and is none."""
    assert verdict(message([{"functionResponse": {"name": "x"}}, {"text": "done"}])) == (RowClass.TOOL_RESULT, 9)


def test_subagents() -> None:
    """A sub-agent's file holds no human turn, by its metadata or by the folder that it lies in."""
    assert read(header(kind="subagent"), message())[1].rule == 7
    assert read(header(), message(), reader=TranscriptReader(subagent_file=True))[1].row_class is RowClass.SUBAGENT
    assert is_subagent_path(Path("/t/p/chats/g-1/g-2.jsonl"))
    assert not is_subagent_path(Path("/chats/x/.gemini/tmp/p/chats/session-1.jsonl"))


def test_kinds_of_files() -> None:
    """A file of an older version says nothing of its kind and is a main one; a kind never seen, or no metadata, is counted."""
    assert read(header(kind=None), message())[1].row_class is RowClass.HUMAN
    assert [read(header(kind="ghost"), message())[1].rule, read(message())[0].rule] == [8, 8]
    assert read(message())[0].shape == "type=user kind=unknown content=string"


def test_rows_written_again() -> None:
    """A message is written again whenever something of it changes: it counts once."""
    assert [classified.rule for classified in read(header(), message(), message())[1:]] == [13, 4]
    old = TranscriptReader(adopted_at_ms=NOON_MS + 60_000)
    assert read(header(), message(), reader=old)[1].row_class is RowClass.REPLAY


def test_replaced_messages_are_not_looked_into() -> None:
    """`$set` may hold all messages anew, and a summary among them that nobody typed."""
    update = {"$set": {"messages": [message(id="new")], "kind": "main", "sessionId": "g-1"}}
    assert verdict(update) == (RowClass.NOT_A_TURN, 2)
    assert verdict({"$rewindTo": "m1", **message()}) == (RowClass.NOT_A_TURN, 1)


@pytest.mark.parametrize("kind", ["gemini", "info", "error", "warning"])
def test_other_types(kind: str) -> None:
    """What the model and the tool say is no turn."""
    assert verdict(message(kind=kind)) == (RowClass.NOT_A_TURN, 5)


@pytest.mark.parametrize("row", [message(kind="hologram"), {"id": "x"}, {}])
def test_unknown_types(row: object) -> None:
    """A type never seen, or none, is counted."""
    assert verdict(row) == (RowClass.UNKNOWN, 6)


def test_first_match_wins() -> None:
    """Where several rules apply, the first of them decides."""
    old, nested = TranscriptReader(adopted_at_ms=NOON_MS + 60_000), TranscriptReader(subagent_file=True)
    assert [verdict({"$rewindTo": "m1", "$set": {}})[1], verdict({"$set": {}, "sessionId": "g-1"})[1]] == [1, 2]
    assert read(header(), message(kind="gemini"), reader=old)[1].rule == 4
    assert read(message(kind="hologram"), message(), reader=nested)[0].rule == 6
    assert read(header(kind="ghost"), message([{"functionResponse": {}}]))[1].rule == 8
