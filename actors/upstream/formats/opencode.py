"""Which rows of an OpenCode database are a person's turn.

A row of a table is given to the reader as an object that names its `table` and holds its columns, `data` decoded. A message comes
before its parts. Version 1 keeps what was typed in parts of a message, and a part says whether the tool made it; version 2 keeps it
in `session_message`, whose type says so. Mentions of files, pictures without a text and routed commands cannot be told from what
the tool puts in, so they are no turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from ..catalog import Happening
from . import tables
from .fields import JsonRow, identity_in, is_set, json_type, milliseconds_in, object_of, present, text_of, word
from .rows import Classified, Confidence, RowClass
from .tables import Rule, Table, TableReader, is_replay, no_rows

CATALOG = "opencode"
MESSAGES_MAX: Final = 100
"""Of how many messages it is remembered who speaks in them."""

PARTS_WITHOUT_TURNS = frozenset({"file", "agent", "subtask", "reasoning", "tool", "step-start", "step-finish", "snapshot", "patch"})
MESSAGES_WITHOUT_TURNS = frozenset({"assistant", "shell", "agent-switched", "model-switched", "agent", "model"})
INJECTED_MESSAGES = frozenset({"synthetic", "system", "skill"})


@dataclass(frozen=True, slots=True)
class Facts(tables.Facts):
    """What the table must know beyond the row."""

    child: bool = False
    """Whether the session has a parent: then its prompts were written by an agent."""
    roles: tuple[tuple[str, str], ...] = ()
    """Who speaks in the latest messages, by their ids."""
    heard: frozenset[str] = frozenset()
    """Those among them of which a text part counted."""


def _is_message(row: JsonRow, _: Facts) -> bool:
    return _table(row) == "message" and _data(row).get("role") in ("user", "assistant")


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    return is_replay(_occurred_at_ms(row), facts)


def _is_compaction(row: JsonRow, _: Facts) -> bool:
    return _table(row) in ("part", "session_message") and _kind(row) == "compaction"


def _is_of_table_without_turns(row: JsonRow, _: Facts) -> bool:
    return _table(row) not in ("part", "session_message")


def _is_part_without_turn(row: JsonRow, _: Facts) -> bool:
    return _table(row) == "part" and _kind(row) in PARTS_WITHOUT_TURNS


def _is_marked(row: JsonRow, _: Facts) -> bool:
    return _table(row) == "part" and (is_set(_data(row), "synthetic") or is_set(_data(row), "ignored"))


def _is_of_the_model(row: JsonRow, facts: Facts) -> bool:
    return _table(row) == "part" and _role(row, facts) == "assistant"


def _is_injected_message(row: JsonRow, _: Facts) -> bool:
    return _table(row) == "session_message" and _kind(row) in INJECTED_MESSAGES


def _is_message_without_turn(row: JsonRow, _: Facts) -> bool:
    return _table(row) == "session_message" and _kind(row) in MESSAGES_WITHOUT_TURNS


def _is_no_text(row: JsonRow, _: Facts) -> bool:
    return _kind(row) != ("text" if _table(row) == "part" else "user")


def _is_of_unknown_message(row: JsonRow, facts: Facts) -> bool:
    return _table(row) == "part" and _role(row, facts) != "user"


def _says_nothing(row: JsonRow, _: Facts) -> bool:
    return not text_of(_data(row), "text").strip()


def _is_of_agent(_: JsonRow, facts: Facts) -> bool:
    return facts.child


def _is_further_part(row: JsonRow, facts: Facts) -> bool:
    return text_of(row, "message_id") in facts.heard


def _is_text_of_user(_row: JsonRow, _: Facts) -> bool:
    return True


TABLE: tuple[Rule[Facts], ...] = (
    *no_rows(),
    Rule(1, "message", _is_message, RowClass.NOT_A_TURN),
    Rule(2, "unknown table or role", _is_of_table_without_turns, RowClass.UNKNOWN),
    Rule(3, "seen before, or older than the adoption", _is_replay, RowClass.REPLAY),
    Rule(4, "compaction", _is_compaction, RowClass.COMPACTED),
    Rule(5, "part without a turn", _is_part_without_turn, RowClass.NOT_A_TURN),
    Rule(6, "made by the tool", _is_marked, RowClass.MACHINE),
    Rule(6, "injected message", _is_injected_message, RowClass.MACHINE),
    Rule(7, "answer of the model", _is_of_the_model, RowClass.NOT_A_TURN),
    Rule(7, "message without a turn", _is_message_without_turn, RowClass.NOT_A_TURN),
    Rule(8, "unknown type", _is_no_text, RowClass.UNKNOWN),
    Rule(9, "part of an unknown message", _is_of_unknown_message, RowClass.UNKNOWN),
    Rule(10, "nothing said", _says_nothing, RowClass.NOT_A_TURN),
    Rule(11, "session of an agent", _is_of_agent, RowClass.SUBAGENT),
    Rule(12, "further text of a message", _is_further_part, RowClass.NOT_A_TURN),
    Rule(13, "text of a user", _is_text_of_user, RowClass.HUMAN, Confidence.UNATTRIBUTED),
)


class SessionReader(TableReader[Facts]):
    """Folds the table over the rows of one session."""

    def __init__(self, *, adopted_at_ms: int | None = None, child: bool = False) -> None:
        super().__init__(_TABLE, Facts(adopted_at_ms, child=child))


def shape_of(row: object) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return json_type(row)
    parts = {"table": row.get("table"), "role": _data(row).get("role"), "type": _kind(row) or None}
    return " ".join(f"{name}={word(value)}" for name, value in parts.items() if value is not None) or "object without table"


def _learned(facts: Facts, row: JsonRow) -> Facts:
    identity, role = _identity(row), text_of(_data(row), "role")
    if _table(row) != "message" or identity is None:
        return facts
    roles = (*((known, other) for known, other in facts.roles if known != identity), (identity, role))[-MESSAGES_MAX:]
    return replace(facts, roles=roles, heard=facts.heard & {known for known, _ in roles})


def _judged(facts: Facts, row: JsonRow, rule: Rule[Facts]) -> Facts:
    if rule.row_class is not RowClass.HUMAN or _table(row) != "part":
        return facts
    return replace(facts, heard=facts.heard | {text_of(row, "message_id")})


def _classified(row: object, rule: Rule[Facts], _: Facts) -> Classified:
    fields: JsonRow = row if isinstance(row, dict) else {}
    occurred_at_ms = _occurred_at_ms(fields)
    compacted = rule.row_class is RowClass.COMPACTED
    return Classified(
        row_class=rule.row_class,
        rule=rule.number,
        occurred_at_ms=occurred_at_ms,
        id=_identity(row),
        shape=shape_of(row) if rule.row_class is RowClass.UNKNOWN else None,
        confidence=rule.confidence,
        text=text_of(_data(fields), "text") if rule.row_class is RowClass.HUMAN else None,
        happening=Happening("compacted", _identity(row) or "", occurred_at_ms) if compacted else None,
    )


def _table(row: JsonRow) -> str:
    return text_of(row, "table")


def _data(row: JsonRow) -> JsonRow:
    return object_of(row, "data")


def _kind(row: JsonRow) -> str:
    """A type that stands in the table counts, whatever it is: one that is no text is none that is known."""
    return text_of(row if present(row, "type") else _data(row), "type")


def _role(row: JsonRow, facts: Facts) -> str:
    return dict(facts.roles).get(text_of(row, "message_id"), "")


def _identity(row: object) -> str | None:
    return identity_in(row, "id")


def _occurred_at_ms(row: JsonRow) -> int | None:
    created = milliseconds_in(row, "time_created")
    return created if created is not None else milliseconds_in(object_of(_data(row), "time"), "created")


_TABLE = Table(TABLE, _learned, _judged, _identity, _classified)
