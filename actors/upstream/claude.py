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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

from .rows import Classified, Confidence, RowClass, Unreadable

CATALOG = "claude"
WRITE_DELAY_MS = 1_000
"""A row is stamped first and written a little later: one written after the adoption can be stamped this long before it."""
SEEN_MAX = 10_000
"""How many ids of rows that signalled something are remembered."""
PENDING_MAX = 64
"""How many slash commands wait for the row that follows them."""
COMMAND_NAME_WITHIN = 1_000
"""How near the start of its text, in characters, a slash command names itself."""

JsonRow = dict[str, object]

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
_unprintable = re.compile(r"[^A-Za-z0-9_.:-]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the table must know beyond the row."""

    adopted_at_ms: int | None = None
    """None where the whole file is of interest."""
    subagent_file: bool = False
    """Whether the file lies under a folder `subagents`."""
    provenance: bool = False
    """Whether this row or an earlier one of the file said who wrote it."""
    repeated: bool = False
    """Whether a row of the same id came before."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table."""

    number: int
    name: str
    applies: Callable[[JsonRow, Facts], bool]
    """Called with objects only, but for the rules of number 1."""
    row_class: RowClass
    confidence: Confidence | None = None
    awaits_expansion: bool = False
    """Whether the class holds only if the next row of the chain is a meta row that expands this one."""


def _is_unreadable(row: object, _: Facts) -> bool:
    return isinstance(row, Unreadable)


def _is_no_object(row: object, _: Facts) -> bool:
    return not isinstance(row, dict)


def _is_copied(row: JsonRow, _: Facts) -> bool:
    return _present(row, "forkedFrom")


def _is_replay(row: JsonRow, facts: Facts) -> bool:
    occurred_at_ms = _occurred_at_ms(row)
    too_old = facts.adopted_at_ms is not None and occurred_at_ms is not None and occurred_at_ms < facts.adopted_at_ms - WRITE_DELAY_MS
    return facts.repeated or too_old


def _is_compact_boundary(row: JsonRow, _: Facts) -> bool:
    return row.get("type") == "system" and row.get("subtype") == "compact_boundary"


def _is_of_type_without_turns(row: JsonRow, _: Facts) -> bool:
    return _type(row) in TYPES_WITHOUT_TURNS


def _is_of_unknown_type(row: JsonRow, _: Facts) -> bool:
    return _type(row) not in ("user", "attachment")


def _is_human_queued_command(row: JsonRow, _: Facts) -> bool:
    attachment = _object(row, "attachment")
    human = attachment.get("type") == "queued_command" and _kind(attachment) == "human"
    direct = not _set(row, "isMeta") and not _set(row, "isSidechain")
    return _type(row) == "attachment" and human and direct and not _is_blank(attachment.get("prompt"))


def _is_attachment_of_unknown_origin(row: JsonRow, _: Facts) -> bool:
    attachment = _object(row, "attachment")
    return _type(row) == "attachment" and (not attachment or (_present(attachment, "origin") and not _is_known_origin(attachment)))


def _is_attachment(row: JsonRow, _: Facts) -> bool:
    return _type(row) == "attachment"


def _is_subagent(row: JsonRow, facts: Facts) -> bool:
    return facts.subagent_file or _set(row, "isSidechain") or _set(row, "agentId") or _set(row, "teamName")


def _is_compaction_text(row: JsonRow, _: Facts) -> bool:
    return _set(row, "isCompactSummary") or _set(row, "isVisibleInTranscriptOnly")


def _is_peer_meta(row: JsonRow, _: Facts) -> bool:
    return _set(row, "isMeta") and _kind(row) == "peer"


def _is_meta(row: JsonRow, _: Facts) -> bool:
    return _set(row, "isMeta")


def _is_tool_result(row: JsonRow, _: Facts) -> bool:
    blocks = any(block.get("type") == "tool_result" for block in _blocks(_content(row)))
    return blocks or _present(row, "toolUseResult") or _present(row, "sourceToolAssistantUUID")


def _has_unknown_content(row: JsonRow, _: Facts) -> bool:
    return not isinstance(_content(row), str | list)


def _says_nothing(row: JsonRow, _: Facts) -> bool:
    return _is_blank(_content(row))


def _is_from_human(row: JsonRow, _: Facts) -> bool:
    return _kind(row) == "human"


def _is_from_agent(row: JsonRow, _: Facts) -> bool:
    relayed = _kind(row) == "task-notification" and _object(row, "origin").get("subkind") == "peer-send-message"
    return _kind(row) == "peer" or relayed


def _is_from_channel(row: JsonRow, _: Facts) -> bool:
    return _kind(row) == "channel"


def _is_of_known_origin(row: JsonRow, _: Facts) -> bool:
    return _is_known_origin(row)


def _has_origin(row: JsonRow, _: Facts) -> bool:
    return _present(row, "origin")


def _has_human_prompt_source(row: JsonRow, _: Facts) -> bool:
    return _text(row, "promptSource") in HUMAN_PROMPT_SOURCES


def _has_sdk_prompt_source(row: JsonRow, _: Facts) -> bool:
    return row.get("promptSource") == "sdk"


def _has_system_prompt_source(row: JsonRow, _: Facts) -> bool:
    return row.get("promptSource") == "system"


def _has_prompt_source(row: JsonRow, _: Facts) -> bool:
    return _present(row, "promptSource")


def _is_echo_in_new_file(_: JsonRow, facts: Facts) -> bool:
    return facts.provenance


def _is_machine_text(row: JsonRow, _: Facts) -> bool:
    """An editor puts its context into a text block of its own before what was typed, so all blocks must be a machine's."""
    content = _content(row)
    only_text = isinstance(content, str) or all(block.get("type") == "text" for block in _blocks(content))
    return only_text and all(_machine_text.match(text) for text in _texts(content))


def _is_slash_command(row: JsonRow, _: Facts) -> bool:
    """Anchored at a command tag, for a text may also quote the tag that a command names itself with."""
    text = next(_texts(_content(row)), "")
    return _command_start.match(text) is not None and "<command-name>" in text[:COMMAND_NAME_WITHIN]


def _has_sdk_entrypoint(row: JsonRow, _: Facts) -> bool:
    return _text(row, "entrypoint").startswith("sdk-")


def _says_something(row: JsonRow, _: Facts) -> bool:
    content = _content(row)
    return any(_texts(content)) or any(block.get("type") in ("image", "document") for block in _blocks(content))


TABLE: tuple[Rule, ...] = (
    Rule(1, "unreadable", cast("Callable[[JsonRow, Facts], bool]", _is_unreadable), RowClass.UNREADABLE),
    Rule(1, "no object", cast("Callable[[JsonRow, Facts], bool]", _is_no_object), RowClass.UNKNOWN),
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
NO_RULE = Rule(0, "no rule applies", lambda _row, _facts: True, RowClass.UNKNOWN)

_REMEMBERED = frozenset({RowClass.HUMAN, RowClass.AGENT, RowClass.EXTERNAL, RowClass.PROGRAMMATIC, RowClass.COMPACTED})


def rule_for(row: object, facts: Facts) -> Rule:
    """The first rule of the table that applies to the row, `NO_RULE` where none does."""
    return next((rule for rule in TABLE if rule.applies(cast(JsonRow, row), facts)), NO_RULE)


def is_subagent_path(path: Path) -> bool:
    """Whether a file is the transcript of a sub-agent, by the folder that it lies in."""
    return "subagents" in path.parts[:-1]


class TranscriptReader:
    """Folds the table over the rows of one file, in order.

    Every row gives one verdict, in the order of the rows, except that a slash command of an old file waits for the row that
    follows it in its chain, and that rows of other chains may come between. Copy the reader before rows that may turn out not to
    count, and go on with the copy only when they did.
    """

    def __init__(self, *, adopted_at_ms: int | None = None, subagent_file: bool = False) -> None:
        self._facts = Facts(adopted_at_ms, subagent_file)
        self._seen: dict[str, None] = {}
        self._pending: dict[str, Classified] = {}

    def copy(self) -> TranscriptReader:
        """A reader in the same state that goes on by itself."""
        other = TranscriptReader()
        other._facts, other._seen, other._pending = self._facts, dict(self._seen), dict(self._pending)
        return other

    def feed(self, row: object) -> list[Classified]:
        """The verdicts that this row settles: mostly its own, at times that of an earlier slash command before it."""
        identity = _identity(row)
        facts = replace(self._facts, provenance=self._facts.provenance or _has_provenance(row), repeated=identity in self._seen)
        self._facts = replace(facts, repeated=False)
        rule = rule_for(row, facts)
        if rule.row_class in _REMEMBERED:
            self._remember(identity)
        return self._settled_by(row) + self._verdict(row, rule)

    def finish(self) -> list[Classified]:
        """The verdicts on slash commands that nothing followed, when no more rows will come: they started no turn of the model."""
        verdicts = [_declined(candidate) for candidate in self._pending.values()]
        self._pending.clear()
        return verdicts

    def _verdict(self, row: object, rule: Rule) -> list[Classified]:
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

    def _remember(self, identity: str | None) -> None:
        if identity is None:
            return
        self._seen[identity] = None
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]


def _classified(row: object, rule: Rule) -> Classified:
    fields = row if isinstance(row, dict) else {}
    said_by_person = rule.row_class is RowClass.HUMAN and rule.confidence is not Confidence.PROVENANCE
    return Classified(
        row_class=rule.row_class,
        rule=rule.number,
        occurred_at_ms=_occurred_at_ms(fields),
        id=_identity(row),
        shape=shape_of(row) if rule.row_class is RowClass.UNKNOWN else None,
        confidence=rule.confidence,
        text=_said(_content(fields)) if said_by_person else None,
    )


def _declined(candidate: Classified) -> Classified:
    return replace(candidate, row_class=RowClass.MACHINE, confidence=None, text=None)


def _is_expansion(row: JsonRow) -> bool:
    """A command that runs locally can be followed by a meta row too: the caveat of the next such command."""
    return _type(row) == "user" and _set(row, "isMeta") and not _is_machine_text(row, Facts())


def _has_provenance(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    return _present(row, "origin") or _present(row, "promptSource") or _present(_object(row, "attachment"), "origin")


def shape_of(row: object) -> str:
    """A short description of an unknown row that holds names of the format only, never what was said."""
    if not isinstance(row, dict):
        return _json_type(row)
    attachment = _object(row, "attachment")
    parts = {
        "type": row.get("type"),
        "attachment": attachment.get("type"),
        "origin": _kind_or_value(row) or _kind_or_value(attachment),
        "promptSource": row.get("promptSource"),
    }
    named = [f"{name}={_word(value)}" for name, value in parts.items() if value is not None]
    content = [f"content={_content_shape(_content(row))}"] if _type(row) == "user" else []
    return " ".join([*named, *content]) or "object without type"


def _content_shape(content: object) -> str:
    if not isinstance(content, list):
        return _json_type(content)
    kinds = sorted({_word(block.get("type")) if isinstance(block, dict) else _json_type(block) for block in content})
    return f"[{','.join(kinds[:5])}]"


def _word(value: object) -> str:
    return _unprintable.sub("?", value[:40]) if isinstance(value, str) else _json_type(value)


def _json_type(value: object) -> str:
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), "other")


def _kind_or_value(row: JsonRow) -> object:
    origin = row.get("origin")
    return origin.get("kind", origin) if isinstance(origin, dict) else origin


def _present(row: JsonRow, name: str) -> bool:
    return row.get(name) is not None


def _set(row: JsonRow, name: str) -> bool:
    return bool(row.get(name))


def _text(row: JsonRow, name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _object(row: JsonRow, name: str) -> JsonRow:
    value = row.get(name)
    return value if isinstance(value, dict) else {}


def _type(row: JsonRow) -> str:
    return _text(row, "type")


def _kind(row: JsonRow) -> str:
    return _text(_object(row, "origin"), "kind")


def _is_known_origin(row: JsonRow) -> bool:
    return _kind(row) in OTHER_ORIGINS or _kind(row) in ("human", "peer")


def _content(row: JsonRow) -> object:
    return _object(row, "message").get("content")


def _blocks(content: object) -> list[JsonRow]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _texts(content: object) -> Iterator[str]:
    """The texts of a content that are not blank."""
    candidates = [content] if isinstance(content, str) else [block.get("text") for block in _blocks(content) if block.get("type") == "text"]
    return (text for text in candidates if isinstance(text, str) and text.strip())


def _is_blank(content: object) -> bool:
    """Whether a content says nothing: no text but white space, and no block of another kind."""
    other = any(not isinstance(block, dict) or block.get("type") != "text" for block in content) if isinstance(content, list) else False
    return not other and not any(_texts(content))


def _said(content: object) -> str:
    """What was typed; for a slash command the line as it was typed, not the tags that it became."""
    text = "\n".join(_texts(content))
    name = _command_name.search(text[:COMMAND_NAME_WITHIN]) if _command_start.match(text) else None
    if name is None:
        return text
    arguments = _command_arguments.search(text)
    return f"{name[1]} {arguments[1] if arguments else ''}".strip()


def _identity(row: object) -> str | None:
    identity = row.get("uuid") if isinstance(row, dict) else None
    return identity if isinstance(identity, str) and 0 < len(identity) <= 512 else None


def _occurred_at_ms(row: JsonRow) -> int | None:
    try:
        moment = datetime.fromisoformat(_text(row, "timestamp"))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
