"""Rule 8: two gateways on one database, in one process, on one clock."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kizuki.actors import Gateway, GatewayConfig, ManualClock
from tests.system.cast import CHILD, MAIN, OPS, OTHER, changes, family, human, sequences, show, targets, text_of
from tests.system.conftest import Opening
from tests.system.test_rule_4_turns import ended

POLL_S = 0.1
DELIVERED_S = 0.25


class Host:
    """One gateway, the wakes that its host was asked for, and a way to end it."""

    def __init__(self) -> None:
        self.wakes: list[tuple[str, tuple[str, ...]]] = []
        self.gateway: Gateway
        self._stack = AsyncExitStack()

    def wake(self, key: str, reasons: tuple[str, ...]) -> None:
        """The host's callback."""
        self.wakes.append((key, reasons))

    async def open(self, opening: Opening, **options: Any) -> Host:
        """Open the gateway."""
        self.gateway = await self._stack.enter_async_context(opening(wake=self.wake, **options))
        return self

    async def leave(self) -> None:
        """To the others it is as if the process had been killed."""
        await self._stack.aclose()


@pytest_asyncio.fixture
async def here(opening: Opening) -> AsyncIterator[Host]:
    """A gateway that hosts MAIN, with CHILD as its child."""
    host = await Host().open(opening)
    await family(host.gateway)
    yield host
    await host.leave()


@pytest_asyncio.fixture
async def there(here: Host, opening: Opening, clock: ManualClock) -> AsyncIterator[Host]:
    """Another gateway, opened later; both know of each other."""
    host = await Host().open(opening)
    await clock.advance(POLL_S)
    yield host
    await host.leave()


# -- 8.1 -------------------------------------------------------------------------------------------------------------------


async def test_one_log(here: Host, there: Host) -> None:
    """Rule 8.1: what one records the other reads, in the order of the commits, under sequences of their own."""
    recorded = [(await human(host.gateway)).sequence for host in (here, there, here, there)]
    assert recorded == sorted(set(recorded))
    for host in (here, there):
        assert sequences(await changes(host.gateway, since=recorded[0] - 1)) == recorded


async def test_recording_at_once(here: Host, there: Host) -> None:
    """Rule 8.1: gateways that record at the same time never use a sequence twice, and per session it rises in commit order."""
    events = await asyncio.gather(*(human(host.gateway) for _ in range(50) for host in (here, there)))
    assert len({event.sequence for event in events}) == len(events) == 100
    delta = await changes(here.gateway, since=1)
    assert sequences(delta) == sorted(event.sequence for event in events)


# -- 8.2 -------------------------------------------------------------------------------------------------------------------


async def test_the_host_is_woken(here: Host, there: Host, clock: ManualClock) -> None:
    """Rule 8.2: an event recorded elsewhere wakes the watcher's host within 250 ms, and nobody else."""
    await human(there.gateway)
    for _ in range(5):
        await clock.advance(DELIVERED_S / 5)
    assert (here.wakes, there.wakes) == ([(MAIN, (CHILD,))], [])
    assert await show(here.gateway) == [text_of(CHILD, 1)]


async def test_wakes_merge_from_the_opening_on(here: Host, there: Host, clock: ManualClock) -> None:
    """Rules 4.9, 8.2: what several gateways opened within 250 ms is one wake."""
    await here.gateway.watch(MAIN, OTHER)
    await human(there.gateway)
    await clock.advance(POLL_S)
    await human(here.gateway, OTHER)
    await clock.advance(DELIVERED_S - POLL_S)
    assert here.wakes == [(MAIN, (CHILD, OTHER))]


async def test_a_turn_moves_the_host(here: Host, there: Host, clock: ManualClock) -> None:
    """Rule 8.2: who ran the last turn of a session gets its wakes, wherever the event was recorded."""
    await show(there.gateway)
    await human(here.gateway)
    for _ in range(4):
        await clock.advance(POLL_S)
    assert (here.wakes, there.wakes) == ([], [(MAIN, (CHILD,))])


async def test_opening_moves_the_host(here: Host, there: Host, clock: ManualClock) -> None:
    """Rule 8.2: who opened a session last gets the wakes for what it has pending, too."""
    await human(here.gateway)
    await there.gateway.open_session(MAIN)
    for _ in range(4):
        await clock.advance(POLL_S)
    assert (here.wakes, there.wakes) == ([], [(MAIN, (CHILD,))])


@pytest.mark.parametrize("answer", [None, False])
async def test_the_first_opening_makes_the_host(opening: Opening, clock: ManualClock, answer: bool | None) -> None:
    """Rules 4.9, 8.2: who opens a session that nobody hosted gets its wakes, also those that the recording gateway still has ahead."""
    woken: list[str] = []
    async with opening(wake=lambda _key, _reasons: answer) as recorder, opening(wake=lambda key, _reasons: woken.append(key)) as opener:
        await clock.advance(POLL_S)
        await recorder.watch(OPS, OTHER)
        await human(recorder, OTHER)
        if answer is False:
            await clock.advance(DELIVERED_S)
        await opener.open_session(OPS)
        for _ in range(4):
            await clock.advance(POLL_S)
        assert woken == [OPS]


async def test_sub_agents_are_not_woken(here: Host, there: Host, clock: ManualClock) -> None:
    """Rules 4.9, 8.2: a sub-agent hosted elsewhere sees its notice on its next turn."""
    await here.gateway.open_session(CHILD)
    await here.gateway.watch(CHILD, OTHER)
    await human(there.gateway, OTHER)
    await clock.advance(1)
    await clock.advance(1)
    assert (here.wakes, there.wakes) == ([], [])
    assert targets(await here.gateway.pending(CHILD)) == [OTHER]


async def test_one_that_runs_takes_over(here: Host, there: Host, clock: ManualClock) -> None:
    """Rule 8.2: when a gateway is gone another one wakes for what it hosted, pending already or opened later."""
    await human(here.gateway)
    await here.leave()
    for _ in range(4):
        await clock.advance(POLL_S)
    assert there.wakes == [(MAIN, (CHILD,))]
    assert await show(there.gateway) == [text_of(CHILD, 1)]
    await human(there.gateway)
    await clock.advance(DELIVERED_S)
    assert there.wakes == [(MAIN, (CHILD,))] * 2


async def test_a_start_takes_over(here: Host, opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rules 4.11, 8.2: with nobody there, the next gateway hosts what the last one did, and leaves nothing of it in the folder."""
    await human(here.gateway)
    await here.leave()
    later = await Host().open(opening)
    assert [path.name for path in database.parent.iterdir() if "gateway" in path.name] == ["state.db-gateway-2"]
    await clock.advance(DELIVERED_S)
    assert later.wakes == [(MAIN, (CHILD,))]
    await later.leave()
    assert not [path for path in database.parent.iterdir() if "gateway" in path.name]


async def test_a_start_beside_others_wakes_nobody_else(here: Host, opening: Opening, clock: ManualClock) -> None:
    """Rules 4.11, 8.2: a gateway that starts does not wake the watchers that a living one hosts, nor move their pins."""
    await human(here.gateway)
    await human(here.gateway)
    before = await here.gateway.pending(MAIN)
    later = await Host().open(opening)
    await clock.advance(DELIVERED_S)
    await clock.advance(DELIVERED_S)
    assert (here.wakes, later.wakes) == ([(MAIN, (CHILD,))], [])
    assert await here.gateway.pending(MAIN) == await later.gateway.pending(MAIN) == before
    await later.leave()


async def test_left_over_elsewhere(here: Host, there: Host, clock: ManualClock) -> None:
    """Rules 4.9, 8.2: a failed turn of a watcher whose host is another by now asks that one, not its own."""
    await human(here.gateway)
    with pytest.raises(ValueError, match="body"):
        async with here.gateway.turn(MAIN):
            assert await show(there.gateway) == []
            raise ValueError("body")
    for _ in range(20):
        await clock.advance(POLL_S)
    assert (here.wakes, there.wakes) == ([], [(MAIN, (CHILD,))])


# -- 8.3 -------------------------------------------------------------------------------------------------------------------


async def test_in_at_most_one_turn(here: Host, there: Host) -> None:
    """Rule 8.3: while a turn of one gateway has a notice, no turn, drain or pending of another one has it, and then it is gone."""
    await human(here.gateway)
    async with here.gateway.turn(MAIN) as turn:
        assert turn.prompt_lines() == [text_of(CHILD, 1)]
        assert await show(there.gateway) == []
        assert await there.gateway.drain(MAIN) == []
        assert await there.gateway.pending(MAIN) == []
        assert [watch.pending for watch in await there.gateway.watches(MAIN)] == [True]
    assert await show(there.gateway) == []
    assert await there.gateway.pending(MAIN) == []


async def test_turns_at_once(here: Host, there: Host) -> None:
    """Rules 4.10, 8.3: turns on both gateways share a watcher's notices, each of them in one turn."""
    keys = [f"agent:main:subagent:t{number:02}" for number in range(30)]
    for key in keys:
        await here.gateway.watch(MAIN, key)
        await human(there.gateway, key)
    async with AsyncExitStack() as stack:
        opened = await asyncio.gather(
            *(stack.enter_async_context(host.gateway.turn(MAIN, notices_max=8)) for host in (here, there, here, there))
        )
        taken = [target for turn in opened for target in targets(turn.notices)]
        assert len(taken) == 30
        assert sorted(taken) == keys
    assert await here.gateway.pending(MAIN) == []


async def test_given_back(here: Host, there: Host) -> None:
    """Rules 4.8, 8.3: what a failed turn gives back is shown by the other gateway, byte for byte."""
    await human(here.gateway)
    with pytest.raises(ValueError, match="body"):
        async with here.gateway.turn(MAIN):
            raise ValueError("body")
    await here.gateway.idle()
    assert await show(there.gateway) == [text_of(CHILD, 1)]


@pytest.mark.parametrize("suspension", range(3))
@pytest.mark.parametrize("delay", [0, 1, 3, 10, 30])
async def test_a_take_whose_caller_is_gone(here: Host, there: Host, suspension: int, delay: int) -> None:
    """Rules 4.8, 8.3: a turn that is cancelled while it takes leaves nothing claimed, at whichever moment."""
    await human(here.gateway)
    end = await ended(show(here.gateway), suspension, delay)
    await here.gateway.idle()
    left = await there.gateway.pending(MAIN)
    assert left == await here.gateway.pending(MAIN)
    assert end == "cancelled" or left == []


@pytest.mark.parametrize("suspension", range(3))
@pytest.mark.parametrize("delay", [0, 1, 3, 10, 30])
async def test_a_take_whose_caller_is_gone_moves_the_wake(here: Host, there: Host, clock: ManualClock, suspension: int, delay: int) -> None:
    """Rules 4.9, 8.2: a turn that is cancelled while it takes loses no wake: whoever hosts the session now is asked for it."""
    await human(here.gateway)
    end = await ended(show(there.gateway), suspension, delay)
    for _ in range(4):
        await clock.advance(0.5)
    left = await here.gateway.pending(MAIN)
    assert bool(left) == bool(here.wakes + there.wakes), end


async def test_a_claim_dies_with_its_gateway(here: Host, there: Host) -> None:
    """Rule 8.3: what a dead gateway left unacknowledged is shown again, at once and byte for byte."""
    await human(there.gateway)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(there.gateway.turn(MAIN))
        assert await here.gateway.pending(MAIN) == []
        await there.leave()
        assert await show(here.gateway) == [text_of(CHILD, 1)]
    assert await show(here.gateway) == []


async def test_giving_back_while_the_database_is_held(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rules 4.8, 8.3: a turn's end that cannot be told to the store is told as soon as it can."""
    impatient = GatewayConfig(busy_timeout_s=0)
    here, there = await Host().open(opening, config=impatient), await Host().open(opening, config=impatient)
    await family(here.gateway)
    await human(here.gateway)
    with closing(sqlite3.connect(database, isolation_level=None)) as another:
        with pytest.raises(ValueError, match="body"):
            async with here.gateway.turn(MAIN):
                another.execute("BEGIN IMMEDIATE")
                raise ValueError("body")
        await here.gateway.idle()
        another.execute("ROLLBACK")
    assert targets(await here.gateway.pending(MAIN)) == [CHILD]
    assert await there.gateway.pending(MAIN) == []
    await clock.advance(1)
    assert await show(there.gateway) == [text_of(CHILD, 1)]
    await here.leave()
    await there.leave()


async def test_taken_for_dead(here: Host, there: Host, clock: ManualClock, database: Path) -> None:
    """Rule 8.3: a gateway that was taken for dead while it lives registers anew, and keeps what its open turns show."""
    await human(here.gateway)
    async with here.gateway.turn(MAIN) as turn:
        assert len(turn.notices) == 1
        (database.parent / "state.db-gateway-1").unlink()
        for _ in range(3):
            await clock.advance(POLL_S)
        assert (database.parent / "state.db-gateway-3").exists()
        assert await there.gateway.pending(MAIN) == []
        await there.gateway.open_session(OPS)
        assert await show(there.gateway, MAIN) == []
    assert await show(there.gateway) == await show(here.gateway) == []


async def test_taken_for_dead_and_taken_from(here: Host, there: Host, clock: ManualClock, database: Path) -> None:
    """Rule 8.3: what the other one has taken meanwhile is that one's, and shown once more when it gives it back."""
    await human(here.gateway)
    async with here.gateway.turn(MAIN):
        (database.parent / "state.db-gateway-1").unlink()
        async with there.gateway.turn(MAIN) as turn:
            for _ in range(3):
                await clock.advance(POLL_S)
            assert len(turn.notices) == 1
            assert await here.gateway.pending(MAIN) == []


async def test_openings_that_another_gateway_owes(here: Host, there: Host) -> None:
    """Rules 1.10, 8.1: once an event is recorded on one gateway, every watcher on the other one is shown its notice."""
    watchers = [f"agent:main:w{number}" for number in range(1_000)]
    await asyncio.gather(*(here.gateway.watch(watcher, OTHER) for watcher in watchers))
    await human(here.gateway, OTHER)
    pending = await asyncio.gather(*(there.gateway.pending(watcher) for watcher in reversed(watchers)))
    assert [targets(notices) for notices in pending] == [[OTHER]] * len(watchers)


async def test_openings_that_a_gateway_owes_which_nobody_has_noticed(opening: Opening) -> None:
    """Rules 1.10, 8.1: also where the other one has not looked yet whether there are others, in every way of looking."""
    watchers = [f"agent:main:w{number}" for number in range(600)]
    async with opening() as early, opening() as late:
        await asyncio.gather(*(late.watch(watcher, OTHER) for watcher in watchers))
        event = await human(late, OTHER)
        last = watchers[-1]
        assert [watch.notified for watch in await early.watches(last)] == [event.sequence]
        assert [targets(await early.pending(watcher)) for watcher in watchers[-50:]] == [[OTHER]] * 50


# -- with several, as with one ---------------------------------------------------------------------------------------------


async def test_retention_on_both(opening: Opening, clock: ManualClock) -> None:
    """Rules 6.1, 8.1: gateways that prune at the same time remove together what one would, and no more."""
    few = GatewayConfig(retention_rows=10)
    here, there = await Host().open(opening, config=few), await Host().open(opening, config=few)
    await family(here.gateway)
    for _ in range(40):
        await human(here.gateway)
    removed = await asyncio.gather(here.gateway.prune(), there.gateway.prune())
    assert sum(removed) == 31
    delta = await changes(there.gateway, since=0)
    assert (len(delta["events"]), delta["historyGap"]) == (10, True)
    await here.leave()
    await there.leave()


async def test_each_opening_is_counted_once(here: Host, there: Host, clock: ManualClock) -> None:
    """A notice that one gateway opened for another's watcher is in the statistics of the one that hosts it."""
    await human(there.gateway)
    await clock.advance(POLL_S)
    opened = [(await host.gateway.statistics()).notices_opened for host in (here, there)]
    assert opened == [1, 0]


def test_the_clock_of_these_tests() -> None:
    """A poll lies well within the time in which a notice is delivered."""
    assert GatewayConfig().poll_interval_s == POLL_S < GatewayConfig().wake_coalesce_s == DELIVERED_S
