"""Which rows of a Claude Code transcript are a person's turn.

The format is internal to its vendor and changes between versions. So the fields that say who wrote a row decide first, text
decides only in files too old to have them, and what is not understood is not a person's turn but is counted by its shape.

`TABLE` is the whole decision, in order: the first rule that applies to a row gives its class. Most rules look at the row alone; the
few things that they must know of the file are in `Facts`. `TranscriptReader` folds both over the rows of one file.

Answers to the agent's questions and approvals of its plans arrive as tool results (rule 10) and stay such: they were asked for
by the turn that is running, which takes them into account, so nobody is surprised by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, cast

from ..catalog import Happening
from . import tables
from .contents import is_blank, shape_of_content, texts_in
from .fields import JsonRow, identity_in, is_set, json_type, object_of, objects_in, present, text_of, time_in, word
from .rows import Classified, Confidence, RowClass
from .tables import Rule, Table, TableReader, is_replay, no_rows, unchanged

CATALOG = "claude"
PENDING_MAX = 64
"""How many slash commands wait for the row that follows them."""
COMMAND_NAME_WITHIN = 1_000
"""How near the start of its text, in characters, a slash command names itself."""

HUMAN_PROMPT_SOURCES = frozenset({"typed", "queued", "suggestion_accepted"})
OTHER_ORIGINS = frozenset(
    {"channel", "task-notification", "coordinator", "unclassified", "observer", "auto-continuation", "observer-activity"}
)
TYPES_WITHOUT_TURNS = frozenset(
    {
        "assistant",
        "system",
        "progress",
        "summary",
        "file-history-snapshot",
        "queue-operation",
        "last-prompt",
        "mode",
        "permission-mode",
        "ai-title",
        "custom-title",
        "tag",
        "agent-name",
        "agent-setting",
        "pr-link",
        "bridge-session",
        "content-replacement",
    }
)

_machine_text = re.compile(
    r"\s*(?:<local-command-[\w-]+>|<bash-[\w-]+>"
    r"|<(?:task-notification|system-reminder|user-prompt-submit-hook|session-start-hook|ide_opened_file|ide_selection|tick|goal)\b"
    r"|Caveat: The messages below|\[Request interrupted by user|This session is being continued from)"
)
_command_start = re.compile(r"\s*<command-[\w-]+>")
_command_name = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_command_arguments = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Facts(tables.Facts):
    """What the table must know beyond the row."""

    subagent_file: bool = False
    """Whether the file lies under a folder `subagents`."""
    provenance: bool = False
    """Whether this row or an earlier one of the file said who wrote it."""


def _is_copied(row: JsonRow, _: Facts) -> bool:
    return present(row, "forkedFrom")


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    return is_replay(time_in(row, "timestamp"), facts)


def _is_compact_boundary(row: JsonRow, _: Facts) -> bool:
    return row.get("type") == "system" and row.get("subtype") == "compact_boundary"


def _is_of_type_without_turns(row: JsonRow, _: Facts) -> bool:
    return _type(row) in TYPES_WITHOUT_TURNS


def _is_of_unknown_type(row: JsonRow, _: Facts) -> bool:
    return _type(row) not in ("user", "attachment")


def _is_human_queued_command(row: JsonRow, _: Facts) -> bool:
    attachment = object_of(row, "attachment")
    human = attachment.get("type") == "queued_command" and _kind(attachment) == "human"
    direct = not any(is_set(part, mark) for part in (row, attachment) for mark in ("isMeta", "isSidechain"))
    return _type(row) == "attachment" and human and direct and not is_blank(attachment.get("prompt"))


def _is_attachment_of_unknown_origin(row: JsonRow, _: Facts) -> bool:
    attachment = object_of(row, "attachment")
    return _type(row) == "attachment" and (not attachment or (present(attachment, "origin") and not _is_known_origin(attachment)))


def _is_attachment(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "attachment"


def _is_subagent(row: JsonRow, facts: Facts) -> bool:
    return facts.subagent_file or is_set(row, "isSidechain") or is_set(row, "agentId") or is_set(row, "teamName")


def _is_compaction_text(row: JsonRow, _: Facts) -> bool:
    return is_set(row, "isCompactSummary") or is_set(row, "isVisibleInTranscriptOnly")


def _is_peer_meta(row: JsonRow, _: Facts) -> bool:
    return is_set(row, "isMeta") and _kind(row) == "peer"


def _is_meta(row: JsonRow, _: Facts) -> bool:
    return is_set(row, "isMeta")


def _is_tool_result(row: JsonRow, _: Facts) -> bool:
    blocks = any(block.get("type") == "tool_result" for block in objects_in(_content(row)))
    return blocks or present(row, "toolUseResult") or present(row, "sourceToolAssistantUUID")


def _has_unknown_content(row: JsonRow, _: Facts) -> bool:
    return not isinstance(_content(row), str | list)


def _says_nothing(row: JsonRow, _: Facts) -> bool:
    return is_blank(_content(row))


def _is_from_human(row: JsonRow, _: Facts) -> bool:
    return _kind(row) == "human"


def _is_from_agent(row: JsonRow, _: Facts) -> bool:
    relayed = _kind(row) == "task-notification" and object_of(row, "origin").get("subkind") == "peer-send-message"
    return _kind(row) == "peer" or relayed


def _is_from_channel(row: JsonRow, _: Facts) -> bool:
    return _kind(row) == "channel"


def _is_of_known_origin(row: JsonRow, _: Facts) -> bool:
    return _is_known_origin(row)


def _has_origin(row: JsonRow, _: Facts) -> bool:
    return present(row, "origin")


def _has_human_prompt_source(row: JsonRow, _: Facts) -> bool:
    return text_of(row, "promptSource") in HUMAN_PROMPT_SOURCES


def _has_sdk_prompt_source(row: JsonRow, _: Facts) -> bool:
    return row.get("promptSource") == "sdk"


def _has_system_prompt_source(row: JsonRow, _: Facts) -> bool:
    return row.get("promptSource") == "system"


def _has_prompt_source(row: JsonRow, _: Facts) -> bool:
    return present(row, "promptSource")


def _is_echo_in_new_file(_: JsonRow, facts: Facts) -> bool:
    return facts.provenance


def _is_machine_text(row: JsonRow, _: Facts) -> bool:
    """An editor puts its context into a text block of its own before what was typed, so all blocks must be a machine's."""
    content = _content(row)
    only_text = isinstance(content, str) or all(block.get("type") == "text" for block in objects_in(content))
    return only_text and all(_machine_text.match(text) for text in texts_in(content))


def _is_slash_command(row: JsonRow, _: Facts) -> bool:
    """Anchored at a command tag, for a text may also quote the tag that a command names itself with."""
    text = next(texts_in(_content(row)), "")
    return _command_start.match(text) is not None and "<command-name>" in text[:COMMAND_NAME_WITHIN]


def _has_sdk_entrypoint(row: JsonRow, _: Facts) -> bool:
    return text_of(row, "entrypoint").startswith("sdk-")


def _says_something(row: JsonRow, _: Facts) -> bool:
    content = _content(row)
    return any(texts_in(content)) or any(block.get("type") in ("image", "document") for block in objects_in(content))


TABLE: tuple[Rule[Facts], ...] = (
    *no_rows(1),
    Rule(2, "copied by a fork", _is_copied, RowClass.COPIED),
    Rule(3, "seen before, or older than the adoption", _is_replay, RowClass.REPLAY),
    Rule(4, "compact boundary", _is_compact_boundary, RowClass.COMPACTED),
    Rule(4, "type without turns", _is_of_type_without_turns, RowClass.NOT_A_TURN),
    Rule(4, "unknown type", _is_of_unknown_type, RowClass.UNKNOWN),
    Rule(5, "typed while a turn ran", _is_human_queued_command, RowClass.HUMAN, Confidence.PROVENANCE),
    Rule(6, "attachment of unknown origin", _is_attachment_of_unknown_origin, RowClass.UNKNOWN),
    Rule(6, "other attachment", _is_attachment, RowClass.MACHINE),
    Rule(7, "sub-agent or team", _is_subagent, RowClass.SUBAGENT),
    Rule(8, "compaction text", _is_compaction_text, RowClass.COMPACTION),
    Rule(9, "meta row of a peer", _is_peer_meta, RowClass.AGENT),
    Rule(9, "meta row", _is_meta, RowClass.MACHINE),
    Rule(10, "tool result", _is_tool_result, RowClass.TOOL_RESULT),
    # Two guards that hold whoever wrote the row: a turn has a content that can be read, and something is said in it.
    Rule(11, "unknown content", _has_unknown_content, RowClass.UNKNOWN),
    Rule(11, "nothing said", _says_nothing, RowClass.NOT_A_TURN),
    Rule(11, "origin human", _is_from_human, RowClass.HUMAN, Confidence.PROVENANCE),
    Rule(12, "origin peer", _is_from_agent, RowClass.AGENT),
    Rule(12, "origin channel", _is_from_channel, RowClass.EXTERNAL),
    Rule(12, "other known origin", _is_of_known_origin, RowClass.MACHINE),
    Rule(12, "unknown origin", _has_origin, RowClass.UNKNOWN),
    Rule(13, "prompt typed", _has_human_prompt_source, RowClass.HUMAN, Confidence.PROVENANCE),
    Rule(14, "prompt of a program", _has_sdk_prompt_source, RowClass.PROGRAMMATIC),
    Rule(15, "prompt of the system", _has_system_prompt_source, RowClass.MACHINE),
    Rule(15, "unknown prompt source", _has_prompt_source, RowClass.UNKNOWN),
    Rule(16, "echo in a new file", _is_echo_in_new_file, RowClass.MACHINE),
    Rule(17, "machine text", _is_machine_text, RowClass.MACHINE),
    Rule(18, "slash command", _is_slash_command, RowClass.HUMAN, Confidence.LOW, awaits_expansion=True),
    Rule(19, "entry point of a program", _has_sdk_entrypoint, RowClass.PROGRAMMATIC),
    Rule(20, "text or picture in an old file", _says_something, RowClass.HUMAN, Confidence.LEGACY),
)


def is_subagent_path(path: Path) -> bool:
    """Whether a file is the transcript of a sub-agent, by its name and the folder that it lies in."""
    return "subagents" in path.parts[:-1] and path.name.startswith("agent-")


class TranscriptReader(TableReader[Facts]):
    """Folds the table over the rows of one file, in order.

    Every row gives one verdict, in the order of the rows, except that a slash command of an old file waits for the row that
    follows it in its chain, and that rows of other chains may come between.
    """

    def __init__(self, *, adopted_at_ms: int | None = None, subagent_file: bool = False) -> None:
        super().__init__(_TABLE, Facts(adopted_at_ms, subagent_file=subagent_file))
        self._pending: dict[str, Classified] = {}

    def copy(self) -> Self:
        """A reader in the same state that goes on by itself."""
        other = super().copy()
        other._pending = dict(self._pending)  # noqa: SLF001 - another of its own class
        return other

    def feed(self, row: object) -> list[Classified]:
        """The verdicts that this row settles: mostly its own, at times that of an earlier slash command before it."""
        rule, _ = self._judge(row)
        return self._settled_by(row) + self._verdict(row, rule)

    def finish(self) -> list[Classified]:
        """The verdicts on slash commands that nothing followed, when no more rows will come: they started no turn of the model."""
        verdicts = [_declined(candidate) for candidate in self._pending.values()]
        self._pending.clear()
        return verdicts

    def _verdict(self, row: object, rule: Rule[Facts]) -> list[Classified]:
        classified = _classified(row, rule)
        if not rule.awaits_expansion:
            return [classified]
        if classified.id is None:
            return [_declined(classified)]
        self._pending[classified.id] = classified
        return self._overdue()

    def _settled_by(self, row: object) -> list[Classified]:
        parent = row.get("parentUuid") if isinstance(row, dict) else None
        candidate = self._pending.pop(parent, None) if isinstance(parent, str) else None
        if candidate is None:
            return []
        return [candidate if _is_expansion(cast(JsonRow, row)) else _declined(candidate)]

    def _overdue(self) -> list[Classified]:
        if len(self._pending) <= PENDING_MAX:
            return []
        return [_declined(self._pending.pop(next(iter(self._pending))))]


def _classified(row: object, rule: Rule[Facts]) -> Classified:
    fields: JsonRow = row if isinstance(row, dict) else {}
    said_by_person = rule.row_class is RowClass.HUMAN and rule.confidence is not Confidence.PROVENANCE
    return Classified(
        row_class=rule.row_class,
        rule=rule.number,
        occurred_at_ms=time_in(fields, "timestamp"),
        id=_identity(row),
        shape=shape_of(row) if rule.row_class is RowClass.UNKNOWN else None,
        confidence=rule.confidence,
        text=_said(_content(fields)) if said_by_person else None,
        happening=_compaction(fields) if rule.row_class is RowClass.COMPACTED else None,
    )


def _compaction(row: JsonRow) -> Happening:
    return Happening("compacted", _identity(row) or "", time_in(row, "timestamp"))


def _declined(candidate: Classified) -> Classified:
    return replace(candidate, row_class=RowClass.MACHINE, confidence=None, text=None)


def _is_expansion(row: JsonRow) -> bool:
    """A command that runs locally can be followed by a meta row too: the caveat of the next such command."""
    return _type(row) == "user" and is_set(row, "isMeta") and not _is_machine_text(row, Facts())


def _has_provenance(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    return present(row, "origin") or present(row, "promptSource") or present(object_of(row, "attachment"), "origin")


def shape_of(row: object) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return json_type(row)
    attachment = object_of(row, "attachment")
    parts = {
        "type": row.get("type"),
        "attachment": attachment.get("type"),
        "origin": _kind_or_value(row) or _kind_or_value(attachment),
        "promptSource": row.get("promptSource"),
    }
    named = [f"{name}={word(value)}" for name, value in parts.items() if value is not None]
    content = [f"content={shape_of_content(_content(row))}"] if _type(row) == "user" else []
    return " ".join([*named, *content]) or "object without type"


def _kind_or_value(row: JsonRow) -> object:
    origin = row.get("origin")
    return origin.get("kind", origin) if isinstance(origin, dict) else origin


def _type(row: JsonRow) -> str:
    return text_of(row, "type")


def _kind(row: JsonRow) -> str:
    return text_of(object_of(row, "origin"), "kind")


def _is_known_origin(row: JsonRow) -> bool:
    return _kind(row) in OTHER_ORIGINS or _kind(row) in ("human", "peer")


def _identity(row: object) -> str | None:
    return identity_in(row, "uuid")


def _content(row: JsonRow) -> object:
    return object_of(row, "message").get("content")


def _said(content: object) -> str:
    """What was typed; for a slash command the line as it was typed, not the tags that it became."""
    text = "\n".join(texts_in(content))
    name = _command_name.search(text[:COMMAND_NAME_WITHIN]) if _command_start.match(text) else None
    if name is None:
        return text
    arguments = _command_arguments.search(text)
    return f"{name[1]} {arguments[1] if arguments else ''}".strip()


def _learned(facts: Facts, row: JsonRow) -> Facts:
    return facts if facts.provenance or not _has_provenance(row) else replace(facts, provenance=True)


_TABLE = Table(TABLE, _learned, unchanged, _identity, lambda row, rule, _facts: _classified(row, rule))
