"""Rule 4.8: when a turn acknowledges, and what it gives back."""

from __future__ import annotations

import asyncio
import functools
import itertools
import sqlite3
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import Gateway, GatewayClosed, Notice
from tests.system.cast import CHILD, MAIN, OPS, OTHER, family, human, pair, positions, show, targets, text_of
from tests.system.conftest import Opening

# -- good and bad ends --------------------------------------------------------------------------------------------------------


class ModelError(BaseException):
    """Not even an `Exception`, as what a framework may throw through a turn."""


@pytest.mark.parametrize("error", [ValueError, asyncio.CancelledError, KeyError, ModelError, GeneratorExit])
async def test_raising_turn_gives_back(gateway: Gateway, error: type[BaseException]) -> None:
    """Rule 4.8: a turn that raises, whatever it raises, gives its notices back, byte for byte, and lets the error through."""
    await family(gateway)
    await human(gateway)
    before = await gateway.pending(MAIN), await positions(gateway)
    with pytest.raises(error):
        async with gateway.turn(MAIN) as turn:
            assert list(turn.notices) == before[0]
            raise error
    assert (await gateway.pending(MAIN), await positions(gateway)) == before
    assert (await gateway.statistics()).notices_returned == 1


async def test_returning_from_the_body_is_a_good_end(gateway: Gateway) -> None:
    """Rule 4.8: leaving the body by return, break or continue is a good end."""
    await family(gateway)
    for _ in range(3):
        await human(gateway)
        async with gateway.turn(MAIN):
            continue
    assert await gateway.pending(MAIN) == []


async def test_nothing_is_acknowledged_before_the_end(gateway: Gateway) -> None:
    """Rule 4.8: while the turn is open its notices are unacknowledged; `pending` omits them, `Watch.pending` counts them."""
    await family(gateway)
    event = await human(gateway)
    async with gateway.turn(MAIN):
        assert await positions(gateway) == (1, event.sequence, event.sequence)
        assert await gateway.pending(MAIN) == []
        watch = await pair(gateway)
        assert watch is not None
        assert watch.pending
        assert (await gateway.statistics()).notices_pending == 1
    watch = await pair(gateway)
    assert watch is not None
    assert not watch.pending


async def test_acknowledging_early(gateway: Gateway) -> None:
    """Rule 4.8: what the host acknowledges early stays acknowledged, though the turn raises."""
    await family(gateway)
    event = await human(gateway)
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN) as turn:
            await turn.acknowledge()
            assert await positions(gateway) == (event.sequence,) * 3
            raise ZeroDivisionError
    assert await gateway.pending(MAIN) == []
    assert (await gateway.statistics()).notices_returned == 0


async def test_acknowledging_early_twice(gateway: Gateway) -> None:
    """Rules 4.5, 4.8: acknowledging twice, and ending well after it, acknowledges once; a later change stays pending."""
    await family(gateway)
    event = await human(gateway)
    async with gateway.turn(MAIN) as turn:
        await turn.acknowledge()
        await human(gateway)
        await turn.acknowledge()
    assert await positions(gateway) == (event.sequence, event.sequence + 1, event.sequence + 1)
    assert (await gateway.statistics()).notices_acknowledged == 1


async def test_acknowledging_after_the_turn(gateway: Gateway) -> None:
    """Rule 4.8: a turn that is over acknowledges nothing any more."""
    await family(gateway)
    await human(gateway)
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN) as turn:
            raise ZeroDivisionError
    await turn.acknowledge()
    assert len(await gateway.pending(MAIN)) == 1


async def test_turn_without_notices(gateway: Gateway) -> None:
    """Rule 4.8: a turn with nothing to show shows nothing and changes nothing."""
    await family(gateway)
    async with gateway.turn(MAIN) as turn:
        assert (turn.notices, turn.remaining) == ((), 0)
        await turn.acknowledge()
    assert (await gateway.statistics()).notices_acknowledged == 0


async def test_concurrent_early_acknowledgements(gateway: Gateway) -> None:
    """Rule 4.8: acknowledging many times at once acknowledges once."""
    await family(gateway)
    await human(gateway)
    await human(gateway)
    async with gateway.turn(MAIN) as turn:
        await asyncio.gather(*(turn.acknowledge() for _ in range(10)))
    assert await positions(gateway) == (2, 3, 3)


# -- one turn at most ---------------------------------------------------------------------------------------------------------


async def test_two_open_turns(gateway: Gateway) -> None:
    """Rule 4.8: a notice is in at most one open turn of its watcher; the second one sees what is left."""
    for target in (CHILD, OTHER):
        await gateway.watch(MAIN, target)
        await human(gateway, target)
    async with gateway.turn(MAIN, notices_max=1) as first, gateway.turn(MAIN) as second:
        assert (targets(first.notices), first.remaining) == ([CHILD], 1)
        assert (targets(second.notices), second.remaining) == ([OTHER], 0)
        async with gateway.turn(MAIN) as third:
            assert third.notices == ()
        assert await gateway.drain(MAIN) == []
    assert await gateway.pending(MAIN) == []


async def test_inner_turn_fails(gateway: Gateway) -> None:
    """Rule 4.8: of two open turns each gives back or acknowledges its own notices only."""
    for target in (CHILD, OTHER):
        await gateway.watch(MAIN, target)
        await human(gateway, target)
    async with gateway.turn(MAIN, notices_max=1):
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(MAIN):
                raise ZeroDivisionError
        assert targets(await gateway.pending(MAIN)) == [OTHER]
    assert targets(await gateway.pending(MAIN)) == [OTHER]


async def test_many_turns_at_once(gateway: Gateway) -> None:
    """Rule 4.8: of many turns at the same moment each notice is shown in exactly one."""
    watched = [f"agent:main:subagent:t{number}" for number in range(30)]
    for target in watched:
        await gateway.watch(MAIN, target)
        await human(gateway, target)
    open_turns = asyncio.Barrier(20)

    async def turn() -> list[str]:
        async with gateway.turn(MAIN, notices_max=2) as turn:
            await open_turns.wait()
            return targets(turn.notices)

    shown = [target for found in await asyncio.gather(*(turn() for _ in range(20))) for target in found]
    assert sorted(shown) == sorted(watched)


async def test_turns_of_two_watchers(gateway: Gateway) -> None:
    """Rule 4.8: turns of different watchers on one target do not touch each other."""
    await family(gateway)
    await gateway.watch(OPS, CHILD)
    await human(gateway)
    async with gateway.turn(MAIN):
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(OPS) as turn:
                assert len(turn.notices) == 1
                raise ZeroDivisionError
    assert await gateway.pending(MAIN) == []
    assert len(await gateway.pending(OPS)) == 1


async def test_watcher_s_actor_is_put_away_during_a_turn(gateway: Gateway, clock: object) -> None:
    """Rule 4.8: when the watcher's actor has been put away and started again, a taken notice is not shown again."""
    from kizuki.actors import ManualClock

    assert isinstance(clock, ManualClock)
    await family(gateway)
    event = await human(gateway)
    async with gateway.turn(MAIN) as turn:
        for _ in range(20):
            await clock.advance(300)
        assert (await gateway.statistics()).actors_resident == 0
        assert await gateway.pending(MAIN) == []
        async with gateway.turn(MAIN) as second:
            assert second.notices == ()
        assert len(turn.notices) == 1
    assert await positions(gateway) == (event.sequence,) * 3


# -- drain ----------------------------------------------------------------------------------------------------------------------


async def test_drain_takes_and_acknowledges(gateway: Gateway) -> None:
    """Rule 4.8: drain takes and acknowledges in one step."""
    await family(gateway)
    first = await human(gateway)
    await human(gateway)
    assert [notice.text for notice in await gateway.drain(MAIN)] == [text_of(CHILD, 1)]
    assert [notice.text for notice in await gateway.drain(MAIN)] == [text_of(CHILD, first.sequence)]
    assert await gateway.drain(MAIN) == []


async def test_concurrent_drains(gateway: Gateway) -> None:
    """Rule 4.8: of many drains at once one gets the notice."""
    await family(gateway)
    await human(gateway)
    drained = await asyncio.gather(*(gateway.drain(MAIN) for _ in range(10)))
    assert sum(map(len, drained)) == 1


async def test_pending_takes_nothing(gateway: Gateway) -> None:
    """Rule 4.8: looking at what is pending takes nothing and acknowledges nothing."""
    await family(gateway)
    await human(gateway)
    first = await gateway.pending(MAIN)
    assert await gateway.pending(MAIN) == first
    assert len(await show(gateway)) == 1


async def test_host_acknowledges_what_pending_showed(gateway: Gateway) -> None:
    """Rule 4.8: a host whose turn ends elsewhere looks with `pending` and acknowledges later; it learns how many applied."""
    for target in (CHILD, OTHER):
        await gateway.watch(MAIN, target)
        await human(gateway, target)
    notices = await gateway.pending(MAIN)
    assert await gateway.acknowledge(MAIN, notices) == 2
    assert await gateway.acknowledge(MAIN, iter(notices)) == 0
    assert await gateway.pending(MAIN) == []


# -- cancellation at every await --------------------------------------------------------------------------------------------------

DELAYS = (0, 1, 4)
"""After how many turns of the loop the cancellation falls in, counted from the suspension that it is for."""


@types.coroutine
def cancelled_at(work: Coroutine[Any, Any, object], suspension: int, delay: int) -> Generator[Any, Any, str]:
    """Run the work, cancel its task at or just after that suspension, and say how it ended."""
    task = asyncio.current_task()
    assert task is not None
    suspended = 0

    def cancel(turns: int) -> None:
        if turns:
            task.get_loop().call_soon(cancel, turns - 1)
        else:
            task.cancel()

    step: Callable[[], Any] = functools.partial(work.send, None)
    try:
        while True:
            waiting_for = step()
            if suspended == suspension:
                cancel(delay)
            suspended += 1
            try:
                yield waiting_for
            except BaseException as error:  # noqa: BLE001, it is thrown on
                step = functools.partial(work.throw, error)
            else:
                step = functools.partial(work.send, None)
    except StopIteration:
        return "completed" if suspended <= suspension else "too late"
    except asyncio.CancelledError:
        return "cancelled"
    except ZeroDivisionError:
        return "raised"


async def ended(work: Coroutine[Any, Any, object], suspension: int, delay: int) -> str:
    """The same in a task of its own."""

    async def run() -> str:
        end = await cancelled_at(work, suspension, delay)
        assert isinstance(end, str)
        return end

    try:
        return await asyncio.create_task(run())
    except asyncio.CancelledError:
        return "too late"  # the cancellation fell in after the end


async def whole_turn(gateway: Gateway, marks: list[str]) -> None:
    async with gateway.turn(MAIN) as turn:
        marks.append("shown" if turn.notices else "empty")
        await asyncio.sleep(0)
        marks.append("body ended")


async def early_turn(gateway: Gateway, marks: list[str]) -> None:
    async with gateway.turn(MAIN) as turn:
        marks.append("shown" if turn.notices else "empty")
        await turn.acknowledge()
        marks.append("body ended")


async def raising_turn(gateway: Gateway, marks: list[str]) -> None:
    async with gateway.turn(MAIN) as turn:
        marks.append("shown" if turn.notices else "empty")
        await asyncio.sleep(0)
        raise ZeroDivisionError


async def a_drain(gateway: Gateway, marks: list[str]) -> None:
    marks.append("shown" if await gateway.drain(MAIN) else "empty")
    marks.append("body ended")


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("work", [whole_turn, early_turn, raising_turn, a_drain])
async def test_cancelled_at_every_await(
    gateway: Gateway, work: Callable[[Gateway, list[str]], Coroutine[Any, Any, None]], delay: int
) -> None:
    """Rule 4.8: cancelled at any of its awaits, a turn either acknowledged its notice or gave it back, and none is kept."""
    await family(gateway)
    ends: set[tuple[str, bool]] = set()
    returned = 0
    for suspension in itertools.count():
        await human(gateway)
        before = await gateway.pending(MAIN)
        marks: list[str] = []
        end = await ended(work(gateway, marks), suspension, delay)
        await gateway.idle()
        after = await gateway.pending(MAIN)
        watch = await pair(gateway)
        assert watch is not None
        assert watch.pending == bool(after), "a notice is held by nobody's turn"
        assert after in (before, [])
        if "body ended" in marks:
            assert after == []
            assert (await gateway.statistics()).notices_returned == returned
        returned = (await gateway.statistics()).notices_returned
        if end == "raised" or (work in (whole_turn, raising_turn) and "body ended" not in marks):
            assert after == before
        if not marks and work is not a_drain:
            assert after == before
        ends.add((end, bool(after)))
        await gateway.drain(MAIN)
        if end in ("completed", "raised") and suspension > 2:
            break
    assert ("cancelled", True) in ends
    assert len(ends) > 1


async def test_cancelled_while_acknowledging(gateway: Gateway, database: Path) -> None:
    """Rule 4.8: once the body has ended well the acknowledgement is carried through though the caller is cancelled, even twice."""
    await family(gateway)
    event = await human(gateway)
    ended = asyncio.Event()

    async def turn() -> None:
        async with gateway.turn(MAIN) as turn:
            assert len(turn.notices) == 1
            ended.set()

    task = asyncio.create_task(turn())
    await ended.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # Straight from the file: when the turn is over, the acknowledgement is not under way any more.
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as other:
        assert other.execute("SELECT last_seen_sequence FROM session_watch_cursors").fetchall() == [(event.sequence,)]
    assert await gateway.pending(MAIN) == []
    assert (await gateway.statistics()).notices_returned == 0


async def test_timeout_around_a_turn(gateway: Gateway) -> None:
    """Rule 4.8: a host's own timeout around the turn cancels it: the notice is given back."""
    await family(gateway)
    await human(gateway)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), gateway.turn(MAIN):
            await asyncio.Event().wait()
    assert len(await gateway.pending(MAIN)) == 1


async def test_cancelled_drain_or_pending_leaves_the_watcher_working(gateway: Gateway) -> None:
    """Rule 4.8: cancelling every kind of call many times leaves nothing taken."""
    await family(gateway)
    await human(gateway)
    for steps in range(8):
        for call in (gateway.pending(MAIN), gateway.watches(MAIN), gateway.session_status(CHILD, changes_since=0)):
            await ended(call, steps, 0)
    assert len(await show(gateway)) == 1


# -- the gateway closes during a turn -----------------------------------------------------------------------------------------------


async def test_gateway_left_during_a_turn(opening: Opening) -> None:
    """Rules 4.8, 4.11: a turn that is open when the gateway is left has not acknowledged: the notice is shown after the restart."""
    leaving = asyncio.Event()
    shown: list[Notice] = []

    async def turn(gateway: Gateway) -> None:
        async with gateway.turn(MAIN) as turn:
            shown.extend(turn.notices)
            leaving.set()
            await asyncio.Event().wait()

    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        task = asyncio.create_task(turn(gateway))
        await leaving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with opening() as gateway:
        assert await gateway.pending(MAIN) == shown


async def test_turn_ends_after_the_gateway(opening: Opening) -> None:
    """Rule 4.8: a turn whose gateway is gone ends well, or says that the gateway is closed, and the notice is shown again."""
    async with opening() as gateway:
        await family(gateway)
        await human(gateway)
        manager = gateway.turn(MAIN)
        turn = await manager.__aenter__()
    with pytest.raises(GatewayClosed):
        await turn.acknowledge()
    await manager.__aexit__(None, None, None)
    async with opening() as gateway:
        assert await show(gateway) == turn.prompt_lines()
