"""What can be no person's turn, format by format, written from the description of the formats and not from the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _blank(content: object, kinds: tuple[str, ...] = ("text",)) -> bool:
    if isinstance(content, str):
        return not content.strip()
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") in kinds]
    only_texts = all(isinstance(block, dict) and block.get("type") in kinds for block in blocks)
    return only_texts and not any(isinstance(text, str) and text.strip() for text in texts)


def _claude(row: object) -> bool:
    if not isinstance(row, dict) or row.get("forkedFrom") is not None or row.get("isSidechain") or row.get("isMeta"):
        return True
    if row.get("type") == "attachment":
        attachment = _object(row.get("attachment"))
        said = attachment.get("type") == "queued_command" and not _blank(attachment.get("prompt"))
        return not said or _object(attachment.get("origin")).get("kind") != "human"
    marked = ("agentId", "teamName", "isCompactSummary", "isVisibleInTranscriptOnly")
    answered = row.get("toolUseResult") is not None or row.get("sourceToolAssistantUUID") is not None
    content = _object(row.get("message")).get("content")
    tool = isinstance(content, list) and any(_object(block).get("type") == "tool_result" for block in content)
    origin = row.get("origin")
    other = origin is not None and _object(origin).get("kind") != "human"
    program = origin is None and row.get("promptSource") in ("sdk", "system")
    nothing = not isinstance(content, str | list) or _blank(content)
    return row.get("type") != "user" or any(map(row.get, marked)) or answered or tool or other or program or nothing


def _codex(row: object) -> bool:
    fields, payload = _object(row), _object(_object(row).get("payload"))
    if _object(fields.get("metadata")).get("inherited_user_message") is True:
        return True
    if fields.get("type") == "event_msg":
        item = _object(payload.get("item"))
        completed = payload.get("type") == "item_completed" and item.get("type") == "UserMessage" and isinstance(item.get("content"), list)
        return payload.get("type") != "user_message" and not completed
    passed = _object(payload.get("internal_chat_message_metadata_passthrough"))
    kinds = passed.get("content_item_kinds")
    named = isinstance(kinds, list) and any(isinstance(kind, str) and kind.startswith("user.") for kind in kinds)
    return fields.get("type") != "response_item" or payload.get("type") != "message" or payload.get("role") != "user" or not named


def _pi(row: object) -> bool:
    message = _object(_object(row).get("message"))
    content = message.get("content")
    return _object(row).get("type") != "message" or message.get("role") != "user" or not isinstance(content, str | list) or _blank(content)


def _gemini(row: object) -> bool:
    fields = _object(row)
    content = fields.get("content")
    parts = content if isinstance(content, list) else [content]
    answer = any(_object(part).get("functionResponse") is not None for part in parts)
    changed = fields.get("$set") is not None or fields.get("$rewindTo") is not None
    command = isinstance(content, str) and content.lstrip().startswith(("/", "?"))
    return fields.get("type") != "user" or answer or changed or command or (isinstance(content, str) and not content.strip())


def _opencode(row: object) -> bool:
    fields, data = _object(row), _object(_object(row).get("data"))
    kind = fields.get("type") if fields.get("type") is not None else data.get("type")
    text = data.get("text")
    silent = not isinstance(text, str) or not text.strip()
    if fields.get("table") == "part":
        return silent or bool(data.get("synthetic")) or bool(data.get("ignored")) or kind != "text"
    return silent or fields.get("table") != "session_message" or kind != "user"


NEVER_HUMAN: dict[str, Callable[[object], bool]] = {
    "claude": _claude,
    "codex": _codex,
    "pi": _pi,
    "gemini": _gemini,
    "opencode": _opencode,
}
