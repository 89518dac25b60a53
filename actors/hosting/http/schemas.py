"""The shapes of what is asked and answered, as JSON schemas: the OpenAPI document shows them, and requests are checked against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..toolset import EVENT_SCHEMA, SESSION_SCHEMA

Schema = Mapping[str, Any]


def text(description: str = "", **more: object) -> Schema:
    return _described("string", description, more)


def integer(description: str = "", **more: object) -> Schema:
    return _described("integer", description, more)


def number(description: str = "", **more: object) -> Schema:
    return _described("number", description, more)


def boolean(description: str = "") -> Schema:
    return _described("boolean", description, {})


def listed(items: Schema, **more: object) -> Schema:
    return {"type": "array", "items": items, **more}


def fields(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object that has these fields and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def named(name: str) -> Schema:
    """A schema of `COMPONENTS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _described(kind: str, description: str, more: Mapping[str, object]) -> Schema:
    return {"type": kind, **({"description": description} if description else {}), **more}


KEY: Final = text("A session key, such as agent:main:subagent:worker.")
AGENT_ID: Final = text("The agent's id, for a session key without the agent: prefix.")
RUN_ID: Final = text("The run, on one line.")
SINCE: Final = integer("A state version, as a notice or an earlier answer gave it.", minimum=0)
NOTICES_MAX: Final = integer("How many notices at most.", minimum=1, maximum=10_000)

_SEQUENCE: Final = integer(minimum=0)

_EVENT: Final = fields(
    ("sessionKey", "agentId", *EVENT_SCHEMA["required"]), sessionKey=text(), agentId=text(), **EVENT_SCHEMA["properties"]
)
_SHOWN: Final = {"target": text(), "targetAgentId": text(), "changesSince": _SEQUENCE, "notified": _SEQUENCE}
_SENT_BACK: Final = integer(minimum=0, maximum=2**53)
"""What names a notice: as long as its cursor has these positions, it is that very notice (rule 4.5)."""
_NOTICE: Final = fields((*_SHOWN, "text"), **_SHOWN, text=text("The line for the prompt."))
_POSITIONS: Final = {"lastSeen": _SEQUENCE, "notified": _SEQUENCE, "material": _SEQUENCE}
_WATCH: Final = fields(
    ("target", "targetAgentId", *_POSITIONS, "pending"), target=text(), targetAgentId=text(), **_POSITIONS, pending=boolean()
)
_SESSION: Final = fields(
    ("sessionKey", "agentId", "sessionId", "kind", "status"),
    **{name: schema for name, schema in SESSION_SCHEMA["properties"].items() if name not in ("updatedAt", "stateVersion")},
)
_TURN: Final = fields(
    ("turnId", "notices", "promptLines", "remaining", "leaseSeconds"),
    turnId=text("Names the turn in the calls that renew, acknowledge and end it."),
    notices=listed(named("Notice")),
    promptLines=listed(text(), description="The notices' texts: put them at the start of the prompt."),
    remaining=integer("Notices left for later turns.", minimum=0),
    leaseSeconds=number("Without a renewal for so long the turn is given back."),
)
_COUNTS: Final = (
    "eventsRecorded",
    "recordingsLost",
    "noticesOpened",
    "noticesAcknowledged",
    "noticesReturned",
    "noticesPending",
    "wakes",
    "actorsResident",
    "mailWaiting",
)
_ERROR: Final = fields(
    ("error", "reason"),
    error=text("What was wrong with which value, and what is allowed."),
    reason=text("A word that programs go by, such as invalid_argument or unknown_session."),
)

SHOWN: Final = fields(
    ("target", "changesSince", "notified"),
    **_SHOWN | {"changesSince": _SENT_BACK, "notified": _SENT_BACK},
    text=text("May be sent back with the rest; it is not looked at."),
)
ACTOR: Final = fields(
    ("type",),
    type=text(enum=["human", "agent", "system"]),
    id=text("A person's id, which may be left out; an agent's session key."),
)
RECORDED: Final[Schema] = {
    **fields(("event",), event={"anyOf": [named("Event"), {"type": "null"}]}),
    "description": "The event, committed; null where it was not to be recorded, or could not be: that is no failure of the caller's.",
}

COMPONENTS: Final[Mapping[str, Schema]] = {
    "Event": _EVENT,
    "Notice": _NOTICE,
    "Watch": _WATCH,
    "Session": _SESSION,
    "Turn": _TURN,
    "Statistics": fields(_COUNTS, **dict.fromkeys(_COUNTS, _SEQUENCE)),
    "Error": _ERROR,
}
"""What the document names."""
