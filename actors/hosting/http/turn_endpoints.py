"""Endpoints for the turns of hosts in other languages, and for what stands in for a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from ...gateway import Gateway
from ...keys import canonical_key, parse_address
from ...notices import Notice
from ..rows import notice_row
from .endpoint import Asked, Endpoint
from .leases import LEASE_S, LEASE_S_MAX, LEASE_S_MIN, LeasedTurns
from .schemas import NOTICES_MAX, SHOWN, Schema, fields, integer, listed, named, number, text

_UNKNOWN: Final = {404: "No such session."}
_UNKNOWN_TURN: Final = {404: "No such open turn: it was ended, or its lease is over."}
_LEASE: Final = number(
    f"Without a call for so long the host counts as gone, and the notices are given back; {LEASE_S:.0f} by default.",
    minimum=LEASE_S_MIN,
    maximum=LEASE_S_MAX,
)
_NOTICES: Final = fields(("notices",), notices=listed(named("Notice")))


def turn_endpoints(gateway: Gateway, turns: LeasedTurns) -> list[Endpoint]:
    """What a host does at the boundaries of its model's runs."""

    async def drain(asked: Asked) -> Any:
        return {"notices": [notice_row(notice) for notice in await gateway.drain(asked.key, **asked.given(notices_max="noticesMax"))]}

    async def acknowledge(asked: Asked) -> Any:
        watcher = canonical_key(asked.key)
        shown = [_shown(watcher, item) for item in asked.body["notices"]]
        return {"acknowledged": await gateway.acknowledge(watcher, shown)}

    async def begin(asked: Asked) -> Any:
        lease_s = float(asked.body.get("leaseSeconds", LEASE_S))
        turn_id, turn = await turns.open(asked.key, asked.body.get("noticesMax"), lease_s)
        rows = [notice_row(notice) for notice in turn.notices]
        lines = turn.prompt_lines()
        return {"turnId": turn_id, "notices": rows, "promptLines": lines, "remaining": turn.remaining, "leaseSeconds": lease_s}

    async def renew(asked: Asked) -> Any:
        return {"leaseSeconds": turns.renew(asked.path["turn"], asked.body.get("leaseSeconds"))}

    async def acknowledge_turn(asked: Asked) -> None:
        await turns.acknowledge(asked.path["turn"])

    async def end(asked: Asked) -> None:
        await turns.end(asked.path["turn"], failed=asked.body["outcome"] == "failed")

    return [
        _posted(
            "/api/sessions/{key}/turns",
            "begin_turn",
            "Begin a run of the session's model: take its notices. Acknowledged when it ends well, given back when it fails.",
            begin,
            named("Turn"),
            fields(noticesMax=NOTICES_MAX, leaseSeconds=_LEASE),
            status=201,
            refusals=_UNKNOWN,
        ),
        _posted(
            "/api/turns/{turn}/renew",
            "renew_turn",
            "Say that the host is still there: the lease begins anew.",
            renew,
            fields(("leaseSeconds",), leaseSeconds=number()),
            fields(leaseSeconds=_LEASE),
            refusals=_UNKNOWN_TURN,
        ),
        _posted(
            "/api/turns/{turn}/acknowledge",
            "acknowledge_turn",
            "Acknowledge before the turn ends, when the model has certainly been shown the notices. Renews the lease.",
            acknowledge_turn,
            None,
            fields(),
            refusals=_UNKNOWN_TURN,
        ),
        _posted(
            "/api/turns/{turn}/end",
            "end_turn",
            "End the turn: acknowledged if it went well, given back if it failed.",
            end,
            None,
            fields(("outcome",), outcome=text(enum=["ok", "failed"])),
            refusals=_UNKNOWN_TURN,
        ),
        _posted(
            "/api/sessions/{key}/drain",
            "drain",
            "Take and acknowledge in one step, for hosts that have no end of a turn.",
            drain,
            _NOTICES,
            fields(noticesMax=NOTICES_MAX),
            refusals=_UNKNOWN,
        ),
        _posted(
            "/api/sessions/{key}/acknowledge",
            "acknowledge",
            "Acknowledge notices that were shown elsewhere than in a turn; how many it still applied to.",
            acknowledge,
            fields(("acknowledged",), acknowledged=integer(minimum=0)),
            fields(("notices",), notices=listed(SHOWN, maxItems=10_000)),
        ),
    ]


def _posted(
    path: str, name: str, summary: str, handle: Callable[[Asked], Awaitable[Any]], answer: Schema | None, body: Schema, **more: Any
) -> Endpoint:
    return Endpoint(method="POST", path=path, name=name, tag="turns", summary=summary, handle=handle, answer=answer, body=body, **more)


def _shown(watcher: str, item: dict[str, Any]) -> Notice:
    """The notice that was shown, as far as it is named by (rule 4.5)."""
    target = parse_address(item["target"], item.get("targetAgentId"))
    return Notice(watcher, target.session_key, target.agent_id, item["changesSince"], "", item["notified"])
