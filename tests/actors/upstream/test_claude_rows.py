"""The table of rows: each rule, each trap, on rows made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.upstream.catalog import Happening
from kizuki.actors.upstream.formats.claude import PENDING_MAX, TranscriptReader, is_subagent_path, shape_of
from kizuki.actors.upstream.formats.rows import Classified, Confidence, RowClass, Unreadable
from kizuki.actors.upstream.formats.tables import SEEN_MAX, WRITE_DELAY_MS

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000
HUMAN_ORIGIN = {"origin": {"kind": "human"}, "promptSource": "typed"}


def user(content: object = "rename the flag", **fields: object) -> dict[str, object]:
    """A `user` row without provenance, as old versions write it."""
    row: dict[str, object] = {"type": "user", "uuid": "u", "parentUuid": None, "timestamp": NOON, "isSidechain": False}
    return {**row, "message": {"role": "user", "content": content}, **fields}


def queued(**fields: object) -> dict[str, object]:
    """An `attachment` row with a command that a person typed while a turn ran."""
    attachment = {"type": "queued_command", "prompt": "and the docs", "commandMode": "prompt", "origin": {"kind": "human"}}
    return {"type": "attachment", "uuid": "q", "timestamp": NOON, "isSidechain": False, "attachment": {**attachment, **fields}}


def text_block(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def read(*rows: object, reader: TranscriptReader | None = None) -> list[Classified]:
    """The verdicts on all rows of a file, to its end."""
    reader = reader or TranscriptReader()
    return [classified for row in rows for classified in reader.feed(row)] + reader.finish()


def verdict(row: object, reader: TranscriptReader | None = None) -> tuple[RowClass, int]:
    """Class and rule of a single row."""
    (classified,) = read(row, reader=reader)
    return classified.row_class, classified.rule


def classes(*rows: object) -> list[RowClass]:
    return [classified.row_class for classified in read(*rows)]


def after_provenance() -> TranscriptReader:
    """A reader in a file of which a row has said who wrote it."""
    reader = TranscriptReader()
    reader.feed(user(uuid="first", **HUMAN_ORIGIN))
    return reader


SYNTHETIC = """
{"type":"user","uuid":"u-1","parentUuid":null,"sessionId":"s-1","timestamp":"2026-11-02T10:00:00.000Z","isSidechain":false,"origin":{"kind":"human"},"promptSource":"typed","permissionMode":"default","version":"2.1.300","message":{"role":"user","content":"rename the flag"}}
{"type":"attachment","uuid":"u-2","parentUuid":"a-1","sessionId":"s-1","timestamp":"2026-11-02T10:00:20.000Z","isSidechain":false,"attachment":{"type":"queued_command","prompt":"and the docs","commandMode":"prompt","origin":{"kind":"human"}}}
{"type":"user","uuid":"u-3","parentUuid":"a-2","sessionId":"s-1","timestamp":"2026-11-02T10:00:31.000Z","isSidechain":false,"sourceToolAssistantUUID":"a-2","toolUseResult":{"stdout":"ok"},"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}}
{"type":"user","uuid":"u-4","parentUuid":"a-3","sessionId":"s-1","timestamp":"2026-11-02T10:01:00.000Z","isMeta":true,"origin":{"kind":"peer","name":"worker-b"},"promptSource":"system","message":{"role":"user","content":"Another Claude session sent a message: ..."}}
{"type":"user","uuid":"u-5","parentUuid":"a-4","sessionId":"s-1","timestamp":"2026-11-02T10:02:00.000Z","origin":{"kind":"task-notification"},"promptSource":"system","message":{"role":"user","content":"<task-notification>done</task-notification>"}}
{"type":"user","uuid":"u-6","parentUuid":null,"sessionId":"s-2","timestamp":"2026-11-02T10:00:00.000Z","isSidechain":false,"origin":{"kind":"human"},"promptSource":"typed","forkedFrom":{"sessionId":"s-1","messageUuid":"u-1"},"message":{"role":"user","content":"rename the flag"}}
"""  # noqa: E501 - rows are kept as they stand in a file


def test_synthetic_rows() -> None:
    """A typed prompt and one typed mid-turn are human; a tool result, a peer, a notification and a forked copy are not."""
    rows = [json.loads(line) for line in SYNTHETIC.strip().splitlines()]
    human, agent = RowClass.HUMAN, RowClass.AGENT
    assert classes(*rows) == [human, human, RowClass.TOOL_RESULT, agent, RowClass.MACHINE, RowClass.COPIED]


def test_rule_1_unreadable() -> None:
    """Rule 7.7: a broken line is counted and gives no turn."""
    assert verdict(Unreadable("not JSON")) == (RowClass.UNREADABLE, 1)


@pytest.mark.parametrize(("row", "shape"), [(None, "null"), ([1], "array"), ("text", "string"), (1.5, "number"), (True, "boolean")])
def test_rule_1_no_object(row: object, shape: str) -> None:
    """A row that is a JSON value but no object is declined by its type."""
    (classified,) = read(row)
    assert (classified.row_class, classified.rule, classified.shape) == (RowClass.UNKNOWN, 1, shape)


def test_rule_2_copied() -> None:
    """Rows that a fork copied are history, whatever else they say."""
    copied = {"forkedFrom": {"sessionId": "s"}}
    assert verdict(user(**HUMAN_ORIGIN, **copied)) == (RowClass.COPIED, 2)
    assert verdict({**queued(), **copied}) == (RowClass.COPIED, 2)
    assert verdict({"type": "system", "subtype": "compact_boundary", **copied}) == (RowClass.COPIED, 2)


def test_rule_2_precedes_everything() -> None:
    """A fork drops the fields that mark tool results and teams and re-stamps the last row, yet its rows stay copies."""
    adopted = TranscriptReader(adopted_at_ms=NOON_MS + 3_600_000)
    stripped = user(isSidechain=False, forkedFrom={"sessionId": "s"}, **HUMAN_ORIGIN)
    assert verdict(stripped, adopted) == (RowClass.COPIED, 2)
    assert read(stripped, user(uuid="own", **HUMAN_ORIGIN))[1].row_class is RowClass.HUMAN


def test_rule_3_repeated_id() -> None:
    """A row that could signal something counts once when it comes again with the same id, whoever wrote it."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "c"}
    others = [user(origin={"kind": "peer"}), user(origin={"kind": "channel"}), user(promptSource="sdk")]
    for row in (user(**HUMAN_ORIGIN), user(), queued(), boundary, *others):
        assert [classified.rule for classified in read(row, row)][1] == 3


def test_rule_3_older_than_adoption() -> None:
    """A row stamped before the adoption is a replay, unless it is so near that it was only written after it."""
    row = user(**HUMAN_ORIGIN)
    assert verdict(row, TranscriptReader(adopted_at_ms=NOON_MS)) == (RowClass.HUMAN, 11)
    assert verdict(row, TranscriptReader(adopted_at_ms=NOON_MS + WRITE_DELAY_MS)) == (RowClass.HUMAN, 11)
    assert verdict(row, TranscriptReader(adopted_at_ms=NOON_MS + WRITE_DELAY_MS + 1)) == (RowClass.REPLAY, 3)


def test_rule_3_repeated_from_before_the_adoption() -> None:
    """Rule 3: an id from before the adoption was seen already, also where a copy of the row is stamped anew."""
    reader = TranscriptReader(adopted_at_ms=NOON_MS + 2 * WRITE_DELAY_MS)
    old, anew = user(**HUMAN_ORIGIN), user(timestamp="2026-11-02T13:00:00.000Z", **HUMAN_ORIGIN)
    assert [classified.row_class for classified in read(old, anew, reader=reader)] == [RowClass.REPLAY, RowClass.REPLAY]


def test_rule_3_without_timestamp() -> None:
    """A row without a time of its own is not taken for an old one."""
    assert verdict(user(timestamp=None), TranscriptReader(adopted_at_ms=NOON_MS)) == (RowClass.HUMAN, 20)


def test_rule_4_compact_boundary() -> None:
    """The boundary of a compaction gives `compacted`, named by its row's id."""
    (classified,) = read({"type": "system", "subtype": "compact_boundary", "uuid": "c", "compactMetadata": {"trigger": "auto"}})
    assert (classified.row_class, classified.rule, classified.id) == (RowClass.COMPACTED, 4, "c")
    assert classified.happening == Happening("compacted", "c", None)
    assert verdict(user(subtype="compact_boundary", **HUMAN_ORIGIN)) == (RowClass.HUMAN, 11)


OTHER_TYPES = (
    "assistant system progress summary file-history-snapshot queue-operation last-prompt mode permission-mode ai-title custom-title"
    " tag agent-name agent-setting pr-link bridge-session content-replacement"
)


@pytest.mark.parametrize("kind", OTHER_TYPES.split())
def test_rule_4_known_types(kind: str) -> None:
    """Rows of other known types hold no turn, even with a person's provenance, and are not counted as unknown."""
    assert verdict({**user(**HUMAN_ORIGIN), "type": kind}) == (RowClass.NOT_A_TURN, 4)


def test_rule_4_unknown_types() -> None:
    """A type never seen, or none, is declined and counted by its name."""
    new, missing = read({**user(**HUMAN_ORIGIN), "type": "hologram"}, {"uuid": "x"})
    assert (new.row_class, new.shape) == (RowClass.UNKNOWN, "type=hologram origin=human promptSource=typed")
    assert (missing.row_class, missing.shape) == (RowClass.UNKNOWN, "object without type")


def test_queue_operation_is_never_counted() -> None:
    """A queued text is written as an operation first and as a turn later: one turn."""
    operation = {"type": "queue-operation", "operation": "enqueue", "content": "and the docs", "timestamp": NOON}
    assert classes(operation, queued(), {**operation, "operation": "dequeue"}).count(RowClass.HUMAN) == 1


def test_rule_5_queued_command() -> None:
    """A prompt typed while a turn runs exists only as an attachment, and is human by provenance."""
    (classified,) = read(queued())
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 5, Confidence.PROVENANCE)


@pytest.mark.parametrize(
    "row",
    [
        {**queued(), "isMeta": True},
        {**queued(), "isSidechain": True},
        queued(isMeta=True),
        queued(type="hook_success"),
        queued(origin={"kind": "peer"}),
        queued(origin={"kind": "task-notification"}, commandMode="task-notification"),
        queued(origin={"kind": "channel"}),
        queued(origin=None),
        queued(prompt="  \n"),
    ],
)
def test_rule_6_other_attachments(row: object) -> None:
    """Every other attachment is injected: meta, of a sub-agent, of another type or origin, or blank."""
    assert verdict(row) == (RowClass.MACHINE, 6)


@pytest.mark.parametrize(
    ("row", "shape"),
    [
        (queued(origin={"kind": "séance"}), "type=attachment attachment=queued_command origin=s?ance"),
        ({"type": "attachment", "attachment": "text"}, "type=attachment"),
    ],
)
def test_rule_6_unknown_attachments(row: object, shape: str) -> None:
    """An attachment of an origin never seen, or of a shape never seen, is declined and counted."""
    (classified,) = read(row)
    assert (classified.row_class, classified.rule, classified.shape) == (RowClass.UNKNOWN, 6, shape)


@pytest.mark.parametrize("mark", [{"isSidechain": True}, {"agentId": "a"}, {"teamName": "t"}])
def test_rule_7_subagents(mark: dict[str, object]) -> None:
    """Prompts of sub-agents and teams were written by an agent, even where their origin says human."""
    assert verdict(user(**{**HUMAN_ORIGIN, **mark})) == (RowClass.SUBAGENT, 7)


def test_rule_7_subagent_files() -> None:
    """A file under `subagents` holds no human turn, and is recognised by its path."""
    assert verdict(user(**HUMAN_ORIGIN), TranscriptReader(subagent_file=True)) == (RowClass.SUBAGENT, 7)
    assert is_subagent_path(Path("/p/s-1/subagents/deep/agent-1.jsonl"))
    assert not is_subagent_path(Path("/p/subagents.jsonl"))
    assert not is_subagent_path(Path("/p/subagents"))


@pytest.mark.parametrize("mark", ["isCompactSummary", "isVisibleInTranscriptOnly"])
def test_rule_8_compaction_text(mark: str) -> None:
    """The text that a compaction leaves is no turn, whatever its provenance."""
    assert verdict(user(**{mark: True}, **HUMAN_ORIGIN)) == (RowClass.COMPACTION, 8)


def test_rule_9_meta() -> None:
    """Meta rows are injected; that of a peer is an agent's, also when a bridge sent it for a person."""
    assert verdict(user(isMeta=True)) == (RowClass.MACHINE, 9)
    assert verdict(user(isMeta=True, **HUMAN_ORIGIN)) == (RowClass.MACHINE, 9)
    peer = user("Another Claude session sent a message: <cross-session-message>hi</cross-session-message>", isMeta=True)
    assert verdict({**peer, "origin": {"kind": "peer", "name": "bridge"}}) == (RowClass.AGENT, 9)


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (user(isSidechain=True, isCompactSummary=True), 7),
        (user(isCompactSummary=True, isMeta=True, origin={"kind": "peer"}), 8),
        (user(isMeta=True, toolUseResult="x"), 9),
        (user({"new": 1}, toolUseResult="x"), 10),
        (user("", toolUseResult="x"), 10),
    ],
)
def test_first_match_wins(row: object, rule: int) -> None:
    """Where several rules of the table apply, the first of them decides."""
    assert verdict(row)[1] == rule


def test_absent_meta_is_the_norm() -> None:
    """A row needs no `isMeta: false` to be a turn, and is one with it too."""
    assert verdict(user(**HUMAN_ORIGIN)) == verdict(user(isMeta=False, **HUMAN_ORIGIN)) == (RowClass.HUMAN, 11)


@pytest.mark.parametrize(
    "row",
    [
        user([text_block("answer"), {"type": "tool_result", "tool_use_id": "t", "content": "yes"}], **HUMAN_ORIGIN),
        user("ok", toolUseResult="User approved the plan", **HUMAN_ORIGIN),
        user("ok", toolUseResult={}),
        user("ok", sourceToolAssistantUUID="a", **HUMAN_ORIGIN),
    ],
)
def test_rule_10_tool_results(row: object) -> None:
    """Tool results are no turns, whether a block, the result or its source tells; answers to the agent's questions among them."""
    assert verdict(row) == (RowClass.TOOL_RESULT, 10)


@pytest.mark.parametrize("text", ["rename", "<div>hello</div>", "<task-notification>pasted", "/review all", "<command-name>/x"])
def test_rule_11_origin_human(text: str) -> None:
    """An origin that says human decides, whatever the text looks like and whatever the prompt source says."""
    (classified,) = read(user(text, origin={"kind": "human"}, promptSource="system"))
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 11, Confidence.PROVENANCE)


@pytest.mark.parametrize("content", ["", "  \n\t", [], [text_block("\u3000")]])
@pytest.mark.parametrize("provenance", [{}, HUMAN_ORIGIN])
def test_blank_rows(content: object, provenance: dict[str, object]) -> None:
    """A row in which nothing is said is no turn."""
    assert verdict(user(content, **provenance))[0] is RowClass.NOT_A_TURN


@pytest.mark.parametrize("message", [None, "text", {"role": "user"}, {"content": {"text": "hi"}}, {"content": 7}])
def test_unknown_content(message: object) -> None:
    """A content of a shape never seen is declined and counted, even with a person's provenance."""
    assert verdict({**user(**HUMAN_ORIGIN), "message": message}) == (RowClass.UNKNOWN, 11)


def test_new_block_with_provenance() -> None:
    """A new kind of block is a turn where the row says that a person wrote it, and unknown where it does not."""
    blocks = [{"type": "hologram"}]
    assert verdict(user(blocks, **HUMAN_ORIGIN)) == (RowClass.HUMAN, 11)
    (classified,) = read(user(blocks))
    assert (classified.row_class, classified.rule, classified.shape) == (RowClass.UNKNOWN, 0, "type=user content=[hologram]")


@pytest.mark.parametrize(
    ("origin", "row_class"),
    [
        ({"kind": "peer"}, RowClass.AGENT),
        ({"kind": "task-notification", "subkind": "peer-send-message"}, RowClass.AGENT),
        ({"kind": "task-notification"}, RowClass.MACHINE),
        ({"kind": "channel"}, RowClass.EXTERNAL),
        ({"kind": "coordinator"}, RowClass.MACHINE),
        ({"kind": "unclassified"}, RowClass.MACHINE),
        ({"kind": "observer"}, RowClass.MACHINE),
        ({"kind": "auto-continuation"}, RowClass.MACHINE),
        ({"kind": "observer-activity"}, RowClass.MACHINE),
        ({"kind": "telepathy"}, RowClass.UNKNOWN),
        ({}, RowClass.UNKNOWN),
        ("human", RowClass.UNKNOWN),
    ],
)
def test_rule_12_other_origins(origin: object, row_class: RowClass) -> None:
    """Every origin but human is no person's, also where the prompt source says typed; an unrecognised one is counted."""
    assert verdict(user(origin=origin, promptSource="typed")) == (row_class, 12)


@pytest.mark.parametrize("source", ["typed", "queued", "suggestion_accepted"])
def test_rule_13_human_prompt_sources(source: str) -> None:
    """Without an origin, a prompt that was typed, queued or accepted is a person's, whatever its text and entry point."""
    row = user("<task-notification> is what I mean", promptSource=source, entrypoint="sdk-py")
    assert verdict(row) == (RowClass.HUMAN, 13)


def test_rule_14_sdk() -> None:
    """A prompt that came through the SDK is a program's."""
    assert verdict(user(promptSource="sdk")) == (RowClass.PROGRAMMATIC, 14)


def test_rule_15_other_prompt_sources() -> None:
    """A prompt of the system is injected; one of a source never seen is declined and counted."""
    assert verdict(user(promptSource="system")) == (RowClass.MACHINE, 15)
    (classified,) = read(user(promptSource="dreamt"))
    assert (classified.rule, classified.shape) == (15, "type=user promptSource=dreamt content=string")


@pytest.mark.parametrize("first", [user(uuid="1", **HUMAN_ORIGIN), user(promptSource="sdk"), queued(), user(origin={"kind": "x"})])
def test_rule_16_echo_in_new_file(first: object) -> None:
    """Once any row of a file said who wrote it, a row that does not is an echo of the tool."""
    reader = TranscriptReader()
    reader.feed(first)
    for text in ("<command-name>/clear</command-name>", "<local-command-stdout>x", "plain words"):
        assert verdict(user(text, uuid="2"), reader) == (RowClass.MACHINE, 16)


MACHINE_TEXTS = [
    "<local-command-stdout>done</local-command-stdout>",
    "<local-command-caveat>x",
    "<bash-input>ls</bash-input>",
    "<bash-stdout>x</bash-stdout>",
    "<task-notification>done</task-notification>",
    "<system-reminder>x</system-reminder>",
    "<user-prompt-submit-hook>x",
    "<session-start-hook>x",
    "<ide_opened_file>x</ide_opened_file>",
    "<ide_selection>x</ide_selection>",
    "<tick>1</tick>",
    "<goal>x</goal>",
    "Caveat: The messages below were generated",
    "[Request interrupted by user for tool use]",
    "This session is being continued from a previous conversation",
]


@pytest.mark.parametrize("text", MACHINE_TEXTS)
def test_rule_17_machine_text(text: str) -> None:
    """In an old file text that begins as the tool's own texts do is the tool's, as a string or as a block."""
    assert verdict(user(text)) == verdict(user("\n " + text)) == verdict(user([text_block(text)])) == (RowClass.MACHINE, 17)


@pytest.mark.parametrize("text", MACHINE_TEXTS)
def test_rule_17_quotes(text: str) -> None:
    """Text that merely quotes such a text in mid-sentence is a person's."""
    assert verdict(user(f"what does {text} mean?")) == (RowClass.HUMAN, 20)


def test_rule_17_context_beside_a_prompt() -> None:
    """An editor's context in a block of its own does not hide what was typed or pasted beside it."""
    context = text_block("<ide_opened_file>a.py</ide_opened_file>")
    assert verdict(user([context, text_block("fix it")])) == (RowClass.HUMAN, 20)
    assert verdict(user([context, {"type": "image"}])) == (RowClass.HUMAN, 20)


COMMAND = "<command-message>review runs</command-message>\n<command-name>/review</command-name>\n<command-args>all of it</command-args>"


def test_rule_18_command_with_expansion() -> None:
    """In an old file a slash command is human, at low confidence, once its chain goes on with its expansion."""
    rows = user(COMMAND, uuid="c"), user([text_block("Review the code …")], uuid="e", parentUuid="c", isMeta=True)
    command, expansion = read(*rows)
    assert (command.row_class, command.rule, command.confidence) == (RowClass.HUMAN, 18, Confidence.LOW)
    assert (command.id, command.text, expansion.rule) == ("c", "/review all of it", 9)


@pytest.mark.parametrize(
    "follower",
    [
        [],
        [user("<local-command-stdout>x", uuid="e", parentUuid="c")],
        [user("<local-command-caveat>x", uuid="e", parentUuid="c", isMeta=True)],
        [user("Caveat: The messages below", uuid="e", parentUuid="c", isMeta=True)],
        [user("something else", uuid="e", parentUuid="c")],
        [{"type": "assistant", "uuid": "e", "parentUuid": "c"}, user("x", uuid="f", parentUuid="c", isMeta=True)],
        [user("x", uuid="e", parentUuid="other", isMeta=True)],
    ],
)
def test_rule_18_command_without_expansion(follower: list[object]) -> None:
    """A slash command that nothing expands ran locally: its chain ends, or goes on with anything but an expansion."""
    verdicts = [classified for classified in read(user(COMMAND, uuid="c"), *follower) if classified.id == "c"]
    assert [(classified.row_class, classified.rule) for classified in verdicts] == [(RowClass.MACHINE, 18)]
    assert (verdicts[0].confidence, verdicts[0].text) == (None, None)


def test_rule_18_other_chains_between() -> None:
    """Two terminals interleave their rows: what belongs to another chain settles nothing."""
    reader = TranscriptReader()
    assert reader.feed(user(COMMAND, uuid="c")) == []
    assert [verdict.row_class for verdict in reader.feed({"type": "assistant", "uuid": "o", "parentUuid": "x"})] == [RowClass.NOT_A_TURN]
    settled = reader.feed(user("Review …", uuid="e", parentUuid="c", isMeta=True))
    assert [(verdict.id, verdict.row_class) for verdict in settled] == [("c", RowClass.HUMAN), ("e", RowClass.MACHINE)]
    assert reader.finish() == []


def test_rule_18_anchored() -> None:
    """A text that only quotes a command's name, or names it far from the start, is no slash command."""
    assert verdict(user("what is <command-name>/x</command-name>?")) == (RowClass.HUMAN, 20)
    assert verdict(user(f"<command-message>{'x' * 2000}</command-message><command-name>/x</command-name>")) == (RowClass.HUMAN, 20)


def test_rule_18_without_id() -> None:
    """A slash command without an id cannot be followed by anything: it is declined at once."""
    assert [verdict.row_class for verdict in TranscriptReader().feed(user(COMMAND, uuid=None))] == [RowClass.MACHINE]


def test_rule_18_replayed_command() -> None:
    """A slash command that comes again counts once."""
    pair = user(COMMAND, uuid="c"), user("Review …", uuid="e", parentUuid="c", isMeta=True)
    assert classes(*pair, *pair).count(RowClass.HUMAN) == 1


def test_rule_18_precedes_entry_point() -> None:
    """The order of the table holds: a slash command is one whatever its entry point."""
    pair = user(COMMAND, uuid="c", entrypoint="sdk-ts"), user("Review …", uuid="e", parentUuid="c", isMeta=True)
    assert read(*pair)[0].rule == 18


def test_pending_commands_are_bounded() -> None:
    """Of very many unexpanded commands the oldest are declined early, and each gets one verdict."""
    reader = TranscriptReader()
    early = [verdict for n in range(PENDING_MAX + 5) for verdict in reader.feed(user(COMMAND, uuid=f"c{n}"))]
    assert [verdict.id for verdict in early] == [f"c{n}" for n in range(5)]
    assert len(reader.finish()) == PENDING_MAX


def test_seen_ids_are_bounded() -> None:
    """The memory of ids keeps the newest, and forgets the oldest beyond its bound."""
    reader = TranscriptReader()
    for n in range(SEEN_MAX + 1):
        reader.feed(user(uuid=f"u{n}"))
    assert verdict(user(uuid="u1"), reader)[0] is RowClass.REPLAY
    assert verdict(user(uuid="u0"), reader)[0] is RowClass.HUMAN


def test_rule_19_entry_point() -> None:
    """In an old file the entry point of an SDK marks a program's prompt; that of a terminal does not."""
    assert verdict(user(entrypoint="sdk-py")) == (RowClass.PROGRAMMATIC, 19)
    assert verdict(user(entrypoint="cli")) == verdict(user(entrypoint="standalone")) == (RowClass.HUMAN, 20)


@pytest.mark.parametrize("content", ["rename", "<div>pasted</div>", [text_block("hi")], [{"type": "image"}], [{"type": "document"}]])
def test_rule_20_legacy(content: object) -> None:
    """In an old file text, or a picture or document without text, is a person's turn at legacy confidence."""
    (classified,) = read(user(content))
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 20, Confidence.LEGACY)


def test_image_only_turn() -> None:
    """A turn that is only a picture counts once: the meta row that describes the picture is none."""
    companion = user("[Image: original 800x600]", uuid="m", parentUuid="u", isMeta=True, turnCompanion=True)
    for provenance in ({}, HUMAN_ORIGIN):
        assert classes(user([{"type": "image"}], **provenance), companion) == [RowClass.HUMAN, RowClass.MACHINE]


def test_own_texts_can_be_told() -> None:
    """Rule 7.5: a turn without provenance carries its text, which no representation shows; one with provenance does not."""
    (legacy,) = read(user([text_block("rename"), text_block("the flag")]))
    assert legacy.text == "rename\nthe flag"
    assert "rename" not in repr(legacy)
    assert read(user(**HUMAN_ORIGIN))[0].text is None


@pytest.mark.parametrize(
    ("timestamp", "occurred_at_ms"),
    [
        (NOON, NOON_MS),
        ("2026-11-02T12:00:00.0019Z", NOON_MS + 1),
        ("2026-11-02T13:00:00+01:00", NOON_MS),
        ("2026-11-02T12:00:00", NOON_MS),
        ("yesterday", None),
        (NOON_MS, None),
        (None, None),
    ],
)
def test_times(timestamp: object, occurred_at_ms: int | None) -> None:
    """A row's time is whole milliseconds rounded down, in UTC where it names no zone; anything else is no time."""
    assert read(user(timestamp=timestamp))[0].occurred_at_ms == occurred_at_ms


def test_copied_reader_goes_on_by_itself() -> None:
    """What a copy reads leaves the reader as it was, so that rows that did not count can be read again."""
    reader = TranscriptReader()
    reader.feed(user(COMMAND, uuid="c"))
    rows = [user("Review …", uuid="e", parentUuid="c", isMeta=True), user(uuid="n"), user(uuid="p", promptSource="typed"), user(uuid="x")]
    attempts = [read(*rows, reader=reader.copy()) for _ in range(2)]
    assert attempts[0] == attempts[1] == read(*rows, reader=reader)


def test_shapes_hold_no_content() -> None:
    """The shape of a row is short, plain and of one line whatever stands in its fields."""
    origin = {"kind": "k" * 99}
    shape = shape_of({"type": "se\ncret\u202e " * 99, "origin": origin, "promptSource": ["x"], "message": {"content": "secret"}})
    assert shape == f"type={('se?cret??' * 9)[:40]} origin={'k' * 40} promptSource=array"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = ["human", "peer", "channel", "typed", "sdk", "system", "queued_command", "compact_boundary", "text", "image", "tool_result"]
BLOCKS = st.lists(JSON | st.fixed_dictionaries({"type": st.sampled_from(NAMES) | JSON}, optional={"text": st.text() | JSON}), max_size=3)
ORIGIN = JSON | st.fixed_dictionaries({"kind": st.sampled_from(NAMES) | JSON})
CONTENT = JSON | BLOCKS | st.sampled_from([COMMAND, *MACHINE_TEXTS])
FIELDS = {
    "type": st.sampled_from(["user", "attachment", "system", "assistant", "new"]) | JSON,
    "uuid": st.sampled_from(["a", "b", "c"]) | JSON,
    "parentUuid": st.sampled_from(["a", "b", "c"]) | JSON,
    "timestamp": st.sampled_from([NOON, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-14:00"]) | JSON,
    "origin": ORIGIN,
    "promptSource": st.sampled_from(NAMES) | JSON,
    "message": JSON | st.fixed_dictionaries({"content": CONTENT}),
    "attachment": JSON | st.fixed_dictionaries({"type": st.sampled_from(NAMES) | JSON}, optional={"origin": ORIGIN, "prompt": CONTENT}),
    "isMeta": JSON,
    "isSidechain": JSON,
    "subtype": st.sampled_from(NAMES) | JSON,
    "entrypoint": JSON,
}
ROWS = st.lists(JSON | st.fixed_dictionaries({}, optional=FIELDS), max_size=8)


@given(rows=ROWS, adopted_at_ms=st.none() | st.just(NOON_MS))
def test_any_rows(rows: list[object], adopted_at_ms: int | None) -> None:
    """Whatever the rows are, each gets one verdict, no exception; exactly the unknown ones have a shape, only human ones a confidence."""
    verdicts = read(*rows, reader=TranscriptReader(adopted_at_ms=adopted_at_ms))
    assert len(verdicts) == len(rows)
    for classified in verdicts:
        assert (classified.shape is not None) == (classified.row_class is RowClass.UNKNOWN)
        assert (classified.confidence is not None) == (classified.row_class is RowClass.HUMAN)
        assert classified.shape is None or (classified.shape.isascii() and len(classified.shape) < 400)


@given(row=st.fixed_dictionaries({"type": st.just("user"), "origin": ORIGIN, "message": FIELDS["message"]}))
def test_fails_closed(row: dict[str, object]) -> None:
    """Of all rows that have an origin, only one whose kind is exactly human is a person's turn."""
    (classified,) = read(row)
    origin = row["origin"]
    human = isinstance(origin, dict) and origin.get("kind") == "human"
    assert human or classified.row_class is not RowClass.HUMAN
