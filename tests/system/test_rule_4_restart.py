"""Rule 4.11: leaving the gateway and opening it again. (What a killed process leaves behind: tests/crash.)"""

from __future__ import annotations

import asyncio

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig
from tests.system.cast import CHILD, GLOBAL, MAIN, OPS, OTHER, changes, family, human, positions, sequences, show, targets, text_of, version
from tests.system.conftest import Opening


async def test_pending_survives(opening: Opening) -> None:
    """Rule 4.11: after a restart a pending pair has exactly one notice, from the same last seen, so its text is the same."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        before = await gateway.pending(MAIN)
    async with opening() as gateway:
        assert await show(gateway) == [notice.text for notice in before]
        assert await gateway.pending(MAIN) == []


async def test_pinned_at_the_material_position(opening: Opening) -> None:
    """Rule 4.11: after a restart the notice is pinned at the material position, so one acknowledgement covers all."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        last = await human(gateway)
    async with opening() as gateway:
        assert await positions(gateway) == (1, last.sequence, last.sequence)
        assert await show(gateway) == [text_of(CHILD, 1)]
        assert await positions(gateway) == (last.sequence,) * 3


async def test_clean_pairs_stay_clean(opening: Opening) -> None:
    """Rule 4.11: a pair that is clean, or changed only by the watcher itself or silently, has no notice after a restart."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        await show(gateway)
        await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
        await gateway.compacted(CHILD, operation_id="c")
        before = await positions(gateway)
    async with opening() as gateway:
        assert await positions(gateway) == before
        assert await gateway.pending(MAIN) == []


async def test_own_changes_after_a_restart(opening: Opening) -> None:
    """Rules 4.6, 4.11: the material position at a start is that of the last change by another."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        other = await human(gateway)
        for _ in range(3):
            await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
    async with opening() as gateway:
        assert await positions(gateway) == (1, other.sequence, other.sequence)


async def test_acknowledged_is_not_shown_again(opening: Opening) -> None:
    """Rule 4.11: nothing is shown twice after its acknowledgement was committed."""
    async with opening() as gateway:
        for target in (CHILD, OTHER, OPS):
            await gateway.watch(MAIN, target)
            await human(gateway, target)
        await show(gateway, notices_max=2)
    async with opening() as gateway:
        assert targets(await gateway.pending(MAIN)) == [OPS]


async def test_not_acknowledged_is_shown_again(opening: Opening) -> None:
    """Rule 4.11: what a turn gave back before the restart is shown after it."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(MAIN):
                raise ZeroDivisionError
    async with opening() as gateway:
        assert len(await show(gateway)) == 1


async def test_old_notice_acknowledged_after_a_restart(opening: Opening) -> None:
    """Rules 4.5, 4.11: a notice from before the restart applies after it only if its positions are still the cursor's."""
    async with opening() as gateway:
        await gateway.watch(MAIN, OPS)
        await gateway.watch(MAIN, CHILD)
        await human(gateway, OPS)
        await human(gateway, CHILD)
        await human(gateway, CHILD)
        one, moved = await gateway.pending(MAIN)
    async with opening() as gateway:
        assert await gateway.acknowledge(MAIN, [moved]) == 0
        assert await gateway.acknowledge(MAIN, [one]) == 1
        assert targets(await gateway.pending(MAIN)) == [CHILD]


async def test_first_call_after_the_start_waits_for_the_replay(opening: Opening) -> None:
    """Rules 1.10, 4.11: with more pending pairs than one slice of the replay holds, every watcher's first call is complete."""
    watchers = [f"agent:w{number}:main" for number in range(2_100)]
    async with opening() as gateway:
        await asyncio.gather(*(gateway.watch(watcher, CHILD) for watcher in watchers))
        await human(gateway)
        last = await human(gateway)
    async with opening() as gateway:
        for watcher in (watchers[-1], watchers[0], watchers[700]):
            assert await positions(gateway, watcher) == (0, last.sequence, last.sequence)
        assert (await gateway.statistics()).notices_pending == 2_100


async def test_event_at_the_very_start(opening: Opening) -> None:
    """Rule 4.11: an event recorded while the replay is still going on moves no notice that was shown, and is not lost."""
    watchers = [f"agent:w{number}:main" for number in range(2_100)]
    async with opening() as gateway:
        await asyncio.gather(*(gateway.watch(watcher, CHILD) for watcher in watchers))
        old = await human(gateway)
    async with opening() as gateway:
        async with gateway.turn(watchers[-1]) as turn:
            new = await human(gateway)
            assert len(turn.notices) == 1
            await gateway.idle()
        assert await positions(gateway, watchers[-1]) == (old.sequence, new.sequence, new.sequence)
        assert (await gateway.pending(watchers[0]))[0].changes_since == 0


async def test_restart_after_restart(opening: Opening) -> None:
    """Rule 4.11: restarting again and again changes nothing more."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        last = await human(gateway)
    for _ in range(3):
        async with opening() as gateway:
            assert await positions(gateway) == (1, last.sequence, last.sequence)
            assert len(await gateway.pending(MAIN)) == 1


async def test_left_at_once(opening: Opening) -> None:
    """Rule 4.11: a gateway that is left as soon as it was opened loses nothing."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
    async with opening():
        pass
    async with opening() as gateway:
        assert len(await show(gateway)) == 1


async def test_left_while_openings_are_owed(opening: Opening) -> None:
    """Rules 1.10, 4.11: openings that were still owed when the gateway was left are made after the start."""
    watchers = [f"agent:w{number}:main" for number in range(1_200)]
    async with opening() as gateway:
        await asyncio.gather(*(gateway.watch(watcher, CHILD) for watcher in watchers))
        await human(gateway)
        last = await human(gateway)
    async with opening() as gateway:
        assert await positions(gateway, watchers[-1]) == (0, last.sequence, last.sequence)
        await gateway.idle()
        assert (await gateway.statistics()).notices_pending == 1_200


async def test_state_survives(opening: Opening) -> None:
    """Rule 4.11: sessions, versions, deltas and cursors are after a restart what they were before it."""

    async def all_there_is(gateway: Gateway) -> list[object]:
        return [
            await gateway.sessions_list(with_total=True),
            await changes(gateway),
            await gateway.session_status(GLOBAL, agent_id="ops", changes_since=0),
            await gateway.watches(OPS),
            await gateway.watches(MAIN),
        ]

    async with opening() as gateway:
        await family(gateway)
        await gateway.open_session(OPS, label="operations")
        await gateway.watch(OPS, GLOBAL, target_agent_id="ops")
        await human(gateway)
        await human(gateway, GLOBAL, agent_id="ops")
        before = await all_there_is(gateway)
    async with opening() as gateway:
        assert await all_there_is(gateway) == before


async def test_sequences_go_on(opening: Opening) -> None:
    """Rule 1.11: sequences go on after a restart, also when the newest events were deleted before it."""
    async with opening() as gateway:
        await family(gateway)
        last = await human(gateway)
        await gateway.delete_session(CHILD)
    async with opening() as gateway:
        await gateway.open_session(CHILD)
        assert await version(gateway) == last.sequence
        event = await gateway.compacted(CHILD, operation_id="c")
        assert event is not None
        assert event.sequence > last.sequence
        assert sequences(await changes(gateway, since=last.sequence)) == [event.sequence]


async def test_active_runs_end_with_the_gateway(opening: Opening) -> None:
    """Interface: active runs end with the gateway."""
    async with opening() as gateway:
        await gateway.run_started(MAIN, "r")
        assert (await gateway.session_status(MAIN))["status"] == "running"
    async with opening() as gateway:
        assert (await gateway.session_status(MAIN))["status"] == "idle"


async def test_other_settings_after_a_restart(opening: Opening) -> None:
    """Rules 4.2, 4.11: a restart in another language shows the same pending notice in that language."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
    async with opening(config=GatewayConfig(language="ja", synchronous="normal")) as gateway:
        (line,) = await show(gateway)
        assert line.startswith('セッション "agent:main:subagent:child" が変更されました')
        assert line.endswith("changesSince 1.")
