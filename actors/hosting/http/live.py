"""What the live page reads: everything at a glance, and one session from near."""

from __future__ import annotations

from typing import Any, Final

from ...gateway import Gateway
from ...views import EVENTS_MAX
from ..toolset import EVENT_SCHEMA, SESSION_SCHEMA, STATUS_SCHEMA
from .endpoint import Asked, Endpoint
from .schemas import AGENT_ID, KEY, Schema, boolean, fields, integer, listed, text

TAG: Final = "live"

_COUNT: Final = integer(minimum=0)
_LAST_ACTOR: Final[Schema] = {
    **fields(("sequence",), type=text(enum=["human", "agent", "system"]), id=text(), sequence=_COUNT),
    "description": "Who changed the session last; without a type where the event is kept no more, and it was a person or the system.",
}
_SESSION: Final = fields(tuple(SESSION_SCHEMA["required"]), **SESSION_SCHEMA["properties"], lastActor=_LAST_ACTOR)
_CURSOR: Final = fields(
    ("watcher", "target", "targetAgentId", "lastSeen", "notified", "material", "pending"),
    watcher=text(),
    target=text(),
    targetAgentId=text(),
    lastSeen=_COUNT,
    notified=_COUNT,
    material=_COUNT,
    pending=boolean("Whether the watcher has not been told yet, or has not acknowledged it."),
)
_EVENT: Final = fields(
    ("sessionKey", "agentId", *EVENT_SCHEMA["required"]), sessionKey=text(), agentId=text(), **EVENT_SCHEMA["properties"]
)
_NOTICE: Final = fields(
    ("target", "targetAgentId", "changesSince", "text"), target=text(), targetAgentId=text(), changesSince=_COUNT, text=text()
)
_OVERVIEW: Final = fields(
    ("sessions", "cursors", "events", "hasMore", "totals", "lastSequence"),
    sessions=listed(_SESSION),
    cursors=listed(_CURSOR),
    events=listed(_EVENT, description="The newest, ascending."),
    hasMore=fields(("sessions", "cursors", "events"), sessions=boolean(), cursors=boolean(), events=boolean()),
    totals=fields(("sessions", "events", "cursors", "pending"), sessions=_COUNT, events=_COUNT, cursors=_COUNT, pending=_COUNT),
    lastSequence=_COUNT,
)
_NEAR: Final = fields(
    ("session", "watchers", "watching", "notices", "hasMore"),
    session=_SESSION,
    watchers=listed(_CURSOR),
    watching=listed(_CURSOR),
    notices=listed(_NOTICE),
    hasMore=fields(("watchers", "watching"), watchers=boolean(), watching=boolean()),
    stateChanges=STATUS_SCHEMA["properties"]["stateChanges"],
)


def live_endpoints(gateway: Gateway) -> list[Endpoint]:
    """The reads, each within bounds, for pages that show everything."""
    return [
        Endpoint(
            method="GET",
            path="/api/live/overview",
            name="liveOverview",
            tag=TAG,
            summary="Sessions with their last actor, cursors, the newest events and totals, from one consistent read",
            query=fields(events=integer("How many events at most; 500 by default.", minimum=0, maximum=EVENTS_MAX)),
            handle=_Live(gateway).overview,
            answer=_OVERVIEW,
        ),
        Endpoint(
            method="GET",
            path="/api/live/session",
            name="liveSession",
            tag=TAG,
            summary="One session, who watches it, whom it watches, its pending notices and, where asked for, what changed",
            query=fields(
                ("sessionKey",),
                sessionKey=KEY,
                agentId=AGENT_ID,
                changesSince=integer("The state version after which changes are told.", minimum=0),
                limit=integer("How many changes, watchers and watched sessions at most.", minimum=1, maximum=200),
            ),
            handle=_Live(gateway).session,
            answer=_NEAR,
            refusals={404: "There is no such session."},
        ),
    ]


class _Live:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def overview(self, asked: Asked) -> dict[str, Any]:
        return await self._gateway.overview(**asked.given(events_max="events"))

    async def session(self, asked: Asked) -> dict[str, Any]:
        key, wanted = asked.query["sessionKey"], asked.given(agent_id="agentId", limit="limit")
        answer = await self._gateway.surroundings(key, **wanted)
        if "changesSince" not in asked.query:
            return answer
        status = await self._gateway.session_status(key, changes_since=asked.query["changesSince"], **wanted)
        return answer | {"stateChanges": status["stateChanges"]}
