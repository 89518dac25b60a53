"""Rules 4.1 to 4.7 and 4.10: one notice, not many."""

from __future__ import annotations

import asyncio
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, UnknownSession
from tests.system.cast import (
    CHILD,
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
    sequences,
    show,
    targets,
    text_of,
    there,
)
from tests.system.conftest import Opening

# -- 4.1, 4.3, 4.4: opening, and what comes after ---------------------------------------------------------------------------------


async def test_first_material_event_opens(gateway: Gateway) -> None:
    """Rule 4.3: a material event on a clean pair pins notified at its sequence and opens the notice."""
    spawned = await family(gateway)
    event = await human(gateway)
    assert await positions(gateway) == (spawned.sequence, event.sequence, event.sequence)
    (notice,) = await gateway.pending(MAIN)
    assert (notice.watcher, notice.target, notice.target_agent_id, notice.changes_since) == (MAIN, CHILD, "main", spawned.sequence)


async def test_twenty_changes_are_one_notice(gateway: Gateway) -> None:
    """Rules 4.1, 4.4: while it is pending, further material events move the material position and nothing else."""
    await family(gateway)
    first = await human(gateway)
    before = await gateway.pending(MAIN)
    for _ in range(19):
        last = await human(gateway)
    assert await gateway.pending(MAIN) == before
    assert await positions(gateway) == (1, first.sequence, last.sequence)
    assert (await gateway.statistics()).notices_opened == 1


async def test_burst_in_one_commit(gateway: Gateway) -> None:
    """Rules 4.1, 4.3: many events at the same moment open one notice, pinned at the first of them."""
    await family(gateway)
    events = await asyncio.gather(*(human(gateway) for _ in range(50)))
    found = sorted(event.sequence for event in events)
    assert await positions(gateway) == (1, found[0], found[-1])
    assert len(await gateway.pending(MAIN)) == 1


async def test_text_is_the_same_bytes(gateway: Gateway) -> None:
    """Rule 4.1: the text stays the same through further events, failed turns, watching again and looking."""
    await family(gateway)
    await human(gateway)
    texts = {(await gateway.pending(MAIN))[0].text}
    for _ in range(3):
        await human(gateway)
        await gateway.compacted(CHILD, operation_id="c")
        await gateway.watch(MAIN, CHILD)
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(MAIN) as turn:
                texts |= set(turn.prompt_lines())
                await human(gateway)
                raise ZeroDivisionError
        texts.add((await gateway.pending(MAIN))[0].text)
    assert texts == {text_of(CHILD, 1)}


async def test_silent_events_do_not_open(gateway: Gateway) -> None:
    """Rule 4.3: events of kinds that do not notify move no position of a cursor."""
    await family(gateway)
    await gateway.compacted(CHILD, operation_id="c")
    await gateway.run_ended(CHILD, run_id="r1", outcome="error")
    assert await positions(gateway) == (1, 1, 1)


async def test_silent_events_are_not_material_while_pending(gateway: Gateway) -> None:
    """Rule 4.4: an event of a silent kind does not move the material position of a pending pair either."""
    await family(gateway)
    event = await human(gateway)
    await gateway.compacted(CHILD, operation_id="c")
    assert await positions(gateway) == (1, event.sequence, event.sequence)


async def test_each_watcher_has_its_own(gateway: Gateway) -> None:
    """Rule 4.1: each watcher of a target has its own notice, with its own last seen."""
    await family(gateway)
    await human(gateway)
    await gateway.watch(OPS, CHILD)
    event = await human(gateway)
    assert [notice.text for notice in await gateway.pending(MAIN)] == [text_of(CHILD, 1)]
    assert [notice.text for notice in await gateway.pending(OPS)] == [text_of(CHILD, event.sequence - 1)]


async def test_each_target_has_its_own(gateway: Gateway) -> None:
    """Rule 4.1: a watcher has one notice per target that changed."""
    for target in (CHILD, OTHER, OPS):
        await gateway.watch(MAIN, target)
    await human(gateway, CHILD)
    await human(gateway, OPS)
    assert targets(await gateway.pending(MAIN)) == [CHILD, OPS]


# -- 4.2 the text ------------------------------------------------------------------------------------------------------------


async def test_english_text(gateway: Gateway) -> None:
    """Rule 4.2: the English text, letter for letter."""
    await family(gateway)
    await human(gateway)
    assert await show(gateway) == [
        'Session "agent:main:subagent:child" was changed by another actor. Reconcile before acting: '
        'session_status sessionKey "agent:main:subagent:child" changesSince 1.'
    ]


async def test_japanese_text(opening: Opening) -> None:
    """Rule 4.2: the Japanese text, letter for letter."""
    async with opening(config=GatewayConfig(language="ja")) as gateway:
        await family(gateway)
        await human(gateway)
        assert await show(gateway) == [
            'セッション "agent:main:subagent:child" が変更されました（別のアクター）。行動する前に調整してください: '
            'session_status sessionKey "agent:main:subagent:child" changesSince 1.'
        ]


async def test_text_keeps_the_case_of_the_rest(gateway: Gateway) -> None:
    """Rule 4.2: the target stands in the text in its canonical form."""
    await gateway.watch(MAIN, "AGENT:Ops:Telegram:Group:AbC")
    await human(gateway, "agent:ops:telegram:Group:AbC")
    assert await show(gateway) == [text_of("agent:ops:telegram:Group:AbC", 0)]


async def test_notice_s_call_gives_the_change(gateway: Gateway) -> None:
    """Rules 4.2, 5.1: the call that the notice asks for returns exactly what happened since."""
    await family(gateway)
    event = await human(gateway)
    (notice,) = await gateway.pending(MAIN)
    assert sequences(await changes(gateway, notice.target, notice.changes_since)) == [event.sequence]


async def test_notices_are_frozen(gateway: Gateway) -> None:
    """Interface: a notice is a frozen value."""
    await family(gateway)
    await human(gateway)
    (notice,) = await gateway.pending(MAIN)
    with pytest.raises(FrozenInstanceError):
        notice.text = "changed"  # type: ignore[misc]


# -- 4.5 acknowledging ---------------------------------------------------------------------------------------------------------


async def test_acknowledging_the_only_change(gateway: Gateway) -> None:
    """Rule 4.5: acknowledging sets last seen to the notified position; with nothing beyond it the pair is clean."""
    await family(gateway)
    event = await human(gateway)
    await show(gateway)
    assert await positions(gateway) == (event.sequence,) * 3
    watch = await pair(gateway)
    assert watch is not None
    assert not watch.pending
    assert await gateway.pending(MAIN) == []


async def test_acknowledging_with_more_beyond(gateway: Gateway) -> None:
    """Rule 4.5: with material beyond, one new notice opens, from the new last seen, pinned at the material position."""
    await family(gateway)
    first = await human(gateway)
    for _ in range(5):
        last = await human(gateway)
    await show(gateway)
    assert await positions(gateway) == (first.sequence, last.sequence, last.sequence)
    assert [notice.text for notice in await gateway.pending(MAIN)] == [text_of(CHILD, first.sequence)]
    await show(gateway)
    assert await positions(gateway) == (last.sequence,) * 3
    assert await show(gateway) == []


async def test_event_during_the_turn(gateway: Gateway) -> None:
    """Rule 4.5: what happens while the model runs is told in one new notice after the turn."""
    await family(gateway)
    first = await human(gateway)
    async with gateway.turn(MAIN) as turn:
        during = await human(gateway)
        assert len(turn.notices) == 1
    assert await positions(gateway) == (first.sequence, during.sequence, during.sequence)
    assert await show(gateway) == [text_of(CHILD, first.sequence)]


async def test_acknowledging_a_stale_notice(gateway: Gateway) -> None:
    """Rule 4.5: a notice that was acknowledged already changes nothing, though a new one is pending."""
    await family(gateway)
    await human(gateway)
    await human(gateway)
    stale = await gateway.pending(MAIN)
    assert await gateway.acknowledge(MAIN, stale) == 1
    before = await positions(gateway), await gateway.pending(MAIN)
    assert before[1] != stale
    assert await gateway.acknowledge(MAIN, stale) == 0
    assert (await positions(gateway), await gateway.pending(MAIN)) == before


@pytest.mark.parametrize("how", ["unwatched", "watched anew", "reset", "deleted", "target deleted", "target recreated", "expired"])
async def test_stale_notice_after(gateway: Gateway, how: str, clock: Any) -> None:
    """Rule 4.5: a notice whose cursor is gone, or is another by now, changes nothing."""
    await family(gateway)
    await human(gateway)
    stale = await gateway.pending(MAIN)
    if how in ("unwatched", "watched anew"):
        await gateway.unwatch(MAIN, CHILD)
    elif how == "reset":
        await gateway.reset_session(MAIN)
    elif how == "deleted":
        await gateway.delete_session(MAIN)
    elif how == "expired":
        await clock.advance(31 * 86_400)
        await clock.advance(3_600)
    else:
        await gateway.delete_session(CHILD)
    if how in ("watched anew", "target recreated"):
        await gateway.watch(MAIN, CHILD)
        await human(gateway)
    before = await gateway.watches(MAIN)
    assert await gateway.acknowledge(MAIN, stale) == 0
    assert await gateway.watches(MAIN) == before


async def test_return_of_a_stale_notice(gateway: Gateway) -> None:
    """Rule 4.5: a failed turn whose pair was watched anew meanwhile gives nothing back, and the new notice stays."""
    await family(gateway)
    await human(gateway)
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN):
            await gateway.unwatch(MAIN, CHILD)
            await gateway.watch(MAIN, CHILD)
            await human(gateway)
            raise ZeroDivisionError
    assert [notice.text for notice in await gateway.pending(MAIN)] == [text_of(CHILD, 2)]


async def test_new_notice_is_shown_though_the_old_one_is_in_a_turn(gateway: Gateway) -> None:
    """Rules 4.5, 4.8: the notice of a pair that was watched anew is another one than that which an open turn still holds."""
    await family(gateway)
    await human(gateway)
    async with gateway.turn(MAIN):
        await gateway.unwatch(MAIN, CHILD)
        await gateway.watch(MAIN, CHILD)
        await human(gateway)
        assert [notice.text for notice in await gateway.pending(MAIN)] == [text_of(CHILD, 2)]
        async with gateway.turn(MAIN) as second:
            assert second.prompt_lines() == [text_of(CHILD, 2)]
    assert await gateway.pending(MAIN) == []
    assert await positions(gateway) == (3, 3, 3)


async def test_same_notice_twice_in_one_call(gateway: Gateway) -> None:
    """Rule 4.5: one notice given twice is acknowledged once."""
    await family(gateway)
    await human(gateway)
    await human(gateway)
    (notice,) = await gateway.pending(MAIN)
    assert await gateway.acknowledge(MAIN, [notice, notice]) == 1
    assert await positions(gateway) == (2, 3, 3)


async def test_acknowledging_nothing(gateway: Gateway) -> None:
    """Interface: an empty list applies to nothing, also for who is unknown or can never watch."""
    for watcher in (MAIN, GLOBAL):
        assert await gateway.acknowledge(watcher, []) == 0


async def test_acknowledging_another_s_notice(gateway: Gateway) -> None:
    """Rule 4.5: nobody acknowledges for another watcher."""
    await family(gateway)
    await gateway.watch(OPS, CHILD)
    await human(gateway)
    notices = await gateway.pending(MAIN)
    with pytest.raises(InvalidArgument):
        await gateway.acknowledge(OPS, notices)
    assert len(await gateway.pending(MAIN)) == len(await gateway.pending(OPS)) == 1


@pytest.mark.parametrize("given", [["notice"], [None], [5]])
async def test_acknowledging_what_is_no_notice(gateway: Gateway, given: Any) -> None:
    """Interface: what is no notice is refused, and nothing of the list is applied."""
    await family(gateway)
    await human(gateway)
    notices = await gateway.pending(MAIN)
    with pytest.raises(InvalidArgument):
        await gateway.acknowledge(MAIN, [*notices, *given])
    assert await gateway.pending(MAIN) == notices


async def test_forged_notice(gateway: Gateway) -> None:
    """Rule 4.5: a notice with positions that the cursor never had changes nothing."""
    await family(gateway)
    await human(gateway)
    (notice,) = await gateway.pending(MAIN)
    assert await gateway.acknowledge(MAIN, [replace(notice, changes_since=0)]) == 0
    assert await gateway.pending(MAIN) == [notice]


async def test_acknowledging_elsewhere_while_a_turn_holds_it(gateway: Gateway) -> None:
    """Rules 4.5, 4.8: a notice acknowledged elsewhere during its turn is not acknowledged again at the end, nor given back."""
    await family(gateway)
    await human(gateway)
    await human(gateway)
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN) as turn:
            assert await gateway.acknowledge(MAIN, turn.notices) == 1
            raise ZeroDivisionError
    assert await positions(gateway) == (2, 3, 3)
    assert [notice.text for notice in await gateway.pending(MAIN)] == [text_of(CHILD, 2)]


# -- 4.6 nobody is told of what they did themselves ------------------------------------------------------------------------------


async def test_own_change_is_silent(gateway: Gateway) -> None:
    """Rule 4.6: a watcher's own change opens nothing and moves nothing; another watcher is told of it."""
    await family(gateway)
    await gateway.watch(OPS, CHILD)
    event = there(await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN)))
    assert await positions(gateway) == (1, 1, 1)
    assert await positions(gateway, OPS) == (1, event.sequence, event.sequence)


async def test_own_change_is_silent_however_spelt(gateway: Gateway) -> None:
    """Rule 4.6: the actor is compared by its canonical key."""
    await family(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(" AGENT:MAIN:Main"))
    assert await gateway.pending(MAIN) == []


async def test_own_change_while_pending(gateway: Gateway) -> None:
    """Rule 4.6: an own change beyond a pending notice is no rest to tell of."""
    await family(gateway)
    event = await human(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    assert await positions(gateway) == (1, event.sequence, event.sequence)
    await show(gateway)
    assert await gateway.pending(MAIN) == []


async def test_own_change_between_others(gateway: Gateway) -> None:
    """Rules 4.5, 4.6: with changes of a person, of oneself, and of a person again, material is the last person's."""
    await family(gateway)
    first = await human(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    last = await human(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    assert await positions(gateway) == (1, first.sequence, last.sequence)


async def test_own_change_and_other_s_in_one_commit(gateway: Gateway) -> None:
    """Rule 4.6: of changes committed together, the notice is pinned at the first that is another's."""
    await family(gateway)
    await gateway.watch(OPS, CHILD)
    own, other, own2 = await asyncio.gather(
        gateway.goal_changed(CHILD, "created", actor=Actor.agent(MAIN)),
        gateway.goal_changed(CHILD, "updated", actor=Actor.agent(OPS)),
        gateway.goal_changed(CHILD, "cleared", actor=Actor.agent(MAIN)),
    )
    assert await positions(gateway) == (1, there(other).sequence, there(other).sequence)
    assert await positions(gateway, OPS) == (1, there(own).sequence, there(own2).sequence)


async def test_person_with_the_watcher_s_key_as_id(gateway: Gateway) -> None:
    """Rule 4.6: a person whose id happens to equal the key is still a person."""
    await family(gateway)
    await gateway.human_message(CHILD, channel="c", actor_id=MAIN)
    assert len(await show(gateway)) == 1
    await gateway.goal_changed(CHILD, "updated", actor=Actor.human(MAIN))
    assert len(await show(gateway)) == 1


async def test_person_between_own_changes(gateway: Gateway) -> None:
    """Rule 4.6: a person with the watcher's key as id is not merged with the watcher's own changes either."""
    await family(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    person = there(await gateway.goal_changed(CHILD, "updated", actor=Actor.human(MAIN)))
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    assert await positions(gateway) == (1, person.sequence, person.sequence)


async def test_system_s_change_is_told(gateway: Gateway) -> None:
    """Rule 4.6: the system is another actor."""
    await family(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.system())
    assert len(await gateway.pending(MAIN)) == 1


async def test_target_s_own_change_is_told(gateway: Gateway) -> None:
    """Rule 4.6: what the target's agent itself did is news to its watcher."""
    await family(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(CHILD))
    assert len(await gateway.pending(MAIN)) == 1


async def test_sibling_with_a_similar_key(gateway: Gateway) -> None:
    """Rule 4.6: only the very key is the watcher itself, not one that begins or ends alike or differs in case where case counts."""
    watcher = "agent:main:whatsapp:group:Abc"
    await gateway.watch(watcher, CHILD)
    for other in ("agent:main:whatsapp:group:ABC", "agent:main:whatsapp:group:Abc:thread:1", "agent:main:whatsapp"):
        await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(other))
        assert len(await show(gateway, watcher)) == 1


async def test_own_change_after_pruning(gateway: Gateway, clock: Any) -> None:
    """Rule 4.6: a pending pair's material position is the same after its events are pruned."""
    await family(gateway)
    event = await human(gateway)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    await clock.advance(20 * 86_400)
    await gateway.watch(MAIN, CHILD)
    await clock.advance(11 * 86_400)
    await gateway.prune()
    assert (await changes(gateway))["events"] == []
    assert await positions(gateway) == (1, event.sequence, event.sequence)


# -- 4.7 what a turn takes ---------------------------------------------------------------------------------------------------------


async def many_changed(gateway: Gateway, count: int) -> list[str]:
    """The main session watches that many targets, and all of them change, the last first; the targets in the order of change."""
    watched = [f"agent:main:subagent:t{number:05d}" for number in range(count)]
    await asyncio.gather(*(gateway.watch(MAIN, target) for target in watched))
    changed = watched[::-1]
    await asyncio.gather(*(human(gateway, target) for target in changed))
    return changed


async def test_order_and_limit(gateway: Gateway) -> None:
    """Rule 4.7: a turn takes its notices by notified position, at most 20, and says how many remain."""
    changed = await many_changed(gateway, 45)
    for first, last, remaining in ((0, 20, 25), (20, 40, 5), (40, 45, 0)):
        async with gateway.turn(MAIN) as turn:
            assert targets(turn.notices) == changed[first:last]
            assert turn.remaining == remaining
    assert await show(gateway) == []


async def test_pinned_position_decides_the_order(gateway: Gateway) -> None:
    """Rule 4.7: the order is that of the first unseen changes, not of the last ones."""
    for target in (CHILD, OTHER):
        await gateway.watch(MAIN, target)
    await human(gateway, OTHER)
    await human(gateway, CHILD)
    await human(gateway, OTHER)
    assert targets(await gateway.pending(MAIN)) == [OTHER, CHILD]


async def test_taken_is_shown_is_acknowledged(gateway: Gateway) -> None:
    """Rule 4.7: exactly what a turn took is acknowledged; what arrives during it, and the rest, stays pending."""
    changed = await many_changed(gateway, 5)
    async with gateway.turn(MAIN, notices_max=2) as turn:
        await gateway.watch(MAIN, OPS)
        await human(gateway, OPS)
    assert targets(turn.notices) == changed[:2]
    assert targets(await gateway.pending(MAIN)) == [*changed[2:], OPS]


async def test_configured_notices_max(opening: Opening) -> None:
    """Rule 4.7: the configuration sets how many a turn and a drain take; a call may set another number."""
    async with opening(config=GatewayConfig(notices_max=3)) as gateway:
        await many_changed(gateway, 12)
        assert len(await gateway.pending(MAIN)) == 12
        assert len(await show(gateway)) == 3
        assert len(await gateway.drain(MAIN)) == 3
        assert len(await gateway.drain(MAIN, notices_max=1)) == 1
        assert len(await show(gateway, notices_max=100)) == 5


@pytest.mark.parametrize("notices_max", [0, -1, True, 2.0, "5", 10**30])
@pytest.mark.parametrize("call", ["turn", "drain"])
async def test_bad_notices_max(gateway: Gateway, notices_max: Any, call: str) -> None:
    """Interface: notices_max is an integer from 1 up; anything else raises and takes nothing."""
    await family(gateway)
    await human(gateway)
    with pytest.raises(InvalidArgument):
        if call == "turn":
            async with gateway.turn(MAIN, notices_max=notices_max):
                pass
        else:
            await gateway.drain(MAIN, notices_max=notices_max)
    assert len(await gateway.pending(MAIN)) == 1


async def test_prompt_lines_are_the_texts(gateway: Gateway) -> None:
    """Interface: `prompt_lines` is one line per notice, in their order."""
    await many_changed(gateway, 3)
    async with gateway.turn(MAIN) as turn:
        assert isinstance(turn.notices, tuple)
        assert turn.prompt_lines() == [notice.text for notice in turn.notices]


@pytest.mark.parametrize("call", ["turn", "drain", "pending"])
async def test_unknown_and_bad_watchers(gateway: Gateway, call: str) -> None:
    """Interface: `turn`, `drain` and `pending` raise `UnknownSession` for a key without session, and refuse what is no key."""

    async def do(key: str) -> None:
        if call == "turn":
            async with gateway.turn(key):
                pass
        else:
            await getattr(gateway, call)(key)

    with pytest.raises(UnknownSession):
        await do(MAIN)
    with pytest.raises(InvalidSessionKey):
        await do("agent:main")


# -- 4.10 no bound -----------------------------------------------------------------------------------------------------------------


async def test_every_changed_target_is_shown_once(gateway: Gateway) -> None:
    """Rule 4.10: a watcher with thousands of changed targets is shown every one exactly once, turn after turn."""
    changed = await many_changed(gateway, 2_500)
    await gateway.idle()
    assert (await gateway.statistics()).notices_pending == 2_500
    shown: list[str] = []
    async with gateway.turn(MAIN, notices_max=400) as turn:
        assert turn.remaining == 2_100
        shown += targets(turn.notices)
    while notices := await gateway.drain(MAIN, notices_max=700):
        shown += targets(notices)
    assert shown == changed


async def test_default_turns_reach_the_end(gateway: Gateway) -> None:
    """Rule 4.10: turns of the default size reach every target, though some fail and give back."""
    changed = await many_changed(gateway, 130)
    shown: list[str] = []
    failures = 0
    while True:
        try:
            async with gateway.turn(MAIN) as turn:
                if failures * 25 < len(shown):
                    failures += 1
                    raise ZeroDivisionError  # noqa: TRY301, the turn's body is where it happens
            shown += targets(turn.notices)
            if not turn.remaining:
                break
        except ZeroDivisionError:
            continue
    assert failures > 3
    assert shown == changed


async def test_statistics_count(gateway: Gateway) -> None:
    """Interface: the statistics count what was recorded, opened, acknowledged, given back and is pending."""
    await family(gateway)
    await gateway.watch(MAIN, OPS)
    await human(gateway)
    await human(gateway)
    await human(gateway, OPS)
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN):
            assert (await gateway.statistics()).notices_pending == 2
            raise ZeroDivisionError
    await gateway.drain(MAIN, notices_max=1)
    found = await gateway.statistics()
    assert found.events_recorded == 4
    assert found.recordings_lost == 0
    assert found.notices_opened == 3
    assert found.notices_acknowledged == 1
    assert found.notices_returned == 2
    assert found.notices_pending == 2
    assert found.wakes == 0
    assert found.actors_resident > 0
    assert found.mail_waiting == 0
    await gateway.goal_changed(OPS, "updated", actor=PERSON)
    assert (await gateway.statistics()).events_recorded == 5
