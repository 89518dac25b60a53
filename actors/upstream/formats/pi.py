"""Which rows of a Pi session file are a person's turn.

The format is documented, and says nothing of who wrote a `user` message: what an extension or a program sent looks like what was
typed. Only version 3 is followed: older files are written anew when they are loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..catalog import Happening
from . import tables
from .contents import is_blank, shape_of_content, texts_in
from .fields import JsonRow, identity_in, json_type, milliseconds_in, object_of, objects_in, present, text_of, time_in, word
from .rows import Classified, Confidence, RowClass
from .tables import Rule, Table, TableReader, is_replay, no_rows, unchanged

CATALOG = "pi"
VERSION = 3

TYPES_WITHOUT_TURNS = frozenset({"model_change", "thinking_level_change", "label", "session_info", "custom", "leaf"})
_SUMMARY_ROLES = frozenset({"compactionSummary", "branchSummary"})


@dataclass(frozen=True, slots=True)
class Facts(tables.Facts):
    """What the table must know beyond the row."""

    version: object = None
    """As the header of the file gives it; None where there is none."""
    forked: bool = False
    """Whether the file continues another one, of which it holds a copy."""
    began_at_ms: int | None = None


def _is_header(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "session"


def _is_of_other_version(row: JsonRow, facts: Facts) -> bool:
    return _type(row) == "message" and facts.version != VERSION


def _is_copied(row: JsonRow, facts: Facts) -> bool:
    occurred_at_ms = _occurred_at_ms(row)
    older = facts.began_at_ms is not None and occurred_at_ms is not None and occurred_at_ms < facts.began_at_ms
    return facts.forked and older


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    return is_replay(_occurred_at_ms(row), facts)


def _is_compaction(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "compaction"


def _is_branch_summary(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "branch_summary"


def _is_of_type_without_turns(row: JsonRow, _: Facts) -> bool:
    return _type(row) in TYPES_WITHOUT_TURNS


def _is_of_an_extension(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "custom_message" or _role(row) == "custom"


def _is_no_message(row: JsonRow, _: Facts) -> bool:
    return _type(row) != "message"


def _is_of_the_model(row: JsonRow, _: Facts) -> bool:
    return _role(row) == "assistant"


def _is_tool_result(row: JsonRow, _: Facts) -> bool:
    return _role(row) == "toolResult"


def _is_command(row: JsonRow, _: Facts) -> bool:
    """A person ran it, and it asks nothing of the model."""
    return _role(row) == "bashExecution"


def _is_summary(row: JsonRow, _: Facts) -> bool:
    return _role(row) in _SUMMARY_ROLES


def _is_of_unknown_role(row: JsonRow, _: Facts) -> bool:
    return _role(row) != "user"


def _has_unknown_content(row: JsonRow, _: Facts) -> bool:
    return not isinstance(_content(row), str | list)


def _says_nothing(row: JsonRow, _: Facts) -> bool:
    return is_blank(_content(row))


def _says_something(row: JsonRow, _: Facts) -> bool:
    content = _content(row)
    return any(texts_in(content)) or any(block.get("type") == "image" for block in objects_in(content))


TABLE: tuple[Rule[Facts], ...] = (
    *no_rows(),
    Rule(1, "header", _is_header, RowClass.NOT_A_TURN),
    Rule(2, "copied by a fork", _is_copied, RowClass.COPIED),
    Rule(3, "seen before, or older than the adoption", _is_replay, RowClass.REPLAY),
    Rule(4, "compaction", _is_compaction, RowClass.COMPACTED),
    Rule(5, "summary of a branch", _is_branch_summary, RowClass.COMPACTION),
    Rule(6, "type without turns", _is_of_type_without_turns, RowClass.NOT_A_TURN),
    Rule(7, "sent by an extension", _is_of_an_extension, RowClass.MACHINE),
    Rule(8, "unknown type", _is_no_message, RowClass.UNKNOWN),
    Rule(9, "answer of the model", _is_of_the_model, RowClass.NOT_A_TURN),
    Rule(10, "tool result", _is_tool_result, RowClass.TOOL_RESULT),
    Rule(11, "command that a person ran", _is_command, RowClass.NOT_A_TURN),
    Rule(12, "summary", _is_summary, RowClass.COMPACTION),
    Rule(13, "unknown role", _is_of_unknown_role, RowClass.UNKNOWN),
    Rule(14, "file of another version", _is_of_other_version, RowClass.UNKNOWN),
    Rule(15, "unknown content", _has_unknown_content, RowClass.UNKNOWN),
    Rule(15, "nothing said", _says_nothing, RowClass.NOT_A_TURN),
    Rule(16, "message of a user", _says_something, RowClass.HUMAN, Confidence.UNATTRIBUTED),
)


class TranscriptReader(TableReader[Facts]):
    """Folds the table over the rows of one file."""

    def __init__(self, *, adopted_at_ms: int | None = None) -> None:
        super().__init__(_TABLE, Facts(adopted_at_ms))


def shape_of(row: object, facts: Facts) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return json_type(row)
    parts = {"type": row.get("type"), "role": object_of(row, "message").get("role")}
    named = [f"{name}={word(value)}" for name, value in parts.items() if value is not None]
    version = [f"version={facts.version if isinstance(facts.version, int) else json_type(facts.version)}"] if _role(row) == "user" else []
    content = [f"content={shape_of_content(_content(row))}"] if _type(row) == "message" else []
    return " ".join([*named, *version, *content]) or "object without type"


def _classified(row: object, rule: Rule[Facts], facts: Facts) -> Classified:
    fields: JsonRow = row if isinstance(row, dict) else {}
    occurred_at_ms = _occurred_at_ms(fields)
    compacted = rule.row_class is RowClass.COMPACTED
    return Classified(
        row_class=rule.row_class,
        rule=rule.number,
        occurred_at_ms=occurred_at_ms,
        id=_identity(row),
        shape=shape_of(row, facts) if rule.row_class is RowClass.UNKNOWN else None,
        confidence=rule.confidence,
        text="\n".join(texts_in(_content(fields))) if rule.row_class is RowClass.HUMAN else None,
        happening=Happening("compacted", _identity(row) or "", occurred_at_ms) if compacted else None,
    )


def _learned(facts: Facts, row: JsonRow) -> Facts:
    if _type(row) != "session":
        return facts
    return replace(facts, version=row.get("version"), forked=present(row, "parentSession"), began_at_ms=time_in(row, "timestamp"))


def _type(row: JsonRow) -> str:
    return text_of(row, "type")


def _role(row: JsonRow) -> str:
    return text_of(object_of(row, "message"), "role")


def _content(row: JsonRow) -> object:
    return object_of(row, "message").get("content")


def _identity(row: object) -> str | None:
    return identity_in(row, "id")


def _occurred_at_ms(row: JsonRow) -> int | None:
    occurred_at_ms = time_in(row, "timestamp")
    return occurred_at_ms if occurred_at_ms is not None else milliseconds_in(object_of(row, "message"), "timestamp")


_TABLE = Table(TABLE, _learned, unchanged, _identity, _classified)
