"""Which rows of a Gemini CLI session file are a person's turn.

A message is written again, whole and with the same id, whenever something of it changes, and `$set` may hold all messages anew:
these are never looked into. The format says nothing of who wrote a user's message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from . import tables
from .fields import JsonRow, identity_in, json_type, object_of, objects_in, present, text_of, time_in, word
from .rows import Classified, Confidence, RowClass
from .tables import Rule, Table, TableReader, is_replay, no_rows, unchanged

CATALOG = "gemini"
CHATS_FOLDER = "chats"

_MODEL_AND_TOOL_TYPES = frozenset({"gemini", "info", "error", "warning"})
_COMMAND_STARTS = ("/", "?")
_injected = re.compile(r"\s*<(?:session_context|hook_context)\b", re.IGNORECASE)
_OTHER_PARTS = ("inlineData", "fileData")
"""Parts that a person can send without a text: a picture, a file."""


@dataclass(frozen=True, slots=True)
class Facts(tables.Facts):
    """What the table must know beyond the row."""

    subagent_file: bool = False
    """Whether the file lies below the folder of another session."""
    header: bool = False
    """Whether the file said what it is."""
    kind: object = None
    """As the file's metadata give it. Files of older versions are main ones and say nothing."""


def _is_rewind(row: JsonRow, _: Facts) -> bool:
    return present(row, "$rewindTo")


def _is_update(row: JsonRow, _: Facts) -> bool:
    return present(row, "$set")


def _is_header(row: JsonRow, _: Facts) -> bool:
    return _is_metadata(row)


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    return is_replay(time_in(row, "timestamp"), facts)


def _is_of_the_model(row: JsonRow, _: Facts) -> bool:
    return text_of(row, "type") in _MODEL_AND_TOOL_TYPES


def _is_of_unknown_type(row: JsonRow, _: Facts) -> bool:
    return text_of(row, "type") != "user"


def _is_of_subagent(_: JsonRow, facts: Facts) -> bool:
    return facts.subagent_file or facts.kind == "subagent"


def _is_of_unknown_kind(_: JsonRow, facts: Facts) -> bool:
    return not facts.header or facts.kind not in (None, "main")


def _is_tool_result(row: JsonRow, _: Facts) -> bool:
    return any(present(part, "functionResponse") for part in _parts(row.get("content")))


def _has_unknown_content(row: JsonRow, _: Facts) -> bool:
    return not isinstance(row.get("content"), str | list | dict)


def _says_nothing(row: JsonRow, _: Facts) -> bool:
    content = row.get("content")
    elements = content if isinstance(content, list) else [content]
    other = any(isinstance(element, dict) and element.keys() != {"text"} for element in elements)
    return not other and not any(_texts(content))


def _is_injected(row: JsonRow, _: Facts) -> bool:
    """A person's text can stand in a part beside the injected one, so the first text decides only where there is no other."""
    texts = list(_texts(row.get("content")))
    return bool(texts) and all(_injected.match(text) for text in texts) and not _has_other_part(row)


def _is_command(row: JsonRow, _: Facts) -> bool:
    return next(_texts(row.get("content")), "").lstrip().startswith(_COMMAND_STARTS)


def _says_something(row: JsonRow, _: Facts) -> bool:
    return any(_texts(row.get("content"))) or _has_other_part(row)


TABLE: tuple[Rule[Facts], ...] = (
    *no_rows(),
    Rule(1, "rewind", _is_rewind, RowClass.NOT_A_TURN),
    Rule(2, "changed metadata", _is_update, RowClass.NOT_A_TURN),
    Rule(3, "metadata", _is_header, RowClass.NOT_A_TURN),
    Rule(4, "seen before, or older than the adoption", _is_replay, RowClass.REPLAY),
    Rule(5, "of the model or the tool", _is_of_the_model, RowClass.NOT_A_TURN),
    Rule(6, "unknown type", _is_of_unknown_type, RowClass.UNKNOWN),
    Rule(7, "sub-agent", _is_of_subagent, RowClass.SUBAGENT),
    Rule(8, "file of unknown kind", _is_of_unknown_kind, RowClass.UNKNOWN),
    Rule(9, "tool result", _is_tool_result, RowClass.TOOL_RESULT),
    Rule(10, "unknown content", _has_unknown_content, RowClass.UNKNOWN),
    Rule(10, "nothing said", _says_nothing, RowClass.NOT_A_TURN),
    Rule(11, "injected context", _is_injected, RowClass.MACHINE),
    Rule(12, "command to the tool", _is_command, RowClass.NOT_A_TURN),
    Rule(13, "message of a user", _says_something, RowClass.HUMAN, Confidence.UNATTRIBUTED),
)


def is_subagent_path(path: Path) -> bool:
    """Whether a file is the transcript of a sub-agent, by the folder that it lies in: that of its parent, below `chats`."""
    return path.parent.parent.name == CHATS_FOLDER


class TranscriptReader(TableReader[Facts]):
    """Folds the table over the rows of one file."""

    def __init__(self, *, adopted_at_ms: int | None = None, subagent_file: bool = False) -> None:
        super().__init__(_TABLE, Facts(adopted_at_ms, subagent_file=subagent_file))


def shape_of(row: object, facts: Facts) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return json_type(row)
    if text_of(row, "type") != "user":
        return f"type={word(row['type'])}" if present(row, "type") else "object without type"
    kind = word(facts.kind) if facts.header else "unknown"
    return f"type=user kind={kind} content={_content_shape(row.get('content'))}"


def _content_shape(content: object) -> str:
    if not isinstance(content, list):
        return json_type(content)
    names = sorted({word(next(iter(part), None)) if isinstance(part, dict) else json_type(part) for part in content})
    return f"[{','.join(names[:5])}]"


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
    )


def _said(row: JsonRow) -> str:
    """What was typed, rather than what it became when the files that it mentions were read into it."""
    shown = "\n".join(_texts(row.get("displayContent")))
    return shown or "\n".join(_texts(row.get("content")))


def _learned(facts: Facts, row: JsonRow) -> Facts:
    if not _is_metadata(row):
        return facts
    return replace(facts, header=True, kind=row.get("kind"))


def _is_metadata(row: JsonRow) -> bool:
    return present(row, "sessionId") and not present(row, "type")


def _parts(content: object) -> list[JsonRow]:
    return [content] if isinstance(content, dict) else objects_in(content)


def _has_other_part(row: JsonRow) -> bool:
    return any(object_of(part, name) for part in _parts(row.get("content")) for name in _OTHER_PARTS)


def _texts(content: object) -> Iterator[str]:
    """The texts of a content that are not blank: it is a text, a part, or a list of both."""
    elements = content if isinstance(content, list) else [content]
    candidates = [element.get("text") if isinstance(element, dict) else element for element in elements]
    return (text for text in candidates if isinstance(text, str) and text.strip())


def _identity(row: object) -> str | None:
    return identity_in(row, "id")


_TABLE = Table(TABLE, _learned, unchanged, _identity, _classified)
