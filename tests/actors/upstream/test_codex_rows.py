"""Codex rollouts: each rule of the table, each trap, on rows made here."""

from __future__ import annotations

import json

import pytest

from kizuki.actors.upstream.catalog import Happening
from kizuki.actors.upstream.formats.codex import TYPES_WITHOUT_TURNS, TranscriptReader
from kizuki.actors.upstream.formats.rows import Classified, Confidence, RowClass, Unreadable

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000
EARLIER = "2026-11-02T11:00:00.000Z"
LATER = "2026-11-02T13:00:00.000Z"


def line(kind: str, payload: object, **fields: object) -> dict[str, object]:
    return {"timestamp": NOON, "type": kind, "payload": payload, **fields}


def header(**fields: object) -> dict[str, object]:
    payload = {"id": "t-1", "cwd": "/w", "originator": "codex_cli_rs", "source": "cli", "thread_source": "user"}
    return line("session_meta", {**payload, **fields})


def event(event_type: str, timestamp: str = NOON, **fields: object) -> dict[str, object]:
    return line("event_msg", {"type": event_type, **fields}, timestamp=timestamp)


def typed(message: str = "rename the flag", timestamp: str = NOON, **fields: object) -> dict[str, object]:
    """Rule 3: the event of a user's message."""
    return event("user_message", timestamp, message=message, images=[], local_images=[], **fields)


def item(identity: str = "u-1", turn_id: str = "r-1", text: str = "rename the flag") -> dict[str, object]:
    """Rule 4: the completed item of a user's message."""
    content = [{"type": "text", "text": text}]
    return event("item_completed", turn_id=turn_id, item={"type": "UserMessage", "id": identity, "content": content})


def message(*kinds: str, text: str = "rename the flag", turn_id: str = "r-1", role: str = "user") -> dict[str, object]:
    """Rules 5 and 6: the item for the model, with one text for each kind."""
    content = [{"type": "input_text", "text": text} for _ in kinds or ("",)]
    payload: dict[str, object] = {"type": "message", "role": role, "content": content}
    if kinds:
        payload["internal_chat_message_metadata_passthrough"] = {"turn_id": turn_id, "content_item_kinds": list(kinds)}
    return line("response_item", payload)


def answer() -> dict[str, object]:
    """The model says something: what a person says now is said anew."""
    return line("response_item", {"type": "message", "role": "assistant", "content": []})


def read(*rows: object, reader: TranscriptReader | None = None) -> list[Classified]:
    reader = reader or TranscriptReader()
    return [classified for row in rows for classified in reader.feed(row)] + reader.finish()


def verdict(row: object, *before: object) -> tuple[RowClass, int]:
    """Class and rule of a row in a person's thread, after other rows."""
    classified = read(header(), *before, row)[-1]
    return classified.row_class, classified.rule


def turns(*rows: object) -> int:
    return sum(classified.row_class is RowClass.HUMAN for classified in read(*rows))


def happenings(*rows: object) -> list[Happening]:
    return [classified.happening for classified in read(*rows) if classified.happening is not None]


SYNTHETIC = """
{"timestamp":"2026-11-02T10:00:00.000Z","ordinal":0,"type":"session_meta","payload":{"id":"t-1","timestamp":"2026-11-02T10:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","source":"cli","thread_source":"user","cli_version":"0.155.0"}}
{"timestamp":"2026-11-02T10:00:01.000Z","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>...</environment_context>"}],"internal_chat_message_metadata_passthrough":{"turn_id":"r-1","content_item_kinds":["environments.environment_context"]}}}
{"timestamp":"2026-11-02T10:00:02.000Z","ordinal":2,"type":"response_item","payload":{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"rename the flag"}],"internal_chat_message_metadata_passthrough":{"turn_id":"r-1","content_item_kinds":["user.text"]}}}
{"timestamp":"2026-11-02T10:00:02.001Z","ordinal":3,"type":"event_msg","payload":{"type":"item_completed","thread_id":"t-1","turn_id":"r-1","item":{"type":"UserMessage","id":"u-1","content":[{"type":"text","text":"rename the flag"}]}}}
{"timestamp":"2026-11-02T10:05:00.000Z","ordinal":4,"type":"event_msg","payload":{"type":"user_message","message":"","images":[],"local_images":["/w/shot.png"],"text_elements":[]}}
{"timestamp":"2026-11-02T10:06:00.000Z","ordinal":5,"type":"compacted","payload":{"message":"...","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"rename the flag"}]}]}}
"""  # noqa: E501 - rows are kept as they stand in a file


def test_synthetic_rows() -> None:
    """Header, injected context, one turn that two rows tell of, a turn that is a picture alone, compaction."""
    classes = [classified.row_class for classified in read(*(json.loads(row) for row in SYNTHETIC.strip().splitlines()))]
    told = [RowClass.HUMAN, RowClass.REPLAY]
    assert classes == [RowClass.NOT_A_TURN, RowClass.MACHINE, *told, RowClass.HUMAN, RowClass.COMPACTED]


@pytest.mark.parametrize(("row", "shape"), [(None, "null"), ([1], "array"), ("text", "string"), (1, "number")])
def test_no_objects(row: object, shape: str) -> None:
    """Rule 7.7: what is no object is declined by its type, what is no JSON is unreadable."""
    (classified,) = read(row)
    assert (classified.row_class, classified.rule, classified.shape) == (RowClass.UNKNOWN, 0, shape)
    assert read(Unreadable("not JSON"))[0].row_class is RowClass.UNREADABLE


@pytest.mark.parametrize("row", [line("event_msg", None), line("compacted", "text"), {"type": "event_msg"}])
def test_no_payload(row: object) -> None:
    """A line without a payload is of a shape never seen."""
    assert verdict(row) == (RowClass.UNKNOWN, 0)


@pytest.mark.parametrize(
    "source",
    [
        {"thread_source": "subagent"},
        {"thread_source": "guardian_review"},
        {"thread_source": "memory_consolidation"},
        {"thread_source": None, "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}},
    ],
)
@pytest.mark.parametrize("row", [typed(), item(), message("user.text")])
def test_rule_1_agents_threads(source: dict[str, object], row: object) -> None:
    """An agent's own thread holds no human turn, whichever row tells of one."""
    assert read(header(**source), row)[1].row_class is RowClass.SUBAGENT


@pytest.mark.parametrize("source", [{"thread_source": None}, {"thread_source": "user"}, {"thread_source": None, "source": "vscode"}])
def test_rule_1_persons_threads(source: dict[str, object]) -> None:
    """Without a source, or with a user's, a thread is a person's."""
    assert turns(header(**source), typed()) == 1


def test_rule_1_unknown_source() -> None:
    """Sources are an open list: one never seen holds no human turn, and is counted."""
    for source, shape in (("dreams", "dreams"), (7, "number")):
        classified = read(header(thread_source=source), typed())[1]
        assert (classified.row_class, classified.rule) == (RowClass.UNKNOWN, 1)
        assert classified.shape == f"type=event_msg payload=user_message thread_source={shape}"


@pytest.mark.parametrize("source", [{"source": "exec"}, {"originator": "codex_exec"}])
@pytest.mark.parametrize("row", [typed(), item(), message("user.text")])
def test_rule_1_exec(source: dict[str, object], row: object) -> None:
    """Prompts of `codex exec` look like typed ones and are a program's."""
    assert read(header(**source), row)[1].row_class is RowClass.PROGRAMMATIC


def test_rule_2_fork() -> None:
    """What is older than a fork's own beginning is copied; what comes after it is its own."""
    copies = typed(timestamp=EARLIER), event("context_compacted", EARLIER), message("user.text") | {"timestamp": EARLIER}
    rows = read(header(forked_from_id="t-0"), *copies, typed(timestamp=LATER))
    assert [classified.row_class for classified in rows[1:]] == [RowClass.COPIED] * 3 + [RowClass.HUMAN]
    assert rows[1].rule == 2


def test_rule_2_second_header() -> None:
    """The metadata of another thread inside a file make it a fork, too, and change nothing of whose it is."""
    rows = read(header(), typed(timestamp=EARLIER), header(id="t-0", thread_source="subagent", timestamp=EARLIER), typed(timestamp=EARLIER))
    assert [classified.row_class for classified in rows[1:]] == [RowClass.HUMAN, RowClass.COPIED, RowClass.COPIED]
    assert turns(header(), header(id="t-1"), typed(timestamp=LATER)) == 1


def test_old_rows_of_no_fork() -> None:
    """In a file that is no fork a row stamped before the metadata is a row like any other."""
    assert verdict(typed(timestamp=EARLIER)) == (RowClass.HUMAN, 3)


def test_rows_from_before_the_adoption() -> None:
    """Rule 7.1: a row stamped before the adoption is a replay."""
    reader = TranscriptReader(adopted_at_ms=NOON_MS + 60_000)
    rows = read(header(), typed(), typed(timestamp=LATER), reader=reader)
    assert [classified.row_class for classified in rows[1:]] == [RowClass.REPLAY, RowClass.HUMAN]


def test_rule_3_event() -> None:
    """The event of a user's message is a turn, says not who sent it, and so carries its text."""
    classified = read(header(), typed())[1]
    assert (classified.row_class, classified.rule, classified.confidence) == (RowClass.HUMAN, 3, Confidence.UNATTRIBUTED)
    assert (classified.text, classified.occurred_at_ms) == ("rename the flag", NOON_MS)
    assert "rename" not in repr(classified)


@pytest.mark.parametrize("name", ["images", "local_images", "audio", "local_audio"])
def test_rule_3_attachments_only(name: str) -> None:
    """A picture or a recording without a text is a turn."""
    assert verdict(line("event_msg", {"type": "user_message", "message": "", name: ["x"]})) == (RowClass.HUMAN, 3)


@pytest.mark.parametrize("text", ["", "  \n", "\u3000"])
def test_rule_3_blank(text: str) -> None:
    """An event that says nothing is no turn."""
    assert verdict(typed(text)) == (RowClass.NOT_A_TURN, 3)
    assert verdict(event("user_message", message=7)) == (RowClass.NOT_A_TURN, 3)


INJECTED = [
    "# AGENTS.md instructions for /w",
    "<environment_context>x",
    "<extension_context>x",
    "<goal_context>x",
    "<subagent_notification>x",
    "<Subagent_Notification>x",
    "<user_instructions>x",
    "<INSTRUCTIONS>x",
    "<hook_prompt>x",
    "<skill>x",
    "<user_shell_command>ls",
    "<turn_aborted>x",
    "<permissions instructions>x",
    "<collaboration_mode>x",
    "Warning: apply_patch was requested via exec_command.",
    "Warning: The maximum number of unified exec processes is 60.",
]


@pytest.mark.parametrize("text", INJECTED)
def test_rule_3_injected_text(text: str) -> None:
    """An event whose text begins as injected ones do is the tool's; a text that quotes one is a person's."""
    assert verdict(typed(text)) == verdict(typed("\n " + text)) == (RowClass.MACHINE, 3)
    assert verdict(typed(f"what is {text}?")) == (RowClass.HUMAN, 3)


def test_rule_3_kinds_of_old_events() -> None:
    """Old events say of what kind they are."""
    assert verdict(typed("x", kind="plain")) == (RowClass.HUMAN, 3)
    assert verdict(typed("x", kind="environment_context")) == (RowClass.MACHINE, 3)


@pytest.mark.parametrize("text", ["<div>pasted</div>", "Warning: this is hot"])
def test_text_that_is_no_wrapper(text: str) -> None:
    """A pasted element or a warning of one's own is no wrapper."""
    assert verdict(typed(text)) == (RowClass.HUMAN, 3)


def test_rule_4_item() -> None:
    """The completed item of a user's message is a turn, known again by the item's id."""
    first, again = read(header(), item(), item())[1:]
    assert (first.row_class, first.rule, first.id, first.text) == (RowClass.HUMAN, 4, "u-1", "rename the flag")
    assert again.row_class is RowClass.REPLAY


def test_rule_4_pictures_and_blanks() -> None:
    """An item with a picture alone is a turn; a blank one is none, and one of an unknown shape is counted."""
    picture = {"type": "UserMessage", "id": "u", "content": [{"type": "local_image", "path": "/w/x.png"}]}
    assert verdict(event("item_completed", item=picture)) == (RowClass.HUMAN, 4)
    assert verdict(item(text=" ")) == verdict(event("item_completed", item={**picture, "content": []})) == (RowClass.NOT_A_TURN, 4)
    assert verdict(event("item_completed", item={**picture, "content": "x"})) == (RowClass.UNKNOWN, 4)


def test_rule_4_other_items() -> None:
    """Other items are no turns, and one without a type is unknown."""
    assert verdict(event("item_completed", item={"type": "Plan", "text": "x"})) == (RowClass.NOT_A_TURN, 8)
    assert verdict(event("item_completed", item={"text": "x"})) == (RowClass.UNKNOWN, 0)


def test_rule_5_user_text() -> None:
    """Of a message with kinds, what is a user's text decides, and only that is what was said."""
    row = message("environments.environment_context", "user.text")
    payload = row["payload"]
    assert isinstance(payload, dict)
    payload["content"][0]["text"] = "<environment_context>"
    classified = read(header(), row)[1]
    assert (classified.row_class, classified.rule, classified.text) == (RowClass.HUMAN, 5, "rename the flag")


def test_rule_5_user_picture() -> None:
    """A user's picture alone is a turn."""
    row = message("user.image")
    payload = row["payload"]
    assert isinstance(payload, dict)
    payload["content"] = [{"type": "input_image", "image_url": "data:"}]
    assert verdict(row) == (RowClass.HUMAN, 5)


@pytest.mark.parametrize(
    "kind",
    [
        "agents_md.instructions",
        "environments.environment_context",
        "hooks.additional_context",
        "skills.selected_skill_instructions",
        "goal.internal_context",
        "heartbeat.tick",
    ],
)
def test_rule_5_injected_kinds(kind: str) -> None:
    """A message of injected kinds only is the tool's."""
    assert verdict(message(kind)) == (RowClass.MACHINE, 5)


def test_rule_5_unknown_kinds() -> None:
    """A kind never seen is declined and counted."""
    classified = read(header(), message("telepathy.text", "user.hologram"))[1]
    assert (classified.row_class, classified.rule) == (RowClass.UNKNOWN, 5)
    assert classified.shape == "type=response_item payload=message role=user kinds=[telepathy.text,user.hologram] content=[input_text]"


@pytest.mark.parametrize("kinds", [["user.text", "user.text"], [], [7], "user.text", {}])
def test_rule_5_kinds_that_do_not_fit(kinds: object) -> None:
    """Kinds that do not stand beside the content tell nothing."""
    row = message("user.text")
    payload = row["payload"]
    assert isinstance(payload, dict)
    payload["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    assert verdict(row) == (RowClass.UNKNOWN, 5)


def test_rule_5_blank_text() -> None:
    """A user's text of white space is no turn."""
    assert verdict(message("user.text", text=" "))[0] is not RowClass.HUMAN


def test_rule_6_no_kinds() -> None:
    """An older message is no turn by itself: the event that follows it is, if one does."""
    assert verdict(message()) == (RowClass.MACHINE, 6)
    assert [turns(header(), message(), typed()), turns(header(), message(text="<environment_context>"), answer())] == [1, 0]


@pytest.mark.parametrize("row", [typed(), item(), message("user.text")])
def test_rule_7_inherited(row: dict[str, object]) -> None:
    """A parent's text that was copied into a child is no turn of it."""
    assert verdict({**row, "metadata": {"inherited_user_message": True}}) == (RowClass.COPIED, 7)
    assert verdict({**row, "metadata": {"inherited_user_message": False}})[0] is RowClass.HUMAN


@pytest.mark.parametrize(
    ("row", "row_class"),
    [
        (message(role="developer"), RowClass.NOT_A_TURN),
        (message(role="assistant"), RowClass.NOT_A_TURN),
        (line("response_item", {"type": "function_call", "name": "x"}), RowClass.NOT_A_TURN),
        (line("response_item", {"type": "function_call_output", "output": "x"}), RowClass.TOOL_RESULT),
        (line("response_item", {"type": "custom_tool_call"}), RowClass.NOT_A_TURN),
        (line("response_item", {"type": "custom_tool_call_output"}), RowClass.TOOL_RESULT),
        (line("response_item", {"type": "reasoning"}), RowClass.NOT_A_TURN),
        (line("response_item", {"type": "agent_message", "author": "/root/a", "content": []}), RowClass.AGENT),
        (line("inter_agent_communication", {"trigger_turn": True, "content": "x"}), RowClass.AGENT),
        (line("inter_agent_communication_metadata", {"trigger_turn": True}), RowClass.AGENT),
        (event("agent_message", message="x"), RowClass.NOT_A_TURN),
        (event("token_count"), RowClass.NOT_A_TURN),
        *((line(kind, {}), RowClass.NOT_A_TURN) for kind in sorted(TYPES_WITHOUT_TURNS)),
    ],
)
def test_rule_8_others(row: object, row_class: RowClass) -> None:
    """What the model, the tool or another agent wrote is no turn; what came from another agent is an agent's."""
    assert verdict(row) == (row_class, 8)


@pytest.mark.parametrize(
    "row", [line("hologram", {}), line("response_item", {"type": "hologram"}), event("hologram"), message(role="ghost")]
)
def test_unknown_rows(row: object) -> None:
    """A type, an item, an event or a role never seen is declined and counted."""
    classified = read(header(), row)[1]
    assert (classified.row_class, classified.rule) == (RowClass.UNKNOWN, 0)
    assert "hologram" in (classified.shape or "") or "ghost" in (classified.shape or "")


@pytest.mark.parametrize(
    "rows",
    [
        [message("user.text"), item()],
        [message("user.text"), typed()],
        [typed(), message("user.text")],
        [message("user.text"), item(), typed()],
        [message(), typed()],
        [typed(), event("task_started", turn_id="r-1"), message("user.text")],
        [message("user.text"), event("token_count"), typed()],
    ],
)
def test_one_turn_counts_once(rows: list[object]) -> None:
    """Rules 3 to 5: a turn that several kinds of rows tell of counts once, in whichever order they come."""
    assert turns(header(), *rows) == 1
    assert turns(header(), *rows, answer(), *[row for row in rows if row != item()]) == 2


@pytest.mark.parametrize(
    "rows",
    [
        [message("user.text"), item(), message("user.text"), item("u-2")],
        [message("user.text"), message("user.text"), typed(), typed()],
        [typed("continue"), typed("continue")],
        [message("user.text"), message("user.text", turn_id="r-2"), item("u-2", turn_id="r-2")],
        [message("user.text"), item("u-2", turn_id="r-2")],
        [message("user.text"), typed("and the docs", LATER)],
        [message("user.text"), answer(), typed()],
        [message("user.text"), line("response_item", {"type": "function_call"}), typed()],
        [message("user.text"), event("turn_aborted", reason="interrupted"), typed()],
        [message("user.text"), event("item_completed", item={"type": "AgentMessage"}), typed()],
    ],
)
def test_two_inputs_count_twice(rows: list[object]) -> None:
    """What a person adds while a turn runs, and what they repeat later, counts on its own."""
    assert turns(header(), *rows) == 2


@pytest.mark.parametrize("before", [[], [message("user.text")], [typed()]])
def test_rule_4_same_item_again(before: list[object]) -> None:
    """Rule 4: the item's id is the dedupe key, also where another row told of its turn before it."""
    assert turns(header(), *before, item(), item()) == 1
    assert turns(header(), *before, item(), answer(), item()) == 1


def test_told_in_other_words() -> None:
    """Rows of two kinds that are written together tell of one turn, also where one of them leaves something out."""
    assert turns(header(), message("user.text", text="look at image 1"), typed("look")) == 1
    assert turns(header(), message("user.text", text="look at image 1"), typed("look", LATER)) == 2
    pair = message("user.text", text="one"), message("user.text", text="two")
    assert turns(header(), *pair, typed("two"), typed("one")) == 2


def test_order_of_the_table() -> None:
    """Where several rules apply, whose the row is comes before what it is."""
    old = TranscriptReader(adopted_at_ms=NOON_MS + 60_000)
    assert read(header(thread_source="subagent"), typed(), reader=old)[1].row_class is RowClass.REPLAY
    assert read(header(source="exec"), typed("<turn_aborted>"))[1].row_class is RowClass.MACHINE
    assert read(header(source="exec"), typed(" "))[1].row_class is RowClass.NOT_A_TURN
    assert read(header(source="exec"), message("user.text"), typed())[2].row_class is RowClass.REPLAY
    inherited = {**typed("<turn_aborted>"), "metadata": {"inherited_user_message": True}}
    assert read(header(source="exec"), inherited)[1].row_class is RowClass.COPIED
    assert read(header(thread_source="dreams"), inherited)[1].row_class is RowClass.UNKNOWN
    assert read(header(), typed(), item(text=" "))[2].row_class is RowClass.NOT_A_TURN
    assert read(header(), line("session_meta", None))[1].row_class is RowClass.COPIED
    assert read(line("event_msg", None), reader=old)[0].row_class is RowClass.UNKNOWN


def test_rule_9_compaction() -> None:
    """A compaction is told once, by its row or its event, and nothing inside it is looked at."""
    history = [message("user.text")["payload"], typed()["payload"]]
    row, told = line("compacted", {"message": "", "replacement_history": history}), event("context_compacted")
    done = event("item_completed", item={"type": "ContextCompaction", "id": "c"})
    compacted = Happening("compacted", "", NOON_MS)
    for rows in ([row], [told], [done], [row, told], [told, row], [row, told, done]):
        assert happenings(header(), *rows) == [compacted]
        assert turns(header(), *rows) == 0
    assert happenings(header(), row, told, typed(), row, told) == [compacted] * 2
    assert happenings(header(), row, answer(), told) == [compacted] * 2
    assert [verdict(row), verdict(told, row)] == [(RowClass.COMPACTED, 9), (RowClass.COMPACTION, 9)]


@pytest.mark.parametrize("kind", ["task_started", "task_complete", "turn_aborted", "thread_rolled_back", "thread_goal_updated"])
def test_rule_10_lifecycle(kind: str) -> None:
    """Starts, ends, interruptions, roll-backs and goals are the tool's own account."""
    assert verdict(event(kind, turn_id="r-1")) == (RowClass.LIFECYCLE, 10)


def test_rule_10_runs() -> None:
    """The end of an agent's own thread is a child's run end; a person's turns are no child's runs."""
    run = event("task_started", turn_id="r"), event("task_complete", turn_id="r")
    rows = *run, event("turn_aborted", turn_id="s"), event("task_complete")
    expected = [Happening("run_ended", "r", NOON_MS, "ok"), Happening("run_ended", "s", NOON_MS, "cancelled")]
    assert happenings(header(thread_source="subagent"), *rows) == expected
    assert happenings(header(), *rows) == []


def test_rule_10_children() -> None:
    """A child that was started is a child; what else becomes of it is none."""
    started = event("sub_agent_activity", kind="started", agent_thread_id="c-1")
    others = event("sub_agent_activity", kind="finished", agent_thread_id="c-1"), event("collab_agent_spawn_end", new_thread_id=None)
    spawned = event("collab_agent_spawn_end", new_thread_id="c-2")
    expected = [Happening("child_spawned", "c-1", NOON_MS), Happening("child_spawned", "c-2", NOON_MS)]
    assert happenings(header(), started, *others, spawned) == expected


def goal(**fields: object) -> dict[str, object]:
    return event("thread_goal_updated", goal={"objective": "ship", "status": "active", "createdAt": 1, "updatedAt": 2, **fields})


def test_rule_10_goals() -> None:
    """A goal is created, updated and cleared; that its tokens are counted is no change of it."""
    rows = (
        goal(updatedAt=1),
        goal(tokensUsed=7),
        goal(status="paused"),
        goal(status="paused", tokensUsed=9),
        event("thread_goal_updated", turn_id="t"),
        event("thread_goal_updated", goal={}),
        event("thread_goal_updated", goal=None),
        goal(),
        event("thread_goal_cleared"),
    )
    details = [happening.detail for happening in happenings(header(), *rows)]
    assert details == ["created", "updated", "cleared", "updated", "cleared"]
    assert {happening.kind for happening in happenings(header(), *rows)} == {"goal_changed"}


def test_copied_rows_happen_nowhere() -> None:
    """A fork's copies of compactions and goals are none of its own."""
    rows = [event("context_compacted", EARLIER), {**goal(), "timestamp": EARLIER}]
    assert happenings(header(forked_from_id="t-0"), *rows) == []


def test_copied_reader_goes_on_by_itself() -> None:
    """What a copy reads leaves the reader as it was."""
    reader = TranscriptReader()
    read(header(), message("user.text"), reader=reader)
    attempts = [read(item(), typed(), goal(), reader=reader.copy()) for _ in range(2)]
    assert attempts[0] == attempts[1]
    assert [classified.row_class for classified in attempts[0]][:2] == [RowClass.REPLAY] * 2
