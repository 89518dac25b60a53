"""The tools that a session's model is given, as data: name, description, schemas, and what a call does.

Every integration shows the same six, each in its own protocol's form. The caller is an explicit session key, bound by the host
that offers the tools; no argument of a call can change it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..errors import InvalidArgument
from ..gateway import Gateway
from ..keys import parse_address
from ..tools import LIMIT_MAX, parse_changes_since

Arguments = Mapping[str, Any]
Schema = Mapping[str, Any]
Call = Callable[[Gateway, str, Arguments], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class SessionTool:
    """One tool: what a model is told of it, what a host may promise of it, and what a call does."""

    name: str
    title: str
    description: str
    input_schema: Schema
    """A JSON schema of an object; names are camelCase."""
    output_schema: Schema
    """A JSON schema of what a call answers."""
    read_only: bool
    """Whether a call changes nothing."""
    idempotent: bool
    """Whether the same call a second time changes nothing more."""
    call: Call

    async def __call__(self, gateway: Gateway, caller: str, arguments: Arguments) -> dict[str, Any]:
        """Call it in the name of the session `caller`. Raises `KizukiError`, whose text says what was wrong."""
        self._check_names(arguments)
        return await self.call(gateway, caller, {name: value for name, value in arguments.items() if value is not None})

    def _check_names(self, arguments: Arguments) -> None:
        known = self.input_schema["properties"]
        for name in arguments:
            if name not in known:
                raise InvalidArgument("arguments", name, f"{self.name} takes {', '.join(known)}")
        for name in self.input_schema["required"]:
            if arguments.get(name) is None:
                raise InvalidArgument(name, None, f"{self.name} needs it")


def session_tools(*, send: bool) -> tuple[SessionTool, ...]:
    """All tools; `sessions_send` only where the host can dispatch."""
    return tuple(tool for tool in _TOOLS if send or tool.name != "sessions_send")


async def _status(gateway: Gateway, _caller: str, given: Arguments) -> dict[str, Any]:
    return await gateway.session_status(
        given["sessionKey"],
        agent_id=given.get("agentId"),
        changes_since=given.get("changesSince"),
        limit=given.get("limit", LIMIT_MAX),
    )


async def _list(gateway: Gateway, _caller: str, given: Arguments) -> dict[str, Any]:
    return await gateway.sessions_list(
        agent_id=given.get("agentId"),
        kind=given.get("kind"),
        parent=given.get("parent"),
        limit=given.get("limit", 100),
        after=given.get("after"),
        with_total=_flag(given, "withTotal") or False,
    )


async def _send(gateway: Gateway, caller: str, given: Arguments) -> dict[str, Any]:
    return await gateway.sessions_send(
        caller, given["sessionKey"], given["message"], watch=_flag(given, "watch"), timeout_s=given.get("timeoutSeconds", 30.0)
    )


async def _watch(gateway: Gateway, caller: str, given: Arguments) -> dict[str, Any]:
    return {"watched": await gateway.watch(caller, given["sessionKey"], target_agent_id=given.get("agentId"))}


async def _unwatch(gateway: Gateway, caller: str, given: Arguments) -> dict[str, Any]:
    return {"unwatched": await gateway.unwatch(caller, given["sessionKey"], target_agent_id=given.get("agentId"))}


async def _acknowledge(gateway: Gateway, caller: str, given: Arguments) -> dict[str, Any]:
    """The notice is named by what it says, so that an acknowledgement that comes too late changes nothing (rule 4.5)."""
    target = parse_address(given["sessionKey"], given.get("agentId"))
    since = parse_changes_since(given["changesSince"])
    named = [
        notice
        for notice in await gateway.pending(caller)
        if (notice.target, notice.target_agent_id, notice.changes_since) == (target.session_key, target.agent_id, since)
    ]
    return {"acknowledged": await gateway.acknowledge(caller, named)}


def _flag(given: Arguments, name: str) -> bool | None:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise InvalidArgument(name, value, "it must be true or false")


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_KEY: Final = _text("The session's key, such as agent:main:subagent:worker.")
_AGENT: Final = _text("The agent's id, for a session key without the agent: prefix.")
_SINCE: Final[Schema] = {
    "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,40}$"}],
    "description": "A state version, as a notice or an earlier status gave it.",
}
_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_TRUTH: Final[Schema] = {"type": "boolean"}
_RUNNING: Final[Schema] = {"type": "string", "enum": ["idle", "running"]}

EVENT_SCHEMA: Final = _object(
    ("sequence", "kind", "actorType", "occurredAt", "summary"),
    sequence=_COUNT,
    kind=_TEXT,
    actorType={"type": "string", "enum": ["human", "agent", "system"]},
    actorId=_TEXT,
    runId=_TEXT,
    occurredAt={"type": "integer", "description": "Milliseconds since 1970."},
    summary=_TEXT,
    payload={"type": "object"},
)
_CHANGES: Final = _object(
    ("events", "historyGap", "truncated"),
    events={"type": "array", "items": EVENT_SCHEMA},
    historyGap=_TRUTH,
    truncated=_TRUTH,
    nextChangesSince=_COUNT,
    earliestAvailableSequence=_COUNT,
    hint=_TEXT,
)
STATUS_SCHEMA: Final = _object(
    ("sessionKey", "agentId", "sessionId", "status", "stateVersion"),
    sessionKey=_TEXT,
    agentId=_TEXT,
    sessionId=_TEXT,
    status=_RUNNING,
    stateVersion=_COUNT,
    stateChanges=_CHANGES,
)
SESSION_SCHEMA: Final = _object(
    ("sessionKey", "agentId", "sessionId", "kind", "status", "updatedAt"),
    sessionKey=_TEXT,
    agentId=_TEXT,
    sessionId=_TEXT,
    kind=_TEXT,
    label=_TEXT,
    parent=_TEXT,
    status=_RUNNING,
    updatedAt={"type": "integer", "description": "Milliseconds since 1970."},
    stateVersion=_COUNT,
)
LIST_SCHEMA: Final = _object(
    ("sessions", "hasMore"),
    sessions={"type": "array", "items": SESSION_SCHEMA},
    hasMore=_TRUTH,
    nextAfter=_TEXT,
    total=_COUNT,
)
SENT_SCHEMA: Final = _object(
    ("status", "sessionKey"),
    status={"type": "string", "enum": ["accepted", "ok", "timeout", "refused", "error"]},
    sessionKey=_TEXT,
    runId=_TEXT,
    reply=_TEXT,
    reason=_TEXT,
    watched=_TRUTH,
)

_TOOLS: Final = (
    SessionTool(
        "session_status",
        "Session status",
        "One session's status and state version. With changesSince, exactly what changed after that version: who did what and when, "
        "never what was said. If historyGap is true, changes are missing: refresh the whole state.",
        _object(
            ("sessionKey",),
            sessionKey=_KEY,
            agentId=_AGENT,
            changesSince=_SINCE,
            limit={"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "description": "How many changes at most; 200 by default."},
        ),
        STATUS_SCHEMA,
        read_only=True,
        idempotent=True,
        call=_status,
    ),
    SessionTool(
        "sessions_list",
        "List sessions",
        "The sessions there are, ordered by key, a page at a time.",
        _object(
            (),
            agentId=_text("Only this agent's sessions."),
            kind=_text("Only sessions of this kind, such as main or subagent."),
            parent=_text("Only children of this session."),
            limit={"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "description": "Sessions a page; 100 by default."},
            after=_text("The nextAfter of the page before."),
            withTotal={"type": "boolean", "description": "Also count all of them."},
        ),
        LIST_SCHEMA,
        read_only=True,
        idempotent=True,
        call=_list,
    ),
    SessionTool(
        "sessions_send",
        "Send to a session",
        "Send a message to another session and wait for its reply. With watch, be told when somebody else changes that session later.",
        _object(
            ("sessionKey", "message"),
            sessionKey=_KEY,
            message=_text("What to say."),
            watch={"type": "boolean", "description": "Also watch the session that received it."},
            timeoutSeconds={"type": "number", "minimum": 0, "description": "How long to wait for a reply; 30 by default, 0 not at all."},
        ),
        SENT_SCHEMA,
        read_only=False,
        idempotent=False,
        call=_send,
    ),
    SessionTool(
        "sessions_watch",
        "Watch a session",
        "Be told, once, when somebody else changes that session from now on.",
        _object(("sessionKey",), sessionKey=_KEY, agentId=_AGENT),
        _object(("watched",), watched=_TRUTH),
        read_only=False,
        idempotent=True,
        call=_watch,
    ),
    SessionTool(
        "sessions_unwatch",
        "Stop watching a session",
        "Be told no more of that session; a notice that is pending for it goes, too.",
        _object(("sessionKey",), sessionKey=_KEY, agentId=_AGENT),
        _object(("unwatched",), unwatched=_TRUTH),
        read_only=False,
        idempotent=True,
        call=_unwatch,
    ),
    SessionTool(
        "sessions_acknowledge",
        "Acknowledge a notice",
        "Say that a pending notice was seen, named by its session and its changesSince. One that is not pending any more stays as it is.",
        _object(("sessionKey", "changesSince"), sessionKey=_KEY, agentId=_AGENT, changesSince=_SINCE),
        _object(("acknowledged",), acknowledged=_COUNT),
        read_only=False,
        idempotent=True,
        call=_acknowledge,
    ),
)
