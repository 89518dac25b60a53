"""What hosts in other languages tell and read: every recording method, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kizuki.actors import Gateway
from kizuki.actors.hosting.http import asking
from tests.hosting.cast import CHILD, GLOBAL, MAIN
from tests.hosting.http.asking import Api, session

PLACE = "agent:main:tele/gram:group:a/b%c"


async def test_the_whole_story(api: Api) -> None:
    """A host in another language can do all that one in Python does: open, spawn, record, read the exact delta."""
    opened = await api.tell(session(MAIN), "PUT", label="the manager")
    assert (opened["sessionKey"], opened["label"], opened["status"]) == (MAIN, "the manager", "idle")
    spawned = await api.tell(session(MAIN, "spawn"), child=CHILD, runId="r1")
    assert (spawned["event"]["sessionKey"], spawned["event"]["kind"], spawned["event"]["actorId"]) == (CHILD, "child_spawned", MAIN)
    told: list[Any] = [
        await api.tell(session(CHILD, "human-message"), channel="telegram", actorId="ada", turns=3),
        await api.tell(session(CHILD, "goal-changed"), change="updated", actor={"type": "agent", "id": MAIN}),
        await api.tell(session(CHILD, "compacted"), operationId="c1"),
        await api.tell(session(CHILD, "run-ended"), runId="r1", outcome="timeout"),
    ]
    status = await api.get(session(CHILD), changesSince=spawned["event"]["sequence"])
    assert [event["sequence"] for event in status["stateChanges"]["events"]] == [each["event"]["sequence"] for each in told]
    assert [event["kind"] for event in status["stateChanges"]["events"]] == [
        "human_direct_message",
        "goal_changed",
        "compacted",
        "run_failed",
    ]
    assert told[0]["event"]["payload"] == {"turns": 3}
    events = (await api.get("/api/events", sessionKey=CHILD, limit=1))["events"]
    assert events == [told[-1]["event"]]
    assert len((await api.get("/api/events"))["events"]) == 5
    assert (await api.get("/api/statistics"))["eventsRecorded"] == 5


async def test_active_runs(api: Api) -> None:
    """A run that was started is active until it is finished."""
    await api.tell(session(MAIN, "run-started"), runId="r1")
    assert (await api.get(session(MAIN)))["status"] == "running"
    await api.tell(session(MAIN, "run-finished"), runId="r1")
    assert (await api.get(session(MAIN)))["status"] == "idle"


async def test_watching(api: Api) -> None:
    """Rule 3.2: a session watches another and stops; what it cannot watch is answered with false."""
    assert await api.tell(session(MAIN, "watch"), target=CHILD) == {"watched": True}
    assert await api.tell(session(MAIN, "watch"), target=MAIN) == {"watched": False}
    await api.tell(session(CHILD, "goal-changed"), change="created", actor={"type": "human"})
    watches = (await api.get(session(MAIN, "watches")))["watches"]
    assert [(watch["target"], watch["pending"]) for watch in watches] == [(CHILD, True)]
    assert await api.tell(session(MAIN, "unwatch"), target=CHILD) == {"unwatched": True}
    assert await api.tell(session(MAIN, "unwatch"), target=CHILD) == {"unwatched": False}


async def test_resetting_and_deleting(api: Api) -> None:
    """A reset gives another session id; a deletion happens once."""
    before = await api.tell(session(MAIN), "PUT")
    after = await api.tell(session(MAIN, "reset"))
    assert before["sessionId"] != after["sessionId"]
    assert [await api.tell(session(MAIN), "DELETE") for _ in range(2)] == [{"deleted": True}, {"deleted": False}]
    assert await api.refused(session(MAIN, "reset")) == (404, "unknown_session")


@pytest.mark.parametrize("key", [PLACE, "agent:main:telegram:group:-100/7:thread:ü?#&=", "AGENT:Main:Cron:x/../y"])
async def test_any_key(api: Api, gateway: Gateway, key: str) -> None:
    """Rule 2.2: a key with colons, slashes and whatever else a URL takes for its own arrives as it is, when it is percent-encoded."""
    opened = await api.tell(session(key), "PUT")
    assert opened["sessionKey"] == (await gateway.open_session(key)).key
    assert (await api.get(session(key)))["sessionKey"] == opened["sessionKey"]
    await api.tell(session(MAIN, "watch"), target=key)
    await api.tell(session(key, "human-message"), channel="x")
    assert [notice["target"] for notice in (await api.get(session(MAIN, "notices")))["notices"]] == [opened["sessionKey"]]


async def test_a_key_without_prefix(api: Api) -> None:
    """Rule 2.4: a key without the prefix needs its agent's id, wherever it is named."""
    assert await api.refused(session(GLOBAL), "PUT") == (400, "invalid_session_key")
    await api.tell(session(GLOBAL), "PUT", agentId="ops")
    assert (await api.get(session(GLOBAL), agentId="ops"))["agentId"] == "ops"
    await api.tell(session(GLOBAL, "goal-changed"), change="created", actor={"type": "system"}, agentId="ops")
    assert len((await api.get("/api/events", sessionKey=GLOBAL, agentId="ops"))["events"]) == 1
    assert await api.tell(f"{session(GLOBAL)}?agentId=ops", "DELETE") == {"deleted": True}


async def test_lists(api: Api) -> None:
    """Sessions are listed a page at a time, with what the query asks for."""
    for number in range(5):
        await api.tell(session(f"agent:main:subagent:{number}"), "PUT", parent=MAIN)
    page = await api.get("/api/sessions", parent=MAIN, limit=2, withTotal="true")
    assert ([row["sessionKey"][-1] for row in page["sessions"]], page["total"]) == (["0", "1"], 5)
    rest = await api.get("/api/sessions", parent=MAIN, after=page["nextAfter"])
    assert ([row["sessionKey"][-1] for row in rest["sessions"]], rest["hasMore"]) == (["2", "3", "4"], False)


async def test_what_is_not_recorded(api: Api) -> None:
    """Rules 1.8 and 1.9: what nobody watches, and what was lost, is answered honestly: there is no event, and it is no error."""
    assert await api.tell(session(MAIN, "human-message"), channel="telegram") == {"event": None}
    await api.tell(session("agent:main:boss", "watch"), target=MAIN)
    first = await api.tell(session(MAIN, "human-message"), channel="telegram", dedupeKey="m1")
    assert await api.tell(session(MAIN, "human-message"), channel="telegram", dedupeKey="m1") == first


@pytest.mark.parametrize("occurred_at", [1e308, -1e308, 10**400, -5, 0.5])
async def test_any_time(api: Api, occurred_at: float) -> None:
    """Rule 1.7: whatever number a time is, the event is recorded, within the last day."""
    await api.tell(session("agent:main:boss", "watch"), target=MAIN)
    event = (await api.tell(session(MAIN, "human-message"), channel="x", occurredAt=occurred_at))["event"]
    assert 1_793_620_800_000 - 86_400_000 <= event["occurredAt"] <= 1_793_620_800_000


async def test_tools(api: Api) -> None:
    """The session tools are called in the name of the session in the path."""
    assert await api.tell(session(MAIN, "tools", "sessions_watch"), sessionKey=CHILD) == {"watched": True}
    await api.tell(session(CHILD, "human-message"), channel="telegram")
    answer = await api.tell(session(MAIN, "tools", "session_status"), sessionKey=CHILD, changesSince="0")
    assert [event["kind"] for event in answer["stateChanges"]["events"]] == ["human_direct_message"]
    assert await api.tell(session(MAIN, "tools", "sessions_acknowledge"), sessionKey=CHILD, changesSince=0) == {"acknowledged": 1}
    sent = await api.tell(session(MAIN, "tools", "sessions_send"), sessionKey=CHILD, message="hello", watch=True)
    assert (sent["status"], sent["reply"], sent["watched"]) == ("ok", "done", True)
    assert (await api.tell(session(MAIN, "tools", "sessions_send"), sessionKey=CHILD, message="rude"))["status"] == "refused"
    assert await api.refused(session(MAIN, "tools", "sessions_forget")) == (404, "not_found")


WRONG = [
    (session(MAIN, "spawn"), {}, "runId|child"),
    (session(MAIN, "spawn"), {"child": CHILD, "runId": "r", "more": 1}, "more"),
    (session(MAIN, "spawn"), {"child": CHILD, "runId": 5}, "runId"),
    (session(MAIN, "spawn"), {"child": CHILD, "runId": "r", "runtime": "vm"}, "subagent or acp"),
    (session(MAIN, "spawn"), {"child": CHILD, "runId": None}, "runId"),
    (session(MAIN, "spawn"), {"child": "agent:main", "runId": "r"}, "agent:main"),
    (session(MAIN, "spawn"), {"child": CHILD, "runId": "two\nlines"}, "run_id"),
    (session(MAIN, "human-message"), {"channel": "x", "turns": 0}, "turns"),
    (session(MAIN, "human-message"), {"channel": "x", "turns": True}, "turns"),
    (session(MAIN, "goal-changed"), {"change": "created", "actor": {"type": "agent"}}, "session key"),
    (session(MAIN, "goal-changed"), {"change": "created", "actor": {"type": "system", "id": "x"}}, "id"),
    (session(MAIN, "goal-changed"), {"change": "created", "actor": "human"}, "actor"),
    (session(MAIN, "turns"), {"leaseSeconds": 0}, "leaseSeconds"),
    (session(MAIN, "acknowledge"), {"notices": [{"target": CHILD}]}, "changesSince"),
    (session("agent:main"), {}, "agent:main"),
    (session(MAIN, "tools", "session_status"), {"sessionKey": MAIN, "changesSince": "x"}, "changesSince"),
    ("/api/adopt", {"catalog": "claude", "threadId": "t"}, "without catalogs"),
]


@pytest.mark.parametrize(("path", "content", "says"), WRONG, ids=range(len(WRONG)))
async def test_wrong_arguments(api: Api, path: str, content: object, says: str) -> None:
    """Rule 1.9: a wrong argument is refused at once, with a text that names it."""
    method = "PUT" if path.count("/") == 3 else "POST"
    response = await api.client.request(method, path, json=content)
    assert response.status_code == 400, response.text
    assert response.json()["reason"] in ("invalid_argument", "invalid_session_key")
    assert any(word in response.json()["error"] for word in says.split("|"))


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1&limit=2", "withTotal=1", "more=1", "limit=" + "9" * 50, "after=%FF"])
async def test_wrong_queries(api: Api, query: str) -> None:
    """A query is checked like a content: unknown, repeated and wrong parameters are refused."""
    response = await api.client.get(f"/api/sessions?{query}")
    if query == "after=%FF":
        assert response.status_code in (200, 400)
    else:
        assert (response.status_code, response.json()["reason"]) == (400, "invalid_argument")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b'{"channel": NaN}', b'{"channel": "\\ud800"}', b"[" * 100_000, b'{"channel": ' + b"9" * 5_000 + b"}"],
)
async def test_no_json(api: Api, content: bytes) -> None:
    """Content that is no JSON object is refused, whatever it is instead."""
    response = await api.client.post(session(MAIN, "human-message"), content=content, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["reason"]) == (400, "invalid_argument")


async def test_too_much(api: Api) -> None:
    """Content is bounded in bytes."""
    response = await api.client.post(session(MAIN, "human-message"), json={"channel": "x" * 1_100_000})
    assert (response.status_code, response.json()["reason"]) == (413, "too_large")


@pytest.mark.parametrize("path", [session(MAIN, "human-message"), "/login"])
async def test_too_slow(api: Api, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Content that does not come is not waited for without end, and its connection is given up."""
    monkeypatch.setattr(asking, "BODY_S", 0.01)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    request = api.client.post(path, content=pieces(), headers={"content-type": "application/json"})
    response = await asyncio.wait_for(request, 5)
    assert (response.status_code, response.json()["reason"]) == (408, "too_slow")
    assert response.headers["connection"] == "close"


async def test_elsewhere(api: Api) -> None:
    """A path that is none and a method that a path does not have are refused in the same shape; the methods that there are are named."""
    assert await api.refused("/api/session", "GET") == (404, "not_found")
    assert await api.refused(session(MAIN, "spawn", ""), "POST") == (404, "not_found")
    response = await api.client.patch(session(MAIN), json={})
    assert (response.status_code, response.json()["reason"]) == (405, "method_not_allowed")
    assert set(response.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT", "DELETE"}


async def test_a_path_that_is_no_text(api: Api) -> None:
    """A key that is no UTF-8 is refused."""
    assert await api.refused("/api/sessions/agent:main:%ff", "PUT") == (400, "invalid_argument")
