"""Pi sessions: each rule of the table, each trap, on rows made here."""

from __future__ import annotations

import json

import pytest

from kizuki.actors.upstream.catalog import Happening
from kizuki.actors.upstream.formats.pi import TYPES_WITHOUT_TURNS, TranscriptReader
from kizuki.actors.upstream.formats.rows import Classified, Confidence, RowClass

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000
EARLIER = "2026-11-02T11:00:00.000Z"


def header(**fields: object) -> dict[str, object]:
    return {"type": "session", "version": 3, "id": "p-1", "timestamp": NOON, "cwd": "/w", **fields}


def message(content: object = "rename the flag", role: str = "user", **fields: object) -> dict[str, object]:
    row = {"type": "message", "id": "aaaa0001", "parentId": None, "timestamp": NOON}
    return {**row, "message": {"role": role, "content": content, "timestamp": NOON_MS}, **fields}


def entry(kind: str, **fields: object) -> dict[str, object]:
    return {"type": kind, "id": "eeee0001", "parentId": "aaaa0001", "timestamp": NOON, **fields}


def read(*rows: object, reader: TranscriptReader | None = None) -> list[Classified]:
    reader = reader or TranscriptReader()
    return [classified for row in rows for classified in reader.feed(row)] + reader.finish()


def verdict(row: object) -> tuple[RowClass, int]:
    classified = read(header(), row)[1]
    return classified.row_class, classified.rule


SYNTHETIC = """
{"type":"session","version":3,"id":"p-1","timestamp":"2026-11-02T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"aaaa0001","parentId":null,"timestamp":"2026-11-02T10:00:01.000Z","message":{"role":"user","content":"rename the flag","timestamp":1793613601000}}
{"type":"message","id":"aaaa0002","parentId":"aaaa0001","timestamp":"2026-11-02T10:00:09.000Z","message":{"role":"bashExecution","command":"ls","output":"","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1793613609000}}
{"type":"compaction","id":"aaaa0003","parentId":"aaaa0002","timestamp":"2026-11-02T10:01:00.000Z","summary":"...","firstKeptEntryId":"aaaa0001","tokensBefore":50000}
"""  # noqa: E501 - rows are kept as they stand in a file


def test_synthetic_rows() -> None:
    """A header, a turn, a command that asks nothing of the model, a compaction."""
    rows = read(*(json.loads(row) for row in SYNTHETIC.strip().splitlines()))
    expected = [RowClass.NOT_A_TURN, RowClass.HUMAN, RowClass.NOT_A_TURN, RowClass.COMPACTED]
    assert [classified.row_class for classified in rows] == expected
    assert [classified.rule for classified in rows] == [1, 16, 11, 4]


@pytest.mark.parametrize(("row", "shape"), [(None, "null"), ([1], "array"), ("text", "string")])
def test_no_objects(row: object, shape: str) -> None:
    """A row that is no object is declined by its type."""
    assert [(verdict.row_class, verdict.rule, verdict.shape) for verdict in read(row)] == [(RowClass.UNKNOWN, 0, shape)]


def test_user_message() -> None:
    """A user's message is a turn; nothing says who sent it, so it carries its text."""
    classified = read(header(), message([{"type": "text", "text": "rename"}, {"type": "text", "text": "it"}]))[1]
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 16, Confidence.UNATTRIBUTED)
    assert (classified.text, classified.id, classified.occurred_at_ms) == ("rename\nit", "aaaa0001", NOON_MS)


@pytest.mark.parametrize("content", ["<div>hi</div>", "/x", [{"type": "image", "data": "A"}]])
def test_any_content(content: object) -> None:
    """Whatever a text looks like, and a picture alone, is a turn."""
    assert verdict(message(content)) == (RowClass.HUMAN, 16)


@pytest.mark.parametrize("content", ["", " \n", [], [{"type": "text", "text": "\u3000"}]])
def test_blank_messages(content: object) -> None:
    """A message that says nothing is no turn."""
    assert verdict(message(content)) == (RowClass.NOT_A_TURN, 15)


@pytest.mark.parametrize("content", [None, 7, {"text": "x"}])
def test_unknown_content(content: object) -> None:
    """A content of a shape never seen is counted."""
    assert verdict(message(content)) == (RowClass.UNKNOWN, 15)


def test_unknown_block() -> None:
    """A message of a kind of block never seen is counted by its name."""
    classified = read(header(), message([{"type": "hologram"}]))[1]
    assert (classified.rule, classified.shape) == (0, "type=message role=user version=3 content=[hologram]")


@pytest.mark.parametrize("version", [1, 2, 4, None, "3"])
def test_other_versions(version: object) -> None:
    """Only version 3 is followed: a turn in a file of another version is none, and is counted."""
    classified = read(header(version=version), message())[1]
    assert (classified.row_class, classified.rule) == (RowClass.UNKNOWN, 14)
    assert read(message())[0].shape == "type=message role=user version=null content=string"


def test_fork() -> None:
    """What a fork copied keeps its time, which is older than the fork."""
    copied = message(timestamp=EARLIER), entry("compaction", timestamp=EARLIER)
    rows = read(header(parentSession="/s/p-0.jsonl"), *copied, message(id="own"))
    assert [classified.row_class for classified in rows[1:]] == [RowClass.COPIED, RowClass.COPIED, RowClass.HUMAN]
    assert [classified.rule for classified in rows[1:3]] == [2, 2]
    assert read(header(), message(timestamp=EARLIER))[1].row_class is RowClass.HUMAN


def test_replays() -> None:
    """A row that comes again, and one from before the adoption, is a replay."""
    assert [classified.rule for classified in read(header(), message(), message())[1:]] == [16, 3]
    assert read(header(), message(), reader=TranscriptReader(adopted_at_ms=NOON_MS + 60_000))[1].row_class is RowClass.REPLAY


def test_compaction() -> None:
    """A compaction is told by its entry, once."""
    first, again = read(header(), entry("compaction"), entry("compaction"))[1:]
    assert (first.row_class, first.rule, first.happening) == (RowClass.COMPACTED, 4, Happening("compacted", "eeee0001", NOON_MS))
    assert (again.row_class, again.happening) == (RowClass.REPLAY, None)


@pytest.mark.parametrize(
    ("row", "row_class", "rule"),
    [
        (entry("branch_summary", summary="x"), RowClass.COMPACTION, 5),
        *((entry(kind), RowClass.NOT_A_TURN, 6) for kind in sorted(TYPES_WITHOUT_TURNS)),
        (entry("custom_message", content="x"), RowClass.MACHINE, 7),
        (message(role="custom"), RowClass.MACHINE, 7),
        (entry("hologram"), RowClass.UNKNOWN, 8),
        ({}, RowClass.UNKNOWN, 8),
        (message(role="assistant"), RowClass.NOT_A_TURN, 9),
        (message(role="toolResult"), RowClass.TOOL_RESULT, 10),
        (message(role="bashExecution"), RowClass.NOT_A_TURN, 11),
        (message(role="compactionSummary"), RowClass.COMPACTION, 12),
        (message(role="branchSummary"), RowClass.COMPACTION, 12),
        (message(role="ghost"), RowClass.UNKNOWN, 13),
    ],
)
def test_other_rows(row: object, row_class: RowClass, rule: int) -> None:
    """Every other entry and role is no turn; one never seen is counted."""
    assert verdict(row) == (row_class, rule)


def test_time_of_the_message() -> None:
    """A row without a time of its own has that of its message."""
    assert read(header(), message(timestamp=None))[1].occurred_at_ms == NOON_MS
    assert read(header(), entry("compaction", timestamp="yesterday"))[1].occurred_at_ms is None


def test_first_match_wins() -> None:
    """Where several rules apply, the first of them decides."""
    old = TranscriptReader(adopted_at_ms=NOON_MS + 60_000)
    assert read(header(parentSession="p-0"), message(timestamp=EARLIER), reader=old)[1].rule == 2
    assert [read(header(version=2), row)[1].rule for row in (message(role="ghost"), message(7), message(" "))] == [13, 14, 14]
