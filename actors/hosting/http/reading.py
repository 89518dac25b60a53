"""Endpoints that change nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, Final

from ...errors import InvalidArgument
from ...gateway import Gateway
from ...tools import LIMIT_MAX
from ..documents import events
from ..rows import notice_row, watch_row
from ..toolset import LIST_SCHEMA, STATUS_SCHEMA
from .endpoint import Asked, Endpoint
from .schemas import AGENT_ID, KEY, NOTICES_MAX, SINCE, boolean, fields, integer, listed, named, text
from .words import camel

Read = Callable[[Gateway, Asked], Awaitable[Any]]

EVENTS_MAX: Final = 10_000
_UNKNOWN: Final = {404: "No such session."}
_LIMIT: Final = integer("How many at most.", minimum=1, maximum=LIMIT_MAX)


def reading_endpoints(gateway: Gateway) -> list[Endpoint]:
    """What can be read of a gateway."""

    def bound(read: Read) -> Callable[[Asked], Awaitable[Any]]:
        return lambda asked: read(gateway, asked)

    return [
        Endpoint(
            method="GET",
            path="/api/sessions",
            name="list_sessions",
            tag="reading",
            summary="The sessions there are, ordered by key, a page at a time.",
            handle=bound(_sessions),
            answer=LIST_SCHEMA,
            query=fields(
                agentId=text("Only this agent's."),
                kind=text("Only of this kind, such as main or subagent."),
                parent=text("Only children of this session."),
                limit=_LIMIT,
                after=text("The nextAfter of the page before."),
                withTotal=boolean("Also count all of them."),
            ),
        ),
        Endpoint(
            method="GET",
            path="/api/sessions/{key}",
            name="session_status",
            tag="reading",
            summary="A session's state version, and with changesSince exactly what changed after that version.",
            handle=bound(_status),
            answer=STATUS_SCHEMA,
            query=fields(agentId=AGENT_ID, changesSince=SINCE, limit=_LIMIT),
            refusals=_UNKNOWN,
        ),
        Endpoint(
            method="GET",
            path="/api/sessions/{key}/notices",
            name="pending_notices",
            tag="reading",
            summary="The notices that the session's next turn would be shown; those in an open turn are left out.",
            handle=bound(_notices),
            answer=fields(("notices",), notices=listed(named("Notice"))),
            query=fields(limit=NOTICES_MAX),
            refusals=_UNKNOWN,
        ),
        Endpoint(
            method="GET",
            path="/api/sessions/{key}/watches",
            name="watches",
            tag="reading",
            summary="Every cursor that the session holds: what it has seen of whom, and whether a notice is pending.",
            handle=bound(_watches),
            answer=fields(("watches",), watches=listed(named("Watch"))),
        ),
        Endpoint(
            method="GET",
            path="/api/events",
            name="newest_events",
            tag="reading",
            summary="The newest events of the signal log, oldest first: of one session, or of all.",
            handle=bound(_events),
            answer=fields(("events",), events=listed(named("Event"))),
            query=fields(sessionKey=KEY, agentId=AGENT_ID, limit=integer("How many; 50 by default.", minimum=1, maximum=EVENTS_MAX)),
            refusals=_UNKNOWN,
        ),
        Endpoint(
            method="GET",
            path="/api/statistics",
            name="statistics",
            tag="reading",
            summary="What the gateway has done since its start, and what there is right now.",
            handle=bound(_statistics),
            answer=named("Statistics"),
        ),
    ]


async def _sessions(gateway: Gateway, asked: Asked) -> Any:
    return await gateway.sessions_list(
        **asked.given(agent_id="agentId", kind="kind", parent="parent", limit="limit", after="after", with_total="withTotal")
    )


async def _status(gateway: Gateway, asked: Asked) -> Any:
    return await gateway.session_status(asked.key, **asked.given(agent_id="agentId", changes_since="changesSince", limit="limit"))


async def _notices(gateway: Gateway, asked: Asked) -> Any:
    return {"notices": [notice_row(notice) for notice in await gateway.pending(asked.key, **asked.given(notices_max="limit"))]}


async def _watches(gateway: Gateway, asked: Asked) -> Any:
    return {"watches": [watch_row(watch) for watch in await gateway.watches(asked.key)]}


async def _events(gateway: Gateway, asked: Asked) -> Any:
    key, agent_id = asked.query.get("sessionKey"), asked.query.get("agentId")
    if key is None and agent_id is not None:
        raise InvalidArgument("agentId", agent_id, "it goes with a sessionKey")
    return await events(gateway.store, key, agent_id, asked.query.get("limit", 50), gateway.language)


async def _statistics(gateway: Gateway, _asked: Asked) -> Any:
    return {camel(name): value for name, value in asdict(await gateway.statistics()).items()}
