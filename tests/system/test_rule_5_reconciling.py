"""Rules 5.1 to 5.5: `session_status` and `sessions_list`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, ManualClock, UnknownSession
from tests.system.cast import (
    CHILD,
    DAY_S,
    GLOBAL,
    MAIN,
    NOW,
    OPS,
    OTHER,
    PERSON,
    changes,
    family,
    human,
    pair,
    positions,
    sequences,
    there,
    version,
)
from tests.system.conftest import Opening


async def many(gateway: Gateway, count: int, key: str = CHILD) -> list[int]:
    """That many events on the session; their sequences."""
    events = await asyncio.gather(*(gateway.goal_changed(key, "updated", actor=PERSON) for _ in range(count)))
    return sorted(there(event).sequence for event in events)


# -- 5.1 ------------------------------------------------------------------------------------------------------------------------------


async def test_always_reports_the_version(gateway: Gateway) -> None:
    """Rule 5.1: the state version is always there, from 0 on; the delta only when it was asked for."""
    await gateway.open_session(CHILD)
    assert (await gateway.session_status(CHILD))["stateVersion"] == 0
    event = await family(gateway)
    status = await gateway.session_status(CHILD)
    assert status["stateVersion"] == event.sequence
    assert set(status) == {"sessionKey", "agentId", "sessionId", "status", "stateVersion"}


async def test_shape(gateway: Gateway) -> None:
    """Interface: the whole result, as the interface shows it, and nothing where there is nothing to say."""
    await gateway.watch(MAIN, CHILD)
    session = await gateway.open_session(CHILD)
    await gateway.human_message(CHILD, channel="telegram")
    await gateway.goal_changed(CHILD, "updated", actor=Actor.human("ada"))
    status = await gateway.session_status(CHILD, changes_since=0)
    assert status == {
        "sessionKey": CHILD,
        "agentId": "main",
        "sessionId": session.session_id,
        "status": "idle",
        "stateVersion": 2,
        "stateChanges": {
            "events": [
                {
                    "sequence": 1,
                    "kind": "human_direct_message",
                    "actorType": "human",
                    "occurredAt": NOW,
                    "summary": "human message via telegram",
                },
                {
                    "sequence": 2,
                    "kind": "goal_changed",
                    "actorType": "human",
                    "actorId": "ada",
                    "occurredAt": NOW,
                    "summary": "goal updated",
                },
            ],
            "historyGap": False,
            "truncated": False,
            "earliestAvailableSequence": 1,
        },
    }
    assert json.loads(json.dumps(status)) == status


async def test_optional_fields(gateway: Gateway) -> None:
    """Interface: a run's id and an outcome are there where an event has them."""
    await family(gateway)
    await gateway.human_message(CHILD, channel="c", run_id="r7")
    await gateway.run_ended(CHILD, run_id="r1", outcome="timeout")
    spawned, said, ended = (await changes(gateway))["events"]
    assert (spawned["actorType"], spawned["actorId"], spawned["runId"]) == ("agent", MAIN, "r1")
    assert (said["runId"], "actorId" in said, "payload" in said) == ("r7", False, False)
    assert (ended["runId"], ended["payload"], ended["actorType"]) == ("r1", {"outcome": "timeout"}, "system")


async def test_no_events_no_earliest(gateway: Gateway) -> None:
    """Interface: a session without events has an empty delta, and no earliest sequence."""
    await gateway.open_session(CHILD)
    assert await changes(gateway) == {"events": [], "historyGap": False, "truncated": False}


async def test_events_after_the_version_ascending(gateway: Gateway) -> None:
    """Rule 5.1: the delta is what came after the version, ascending, and of this session alone."""
    await family(gateway)
    found = [1]
    for _ in range(3):
        found += await many(gateway, 2)
        await many(gateway, 3, OTHER)
    for since in range(found[-1] + 2):
        assert sequences(await changes(gateway, since=since)) == [sequence for sequence in found if sequence > since]


async def test_moves_no_cursor(gateway: Gateway) -> None:
    """Rule 5.1: reading the delta acknowledges nothing and moves nothing."""
    await family(gateway)
    await human(gateway)
    before = await positions(gateway), await gateway.pending(MAIN)
    await changes(gateway, since=0)
    await changes(gateway, since=99)
    assert (await positions(gateway), await gateway.pending(MAIN)) == before


async def test_unknown_session(gateway: Gateway) -> None:
    """Interface: a key without session is `UnknownSession`, with or without a version; asking creates none."""
    for since in (None, 0):
        with pytest.raises(UnknownSession, match="child"):
            await gateway.session_status(CHILD, changes_since=since)
    assert (await gateway.sessions_list())["sessions"] == []


async def test_other_agent_s_session_is_unknown(gateway: Gateway) -> None:
    """Rule 2.4: the key under another agent is another session, and unknown."""
    await gateway.open_session(GLOBAL, agent_id="main")
    with pytest.raises(UnknownSession):
        await gateway.session_status(GLOBAL, agent_id="ops")


async def test_running(gateway: Gateway) -> None:
    """Interface: a session is running while any of its runs is active; `run_ended` ends the run, too."""
    assert await gateway.run_started(CHILD, "a") is None  # type: ignore[func-returns-value]
    await gateway.run_started(CHILD, "a")
    await gateway.run_started(CHILD, "b")

    async def status() -> str:
        result: str = (await gateway.session_status(CHILD))["status"]
        return result

    assert await status() == "running"
    await gateway.run_finished(CHILD, "a")
    assert await status() == "running"
    await gateway.run_finished(CHILD, "unknown")
    await gateway.run_ended(CHILD, run_id="b", outcome="ok")
    assert await status() == "idle"
    assert (await gateway.open_session(CHILD)).status == "idle"


async def test_repeated_run_end_still_ends_the_run(gateway: Gateway) -> None:
    """Interface: a repeat of a run's end records nothing, and still leaves the run inactive."""
    await gateway.run_ended(CHILD, run_id="a", outcome="ok")
    await gateway.run_started(CHILD, "a")
    await gateway.run_ended(CHILD, run_id="a", outcome="ok")
    assert (await gateway.session_status(CHILD))["status"] == "idle"


async def test_running_is_per_agent(gateway: Gateway) -> None:
    """Rule 2.4: a run of one agent's session says nothing about the other's."""
    await gateway.run_started(GLOBAL, "a", agent_id="main")
    await gateway.open_session(GLOBAL, agent_id="ops")
    assert (await gateway.session_status(GLOBAL, agent_id="main"))["status"] == "running"
    assert (await gateway.session_status(GLOBAL, agent_id="ops"))["status"] == "idle"


async def test_deleted_session_runs_no_more(gateway: Gateway) -> None:
    """Interface: a session created again after its deletion has no active run."""
    await gateway.run_started(CHILD, "a")
    await gateway.delete_session(CHILD)
    assert (await gateway.open_session(CHILD)).status == "idle"


# -- 5.2 ------------------------------------------------------------------------------------------------------------------------------


async def test_paging_to_the_end(gateway: Gateway) -> None:
    """Rule 5.2: truncated says that more follows, and going on from `nextChangesSince` gives each event once, to the end."""
    made = await many(gateway, 503)
    seen: list[int] = []
    since = 0
    pages = 0
    while True:
        delta = await changes(gateway, since=since)
        seen += sequences(delta)
        pages += 1
        assert len(delta["events"]) <= 200
        assert delta["earliestAvailableSequence"] == made[0]
        if not delta["truncated"]:
            assert "nextChangesSince" not in delta
            break
        assert delta["nextChangesSince"] == seen[-1]
        since = delta["nextChangesSince"]
    assert (seen, pages) == (made, 3)


@pytest.mark.parametrize(("count", "truncated"), [(199, False), (200, False), (201, True)])
async def test_the_limit_is_exact(gateway: Gateway, count: int, truncated: bool) -> None:
    """Rules 5.1, 5.2: at most 200 events; exactly 200 are not truncated."""
    await many(gateway, count)
    delta = await changes(gateway)
    assert (len(delta["events"]), delta["truncated"]) == (min(count, 200), truncated)


@pytest.mark.parametrize("limit", [1, 2, 7, 199])
async def test_smaller_limits(gateway: Gateway, limit: int) -> None:
    """Rule 5.2: a smaller limit pages just so."""
    made = await many(gateway, 15)
    seen: list[int] = []
    delta = await changes(gateway, limit=limit)
    while delta["truncated"]:
        assert len(delta["events"]) == limit
        seen += sequences(delta)
        delta = await changes(gateway, since=delta["nextChangesSince"], limit=limit)
    assert seen + sequences(delta) == made


@pytest.mark.parametrize("limit", [0, -1, 201, 10**30, True, 5.0, "5", None, [5]])
async def test_bad_limits(gateway: Gateway, limit: Any) -> None:
    """Interface: a limit is 1 to 200, else `InvalidArgument`, in both tools."""
    await family(gateway)
    with pytest.raises(InvalidArgument, match="limit"):
        await gateway.session_status(CHILD, changes_since=0, limit=limit)
    with pytest.raises(InvalidArgument, match="limit"):
        await gateway.session_status(CHILD, limit=limit)
    with pytest.raises(InvalidArgument, match="limit"):
        await gateway.sessions_list(limit=limit)


# -- 5.3 ------------------------------------------------------------------------------------------------------------------------------


async def test_gaps_between_sequences_are_no_history_gap(gateway: Gateway) -> None:
    """Rule 5.3: missing numbers are no gap in the history: nothing was pruned."""
    await many(gateway, 5, OTHER)
    await family(gateway)
    for since in (0, 1, 5):
        delta = await changes(gateway, since=since)
        assert delta["historyGap"] is False
        assert "hint" not in delta


async def half_pruned(gateway: Gateway, clock: ManualClock) -> tuple[list[int], list[int]]:
    """A session whose first events are pruned: the sequences that are gone and those that are kept."""
    await many(gateway, 2, OTHER)
    gone = await many(gateway, 3)
    await many(gateway, 2, OTHER)
    await clock.advance(20 * DAY_S)
    kept = await many(gateway, 3)
    await clock.advance(11 * DAY_S)
    await gateway.prune()
    return gone, kept


async def test_history_gap_exactly_below_the_pruned_mark(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 5.3: the gap is true exactly below the highest pruned sequence, and then a hint says what to do."""
    gone, kept = await half_pruned(gateway, clock)
    for since in range(kept[-1] + 3):
        delta = await changes(gateway, since=since)
        assert delta["historyGap"] is (since < gone[-1]), since
        assert ("hint" in delta) is delta["historyGap"]
        assert sequences(delta) == [sequence for sequence in kept if sequence > since]
        assert delta["earliestAvailableSequence"] == kept[0]


async def test_hint_names_the_tool(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 5.3: the hint sends the caller to `sessions_history`."""
    await half_pruned(gateway, clock)
    assert "sessions_history" in (await changes(gateway))["hint"]


async def test_japanese_hint(opening: Opening, clock: ManualClock) -> None:
    """Rule 5.3: the hint names the tool in Japanese, too."""
    async with opening(config=GatewayConfig(language="ja")) as gateway:
        await half_pruned(gateway, clock)
        hint = (await changes(gateway))["hint"]
    assert "sessions_history" in hint
    assert not hint.isascii()


async def test_everything_pruned(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 5.3: with every event pruned the version stays, anything below it is a gap, and there is no earliest sequence."""
    made = await many(gateway, 3)
    await clock.advance(31 * DAY_S)
    await gateway.prune()
    assert await version(gateway) == made[-1]
    delta = await changes(gateway, since=made[-1] - 1)
    assert (delta["events"], delta["historyGap"], delta["truncated"]) == ([], True, False)
    assert "earliestAvailableSequence" not in delta
    assert (await changes(gateway, since=made[-1]))["historyGap"] is False


async def test_gap_and_truncation_together(gateway: Gateway, clock: ManualClock) -> None:
    """Rules 5.2, 5.3: a truncated answer may have a gap as well; the next page has none."""
    _, kept = await half_pruned(gateway, clock)
    first = await changes(gateway, limit=2)
    assert (first["historyGap"], first["truncated"], first["nextChangesSince"]) == (True, True, kept[1])
    second = await changes(gateway, since=first["nextChangesSince"], limit=2)
    assert (second["historyGap"], second["truncated"], sequences(second)) == (False, False, kept[2:])


async def test_gap_survives_a_restart(opening: Opening, clock: ManualClock) -> None:
    """Rule 5.3: the gap is told from the head, so after a restart as well."""
    async with opening() as gateway:
        gone, _ = await half_pruned(gateway, clock)
    async with opening() as gateway:
        assert (await changes(gateway, since=gone[-1] - 1))["historyGap"] is True
        assert (await changes(gateway, since=gone[-1]))["historyGap"] is False


async def test_another_session_s_pruning_is_no_gap(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 5.3: what was pruned of other sessions is no gap of this one."""
    await half_pruned(gateway, clock)
    await many(gateway, 1, OPS)
    assert (await changes(gateway, OPS))["historyGap"] is False


# -- 5.4 ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("since", [0, "0", 1, "1", "01", 2, 99, "99", 2**53, 2**63 - 1, 2**63, 2**64, 10**30, str(10**30), "9" * 40])
async def test_good_versions(gateway: Gateway, since: int | str) -> None:
    """Rule 5.4: a non-negative integer, in JSON 5 or "5"; above the head the list is empty, however large the number."""
    await family(gateway)
    event = await human(gateway)
    delta = await changes(gateway, since=since)
    assert sequences(delta) == [sequence for sequence in (1, event.sequence) if sequence > int(since)]
    assert delta["historyGap"] is False
    assert delta["truncated"] is False


BAD_VERSIONS: list[Any] = [
    -1,
    "-1",
    5.0,
    5.5,
    float("nan"),
    float("inf"),
    True,
    False,
    "",
    " ",
    " 5",
    "5 ",
    "+5",
    "5.0",
    "1e3",
    "0x5",
    "five",
    "\u0665",
    "\uff15",
    "5\n",
    "1_000",
    [5],
    {"a": 5},
    b"5",
    "9" * 5_000,
]


@pytest.mark.parametrize("since", BAD_VERSIONS, ids=lambda since: ascii(since)[:20])
async def test_bad_versions(gateway: Gateway, since: Any) -> None:
    """Rule 5.4: anything else is an error that names the parameter, the value, and what is allowed."""
    await family(gateway)
    with pytest.raises(InvalidArgument) as refusal:
        await gateway.session_status(CHILD, changes_since=since)
    message = str(refusal.value)
    assert "changesSince" in message
    assert "non-negative integer" in message
    assert message.isprintable()
    assert len(message) < 250


async def test_huge_integers(gateway: Gateway) -> None:
    """Rule 5.4: an integer of thousands of digits is above the head like any other, or a clear error, and never a crash."""
    await family(gateway)
    for since in (10**4_000, 10**5_000):
        assert (await changes(gateway, since=since))["events"] == []
    with pytest.raises(InvalidArgument):
        await gateway.session_status(CHILD, changes_since=-(10**5_000))


# -- 5.5 and the list ---------------------------------------------------------------------------------------------------------------------


async def test_version_only_once_something_was_recorded(gateway: Gateway) -> None:
    """Rule 5.5: a row has a state version only when its session has recorded changes."""
    await gateway.open_session(MAIN)
    await gateway.compacted(CHILD, operation_id="c")
    rows = {row["sessionKey"]: row for row in (await gateway.sessions_list())["sessions"]}
    assert "stateVersion" not in rows[MAIN]
    assert rows[CHILD]["stateVersion"] == 1


async def test_list_version_after_pruning(gateway: Gateway, clock: ManualClock) -> None:
    """Rules 1.11, 5.5: pruned changes were recorded all the same."""
    await gateway.compacted(CHILD, operation_id="c")
    await clock.advance(31 * DAY_S)
    assert (await gateway.sessions_list())["sessions"][0]["stateVersion"] == 1


async def test_list_shape(gateway: Gateway, clock: ManualClock) -> None:
    """Interface: a row of the list, with label and parent only where there are any."""
    main = await gateway.open_session(MAIN)
    child = await gateway.open_session(CHILD, parent=MAIN, label="worker", session_id="s-1")
    await gateway.run_started(CHILD, "r")
    found = await gateway.sessions_list()
    assert found == {
        "sessions": [
            {
                "sessionKey": MAIN,
                "agentId": "main",
                "sessionId": main.session_id,
                "kind": "main",
                "status": "idle",
                "updatedAt": NOW,
            },
            {
                "sessionKey": CHILD,
                "agentId": "main",
                "sessionId": "s-1",
                "kind": "subagent",
                "label": "worker",
                "parent": MAIN,
                "status": "running",
                "updatedAt": NOW,
            },
        ],
        "hasMore": False,
    }
    assert child.session_id == "s-1"
    assert json.loads(json.dumps(found)) == found


async def test_list_paging(gateway: Gateway) -> None:
    """Interface: the list is ordered by key, and going on from `nextAfter` gives every row once, keys of two agents included."""
    keys = [f"agent:a{number % 3}:x{number:03d}" for number in range(60)]
    await asyncio.gather(*(gateway.open_session(key) for key in keys))
    for agent in ("a0", "a1", "a2"):
        await gateway.open_session(GLOBAL, agent_id=agent)
    rows: list[tuple[str, str]] = []
    after: str | None = None
    while True:
        page = await gateway.sessions_list(limit=7, after=after, with_total=True)
        assert page["total"] == 63
        rows += [(row["sessionKey"], row["agentId"]) for row in page["sessions"]]
        if not page["hasMore"]:
            assert "nextAfter" not in page
            break
        assert len(page["sessions"]) == 7
        after = page["nextAfter"]
    assert len(set(rows)) == len(rows) == 63
    assert rows == sorted(rows)


async def test_list_limit_is_exact(gateway: Gateway) -> None:
    """Interface: exactly as many rows as the limit are all, and there is no more."""
    for number in range(3):
        await gateway.open_session(f"agent:main:x{number}")
    assert (await gateway.sessions_list(limit=3))["hasMore"] is False
    assert (await gateway.sessions_list(limit=2))["hasMore"] is True


async def test_list_default_limit(gateway: Gateway) -> None:
    """Interface: by default the list has 100 rows."""
    await asyncio.gather(*(gateway.open_session(f"agent:main:x{number}") for number in range(101)))
    found = await gateway.sessions_list()
    assert (len(found["sessions"]), found["hasMore"]) == (100, True)


async def test_list_filters(gateway: Gateway) -> None:
    """Interface: the list can be narrowed by agent, kind and parent, alone and together, and the total with it."""
    await family(gateway)
    await gateway.open_session(OPS)
    await gateway.open_session("agent:ops:subagent:x", parent=MAIN)

    async def keys(**filters: Any) -> list[str]:
        found = await gateway.sessions_list(with_total=True, **filters)
        assert found["total"] == len(found["sessions"])
        return [row["sessionKey"] for row in found["sessions"]]

    assert await keys(agent_id="main") == [MAIN, CHILD]
    assert await keys(agent_id=" OPS ") == [OPS, "agent:ops:subagent:x"]
    assert await keys(kind="subagent") == [CHILD, "agent:ops:subagent:x"]
    assert await keys(parent=" AGENT:main:main") == [CHILD, "agent:ops:subagent:x"]
    assert await keys(parent=MAIN, kind="subagent", agent_id="ops") == ["agent:ops:subagent:x"]
    assert await keys(kind="no such kind") == []


@pytest.mark.parametrize(
    "filters",
    [{"agent_id": 5}, {"agent_id": "a b"}, {"kind": 5}, {"after": 5}],
)
async def test_list_refuses_nonsense(gateway: Gateway, filters: Any) -> None:
    """Interface: a filter of the wrong kind is `InvalidArgument`."""
    with pytest.raises(InvalidArgument):
        await gateway.sessions_list(**filters)


@pytest.mark.parametrize("filters", [{"parent": "agent:main"}, {"after": "agent:main"}, {"after": ""}])
async def test_list_refuses_bad_keys(gateway: Gateway, filters: Any) -> None:
    """Interface: a parent or a place to go on from that is no key is refused."""
    with pytest.raises(InvalidSessionKey):
        await gateway.sessions_list(**filters)


async def test_updated_at_moves_with_recordings(gateway: Gateway, clock: ManualClock) -> None:
    """Interface: `updatedAt` is the time of the session's last change or recording, and reading does not move it."""
    await family(gateway)
    await clock.advance(60)
    await human(gateway)
    await clock.advance(60)
    await gateway.open_session(CHILD)
    await changes(gateway)
    rows = {row["sessionKey"]: row["updatedAt"] for row in (await gateway.sessions_list())["sessions"]}
    assert rows == {MAIN: NOW, CHILD: NOW + 60_000}


# -- open_session -------------------------------------------------------------------------------------------------------------


async def test_opening_twice_changes_nothing(gateway: Gateway, clock: ManualClock) -> None:
    """Interface: the same call twice changes nothing, and returns the same."""
    first = await gateway.open_session(CHILD, parent=MAIN, label="worker", session_id="s")
    before = await gateway.sessions_list()
    await clock.advance(5)
    assert await gateway.open_session(CHILD, parent=MAIN, label="worker", session_id="s") == first
    assert await gateway.open_session(CHILD) == first
    assert await gateway.sessions_list() == before


async def test_opening_creates_an_id(gateway: Gateway) -> None:
    """Interface: a session that is opened without an id has one, of its own."""
    one, two = await gateway.open_session(CHILD), await gateway.open_session(OTHER)
    assert one.session_id
    assert one.session_id != two.session_id


async def test_opening_with_a_parent_seeds_no_cursor(gateway: Gateway) -> None:
    """Rule 3.5: `parent` is a lineage, no cursor, and creates no session of the parent's."""
    session = await gateway.open_session(CHILD, parent=" AGENT:main:Main")
    assert session.parent == MAIN
    assert await pair(gateway) is None
    with pytest.raises(UnknownSession):
        await gateway.pending(MAIN)


async def test_what_is_given_changes(gateway: Gateway) -> None:
    """Interface: opening again with a new label or session id changes just that."""
    first = await gateway.open_session(CHILD, parent=MAIN, label="one")
    second = await gateway.open_session(CHILD, label="two")
    assert (second.session_id, second.parent, second.label) == (first.session_id, MAIN, "two")
    assert (await gateway.open_session(CHILD, session_id="s-2")).session_id == "s-2"
