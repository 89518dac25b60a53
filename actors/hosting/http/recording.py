"""Endpoints by which hosts in other languages tell what happened: one for each recording method of `Gateway`.

A recording that was not to be made, or could not be, is answered with `{"event": null}` and 200: it is no failure of the caller's turn
(rule 1.9).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from ....storage.records import StateEvent
from ...drafts import GOAL_CHANGES, OUTCOMES
from ...errors import InvalidArgument
from ...gateway import RUNTIMES, TURNS_MAX, Gateway, Session
from ...identity import Actor
from ..rows import event_row
from .endpoint import Asked, Endpoint
from .schemas import ACTOR, AGENT_ID, KEY, RECORDED, RUN_ID, Schema, boolean, fields, integer, named, number, text

Record = Callable[[Gateway, Asked], Awaitable[Any]]

_SESSION_ID: Final = text("The session id; by default a new one.")
_NOT_FOUND: Final = {404: "No such session."}


def recording_endpoints(gateway: Gateway) -> list[Endpoint]:
    """What can be told to a gateway."""

    def bound(record: Record) -> Callable[[Asked], Awaitable[Any]]:
        return lambda asked: record(gateway, asked)

    def told(what: str, summary: str, record: Record, answer: Schema | None, body: Schema, **more: Any) -> Endpoint:
        path = f"/api/sessions/{{key}}/{what}"
        name = what.replace("-", "_")
        return Endpoint(
            method="POST", path=path, name=name, tag="recording", summary=summary, handle=bound(record), answer=answer, body=body, **more
        )

    return [
        Endpoint(
            method="PUT",
            path="/api/sessions/{key}",
            name="open_session",
            tag="recording",
            summary="Create the session, or change what is given; the same call twice changes nothing.",
            handle=bound(_open),
            answer=named("Session"),
            body=fields(agentId=AGENT_ID, sessionId=_SESSION_ID, parent=text("The parent's key; seeds no cursor."), label=text()),
        ),
        Endpoint(
            method="DELETE",
            path="/api/sessions/{key}",
            name="delete_session",
            tag="recording",
            summary="Remove the session with its events, cursors and notices; false if there was none.",
            handle=bound(_delete),
            answer=fields(("deleted",), deleted=boolean()),
            query=fields(agentId=AGENT_ID),
        ),
        told(
            "reset",
            "Give the session a new session id; its notices and the cursors that it holds are gone.",
            _reset,
            named("Session"),
            fields(agentId=AGENT_ID),
            refusals=_NOT_FOUND,
        ),
        told(
            "spawn",
            "The session created a child for a run, and watches it from now on.",
            _spawn,
            RECORDED,
            fields(
                ("child", "runId"),
                child=KEY,
                runId=RUN_ID,
                runtime=text("subagent by default.", enum=list(RUNTIMES)),
                sessionId=_SESSION_ID,
                agentId=text("The child's agent, for a key without the agent: prefix."),
                parentAgentId=text("The parent's agent, likewise."),
            ),
        ),
        told(
            "human-message",
            "A person sent a turn straight to the session. Never say what was said.",
            _human_message,
            RECORDED,
            fields(
                ("channel",),
                channel=text("Where it came from, such as telegram."),
                actorId=text("Who it was."),
                runId=RUN_ID,
                occurredAt=number("Milliseconds since 1970; now by default."),
                agentId=AGENT_ID,
                dedupeKey=text("A repeat of the same key records nothing."),
                turns=integer("How many turns were found at once.", minimum=1, maximum=TURNS_MAX),
            ),
        ),
        told(
            "goal-changed",
            "The session's goal was created, updated or cleared by somebody.",
            _goal_changed,
            RECORDED,
            fields(("change", "actor"), change=text(enum=list(GOAL_CHANGES)), actor=ACTOR, agentId=AGENT_ID),
        ),
        told(
            "run-ended",
            "A run of the session ended.",
            _run_ended,
            RECORDED,
            fields(("runId", "outcome"), runId=RUN_ID, outcome=text(enum=list(OUTCOMES)), agentId=AGENT_ID),
        ),
        told(
            "compacted",
            "The session's history was compacted.",
            _compacted,
            RECORDED,
            fields(("operationId",), operationId=text("The same operation is recorded once."), agentId=AGENT_ID),
        ),
        told("run-started", "A run of the session is active.", _run_started, None, fields(("runId",), runId=RUN_ID, agentId=AGENT_ID)),
        told("run-finished", "A run of the session is over.", _run_finished, None, fields(("runId",), runId=RUN_ID, agentId=AGENT_ID)),
        told(
            "watch",
            "The session watches another from its present state on.",
            _watch,
            fields(("watched",), watched=boolean()),
            fields(("target",), target=KEY, targetAgentId=AGENT_ID),
        ),
        told(
            "unwatch",
            "The session watches it no more, and its pending notice goes.",
            _unwatch,
            fields(("unwatched",), unwatched=boolean()),
            fields(("target",), target=KEY, targetAgentId=AGENT_ID),
        ),
        Endpoint(
            method="POST",
            path="/api/adopt",
            name="adopt",
            tag="recording",
            summary="Make a session of an agent's own tool a session here. The gateway must have been given that catalog.",
            handle=bound(_adopt),
            answer=named("Session"),
            body=fields(
                ("catalog", "threadId"),
                catalog=text("Such as claude or codex."),
                threadId=text(),
                hostId=text("The machine that it is on; local by default."),
                agentId=text("main by default."),
                key=KEY,
            ),
            refusals={404: "No such thread."},
        ),
    ]


async def _open(gateway: Gateway, asked: Asked) -> Any:
    return _session(
        await gateway.open_session(asked.key, **asked.given(agent_id="agentId", session_id="sessionId", parent="parent", label="label"))
    )


async def _delete(gateway: Gateway, asked: Asked) -> Any:
    return {"deleted": await gateway.delete_session(asked.key, **asked.given(agent_id="agentId"))}


async def _reset(gateway: Gateway, asked: Asked) -> Any:
    return _session(await gateway.reset_session(asked.key, **asked.given(agent_id="agentId")))


async def _spawn(gateway: Gateway, asked: Asked) -> Any:
    given = asked.given(
        child="child", run_id="runId", runtime="runtime", session_id="sessionId", agent_id="agentId", parent_agent_id="parentAgentId"
    )
    return _recorded(await gateway.spawn(asked.key, **given))


async def _human_message(gateway: Gateway, asked: Asked) -> Any:
    given = asked.given(
        channel="channel",
        actor_id="actorId",
        run_id="runId",
        occurred_at_ms="occurredAt",
        agent_id="agentId",
        dedupe_key="dedupeKey",
        turns="turns",
    )
    return _recorded(await gateway.human_message(asked.key, **given))


async def _goal_changed(gateway: Gateway, asked: Asked) -> Any:
    actor = _actor(asked.body["actor"]["type"], asked.body["actor"].get("id"))
    return _recorded(await gateway.goal_changed(asked.key, actor=actor, **asked.given(change="change", agent_id="agentId")))


async def _run_ended(gateway: Gateway, asked: Asked) -> Any:
    return _recorded(await gateway.run_ended(asked.key, **asked.given(run_id="runId", outcome="outcome", agent_id="agentId")))


async def _compacted(gateway: Gateway, asked: Asked) -> Any:
    return _recorded(await gateway.compacted(asked.key, **asked.given(operation_id="operationId", agent_id="agentId")))


async def _run_started(gateway: Gateway, asked: Asked) -> None:
    await gateway.run_started(asked.key, **asked.given(run_id="runId", agent_id="agentId"))


async def _run_finished(gateway: Gateway, asked: Asked) -> None:
    await gateway.run_finished(asked.key, **asked.given(run_id="runId", agent_id="agentId"))


async def _watch(gateway: Gateway, asked: Asked) -> Any:
    return {"watched": await gateway.watch(asked.key, **asked.given(target="target", target_agent_id="targetAgentId"))}


async def _unwatch(gateway: Gateway, asked: Asked) -> Any:
    return {"unwatched": await gateway.unwatch(asked.key, **asked.given(target="target", target_agent_id="targetAgentId"))}


async def _adopt(gateway: Gateway, asked: Asked) -> Any:
    given = asked.given(catalog="catalog", thread_id="threadId", host_id="hostId", agent_id="agentId", key="key")
    return _session(await gateway.adopt(**given))


def _actor(kind: str, name: str | None) -> Actor:
    if kind == "human":
        return Actor.human(name)
    if kind == "agent":
        return Actor.agent(name or "")
    if name is not None:
        raise InvalidArgument("id", name, "the system has none")
    return Actor.system()


def _recorded(event: StateEvent | None) -> dict[str, Any]:
    """The summary is in the gateway's language already, and English to `event_row` is as it stands."""
    return {"event": None if event is None else event_row(event, "en")}


def _session(session: Session) -> dict[str, Any]:
    row = {"sessionKey": session.key, "agentId": session.agent_id, "sessionId": session.session_id, "kind": session.kind}
    optional = {"label": session.label, "parent": session.parent}
    return row | {name: value for name, value in optional.items() if value is not None} | {"status": session.status}
