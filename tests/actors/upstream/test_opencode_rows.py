"""OpenCode rows: each rule of the table, each trap, on rows made here."""

from __future__ import annotations

import json

import pytest

from kizuki.actors.upstream.catalog import Happening
from kizuki.actors.upstream.formats.opencode import (
    INJECTED_MESSAGES,
    MESSAGES_MAX,
    MESSAGES_WITHOUT_TURNS,
    PARTS_WITHOUT_TURNS,
    SessionReader,
)
from kizuki.actors.upstream.formats.rows import Classified, Confidence, RowClass

NOON_MS = 1_793_620_800_000


def message(identity: str = "m1", role: str = "user") -> dict[str, object]:
    return {"table": "message", "id": identity, "session_id": "o1", "data": {"role": role, "time": {"created": NOON_MS}}}


def part(text: object = "rename the flag", kind: str = "text", message_id: str = "m1", **data: object) -> dict[str, object]:
    identity = f"p-{message_id}-{text}"
    row = {"table": "part", "id": identity, "message_id": message_id, "time_created": NOON_MS}
    return {**row, "data": {"type": kind, "text": text, **data}}


def message_v2(kind: str = "user", text: str = "rename the flag") -> dict[str, object]:
    return {"table": "session_message", "id": f"s-{kind}", "type": kind, "time_created": NOON_MS, "data": {"text": text}}


def read(*rows: object, reader: SessionReader | None = None) -> list[Classified]:
    reader = reader or SessionReader()
    return [classified for row in rows for classified in reader.feed(row)] + reader.finish()


def verdict(row: object) -> tuple[RowClass, int]:
    classified = read(message(), row)[1]
    return classified.row_class, classified.rule


SYNTHETIC = """
{"table":"message","id":"m1","session_id":"o1","data":{"role":"user","time":{"created":1793613601000}}}
{"table":"part","message_id":"m1","data":{"type":"text","text":"rename the flag"}}
{"table":"part","message_id":"m2","data":{"type":"text","text":"Continue if you have next steps","synthetic":true}}
"""


def test_synthetic_rows() -> None:
    """A user's message with its text is one turn; what the tool made up is none."""
    rows = read(*(json.loads(row) for row in SYNTHETIC.strip().splitlines()))
    assert [classified.row_class for classified in rows] == [RowClass.NOT_A_TURN, RowClass.HUMAN, RowClass.MACHINE]
    assert [classified.rule for classified in rows] == [1, 13, 6]


@pytest.mark.parametrize(("row", "shape"), [(None, "null"), ([1], "array"), ("text", "string")])
def test_no_objects(row: object, shape: str) -> None:
    """A row that is no object is declined by its type."""
    assert [(verdict.row_class, verdict.rule, verdict.shape) for verdict in read(row)] == [(RowClass.UNKNOWN, 0, shape)]


def test_text_of_a_user() -> None:
    """A text in a user's message is a turn; nothing says who sent it, so it carries its text."""
    classified = read(message(), part())[1]
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 13, Confidence.UNATTRIBUTED)
    assert (classified.text, classified.occurred_at_ms) == ("rename the flag", NOON_MS)


def test_one_message_one_turn() -> None:
    """Several texts of one message are one turn, those of another are another."""
    rows = read(message(), part(), part("and more"), message("m2"), part(message_id="m2"))
    assert [classified.rule for classified in rows] == [1, 13, 12, 1, 13]
    assert rows[2].row_class is RowClass.NOT_A_TURN


@pytest.mark.parametrize("mark", ["synthetic", "ignored"])
def test_marked_parts(mark: str) -> None:
    """A part that the tool made, or that is left out, is no turn; another text of the same message is."""
    assert read(message(), part("x", **{mark: True}), part())[1].rule == 6  # type: ignore[arg-type]
    assert read(message(), part("x", **{mark: True}), part())[2].row_class is RowClass.HUMAN  # type: ignore[arg-type]
    assert verdict(part(**{mark: False})) == (RowClass.HUMAN, 13)  # type: ignore[arg-type]


def test_version_2() -> None:
    """In version 2 the type of a message says whose it is."""
    assert verdict(message_v2()) == (RowClass.HUMAN, 13)
    assert verdict(message_v2(text=" ")) == (RowClass.NOT_A_TURN, 10)
    assert {verdict(message_v2(kind)) for kind in INJECTED_MESSAGES} == {(RowClass.MACHINE, 6)}
    assert {verdict(message_v2(kind)) for kind in MESSAGES_WITHOUT_TURNS} == {(RowClass.NOT_A_TURN, 7)}


@pytest.mark.parametrize("row", [part(kind="compaction"), message_v2("compaction")])
def test_compaction(row: dict[str, object]) -> None:
    """A compaction is told by its part or its message, once."""
    first, again = read(message(), row, row)[1:]
    assert (first.row_class, first.rule, first.happening) == (RowClass.COMPACTED, 4, Happening("compacted", str(row["id"]), NOON_MS))
    assert (again.row_class, again.happening) == (RowClass.REPLAY, None)


@pytest.mark.parametrize("kind", sorted(PARTS_WITHOUT_TURNS))
def test_parts_without_turns(kind: str) -> None:
    """Mentions of files, routed commands and what the model did are no turns."""
    assert verdict(part(kind=kind)) == (RowClass.NOT_A_TURN, 5)


@pytest.mark.parametrize(
    ("row", "row_class", "rule"),
    [
        (part(" "), RowClass.NOT_A_TURN, 10),
        (part(7), RowClass.NOT_A_TURN, 10),
        (part(kind="hologram"), RowClass.UNKNOWN, 8),
        (message_v2("hologram"), RowClass.UNKNOWN, 8),
        (part(message_id="never seen"), RowClass.UNKNOWN, 9),
        (message(role="ghost"), RowClass.UNKNOWN, 2),
        ({"table": "todo"}, RowClass.UNKNOWN, 2),
        ({}, RowClass.UNKNOWN, 2),
    ],
)
def test_other_rows(row: object, row_class: RowClass, rule: int) -> None:
    """What says nothing is no turn; a type, a role, a message or a table never seen is counted."""
    assert verdict(row) == (row_class, rule)


def test_answers_of_the_model() -> None:
    """The texts of an assistant's message are its own."""
    classified = read(message(role="assistant"), part())[1]
    assert (classified.row_class, classified.rule) == (RowClass.NOT_A_TURN, 7)


def test_sessions_of_agents() -> None:
    """In a session that has a parent an agent wrote the prompts."""
    for row in (part(), message_v2()):
        assert read(message(), row, reader=SessionReader(child=True))[1].row_class is RowClass.SUBAGENT


def test_replays() -> None:
    """A row that comes again, and one from before the adoption, is a replay."""
    assert [classified.rule for classified in read(message(), part(), part())] == [1, 13, 3]
    assert read(message(), part(), reader=SessionReader(adopted_at_ms=NOON_MS + 60_000))[1].row_class is RowClass.REPLAY


def test_messages_are_bounded() -> None:
    """Of very many messages only the latest are remembered."""
    rows = read(*(message(f"m{n}") for n in range(MESSAGES_MAX + 1)), part(message_id="m0"), part(message_id="m1"))
    assert [classified.rule for classified in rows[-2:]] == [9, 13]


def test_shape_names_the_format_only() -> None:
    """The shape of an unknown row holds nothing that was said."""
    assert read(message(), part("secret", kind="hologram"))[1].shape == "table=part type=hologram"


def test_first_match_wins() -> None:
    """Where several rules apply, the first of them decides."""
    old, child = SessionReader(adopted_at_ms=NOON_MS + 60_000), SessionReader(child=True)
    assert read({"table": "todo", "time_created": NOON_MS}, reader=old)[0].rule == 2
    assert verdict(part(kind="file", synthetic=True)) == (RowClass.NOT_A_TURN, 5)
    assert read(message(role="assistant"), part(synthetic=True))[1].rule == 6
    assert [verdict(part(kind="hologram", message_id="none"))[1], verdict(part(" ", message_id="none"))[1]] == [8, 9]
    assert read(message(), part(" "), reader=child)[1].rule == 10
