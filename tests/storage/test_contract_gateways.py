"""Several gateways on one database: hosting, claims, hints and taking over, whatever the backend (spec section 8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
import pytest_asyncio

from kizuki.storage import Store
from kizuki.storage.records import Address, Hint, Opened, PendingRead, Shown
from kizuki.storage.writes import (
    PAIRS_TOLD_MAX,
    PutSession,
    Reclaim,
    Release,
    Replay,
    ResetSession,
    TakeHints,
    TakeNotices,
    TakenOver,
    TakeOver,
    Unwatch,
)
from tests.storage.conftest import Backend
from tests.storage.model import shown_of
from tests.storage.writing import CHILD, DRAFT, MAIN, NOW, OTHER, SECOND, acknowledge, commit, event, positions, record, watch

NOTICED_S = 10.0
"""How long a commit may take to be noticed by another store before a test gives up."""


async def registered(store: Store) -> int:
    """Register the store."""
    return await store.register(now_ms=NOW, busy_timeout_s=1.0)


async def take(store: Store, *excluding: Shown, watcher: Address = MAIN, limit: int = 20) -> PendingRead:
    """Take notices; what was taken."""
    read = (await commit(store, TakeNotices(watcher.session_key, limit, excluding, NOW))).results[0]
    assert isinstance(read, PendingRead)
    return read


async def pending(store: Store, watcher: Address = MAIN) -> list[Address]:
    """The targets of what the watcher has pending, as this store sees it."""
    return [cursor.target for cursor in (await store.pending(watcher.session_key, limit=None, excluding=())).cursors]


def opens(watcher: Address = MAIN) -> PutSession:
    """A host opens the session."""
    return PutSession(watcher, DRAFT, NOW, hosts=True)


async def hints(store: Store) -> object:
    """Take out the hints."""
    return (await commit(store, TakeHints(NOW + 40))).results[0]


async def take_over(store: Store, dead: int, limit: int = 500) -> tuple[Opened, ...]:
    """Take over the whole of a dead gateway; what was told, in the order of all slices."""
    told: tuple[Opened, ...] = ()
    while True:
        done = await commit(store, TakeOver(dead, limit))
        told += done.opened
        if done.results == (TakenOver(finished=True),):
            return told


class Pair:
    """Two registered stores on one database; the second one can die."""

    def __init__(self, store: Store, other: Store, ids: tuple[int, int], stack: AsyncExitStack) -> None:
        self.store = store
        self.other = other
        self.me, self.them = ids
        self._stack = stack

    async def other_dies(self) -> int:
        """Close the second one; its number."""
        await self._stack.aclose()
        return self.them


@pytest_asyncio.fixture
async def pair(backend: Backend, store: Store) -> AsyncIterator[Pair]:
    """Both registered, and a cursor of MAIN on CHILD."""
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(backend.open())
        ids = await registered(store), await registered(other)
        await commit(store, watch())
        yield Pair(store, other, ids, stack)


# -- who is there ----------------------------------------------------------------------------------------------------------


async def test_who_comes_later_is_noticed(store: Store, backend: Backend) -> None:
    """Rule 8.2: a store that was alone, and has opened notices, knows of a gateway that registers and hosts the watcher afterwards."""
    await registered(store)
    await commit(store, watch(), watch(MAIN, SECOND))
    assert (await commit(store, event(CHILD))).opened == (Opened(MAIN.session_key, CHILD),)
    async with backend.open() as other:
        await registered(other)
        await commit(other, opens())
        assert (await commit(store, event(SECOND))).opened == ()
        assert await hints(other) == (Hint(MAIN.session_key, SECOND, 40),)


async def test_who_registers_anew_is_another(store: Store) -> None:
    """Rule 8.2: a store that registers again is another gateway than before, so what its former self hosts is told to that one."""
    await registered(store)
    await commit(store, opens(), watch(), watch(MAIN, SECOND))
    assert (await commit(store, event(CHILD))).opened == (Opened(MAIN.session_key, CHILD),)
    await registered(store)
    assert (await commit(store, event(SECOND))).opened == ()


async def test_numbers_rise(store: Store, backend: Backend) -> None:
    """Each registration has a higher number than all before, also after the others have gone."""
    first = await registered(store)
    async with backend.open() as other:
        second = await registered(other)
    await take_over(store, second)
    async with backend.open() as other:
        assert first < second < await registered(other)


async def test_the_living_and_the_dead(pair: Pair, backend: Backend) -> None:
    """Rule 8.2: a store sees who else is registered; one that was closed is dead at once, and gone when it is taken over."""
    seen = await pair.store.neighbours()
    assert (seen.registered, seen.living, seen.dead) == (True, (pair.them,), ())
    async with backend.open(read_only=True) as reader:
        looked = await reader.neighbours()
        assert (looked.registered, looked.living, looked.dead) == (False, (pair.me, pair.them), ())
    dead = await pair.other_dies()
    seen = await pair.store.neighbours()
    assert (seen.living, seen.dead) == ((), (dead,))
    await take_over(pair.store, dead)
    seen = await pair.store.neighbours()
    assert (seen.registered, seen.living, seen.dead) == (True, (), ())


async def test_taken_for_dead(pair: Pair) -> None:
    """A gateway that another one took over from sees that it is registered no longer, and can register again."""
    await take_over(pair.other, pair.me)
    assert not (await pair.store.neighbours()).registered
    assert await registered(pair.store) > pair.them
    assert (await pair.store.neighbours()).registered


async def test_a_commit_elsewhere_is_noticed(pair: Pair) -> None:
    """`changed` is True the first time, and again after another store has committed."""
    assert await pair.store.changed()
    while await pair.store.changed():
        pass
    await record(pair.other, event())
    async with asyncio.timeout(NOTICED_S):
        while not await pair.store.changed():  # noqa: ASYNC110 - the store is asked, it tells nobody by itself
            await asyncio.sleep(0)


# -- hosting and hints -----------------------------------------------------------------------------------------------------


async def test_whose_watcher_nobody_hosts(pair: Pair) -> None:
    """Rule 8.2: what opens for a watcher without a host is told where the event was recorded."""
    assert (await commit(pair.other, event())).opened == (Opened(MAIN.session_key, CHILD),)
    assert not (await pair.store.neighbours()).hinted


async def test_a_notice_for_another_gateways_watcher(pair: Pair) -> None:
    """Rule 8.2: it is told to the watcher's host by a hint, once, with its age, and not where it was recorded."""
    await commit(pair.store, opens())
    assert (await commit(pair.other, event(), event())).opened == ()
    assert (await pair.store.neighbours()).hinted
    assert not (await pair.other.neighbours()).hinted
    assert await hints(pair.store) == (Hint(MAIN.session_key, CHILD, 40),)
    assert await hints(pair.store) == ()
    assert (await commit(pair.store, acknowledge(MAIN, 0, 1))).opened == (Opened(MAIN.session_key, CHILD),)


async def test_an_acknowledgement_elsewhere_hints_too(pair: Pair) -> None:
    """Rules 4.5, 8.2: the notice for the rest is told to the host, wherever the one before it was acknowledged."""
    await commit(pair.store, opens(), event(), event())
    assert (await commit(pair.other, acknowledge(MAIN, 0, 1))).opened == ()
    assert await hints(pair.store) == (Hint(MAIN.session_key, CHILD, 40),)


async def test_a_store_that_is_no_gateway(pair: Pair, backend: Backend) -> None:
    """A store that is not registered hosts nothing and claims nothing, and its events are hinted like any other's."""
    await commit(pair.store, opens())
    async with backend.open() as third:
        assert (await commit(third, opens(), event())).opened == ()
        assert [cursor.target for cursor in (await take(third)).cursors] == [CHILD]
    assert await hints(pair.store) == (Hint(MAIN.session_key, CHILD, 40),)
    assert len((await take(pair.store)).cursors) == 1


async def test_the_last_to_open_it_hosts_it(pair: Pair) -> None:
    """Rule 8.2: opening a session moves its host, and what it has pending is told there."""
    await commit(pair.store, opens(), event())
    moved = await commit(pair.other, opens())
    assert moved.opened == (Opened(MAIN.session_key, CHILD),)
    assert (await commit(pair.other, opens())).opened == ()
    assert (await pair.store.pending(MAIN.session_key, limit=1, excluding=())).elsewhere
    assert not (await pair.other.pending(MAIN.session_key, limit=1, excluding=())).elsewhere


async def test_the_first_to_open_it_hosts_it(pair: Pair) -> None:
    """Rule 8.2: what was told to another gateway while nobody hosted the watcher is told to the one that opens it."""
    assert (await commit(pair.other, event())).opened == (Opened(MAIN.session_key, CHILD),)
    assert (await commit(pair.store, opens())).opened == (Opened(MAIN.session_key, CHILD),)
    assert (await commit(pair.store, opens())).opened == ()


async def test_a_turn_moves_the_host(pair: Pair) -> None:
    """Rule 8.2: whoever takes a session's notices hosts it, also if there are none; hints that wait for the old host follow."""
    await commit(pair.store, opens(), opens(OTHER), watch(OTHER))
    await commit(pair.other, event())
    await take(pair.other)
    assert await hints(pair.store) == (Hint(OTHER.session_key, CHILD, 40),)
    assert await hints(pair.other) == (Hint(MAIN.session_key, CHILD, 40),)


async def test_a_reset_keeps_the_host(pair: Pair) -> None:
    """A reset session is hosted where it was."""
    await commit(pair.store, opens())
    await commit(pair.other, ResetSession(MAIN, NOW), watch())
    assert (await commit(pair.other, event())).opened == ()
    assert len((await pair.store.pending(MAIN.session_key, limit=None, excluding=())).cursors) == 1


# -- claims ----------------------------------------------------------------------------------------------------------------


async def test_a_notice_is_taken_once(pair: Pair) -> None:
    """Rule 8.3: what one gateway has taken, another neither takes nor sees pending."""
    await commit(pair.store, watch(MAIN, SECOND), event(), event(SECOND))
    first = await take(pair.store, limit=1)
    assert ([cursor.target for cursor in first.cursors], first.total) == ([CHILD], 2)
    assert await pending(pair.other) == [SECOND]
    second = await take(pair.other)
    assert ([cursor.target for cursor in second.cursors], second.total) == ([SECOND], 1)
    assert await pending(pair.other) == [CHILD, SECOND][1:]
    assert await pending(pair.store) == [CHILD]


async def test_own_claims_are_told_by_the_caller(pair: Pair) -> None:
    """What this gateway has in other turns is what it excludes; what it gave back it may take at once."""
    await commit(pair.store, event())
    (cursor,) = (await take(pair.store)).cursors
    assert (await take(pair.store, shown_of(cursor))).cursors == ()
    assert (await take(pair.store)).cursors == (cursor,)


async def test_release(pair: Pair) -> None:
    """Rule 4.8: what is given back can be taken elsewhere, what is kept cannot; if the host is elsewhere it is told."""
    await commit(pair.store, watch(MAIN, SECOND), event(), event(SECOND))
    first, second = (await take(pair.store)).cursors
    await take(pair.other)
    assert (await commit(pair.store, Release(MAIN.session_key, (shown_of(second),), NOW))).results == (1,)
    assert await pending(pair.other) == [CHILD]
    assert await hints(pair.other) == (Hint(MAIN.session_key, CHILD, 40),)
    assert (await commit(pair.store, Release(MAIN.session_key, (), NOW))).results == (1,)
    assert (await commit(pair.store, Release(MAIN.session_key, (), NOW))).results == (0,)
    assert (await take(pair.other)).cursors == (first, second)


async def test_releasing_at_home_tells_nobody(pair: Pair) -> None:
    """A watcher's own host knows what it gave back."""
    await commit(pair.store, event())
    await take(pair.store)
    assert (await commit(pair.store, Release(MAIN.session_key, (), NOW))).opened == ()
    assert not (await pair.store.neighbours()).hinted


async def test_an_acknowledgement_ends_the_claim(pair: Pair) -> None:
    """Rule 4.5: the notice for the rest is a new one, which anybody may take."""
    await commit(pair.store, event(), event())
    await take(pair.store)
    await commit(pair.store, acknowledge(MAIN, 0, 1))
    assert [shown_of(cursor) for cursor in (await take(pair.other)).cursors] == [Shown(CHILD, 1, 2)]


async def test_further_events_leave_the_claim(pair: Pair) -> None:
    """Rule 4.4: while a notice is in a turn, more material changes neither the notice nor the claim."""
    await commit(pair.store, event())
    await take(pair.store)
    await commit(pair.other, event(), event(by=MAIN, kind="child_spawned", notifies=False, seeds=MAIN), watch())
    assert await pending(pair.other) == []


async def test_watched_anew(pair: Pair) -> None:
    """A claim is on a notice: a pair that was unwatched and watched anew has another one."""
    await commit(pair.store, event())
    await take(pair.store)
    await commit(pair.other, Unwatch(MAIN.session_key, CHILD), watch(), event())
    assert await pending(pair.other) == [CHILD]


async def test_a_dead_gateways_claim(pair: Pair) -> None:
    """Rule 8.3: a claim dies with its gateway, before anybody has taken over."""
    await commit(pair.store, event())
    taken = await take(pair.other)
    assert await pending(pair.store) == []
    await pair.other_dies()
    assert await pending(pair.store) == [CHILD]
    assert (await take(pair.store)).cursors == taken.cursors


async def test_reclaim(pair: Pair) -> None:
    """What a gateway that was taken for dead still shows is claimed anew, but for what another one has taken or acknowledged."""
    third = Address("agent:main:subagent:third", "main")
    await commit(pair.store, watch(MAIN, SECOND), watch(MAIN, third), event(), event(SECOND), event(third))
    held = tuple(shown_of(cursor) for cursor in (await take(pair.store)).cursors)
    await take_over(pair.other, pair.me)
    await take(pair.other, limit=1)
    await commit(pair.other, acknowledge(MAIN, held[1].last_seen, held[1].notified, SECOND))
    await registered(pair.store)
    assert (await commit(pair.store, Reclaim(MAIN.session_key, held))).results == (held[2:],)
    assert await pending(pair.other) == [CHILD]


async def test_owed_openings_are_made_before_taking(pair: Pair) -> None:
    """Rule 1.10: a take on any gateway finds the notices that a commit elsewhere still owes."""
    watchers = [Address(f"agent:main:w{number}", "main") for number in range(300)]
    await commit(pair.store, *(watch(watcher) for watcher in watchers))
    done = await commit(pair.other, event())
    assert done.owed
    opened = {opened.watcher for opened in done.opened}
    late = next(watcher for watcher in watchers if watcher.session_key not in opened)
    assert [cursor.target for cursor in (await take(pair.store, watcher=late)).cursors] == [CHILD]


# -- taking over -----------------------------------------------------------------------------------------------------------


async def test_taking_over(pair: Pair) -> None:
    """Rule 8.2: what the dead one hosted is hosted here, and its watchers' pending pairs are told, their pins where they were."""
    await commit(pair.other, opens(), event(), event())
    dead = await pair.other_dies()
    before = await positions(pair.store)
    assert await take_over(pair.store, dead) == (Opened(MAIN.session_key, CHILD),)
    assert await positions(pair.store) == before
    assert not (await pair.store.pending(MAIN.session_key, limit=None, excluding=())).elsewhere
    assert await take_over(pair.store, dead) == ()


async def test_taking_over_in_slices(pair: Pair) -> None:
    """A slice takes so many sessions; all of them together tell everything, and only the last one ends it."""
    watchers = [Address(f"agent:main:w{number}", "main") for number in range(5)]
    await commit(pair.other, *(watch(watcher) for watcher in watchers), *(opens(watcher) for watcher in watchers), event())
    dead = await pair.other_dies()
    first = await commit(pair.store, TakeOver(dead, 2))
    assert (first.results, len(first.opened)) == ((TakenOver(finished=False),), 2)
    told = first.opened + await take_over(pair.store, dead, limit=2)
    assert sorted(told) == sorted(Opened(watcher.session_key, CHILD) for watcher in watchers)


async def test_what_was_in_the_dead_ones_turns(pair: Pair) -> None:
    """Rule 8.3: a notice that died in a turn is told to whoever hosts the watcher."""
    await commit(pair.other, event())
    await take(pair.other)
    await commit(pair.store, opens())
    dead = await pair.other_dies()
    assert await take_over(pair.store, dead) == (Opened(MAIN.session_key, CHILD),)


async def test_hints_that_the_dead_one_did_not_take(pair: Pair, backend: Backend) -> None:
    """A hint may be lost, a notice may not: a third gateway that hosts the watcher by now gets it."""
    await commit(pair.other, opens())
    await commit(pair.store, event())
    async with backend.open() as third:
        await registered(third)
        await take(third)
        await commit(third, Release(MAIN.session_key, (), NOW))
        dead = await pair.other_dies()
        assert await take_over(pair.store, dead) == ()
        assert [hint[:2] for hint in await _taken_hints(third)] == [(MAIN.session_key, CHILD)]


async def _taken_hints(store: Store) -> tuple[Hint, ...]:
    found = await hints(store)
    assert isinstance(found, tuple)
    return found


async def test_a_watcher_with_very_many(pair: Pair) -> None:
    """The first of its pairs are told; the turn that follows shows all of them."""
    targets = [Address(f"agent:main:subagent:t{number}", "main") for number in range(PAIRS_TOLD_MAX + 5)]
    await commit(pair.other, opens(), *(watch(MAIN, target) for target in targets), *(event(target) for target in targets))
    dead = await pair.other_dies()
    assert len(await take_over(pair.store, dead)) == PAIRS_TOLD_MAX
    assert (await take(pair.store)).total == len(targets)


# -- a start beside others -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("watcher", [None, MAIN.session_key])
async def test_a_replay_leaves_the_others_watchers_alone(pair: Pair, watcher: str | None) -> None:
    """Rules 4.11, 8.2: pairs of watchers that another gateway hosts are neither pinned anew nor told."""
    await commit(pair.other, opens(), event(), event())
    before = await positions(pair.store)
    assert (await commit(pair.store, Replay(100, watcher=watcher))).opened == ()
    assert await positions(pair.store) == before
    assert (await commit(pair.other, Replay(100, watcher=watcher))).opened == (Opened(MAIN.session_key, CHILD),)


@pytest.mark.parametrize("watcher", [None, MAIN.session_key])
async def test_a_replay_leaves_what_is_claimed_alone(pair: Pair, watcher: str | None) -> None:
    """Rules 4.11, 8.3: a notice in another gateway's turn keeps its pin, wherever its watcher is hosted by now."""
    await commit(pair.other, event(), event())
    (cursor,) = (await take(pair.other)).cursors
    await commit(pair.store, opens())
    assert (await commit(pair.store, Replay(100, watcher=watcher))).opened == ()
    assert await positions(pair.store) == cursor.positions
    acknowledged = acknowledge(MAIN, cursor.positions.last_seen, cursor.positions.notified)
    assert (await commit(pair.other, replace(acknowledged, now_ms=NOW))).results[0] != ()
