"""Rules 3.1 to 3.5: who watches whom, and for how long."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kizuki.actors import (
    Actor,
    Dispatched,
    DispatchRefused,
    Gateway,
    GatewayConfig,
    InvalidArgument,
    InvalidSessionKey,
    ManualClock,
    UnknownSession,
)
from tests.system.cast import (
    CHILD,
    DAY_S,
    GLOBAL,
    MAIN,
    OPS,
    OTHER,
    PERSON,
    changes,
    family,
    human,
    pair,
    positions,
    show,
    targets,
    there,
    version,
)
from tests.system.conftest import Opening

# -- 3.1 implicit ---------------------------------------------------------------------------------------------------------------


async def test_spawn_seeds_at_its_sequence(gateway: Gateway) -> None:
    """Rule 3.1: the parent has seen everything up to the spawn, earlier turns of the child included."""
    await gateway.watch(OPS, CHILD)
    await human(gateway)
    event = await family(gateway)
    assert await positions(gateway) == (event.sequence,) * 3
    assert await gateway.pending(MAIN) == []


async def test_spawn_keeps_a_pending_notice(gateway: Gateway) -> None:
    """Rule 3.1: if the pair already has a pending notice, a second spawn keeps it, byte for byte."""
    await family(gateway)
    await human(gateway)
    before = await gateway.pending(MAIN), await positions(gateway)
    await gateway.spawn(MAIN, CHILD, run_id="r2")
    assert (await gateway.pending(MAIN), await positions(gateway)) == before


async def test_spawn_moves_a_clean_cursor(gateway: Gateway) -> None:
    """Rule 3.1: a second spawn seeds a clean cursor anew, at its own sequence."""
    await family(gateway)
    await human(gateway)
    await show(gateway)
    event = there(await gateway.spawn(MAIN, CHILD, run_id="r2"))
    assert await positions(gateway) == (event.sequence,) * 3


async def test_spawn_keeps_a_taken_notice(gateway: Gateway) -> None:
    """Rule 3.1: a notice in an open turn is pending as well, and kept."""
    await family(gateway)
    await human(gateway)
    async with gateway.turn(MAIN) as turn:
        await gateway.spawn(MAIN, CHILD, run_id="r2")
        assert await gateway.pending(MAIN) == []
    assert len(turn.notices) == 1
    assert await gateway.pending(MAIN) == []


async def test_spawn_creates_both_rows(gateway: Gateway) -> None:
    """Rule 3.1: a spawn creates the rows that it needs, the child's with its parent and session id."""
    await gateway.spawn(MAIN, CHILD, run_id="r1", session_id="s-1")
    rows = {row["sessionKey"]: row for row in (await gateway.sessions_list())["sessions"]}
    assert set(rows) == {MAIN, CHILD}
    assert (rows[CHILD]["parent"], rows[CHILD]["sessionId"]) == (MAIN, "s-1")
    assert "parent" not in rows[MAIN]


async def test_spawn_and_message_at_once(gateway: Gateway) -> None:
    """Rule 3.1: a message in the same commit as the spawn, behind it, is material to the parent."""
    await gateway.open_session(MAIN)
    spawned, said = await asyncio.gather(gateway.spawn(MAIN, CHILD, run_id="r1"), gateway.human_message(CHILD, channel="c"))
    assert await positions(gateway) == (there(spawned).sequence, there(said).sequence, there(said).sequence)


async def test_nobody_watches_itself_by_a_spawn(gateway: Gateway) -> None:
    """Rules 3.1, 3.2: a spawn under the parent's own key gives it no cursor on itself."""
    await gateway.spawn(MAIN, MAIN, run_id="r1")
    assert await gateway.watches(MAIN) == []


# -- 3.2 explicit ---------------------------------------------------------------------------------------------------------------


async def test_watch_seeds_at_the_version(gateway: Gateway) -> None:
    """Rule 3.2: watching seeds at the target's present version: earlier history opens no notice."""
    await gateway.goal_changed(OPS, "created", actor=PERSON)
    assert await gateway.watch(MAIN, OPS) is True
    assert await positions(gateway, MAIN, OPS) == (1, 1, 1)
    await gateway.compacted(OPS, operation_id="c")
    assert await show(gateway) == []


async def test_watch_creates_both_rows(gateway: Gateway) -> None:
    """Rule 3.2: watching creates the rows of watcher and target."""
    await gateway.watch(MAIN, OPS)
    assert [row["sessionKey"] for row in (await gateway.sessions_list())["sessions"]] == [MAIN, OPS]


async def test_watching_again_keeps_positions(gateway: Gateway) -> None:
    """Rule 3.2: watching again is True and keeps positions and notice, pending or clean."""
    await gateway.watch(MAIN, OPS)
    await human(gateway, OPS)
    before = await positions(gateway, MAIN, OPS), await gateway.pending(MAIN)
    assert await gateway.watch(MAIN, OPS) is True
    assert (await positions(gateway, MAIN, OPS), await gateway.pending(MAIN)) == before
    await show(gateway)
    await gateway.compacted(OPS, operation_id="c")
    await gateway.watch(MAIN, OPS)
    assert await positions(gateway, MAIN, OPS) == (1, 1, 1)


async def test_watching_oneself(gateway: Gateway) -> None:
    """Rule 3.2: watching oneself is False, however the key is spelt, and leaves nothing behind."""
    assert await gateway.watch(MAIN, MAIN) is False
    assert await gateway.watch(MAIN, " AGENT:MAIN:Main") is False
    assert await gateway.watches(MAIN) == []
    assert (await gateway.sessions_list())["sessions"] == []


async def test_watcher_is_checked_before_the_target(gateway: Gateway) -> None:
    """Rule 3.2: a key that cannot be a watcher is False whatever the target is."""
    for target in ("agent:main", "", GLOBAL, CHILD):
        assert await gateway.watch(GLOBAL, target) is False
    assert (await gateway.sessions_list())["sessions"] == []
    with pytest.raises(InvalidSessionKey):
        await gateway.watch(MAIN, "agent:main")


async def test_mutual_watching(gateway: Gateway) -> None:
    """Rule 3.2: two sessions may watch each other, each with its own cursor."""
    await gateway.watch(MAIN, OPS)
    await gateway.watch(OPS, MAIN)
    await human(gateway, MAIN)
    assert await gateway.pending(MAIN) == []
    assert targets(await gateway.pending(OPS)) == [MAIN]


async def test_watches_lists_every_cursor(gateway: Gateway) -> None:
    """Rule 3.2: `watches` lists every cursor by target, with agent, positions and whether a notice is pending."""
    for target in (OTHER, OPS, CHILD):
        await gateway.watch(MAIN, target)
    event = await human(gateway, OPS)
    found = await gateway.watches(MAIN)
    assert [watch.target for watch in found] == sorted((OTHER, OPS, CHILD))
    assert [(watch.target_agent_id, watch.pending) for watch in found] == [("main", False), ("main", False), ("ops", True)]
    assert (found[2].last_seen, found[2].notified, found[2].material) == (0, event.sequence, event.sequence)


async def test_watches_of_nobody(gateway: Gateway) -> None:
    """Rule 3.2: a session that holds no cursor, known or not, has an empty list."""
    assert await gateway.watches(OPS) == []


async def test_concurrent_watches(gateway: Gateway) -> None:
    """Rule 3.2: watching many times at once makes one cursor."""
    assert all(await asyncio.gather(*(gateway.watch(MAIN, OPS) for _ in range(20))))
    assert len(await gateway.watches(MAIN)) == 1


# -- 3.3 sessions_send ----------------------------------------------------------------------------------------------------------


def receiving(key: str | None = None, **more: Any) -> Callable[[str, str, str], Dispatched]:
    """A dispatch that delivers everything to one session, or where it was sent."""
    return lambda sender, to, message: Dispatched(key or to, "run-1", **more)


async def test_send_with_watch_registers(opening: Opening) -> None:
    """Rule 3.3: after a send with watch the sender watches from the receiver's present version on."""
    async with opening(dispatch=receiving()) as gateway:
        await gateway.compacted(OPS, operation_id="c")
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert answer == {"status": "accepted", "sessionKey": OPS, "runId": "run-1", "watched": True}
        assert await positions(gateway, MAIN, OPS) == (1, 1, 1)


async def test_send_watches_who_really_received_it(opening: Opening) -> None:
    """Rule 3.3: the watch is on the session that received the message, not on the one it was sent to."""
    async with opening(dispatch=receiving(" Agent:Main:subagent:other")) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert (answer["sessionKey"], answer["watched"]) == (OTHER, True)
        assert [watch.target for watch in await gateway.watches(MAIN)] == [OTHER]


async def test_send_registers_after_the_dispatch(opening: Opening) -> None:
    """Rule 3.3: what happens during the dispatch is not news to the sender."""
    inside: list[Gateway] = []

    async def dispatch(sender: str, key: str, message: str) -> Dispatched:
        assert await inside[0].watches(MAIN) == []
        await inside[0].goal_changed(OPS, "created", actor=PERSON)
        return Dispatched(key)

    async with opening(dispatch=dispatch) as gateway:
        inside.append(gateway)
        await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert await positions(gateway, MAIN, OPS) == (1, 1, 1)


@pytest.mark.parametrize("watch", [None, False])
async def test_send_without_watch(opening: Opening, watch: bool | None) -> None:
    """Rule 3.3: without watch there is no `watched` in the result, and no cursor."""
    async with opening(dispatch=receiving()) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=watch)
        assert "watched" not in answer
        assert await gateway.watches(MAIN) == []


async def test_send_to_oneself(opening: Opening) -> None:
    """Rule 3.3: a message that comes back to its sender is dispatched, and watched is False."""
    async with opening(dispatch=receiving(MAIN)) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert (answer["status"], answer["watched"]) == ("accepted", False)


async def test_sender_that_cannot_watch(opening: Opening) -> None:
    """Rules 2.4, 3.3: a sender without prefix sends, and watched is False."""
    async with opening(dispatch=receiving()) as gateway:
        answer = await gateway.sessions_send(GLOBAL, OPS, "hello", watch=True)
        assert (answer["status"], answer["watched"]) == ("accepted", False)


async def refusing(sender: str, key: str, message: str) -> Dispatched:
    raise DispatchRefused("not today")


def failing(sender: str, key: str, message: str) -> Dispatched:
    raise ValueError("broken")


async def cancelling(sender: str, key: str, message: str) -> Dispatched:
    raise asyncio.CancelledError


def nonsense(sender: str, key: str, message: str) -> Any:
    return "delivered"


def bad_receiver(sender: str, key: str, message: str) -> Dispatched:
    return Dispatched("agent:main")


async def test_no_reply_is_left_unawaited(opening: Opening) -> None:
    """Rule 3.3: the reply of a dispatch whose answer names no session is closed, so that Python does not warn of it."""
    replies = []

    async def reply() -> str:
        return "done"

    def dispatch(_sender: str, _key: str, _message: str) -> Dispatched:
        replies.append(reply())
        return Dispatched("agent:main", reply=replies[-1])

    async with opening(dispatch=dispatch) as gateway:
        result = await gateway.sessions_send(MAIN, CHILD, "hello")
    assert result["status"] == "error"
    with pytest.raises(RuntimeError, match="cannot reuse"):
        await replies[0]


@pytest.mark.parametrize(
    ("dispatch", "status"),
    [
        (refusing, "refused"),
        (failing, "error"),
        (cancelling, "error"),
        (nonsense, "error"),
        (bad_receiver, "error"),
        (None, "error"),
    ],
)
@pytest.mark.parametrize("watch", [True, None])
async def test_send_that_was_not_dispatched(opening: Opening, dispatch: Any, status: str, watch: bool | None) -> None:
    """Rule 3.3: what was not dispatched says so with its reason, has no `watched`, and leaves no cursor."""
    async with opening(dispatch=dispatch) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=watch)
        assert answer["status"] == status
        assert answer["sessionKey"] == OPS
        assert answer["reason"]
        assert set(answer) == {"status", "sessionKey", "reason"}
        assert await gateway.watches(MAIN) == []


async def test_refusal_gives_its_reason(opening: Opening) -> None:
    """Interface: a refusal's reason is the host's own."""
    async with opening(dispatch=refusing) as gateway:
        assert (await gateway.sessions_send(MAIN, OPS, "hello"))["reason"] == "not today"


HALF, WHOLE = "cut \ud83d", "cut \ufffd"
"""Half of a character that needs two in UTF-16, and what stands for it."""


async def half_a_reply() -> str:
    return HALF


def half_a_refusal(sender: str, key: str, message: str) -> Dispatched:
    raise DispatchRefused(HALF)


def half_an_error(sender: str, key: str, message: str) -> Dispatched:
    raise ValueError(HALF)


@pytest.mark.parametrize(
    "dispatch",
    [
        lambda _sender, key, _message: Dispatched(key, reply=HALF),
        lambda _sender, key, _message: Dispatched(key, run_id=HALF, reply=half_a_reply()),
        half_a_refusal,
        half_an_error,
    ],
)
async def test_what_a_host_answers_can_be_sent_on(opening: Opening, dispatch: Any) -> None:
    """Interface: a result is JSON-ready: a text that was cut within a character breaks nobody's encoding, and is there but for that."""
    async with opening(dispatch=dispatch) as gateway:
        answer = json.dumps(await gateway.sessions_send(MAIN, OPS, "hello"), ensure_ascii=False)
        assert WHOLE in answer
        assert answer.encode()


async def test_a_reply_that_is_no_text(opening: Opening) -> None:
    """Interface: a reply is a text; another one is an error that says so, for the tool's schema promises a text."""

    async def number() -> Any:
        return 7

    async with opening(dispatch=lambda _sender, key, _message: Dispatched(key, reply=number())) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello")
        assert answer == {"status": "error", "sessionKey": OPS, "reason": "TypeError: a reply must be a text, and is int"}


async def a_reply(text: str | None = "done") -> str | None:
    return text


async def failing_reply() -> str:
    raise ValueError("no reply")


async def cancelled_reply() -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (lambda: None, {"status": "accepted"}),
        (lambda: "done", {"status": "ok", "reply": "done"}),
        (lambda: "", {"status": "ok", "reply": ""}),
        (a_reply, {"status": "ok", "reply": "done"}),
        (lambda: a_reply(None), {"status": "accepted"}),
    ],
)
async def test_replies(opening: Opening, reply: Any, expected: dict[str, str]) -> None:
    """Interface: a reply that is there, or comes in time, is `ok`; none is `accepted`."""

    async def dispatch(sender: str, key: str, message: str) -> Dispatched:
        return Dispatched(key, "run-1", reply=reply())

    async with opening(dispatch=dispatch) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert answer == {"sessionKey": OPS, "runId": "run-1", "watched": True, **expected}


@pytest.mark.parametrize("reply", [failing_reply, cancelled_reply])
async def test_failing_reply(opening: Opening, reply: Any) -> None:
    """Interface: a reply that fails is an `error` with its reason; the message was dispatched, so `watched` is there."""

    async def dispatch(sender: str, key: str, message: str) -> Dispatched:
        return Dispatched(key, "run-1", reply=reply())

    async with opening(dispatch=dispatch) as gateway:
        answer = await gateway.sessions_send(MAIN, OPS, "hello", watch=True)
        assert (answer["status"], answer["watched"], answer["runId"]) == ("error", True, "run-1")
        assert answer["reason"]


async def test_reply_in_time_and_too_late(opening: Opening, clock: ManualClock) -> None:
    """Interface: `timeout_s` bounds the wait for the reply, on the clock: in time is `ok`, else `timeout`."""

    async def slow() -> str:
        await clock.sleep(10)
        return "done"

    def dispatch(sender: str, key: str, message: str) -> Dispatched:
        return Dispatched(key, reply=slow())

    async with opening(dispatch=dispatch) as gateway:
        early = asyncio.create_task(gateway.sessions_send(MAIN, OPS, "hello", timeout_s=11, watch=True))
        late = asyncio.create_task(gateway.sessions_send(MAIN, OPS, "hello", timeout_s=9.5, watch=True))
        await clock.advance(9.6)
        assert late.done()
        assert not early.done()
        assert await late == {"status": "timeout", "sessionKey": OPS, "watched": True}
        await clock.advance(1)
        assert await early == {"status": "ok", "sessionKey": OPS, "reply": "done", "watched": True}


async def test_zero_timeout_does_not_wait(opening: Opening, clock: ManualClock) -> None:
    """Interface: a `timeout_s` of 0 never waits: accepted, whatever the reply would be."""
    for reply in ("done", None, a_reply()):
        async with opening(dispatch=receiving(reply=reply)) as gateway:
            answer = await gateway.sessions_send(MAIN, OPS, "hello", timeout_s=0)
            assert answer == {"status": "accepted", "sessionKey": OPS, "runId": "run-1"}


async def test_slow_dispatch_is_not_bounded(opening: Opening, clock: ManualClock) -> None:
    """Interface: `timeout_s` bounds only the wait for the reply, not the delivery."""

    async def dispatch(sender: str, key: str, message: str) -> Dispatched:
        await clock.sleep(100)
        return Dispatched(key, reply="done")

    async with opening(dispatch=dispatch) as gateway:
        sending = asyncio.create_task(gateway.sessions_send(MAIN, OPS, "hello", timeout_s=1))
        await clock.advance(99)
        assert not sending.done()
        await clock.advance(2)
        assert (await sending)["status"] == "ok"


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), float("inf"), "5", True, None])
async def test_bad_timeout(opening: Opening, timeout_s: Any) -> None:
    """Interface: a timeout is a number of seconds from 0 up, else nothing is sent."""
    sent: list[str] = []
    async with opening(dispatch=lambda *args: sent.append("sent")) as gateway:
        with pytest.raises(InvalidArgument):
            await gateway.sessions_send(MAIN, OPS, "hello", timeout_s=timeout_s)
    assert sent == []


@pytest.mark.parametrize(("sender", "key"), [("agent:main", OPS), (MAIN, "agent:main"), (None, OPS), (MAIN, "")])
async def test_bad_keys_in_send(opening: Opening, sender: Any, key: Any) -> None:
    """Interface: a bad sender or receiver raises; nothing is sent."""
    async with opening(dispatch=receiving()) as gateway:
        with pytest.raises(InvalidSessionKey):
            await gateway.sessions_send(sender, key, "hello")


async def test_dispatch_gets_canonical_keys(opening: Opening) -> None:
    """Rule 2.2: the host is called with canonical keys and the message as it is."""
    seen: list[tuple[str, str, str]] = []

    def dispatch(sender: str, key: str, message: str) -> Dispatched:
        seen.append((sender, key, message))
        return Dispatched(key)

    async with opening(dispatch=dispatch) as gateway:
        await gateway.sessions_send(" AGENT:Main:main", "agent:OPS:main", " hello\n")
    assert seen == [(MAIN, OPS, " hello\n")]


async def test_cancelled_send_is_cancelled(opening: Opening, clock: ManualClock) -> None:
    """Interface: cancelling a send cancels the wait, and leaves the gateway working."""

    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    async with opening(dispatch=receiving(reply=never())) as gateway:
        sending = asyncio.create_task(gateway.sessions_send(MAIN, OPS, "hello", watch=True))
        await clock.settle()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert await pair(gateway, MAIN, OPS) is not None


# -- 3.4 unwatch ----------------------------------------------------------------------------------------------------------------


async def test_unwatch_removes_cursor_and_notice(gateway: Gateway) -> None:
    """Rule 3.4: unwatching removes the cursor with its pending notice, and says whether there was one."""
    await family(gateway)
    await human(gateway)
    assert await gateway.unwatch(MAIN, CHILD) is True
    assert await gateway.pending(MAIN) == []
    assert await gateway.watches(MAIN) == []
    assert await gateway.unwatch(MAIN, CHILD) is False


async def test_unwatch_is_of_one_pair(gateway: Gateway) -> None:
    """Rule 3.4: other watchers and other targets keep their cursors."""
    await family(gateway)
    await gateway.watch(MAIN, OPS)
    await gateway.watch(OPS, CHILD)
    await gateway.unwatch(MAIN, CHILD)
    assert [watch.target for watch in await gateway.watches(MAIN)] == [OPS]
    assert [watch.target for watch in await gateway.watches(OPS)] == [CHILD]


async def test_unwatched_target_is_silent(gateway: Gateway) -> None:
    """Rules 3.4, 3.5: after unwatching a child, whose parent is recorded still, its events tell the parent nothing."""
    await family(gateway)
    await gateway.unwatch(MAIN, CHILD)
    await human(gateway)
    assert await gateway.pending(MAIN) == []


async def test_watching_anew_starts_anew(gateway: Gateway) -> None:
    """Rules 3.4, 3.2: what was pending before the unwatching is not pending after watching again."""
    await family(gateway)
    await human(gateway)
    await gateway.unwatch(MAIN, CHILD)
    await gateway.watch(MAIN, CHILD)
    now = await version(gateway)
    assert await positions(gateway) == (now, now, now)


async def test_unwatch_during_a_turn(gateway: Gateway) -> None:
    """Rules 3.4, 4.5: a turn that took the notice of a pair that was unwatched meanwhile ends well, and changes nothing."""
    await family(gateway)
    await human(gateway)
    async with gateway.turn(MAIN):
        await gateway.unwatch(MAIN, CHILD)
    assert await gateway.watches(MAIN) == []


# -- 3.5 how long ----------------------------------------------------------------------------------------------------------------


async def test_lineage_alone_is_silent(gateway: Gateway) -> None:
    """Rule 3.5: a parent without a cursor gets no notice."""
    await gateway.open_session(CHILD, parent=MAIN)
    await human(gateway)
    await gateway.open_session(MAIN)
    assert await gateway.pending(MAIN) == []


LIFE_S = 30 * DAY_S


async def test_cursor_expires(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 3.5: a cursor is there until 30 days after its watch, and gone after that."""
    await gateway.watch(MAIN, OPS)
    await clock.advance(LIFE_S - 60)
    await gateway.prune()
    assert await pair(gateway, MAIN, OPS) is not None
    await clock.advance(120)
    await gateway.prune()
    assert await pair(gateway, MAIN, OPS) is None


async def test_cursors_expire_hourly_by_themselves(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 3.5: nobody needs to ask: the hourly housekeeping removes what has expired."""
    await gateway.watch(MAIN, OPS)
    await clock.advance(LIFE_S + 1)
    await clock.advance(3600)
    assert await gateway.watches(MAIN) == []


async def test_pending_cursor_expires(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 3.5: a pending notice goes with its cursor."""
    await family(gateway)
    await human(gateway)
    await clock.advance(LIFE_S + 60)
    await gateway.prune()
    assert await gateway.pending(MAIN) == []
    assert await gateway.watches(MAIN) == []


async def renewed_by_watch(gateway: Gateway) -> None:
    await gateway.watch(MAIN, CHILD)


async def renewed_by_spawn(gateway: Gateway) -> None:
    await gateway.spawn(MAIN, CHILD, run_id="r2")


async def renewed_by_opening(gateway: Gateway) -> None:
    await human(gateway)


@pytest.mark.parametrize("renew", [renewed_by_watch, renewed_by_spawn, renewed_by_opening])
async def test_renewal(gateway: Gateway, clock: ManualClock, renew: Callable[[Gateway], Awaitable[None]]) -> None:
    """Rule 3.5: the time counts from the last watch, spawn or opening."""
    await family(gateway)
    await clock.advance(20 * DAY_S)
    await renew(gateway)
    await clock.advance(20 * DAY_S)
    await gateway.prune()
    assert await pair(gateway) is not None
    await clock.advance(11 * DAY_S)
    await gateway.prune()
    assert await pair(gateway) is None


async def test_renewal_by_spawn_while_pending(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 3.5: a spawn renews the expiry of a pair whose notice it keeps."""
    await family(gateway)
    await human(gateway)
    await clock.advance(20 * DAY_S)
    await gateway.spawn(MAIN, CHILD, run_id="r2")
    await clock.advance(20 * DAY_S)
    await gateway.prune()
    assert len(await gateway.pending(MAIN)) == 1


async def test_renewal_by_acknowledgement(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 3.5: the time counts from the last acknowledgement, too."""
    await family(gateway)
    await human(gateway)
    await clock.advance(20 * DAY_S)
    await show(gateway)
    await clock.advance(20 * DAY_S)
    await gateway.prune()
    assert await pair(gateway) is not None


@pytest.mark.parametrize("what", ["material while pending", "not material", "own", "shown"])
async def test_no_renewal(gateway: Gateway, clock: ManualClock, what: str) -> None:
    """Rule 3.5: events that open nothing, and a turn that gives its notice back, renew nothing."""
    await family(gateway)
    if what in ("material while pending", "shown"):
        await human(gateway)
    await clock.advance(20 * DAY_S)
    if what == "material while pending":
        await human(gateway)
    elif what == "not material":
        await gateway.compacted(CHILD, operation_id="c")
    elif what == "own":
        await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    else:
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(MAIN):
                raise ZeroDivisionError
    await clock.advance(11 * DAY_S)
    await gateway.prune()
    assert await pair(gateway) is None


async def test_expiry_at_a_start(opening: Opening, clock: ManualClock) -> None:
    """Rules 3.5, 4.11: at a start what has expired goes before the replay: nobody is woken or shown it."""
    woken: list[str] = []
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
    await clock.advance(LIFE_S + 60)
    async with opening(wake=lambda key, reasons: woken.append(key)) as gateway:
        assert (await gateway.statistics()).notices_opened == 0, "the replay came first"
        assert await gateway.pending(MAIN) == []
        assert await gateway.watches(MAIN) == []
        await clock.advance(5)
    assert woken == []


async def test_expiry_at_a_start_of_many(opening: Opening, clock: ManualClock) -> None:
    """Rules 3.5, 4.11: where more has expired than one slice of the sweep removes, still nobody is woken for any of it or shown it."""
    expired = [f"agent:w{number}:main" for number in range(700)]
    woken: list[tuple[str, tuple[str, ...]]] = []
    async with opening() as gateway:
        await asyncio.gather(*(gateway.watch(watcher, OPS) for watcher in expired))
        await gateway.open_session(MAIN)  # the gateway to come takes it over
        await gateway.watch(MAIN, OPS)
        await human(gateway, OPS)
        await clock.advance(LIFE_S)
        await gateway.watch(MAIN, CHILD)
        await human(gateway)
    await clock.advance(60)
    async with opening(wake=lambda key, reasons: woken.append((key, reasons))) as gateway:
        assert [notice.target for notice in await gateway.pending(MAIN)] == [CHILD]
        assert await gateway.watches(expired[-1]) == []
        assert (await gateway.statistics()).notices_pending == 1
        await clock.advance(5)
    assert woken == [(MAIN, (CHILD,))]


async def test_a_start_renews_nothing(opening: Opening, clock: ManualClock) -> None:
    """Rule 3.5: a restart with its replay is no opening, and does not prolong a cursor."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
    await clock.advance(20 * DAY_S)
    async with opening() as gateway:
        assert len(await gateway.pending(MAIN)) == 1
        await clock.advance(11 * DAY_S)
        await gateway.prune()
        assert await gateway.pending(MAIN) == []


async def test_other_retention_time(opening: Opening, clock: ManualClock) -> None:
    """Rule 3.5: the time is the configured retention time, fractions of days included."""
    async with opening(config=GatewayConfig(retention_days=0.5)) as gateway:
        await gateway.watch(MAIN, OPS)
        await clock.advance(0.4 * DAY_S)
        await gateway.prune()
        assert await pair(gateway, MAIN, OPS) is not None
        await clock.advance(0.2 * DAY_S)
        await gateway.prune()
        assert await pair(gateway, MAIN, OPS) is None


async def test_resetting_the_watcher(gateway: Gateway) -> None:
    """Rule 3.5: resetting a watcher removes its cursors and its queue."""
    await family(gateway)
    await human(gateway)
    await gateway.reset_session(MAIN)
    assert await gateway.watches(MAIN) == []
    assert await gateway.pending(MAIN) == []


async def test_resetting_the_target(gateway: Gateway) -> None:
    """Rule 3.5: resetting a target keeps its events and the cursors that others hold on it, pending ones too."""
    await family(gateway)
    await human(gateway)
    before = await positions(gateway), await gateway.pending(MAIN), await changes(gateway)
    old = await gateway.open_session(CHILD)
    new = await gateway.reset_session(CHILD)
    assert new.session_id != old.session_id
    assert (new.key, new.parent) == (CHILD, MAIN)
    assert (await positions(gateway), await gateway.pending(MAIN), await changes(gateway)) == before


async def test_events_carry_the_session_id_of_their_time(gateway: Gateway) -> None:
    """Rule 3.5: events before a reset keep their session id, those after it carry the new one."""
    await family(gateway)
    before = await human(gateway)
    new = await gateway.reset_session(CHILD)
    after = await human(gateway)
    assert before.session_id != after.session_id == new.session_id


async def test_reset_of_nobody(gateway: Gateway) -> None:
    """Interface: resetting a session that is not there raises `UnknownSession`, and creates none."""
    with pytest.raises(UnknownSession):
        await gateway.reset_session(CHILD)
    assert (await gateway.sessions_list())["sessions"] == []


async def test_deleting_the_watcher(gateway: Gateway) -> None:
    """Rule 3.5: deleting a watcher removes its cursors; created again it starts without any."""
    await family(gateway)
    await human(gateway)
    await gateway.delete_session(MAIN)
    with pytest.raises(UnknownSession):
        await gateway.pending(MAIN)
    await gateway.open_session(MAIN)
    assert await gateway.watches(MAIN) == []
    assert await gateway.pending(MAIN) == []


async def test_deleting_the_target(gateway: Gateway) -> None:
    """Rule 3.5: deleting a target removes the cursors on it with their notices; created again nobody watches it."""
    await family(gateway)
    await human(gateway)
    await gateway.delete_session(CHILD)
    assert await gateway.watches(MAIN) == []
    assert await gateway.pending(MAIN) == []
    await gateway.open_session(CHILD)
    assert await gateway.human_message(CHILD, channel="c") is None


async def test_reset_of_a_watcher_during_its_turn(gateway: Gateway) -> None:
    """Rules 3.5, 4.5: a turn whose watcher is reset meanwhile ends well, and its notices do not come back."""
    await family(gateway)
    await human(gateway)
    async with gateway.turn(MAIN):
        await gateway.reset_session(MAIN)
    assert await gateway.pending(MAIN) == []
    assert await gateway.watches(MAIN) == []


async def test_deleting_a_watcher_during_its_turn(gateway: Gateway) -> None:
    """Rules 3.5, 4.5: a turn whose watcher is deleted meanwhile ends well, and leaves nothing."""
    await family(gateway)
    await human(gateway)
    async with gateway.turn(MAIN):
        assert await gateway.delete_session(MAIN) is True
    with pytest.raises(UnknownSession):
        await gateway.pending(MAIN)


async def test_a_dispatch_without_an_answer(opening: Opening) -> None:
    """Rule 3.3: a dispatch that returns no Dispatched is an error that says what it must return."""
    async with opening(dispatch=lambda *_: None) as gateway:
        result = await gateway.sessions_send(MAIN, CHILD, "hello", watch=True)
        assert result["status"] == "error"
        assert "dispatch must return Dispatched(session_key=...)" in result["reason"]
        assert "watched" not in result
