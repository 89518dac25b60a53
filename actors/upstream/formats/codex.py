"""Which rows of a Codex rollout are a person's turn.

One turn of a person is written several times: as an item for the model, and as an event or a completed item for the screen, which
of them depends on the version and the history mode. `Told` counts it once. Nothing says whether a person or a program sent it,
except that a whole thread can belong to an agent or to `codex exec`; so a turn carries its text, and the host's own are told from
a person's by that.

The numbers of the rules are those of the description; what makes a row no turn whatever its type stands before what makes it one.
What happened to the thread itself is told of an agent's own thread, too: its end is the end of a child's run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from ..catalog import Happening
from . import tables
from .contents import is_blank, shape_of_content, texts_in
from .fields import JsonRow, identity_in, is_set, json_type, object_of, objects_in, present, text_of, time_in, word
from .pairing import Told
from .rows import Classified, Confidence, RowClass
from .tables import Rule, Table, TableReader, is_replay, no_rows

CATALOG = "codex"

AGENT_SOURCES = frozenset({"subagent", "guardian_review", "memory_consolidation"})
INJECTED_KINDS = ("agents_md.", "environments.", "hooks.", "skills.", "goal.", "heartbeat")
USER_TEXT_KIND = "user.text"
TYPES_WITHOUT_TURNS = frozenset(
    {"turn_context", "token_usage_record", "world_state", "security_risk_score", "retained_context", "realtime_item"}
)
AGENT_TYPES = frozenset({"inter_agent_communication", "inter_agent_communication_metadata"})
ITEMS_WITHOUT_TURNS = frozenset(
    {
        "additional_tools",
        "reasoning",
        "local_shell_call",
        "function_call",
        "tool_search_call",
        "custom_tool_call",
        "web_search_call",
        "image_generation_call",
        "ghost_snapshot",
        "compaction",
        "compaction_trigger",
        "context_compaction",
        "mcp_tool_call",
    }
)
TOOL_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"})
EVENTS_WITHOUT_TURNS = frozenset(
    {
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "token_count",
        "thread_name_updated",
        "entered_review_mode",
        "exited_review_mode",
        "undo_completed",
        "image_generation_end",
        "error",
        "stream_error",
        "warning",
        "guardian_warning",
        "guardian_assessment",
        "web_search_end",
        "exec_command_end",
        "patch_apply_end",
        "mcp_tool_call_end",
        "view_image_tool_call",
        "collab_agent_interaction_end",
        "collab_waiting_end",
        "collab_close_end",
        "collab_resume_end",
        "dynamic_tool_call_request",
        "dynamic_tool_call_response",
        "thread_settings_applied",
        "turn_diff",
        "plan_update",
        "injected_message",
        "model_reroute",
    }
)
RUN_ENDS = frozenset({"task_complete", "turn_complete", "turn_aborted"})
LIFECYCLE_EVENTS = RUN_ENDS | {
    "task_started",
    "turn_started",
    "thread_rolled_back",
    "thread_goal_updated",
    "thread_goal_cleared",
    "sub_agent_activity",
    "collab_agent_spawn_end",
}
_MODEL_ITEMS = ITEMS_WITHOUT_TURNS - {"additional_tools", "ghost_snapshot", "compaction", "compaction_trigger", "context_compaction"}
_MODEL_EVENTS = frozenset({"agent_message", "agent_reasoning", "agent_reasoning_raw_content"}) | RUN_ENDS

_TEXT_BLOCKS = ("input_text", "text")
_ATTACHMENTS = ("images", "local_images", "audio", "local_audio")
_USER_IMAGE_BLOCKS = frozenset({"input_image", "image", "local_image"})

_injected_text = re.compile(
    r"\s*(?:# AGENTS\.md instructions\b|<(?:environment_context|extension_context|goal_context|subagent_notification|user_instructions"
    r"|instructions|hook_prompt|skill|user_shell_command|turn_aborted|permissions instructions|collaboration_mode)\b"
    r"|Warning: (?:apply_patch was requested via|The maximum number of unified exec))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Facts(tables.Facts):
    """What the table must know beyond the row."""

    header: bool = False
    """Whether the file's own metadata came."""
    first: bool = False
    """Whether this row is they."""
    agent_thread: bool = False
    unknown_source: str | None = None
    """The shape of a source of the thread that is not known."""
    programmatic: bool = False
    began_at_ms: int | None = None
    forked: bool = False
    """Whether the file holds a copy of another thread."""
    turn_id: str = ""
    """Of the last input that named its turn."""
    inputs: Told = field(default_factory=Told)
    compactions: Told = field(default_factory=Told)
    goal: str = ""
    """A digest of the thread's goal; empty where it has none, or none was seen."""


def _has_no_payload(row: JsonRow, _: Facts) -> bool:
    return not isinstance(row.get("payload"), dict)


def _is_of_user_in_agent_thread(row: JsonRow, facts: Facts) -> bool:
    return facts.agent_thread and _input_kind(row) is not None


def _is_of_user_in_unknown_thread(row: JsonRow, facts: Facts) -> bool:
    return facts.unknown_source is not None and _input_kind(row) is not None


def _is_header(row: JsonRow, facts: Facts) -> bool:
    return _type(row) == "session_meta" and facts.first


def _is_copied(row: JsonRow, facts: Facts) -> bool:
    occurred_at_ms = time_in(row, "timestamp")
    older = facts.began_at_ms is not None and occurred_at_ms is not None and occurred_at_ms < facts.began_at_ms
    return _type(row) == "session_meta" or (facts.forked and older)


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    return is_replay(time_in(row, "timestamp"), facts)


def _is_inherited(row: JsonRow, _: Facts) -> bool:
    return object_of(row, "metadata").get("inherited_user_message") is True


def _is_user_event(row: JsonRow, _: Facts) -> bool:
    return _input_kind(row) == "event"


def _is_injected_event(row: JsonRow, facts: Facts) -> bool:
    """Old versions told of what they had injected by the same event, some of them with a kind of message."""
    marked = text_of(_payload(row), "kind") not in ("", "plain")
    return _is_user_event(row, facts) and (marked or _injected_text.match(text_of(_payload(row), "message")) is not None)


def _is_blank_event(row: JsonRow, facts: Facts) -> bool:
    payload = _payload(row)
    attached = any(is_set(payload, name) for name in _ATTACHMENTS)
    return _is_user_event(row, facts) and not attached and not text_of(payload, "message").strip()


def _is_user_item(row: JsonRow, _: Facts) -> bool:
    return _input_kind(row) == "item"


def _is_item_of_unknown_content(row: JsonRow, facts: Facts) -> bool:
    return _is_user_item(row, facts) and not isinstance(_item(row).get("content"), list)


def _is_blank_item(row: JsonRow, facts: Facts) -> bool:
    return _is_user_item(row, facts) and is_blank(_item(row).get("content"), _TEXT_BLOCKS)


def _is_told_before(row: JsonRow, facts: Facts) -> bool:
    kind = _input_kind(row)
    return kind is not None and not facts.inputs.is_news(kind, _key(row), time_in(row, "timestamp"))


def _is_programs(row: JsonRow, facts: Facts) -> bool:
    return facts.programmatic and _input_kind(row) is not None


def _is_user_message(row: JsonRow, _: Facts) -> bool:
    return _input_kind(row) == "message"


def _is_message_of_unknown_kinds(row: JsonRow, _: Facts) -> bool:
    return _is_message_of(row, "user") and _kinds(row) is None and _names_kinds(row)


def _is_message_of_other_kinds(row: JsonRow, _: Facts) -> bool:
    kinds = _kinds(row)
    return _is_message_of(row, "user") and bool(kinds) and not all(kind.startswith(INJECTED_KINDS) for kind in kinds or ())


def _is_injected_message(row: JsonRow, _: Facts) -> bool:
    return _is_message_of(row, "user") and _names_kinds(row)


def _is_message_without_kinds(row: JsonRow, _: Facts) -> bool:
    """What such a row holds was a person's if an event says so within the next rows, and then the event is the turn."""
    return _is_message_of(row, "user")


def _is_of_agent(row: JsonRow, _: Facts) -> bool:
    return _type(row) in AGENT_TYPES or (_type(row) == "response_item" and _payload_type(row) == "agent_message")


def _is_tool_output(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "response_item" and _payload_type(row) in TOOL_OUTPUTS


def _is_without_turn(row: JsonRow, _: Facts) -> bool:
    by_type = {"response_item": ITEMS_WITHOUT_TURNS, "event_msg": EVENTS_WITHOUT_TURNS}
    item = _type(row) == "event_msg" and _payload_type(row) == "item_completed" and _item_type(row) != ""
    other_role = _type(row) == "response_item" and text_of(_payload(row), "role") in ("assistant", "developer", "system")
    known = _payload_type(row) in by_type.get(_type(row), frozenset())
    return _type(row) in TYPES_WITHOUT_TURNS or item or other_role or known


def _is_compaction(row: JsonRow, _: Facts) -> bool:
    return _compaction_kind(row) is not None


def _is_compaction_told_before(row: JsonRow, facts: Facts) -> bool:
    kind = _compaction_kind(row)
    return kind is not None and not facts.compactions.is_news(kind, "", None)


def _is_lifecycle(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "event_msg" and _payload_type(row) in LIFECYCLE_EVENTS


HUMAN = (RowClass.HUMAN, Confidence.UNATTRIBUTED)

TABLE: tuple[Rule[Facts], ...] = (
    *no_rows(),
    Rule(1, "header", _is_header, RowClass.NOT_A_TURN),
    Rule(2, "copied by a fork", _is_copied, RowClass.COPIED),
    Rule(0, "no payload", _has_no_payload, RowClass.UNKNOWN),
    Rule(0, "seen before, or older than the adoption", _is_replay, RowClass.REPLAY),
    Rule(1, "thread of an agent", _is_of_user_in_agent_thread, RowClass.SUBAGENT),
    Rule(1, "thread of an unknown source", _is_of_user_in_unknown_thread, RowClass.UNKNOWN),
    Rule(7, "copied into a child", _is_inherited, RowClass.COPIED),
    Rule(3, "injected, of an old version", _is_injected_event, RowClass.MACHINE),
    Rule(3, "nothing said", _is_blank_event, RowClass.NOT_A_TURN),
    Rule(4, "item of unknown content", _is_item_of_unknown_content, RowClass.UNKNOWN),
    Rule(4, "item that says nothing", _is_blank_item, RowClass.NOT_A_TURN),
    Rule(3, "told before by a row of another kind", _is_told_before, RowClass.REPLAY),
    Rule(1, "prompt of codex exec", _is_programs, RowClass.PROGRAMMATIC),
    Rule(3, "event of a user's message", _is_user_event, *HUMAN),
    Rule(4, "item of a user's message", _is_user_item, *HUMAN),
    Rule(5, "user's text among the kinds", _is_user_message, *HUMAN),
    Rule(5, "kinds that do not fit the content", _is_message_of_unknown_kinds, RowClass.UNKNOWN),
    Rule(5, "unknown kinds", _is_message_of_other_kinds, RowClass.UNKNOWN),
    Rule(5, "injected kinds", _is_injected_message, RowClass.MACHINE),
    Rule(6, "no kinds", _is_message_without_kinds, RowClass.MACHINE),
    Rule(9, "compaction told before", _is_compaction_told_before, RowClass.COMPACTION),
    Rule(9, "compaction", _is_compaction, RowClass.COMPACTED),
    Rule(8, "of another agent", _is_of_agent, RowClass.AGENT),
    Rule(8, "output of a tool", _is_tool_output, RowClass.TOOL_RESULT),
    Rule(8, "of the model or the tool", _is_without_turn, RowClass.NOT_A_TURN),
    Rule(10, "run, child or goal", _is_lifecycle, RowClass.LIFECYCLE),
)


class TranscriptReader(TableReader[Facts]):
    """Folds the table over the rows of one file."""

    def __init__(self, *, adopted_at_ms: int | None = None) -> None:
        super().__init__(_TABLE, Facts(adopted_at_ms))


def _learned(facts: Facts, row: JsonRow) -> Facts:
    if _type(row) != "session_meta":
        return _bounded(facts, row)
    if facts.header:
        return replace(facts, first=False, forked=True)
    payload = _payload(row)
    return replace(
        facts,
        header=True,
        first=True,
        agent_thread=_is_agents(payload),
        unknown_source=_unknown_source(payload),
        programmatic=payload.get("source") == "exec" or payload.get("originator") == "codex_exec",
        began_at_ms=time_in(row, "timestamp"),
        forked=present(payload, "forked_from_id"),
    )


def _is_agents(payload: JsonRow) -> bool:
    return text_of(payload, "thread_source") in AGENT_SOURCES or "subagent" in object_of(payload, "source")


def _unknown_source(payload: JsonRow) -> str | None:
    source = payload.get("thread_source")
    known = source is None or source == "user" or (isinstance(source, str) and source in AGENT_SOURCES)
    return None if known else word(source)


def _bounded(facts: Facts, row: JsonRow) -> Facts:
    """What is told again is told before the model answers, and within one turn."""
    if _is_of_the_model(row):
        return replace(facts, first=False, inputs=Told(), compactions=Told(), turn_id="")
    turn_id = _turn_id(row) if _input_kind(row) else ""
    another = turn_id != "" and facts.turn_id not in ("", turn_id)
    return replace(facts, first=False, turn_id=turn_id or facts.turn_id, inputs=Told() if another else facts.inputs)


def _judged(facts: Facts, row: JsonRow, rule: Rule[Facts]) -> Facts:
    input_kind, compaction_kind = _input_kind(row), _compaction_kind(row)
    if input_kind is not None and rule.number in _INPUT_RULES and rule.row_class in _COUNTED:
        return replace(facts, inputs=facts.inputs.after(input_kind, _key(row), time_in(row, "timestamp")), compactions=Told())
    if compaction_kind is not None and rule.number == 9:
        return replace(facts, compactions=facts.compactions.after(compaction_kind, "", None))
    goal = _goal_digest(row)
    return facts if goal is None else replace(facts, goal=goal)


_INPUT_RULES = frozenset({1, 3, 4, 5})
_COUNTED = frozenset({RowClass.HUMAN, RowClass.PROGRAMMATIC, RowClass.REPLAY})


def _classified(row: object, rule: Rule[Facts], facts: Facts) -> Classified:
    fields: JsonRow = row if isinstance(row, dict) else {}
    return Classified(
        row_class=rule.row_class,
        rule=rule.number,
        occurred_at_ms=time_in(fields, "timestamp"),
        id=_identity(row),
        shape=shape_of(row, facts) if rule.row_class is RowClass.UNKNOWN else None,
        confidence=rule.confidence,
        text=_said(fields) if rule.row_class is RowClass.HUMAN else None,
        happening=_happening(fields, rule, facts),
    )


def _happening(row: JsonRow, rule: Rule[Facts], facts: Facts) -> Happening | None:
    if rule.row_class is RowClass.COMPACTED:
        return Happening("compacted", "", time_in(row, "timestamp"))
    if rule.row_class is not RowClass.LIFECYCLE:
        return None
    tell = _HAPPENINGS.get(_payload_type(row))
    return tell(row, facts) if tell else None


def _completed(row: JsonRow, facts: Facts) -> Happening | None:
    return _run_ended(row, facts, "ok")


def _aborted(row: JsonRow, facts: Facts) -> Happening | None:
    return _run_ended(row, facts, "cancelled")


def _run_ended(row: JsonRow, facts: Facts, outcome: str) -> Happening | None:
    """Only an agent's own thread is the run of a child; the turns of a person's thread are no runs."""
    turn_id = identity_in(_payload(row), "turn_id")
    return Happening("run_ended", turn_id, time_in(row, "timestamp"), outcome) if facts.agent_thread and turn_id else None


def _spawned(row: JsonRow, _: Facts) -> Happening | None:
    payload = _payload(row)
    started = _payload_type(row) != "sub_agent_activity" or payload.get("kind") == "started"
    child = identity_in(payload, "agent_thread_id") or identity_in(payload, "new_thread_id")
    return Happening("child_spawned", child, time_in(row, "timestamp")) if started and child else None


def _goal_changed(row: JsonRow, facts: Facts) -> Happening | None:
    """The event comes whenever the goal's use of tokens and time is accounted for, too: that is no change of the goal."""
    digest = _goal_digest(row)
    if digest is None or digest == facts.goal:
        return None
    goal = object_of(_payload(row), "goal")
    new = present(goal, "createdAt") and goal.get("createdAt") == goal.get("updatedAt")
    change = "cleared" if not digest else "created" if new else "updated"
    return Happening("goal_changed", "", time_in(row, "timestamp"), change)


_HAPPENINGS: dict[str, Callable[[JsonRow, Facts], Happening | None]] = {
    "task_complete": _completed,
    "turn_complete": _completed,
    "turn_aborted": _aborted,
    "sub_agent_activity": _spawned,
    "collab_agent_spawn_end": _spawned,
    "thread_goal_updated": _goal_changed,
    "thread_goal_cleared": _goal_changed,
}


def _goal_digest(row: JsonRow) -> str | None:
    """What the goal is, as a digest; empty where it was cleared, None where the row tells nothing of it."""
    if _type(row) != "event_msg" or _payload_type(row) not in ("thread_goal_updated", "thread_goal_cleared"):
        return None
    goal = _payload(row).get("goal", {})
    if goal is None or _payload_type(row) == "thread_goal_cleared":
        return ""
    if not isinstance(goal, dict) or not goal:
        return None
    what = repr([goal.get(name) for name in ("objective", "status", "tokenBudget")])
    return blake2b(what.encode("utf-8", "replace"), digest_size=8).hexdigest()


def shape_of(row: object, facts: Facts) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return json_type(row)
    payload = _payload(row)
    parts = {
        "type": row.get("type"),
        "payload": payload.get("type"),
        "role": payload.get("role"),
        "item": _item(row).get("type"),
        "thread_source": facts.unknown_source,
    }
    named = [f"{name}={word(value)}" for name, value in parts.items() if value is not None]
    kinds = [f"kinds={_kinds_shape(_passthrough(row).get('content_item_kinds'))}"] if _names_kinds(row) else []
    content = [f"content={shape_of_content(payload.get('content'))}"] if present(payload, "role") else []
    return " ".join([*named, *kinds, *content]) or "object without type"


def _kinds_shape(kinds: object) -> str:
    if not isinstance(kinds, list):
        return json_type(kinds)
    return f"[{','.join(sorted({word(kind) for kind in kinds})[:5])}]"


def _input_kind(row: JsonRow) -> str | None:
    """Which of the three kinds of rows that tell of a user's input it is: `event` (rule 3), `item` (4) or `message` (5)."""
    if _type(row) == "event_msg" and _payload_type(row) == "user_message":
        return "event"
    if _type(row) == "event_msg" and _payload_type(row) == "item_completed" and _item_type(row) == "UserMessage":
        return "item"
    return "message" if _is_message_of(row, "user") and any(_user_elements(row)) else None


def _compaction_kind(row: JsonRow) -> str | None:
    if _type(row) == "compacted":
        return "row"
    if _type(row) != "event_msg":
        return None
    if _payload_type(row) == "context_compacted":
        return "event"
    return "item" if _payload_type(row) == "item_completed" and _item_type(row) == "ContextCompaction" else None


def _is_of_the_model(row: JsonRow) -> bool:
    if _type(row) == "event_msg":
        return _payload_type(row) in _MODEL_EVENTS or _item_type(row) in ("AgentMessage", "Reasoning")
    return _type(row) == "response_item" and (_payload_type(row) in _MODEL_ITEMS or text_of(_payload(row), "role") == "assistant")


def _type(row: JsonRow) -> str:
    return text_of(row, "type")


def _payload(row: JsonRow) -> JsonRow:
    return object_of(row, "payload")


def _payload_type(row: JsonRow) -> str:
    return text_of(_payload(row), "type")


def _item(row: JsonRow) -> JsonRow:
    return object_of(_payload(row), "item")


def _item_type(row: JsonRow) -> str:
    return text_of(_item(row), "type")


def _passthrough(row: JsonRow) -> JsonRow:
    return object_of(_payload(row), "internal_chat_message_metadata_passthrough")


def _turn_id(row: JsonRow) -> str:
    return text_of(_payload(row), "turn_id") or text_of(_passthrough(row), "turn_id")


def _is_message_of(row: JsonRow, role: str) -> bool:
    return _type(row) == "response_item" and _payload_type(row) == "message" and text_of(_payload(row), "role") == role


def _names_kinds(row: JsonRow) -> bool:
    return present(_passthrough(row), "content_item_kinds")


def _kinds(row: JsonRow) -> list[str] | None:
    """The kinds of the elements of the content; None where they do not fit it."""
    kinds, content = _passthrough(row).get("content_item_kinds"), _payload(row).get("content")
    if not isinstance(kinds, list) or not isinstance(content, list) or len(kinds) != len(content):
        return None
    return kinds if all(isinstance(kind, str) for kind in kinds) else None


def _user_elements(row: JsonRow) -> list[JsonRow]:
    """What a user put in: texts that are not blank, and pictures."""
    content = objects_in(_payload(row).get("content"))
    kinds = _kinds(row)
    if kinds is None or len(content) != len(kinds):
        return []
    return [element for kind, element in zip(kinds, content, strict=True) if _is_users(kind, element)]


def _is_users(kind: str, element: JsonRow) -> bool:
    if kind == USER_TEXT_KIND:
        return bool(text_of(element, "text").strip())
    return kind.startswith("user.") and element.get("type") in _USER_IMAGE_BLOCKS


def _said(row: JsonRow) -> str:
    kind = _input_kind(row)
    if kind == "event":
        return text_of(_payload(row), "message")
    return "\n".join(texts_in(_user_elements(row) if kind == "message" else _item(row).get("content"), _TEXT_BLOCKS))


def _key(row: JsonRow) -> str:
    """What was said, as a digest: facts hold nothing that a person wrote."""
    return blake2b(" ".join(_said(row).split()).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _identity(row: object) -> str | None:
    """Only an item of a user's message has an id of its own that stays."""
    fields: JsonRow = row if isinstance(row, dict) else {}
    return identity_in(_item(fields), "id") if _input_kind(fields) == "item" else None


_TABLE = Table(TABLE, _learned, _judged, _identity, _classified)
