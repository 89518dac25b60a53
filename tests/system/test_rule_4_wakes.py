"""Rule 4.9: who is woken, when, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig, ManualClock
from tests.system.cast import CHILD, GLOBAL, MAIN, OPS, OTHER, family, human, show
from tests.system.conftest import Opening

Answer = bool | None


class Woken:
    """A wake callback that notes each call with its moment, and answers as it is told."""

    def __init__(self, clock: ManualClock, answer: Callable[[], Answer | Awaitable[Answer]] = lambda: None) -> None:
        self._clock = clock
        self._answer = answer
        self.calls: list[tuple[float, str, tuple[str, ...]]] = []

    def __call__(self, key: str, reasons: tuple[str, ...]) -> Answer | Awaitable[Answer]:
        self.calls.append((self._clock.monotonic(), key, reasons))
        return self._answer()

    @property
    def times(self) -> list[float]:
        return [moment for moment, _, _ in self.calls]

    @property
    def keys(self) -> list[str]:
        return [key for _, key, _ in self.calls]


@pytest.fixture
def woken(clock: ManualClock) -> Woken:
    """A wake callback of a host that is never busy."""
    return Woken(clock)


async def seconds(clock: ManualClock, total: float, step: float = 0.25) -> None:
    """Let time pass in steps small enough for every wake to fall on its moment."""
    for _ in range(round(total / step)):
        await clock.advance(step)


# -- merging ------------------------------------------------------------------------------------------------------------------------


async def test_wake_after_a_quarter_of_a_second(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: when a notice opens its watcher is woken after 250 ms, with the target as the reason."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.249)
        assert woken.calls == []
        await clock.advance(0.001)
        assert woken.calls == [(0.25, MAIN, (CHILD,))]
        await seconds(clock, 10)
        assert len(woken.calls) == 1
        assert (await gateway.statistics()).wakes == 1


async def test_requests_are_merged_and_never_put_off(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: requests within 250 ms from the first become one wake with all targets, and later ones do not extend it."""
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER, OPS):
            await gateway.watch(MAIN, target)
        await human(gateway, CHILD)
        await clock.advance(0.1)
        await human(gateway, OTHER)
        await clock.advance(0.14)
        await human(gateway, OPS)
        await clock.advance(0.01)
        assert woken.calls == [(0.25, MAIN, (CHILD, OTHER, OPS))]


async def test_watchers_are_woken_each(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: only requests for the same watcher are merged."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await gateway.watch(OPS, CHILD)
        await human(gateway)
        await clock.advance(0.25)
        assert sorted(woken.keys) == [MAIN, OPS]


async def test_no_new_wake_while_pending(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.4: while a notice is pending further events bring no new wake."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await seconds(clock, 1)
        for _ in range(5):
            await human(gateway)
            await seconds(clock, 1)
        assert len(woken.calls) == 1


async def test_second_target_wakes_again(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: another notice that opens for the watcher wakes it again, naming the new target."""
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
        await human(gateway, CHILD)
        await clock.advance(1)
        await human(gateway, OTHER)
        await clock.advance(1)
        assert [reasons[-1] for _, _, reasons in woken.calls] == [CHILD, OTHER]


async def test_nothing_to_wake_for_any_more(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a notice that was acknowledged before its wake was due wakes nobody."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await show(gateway)
        await seconds(clock, 5)
        assert woken.calls == []


async def test_silent_and_own_changes_wake_nobody(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.6, 4.9: what opens no notice brings no wake."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await gateway.compacted(CHILD, operation_id="c")
        await gateway.goal_changed(CHILD, "updated", actor=Actor.agent(MAIN))
        await seconds(clock, 5)
        assert woken.calls == []


async def test_other_coalescing_time(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: the time is configured, down to none at all."""
    async with opening(wake=woken, config=GatewayConfig(wake_coalesce_s=0)) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0)
        assert woken.times == [0.0]


async def test_reasons_are_keys(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Interface: the reasons are a tuple of the targets' keys, those without prefix included, each once."""
    async with opening(wake=woken) as gateway:
        for agent in ("main", "ops"):
            await gateway.watch(MAIN, GLOBAL, target_agent_id=agent)
            await human(gateway, GLOBAL, agent_id=agent)
        await clock.advance(0.25)
        assert woken.calls == [(0.25, MAIN, (GLOBAL,))]


# -- sub-agents ----------------------------------------------------------------------------------------------------------------------


async def test_subagents_are_never_woken(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a sub-agent is never woken: neither by an opening, a failed turn, left-overs nor a restart; its next turn shows it."""
    async with opening(wake=woken) as gateway:
        for target in (OTHER, OPS):
            await gateway.watch(CHILD, target)
            await human(gateway, target)
        await seconds(clock, 2)
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(CHILD):
                raise ZeroDivisionError
        await show(gateway, CHILD, notices_max=1)
        await seconds(clock, 70, 1)
    async with opening(wake=woken) as gateway:
        await seconds(clock, 5)
        assert len(await show(gateway, CHILD)) == 1
    assert woken.calls == []


async def test_acp_children_are_woken(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 2.1, 4.9: only sub-agents are passed over; an ACP session, a group or a cron session is woken."""
    watchers = ["agent:codex:acp:1", "agent:main:telegram:group:1", "agent:main:cron:daily", "agent:main:x:subagent:y"]
    async with opening(wake=woken) as gateway:
        for watcher in watchers:
            await gateway.watch(watcher, OPS)
        await human(gateway, OPS)
        await clock.advance(0.25)
    assert sorted(woken.keys) == sorted(watchers)


# -- busy ----------------------------------------------------------------------------------------------------------------------------


async def busy_async() -> bool:
    await asyncio.sleep(0)
    return False


def broken() -> None:
    raise ValueError("the host's own fault")


async def broken_async() -> None:
    raise ValueError("the host's own fault")


async def cancelled_inside() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("answer", [lambda: False, busy_async, broken, broken_async, cancelled_inside])
async def test_busy_again_after_growing_delays(
    opening: Opening, clock: ManualClock, answer: Callable[[], Answer | Awaitable[Answer]]
) -> None:
    """Rule 4.9: busy, by False or by whatever exception, is asked again after 1 s, 2, 4, ... 60 and 60 again, while pending."""
    woken = Woken(clock, answer)
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        for delay in (1, 2, 4, 8, 16, 32, 60, 60, 60):
            before = len(woken.calls)
            await clock.advance(delay - 0.01)
            assert len(woken.calls) == before
            await clock.advance(0.01)
            assert len(woken.calls) == before + 1
        assert all(reasons == (CHILD,) for _, _, reasons in woken.calls)
        await show(gateway)
        before = len(woken.calls)
        await clock.advance(60)
        await clock.advance(60)
        assert len(woken.calls) == before


async def awake() -> bool:
    return True


@pytest.mark.parametrize("answer", [lambda: None, lambda: True, awake, lambda: 0, lambda: ""])
async def test_not_busy(opening: Opening, clock: ManualClock, answer: Callable[[], Answer | Awaitable[Answer]]) -> None:
    """Rule 4.9: only False itself is busy; None, True and what merely looks false are not."""
    woken = Woken(clock, answer)
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await seconds(clock, 5)
        assert len(woken.calls) == 1


async def test_busy_delay_begins_anew(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: after the host was not busy the next busy answer begins with 1 s again."""
    answers: list[Answer] = [False, False, False, None, False, None]
    woken = Woken(clock, lambda: answers.pop(0))
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        for delay in (1, 2, 4):
            await clock.advance(delay)
        assert len(woken.calls) == 4
        await show(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await clock.advance(1)
        assert len(woken.calls) == 6
        assert woken.times[-1] - woken.times[-2] == pytest.approx(1)


async def test_busy_wait_is_not_shortened(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: a notice that opens while the host is known to be busy waits with the others, and is named with them."""
    woken = Woken(clock, lambda: False)
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
        await human(gateway, CHILD)
        await clock.advance(0.25)
        await clock.advance(1)
        await human(gateway, OTHER)
        await clock.advance(1.9)
        assert len(woken.calls) == 2
        await clock.advance(0.1)
        assert woken.calls[-1][2] == (CHILD, OTHER)


@pytest.mark.parametrize("how", ["turn", "drain", "acknowledge"])
async def test_busy_wait_ends_with_the_notices(opening: Opening, clock: ManualClock, how: str) -> None:
    """Rule 4.9: busy delays last while a notice is pending; one that opens after all were shown is told after 250 ms again."""
    busy: list[Answer] = [False]
    woken = Woken(clock, lambda: busy[0])
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await seconds(clock, 10)
        assert woken.times == [0.25, 1.25, 3.25, 7.25]
        busy[0] = None
        if how == "turn":
            await show(gateway)
        elif how == "drain":
            await gateway.drain(MAIN)
        else:
            await gateway.acknowledge(MAIN, await gateway.pending(MAIN))
        await human(gateway)
        await clock.advance(0.25)
        assert woken.times[4:] == [10.25]


async def test_left_overs_of_a_good_turn_do_not_wait_for_a_busy_host(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: a host that was busy and then ran a turn to its good end is woken for the notices left over after 250 ms."""
    woken = Woken(clock, lambda: False)
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
            await human(gateway, target)
        await seconds(clock, 10)
        assert woken.times == [0.25, 1.25, 3.25, 7.25]
        await show(gateway, notices_max=1)
        await clock.advance(0.25)
        await clock.advance(1)
        assert woken.calls[4:] == [(10.25, MAIN, (OTHER,)), (11.25, MAIN, (OTHER,))]


async def test_late_busy_answer_for_what_was_shown_meanwhile(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: a callback that hangs while its notice is shown and acknowledged leaves no busy delay behind."""
    woken = Woken(clock, lambda: asyncio.Event().wait())
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await show(gateway)
        await clock.advance(30)
        await human(gateway)
        await clock.advance(0.25)
        assert woken.times == [0.25, 30.5]


async def test_hung_callback(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: no answer in 30 s is busy: the call is given up, and made again 1 s later."""
    hung: list[asyncio.Task[object] | None] = []

    async def hang() -> None:
        hung.append(asyncio.current_task())
        await asyncio.Event().wait()

    woken = Woken(clock, hang)
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await clock.advance(29.9)
        assert len(woken.calls) == 1
        await clock.advance(0.1)
        await clock.advance(0.9)
        assert len(woken.calls) == 1
        await clock.advance(0.1)
        assert len(woken.calls) == 2
        assert hung[0] is not None
        assert hung[0].cancelled()


async def test_slow_callback_is_not_called_beside_itself(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: while a watcher's wake is running it is not called a second time; what opened meanwhile is asked for after it."""

    async def slow() -> None:
        await clock.sleep(10)

    woken = Woken(clock, slow)
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
        await human(gateway, CHILD)
        await clock.advance(0.25)
        await human(gateway, OTHER)
        await seconds(clock, 9, 1)
        assert len(woken.calls) == 1
        await seconds(clock, 3)
        assert [reasons[-1] for _, _, reasons in woken.calls] == [CHILD, OTHER]


# -- eight at once --------------------------------------------------------------------------------------------------------------------


async def test_eight_at_once(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: at most 8 wakes run at once; the others follow as these answer, and nobody is forgotten."""
    running = 0
    most = 0

    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await clock.sleep(1)
        running -= 1

    woken = Woken(clock, slow)
    watchers = [f"agent:w{number}:main" for number in range(30)]
    async with opening(wake=woken) as gateway:
        for watcher in watchers:
            await gateway.watch(watcher, CHILD)
        await human(gateway)
        await clock.advance(0.25)
        assert len(woken.calls) == 8
        for _ in range(6):
            await clock.advance(1)
        assert sorted(woken.keys) == sorted(watchers)
    assert most == 8


async def test_hung_hosts_do_not_stop_the_others_for_ever(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: eight wakes that hang hold the others up for 30 s, not for ever."""

    async def hang() -> None:
        await asyncio.Event().wait()

    woken = Woken(clock, hang)
    async with opening(wake=woken) as gateway:
        for number in range(9):
            await gateway.watch(f"agent:w{number}:main", CHILD)
        await human(gateway)
        await clock.advance(0.25)
        assert len(set(woken.keys)) == 8
        await clock.advance(30)
        assert len(set(woken.keys)) == 9


async def test_host_that_cancels_itself_blocks_nobody(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: callbacks that end in CancelledError free their places, and count as busy."""
    woken = Woken(clock, cancelled_inside)
    async with opening(wake=woken) as gateway:
        for number in range(20):
            await gateway.watch(f"agent:w{number}:main", CHILD)
        await human(gateway)
        await clock.advance(0.25)
        assert len(set(woken.keys)) == 20


# -- after turns -----------------------------------------------------------------------------------------------------------------------


async def test_wake_for_left_overs(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a turn that ends with notices left over requests a wake for them."""
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
            await human(gateway, target)
        await clock.advance(0.25)
        await show(gateway, notices_max=1)
        await clock.advance(0.25)
        assert woken.calls[1:] == [(0.5, MAIN, (OTHER,))]


async def test_wake_for_what_came_during_the_turn(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a notice that opened during the turn, and whose wake came during it, is left over at its end as well."""
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
        await human(gateway, CHILD)
        async with gateway.turn(MAIN):
            await human(gateway, OTHER)
            await clock.advance(5)
            assert len(woken.calls) == 1
        await clock.advance(0.25)
        assert len(woken.calls) == 2


async def test_wake_for_the_rest_of_a_target(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.5, 4.9: the notice that opens for the rest after an acknowledgement wakes, too."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await show(gateway)
        await clock.advance(0.25)
        assert len(woken.calls) == 2


async def test_no_wake_after_the_last_notice(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a turn that leaves nothing requests nothing."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await show(gateway)
        await seconds(clock, 5)
        assert len(woken.calls) == 1


async def failed_turn(gateway: Gateway) -> None:
    with pytest.raises(ZeroDivisionError):
        async with gateway.turn(MAIN):
            raise ZeroDivisionError


async def test_wakes_after_failed_turns(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: after a failed turn the watcher is woken with the busy delays, growing from turn to turn that fails."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        for delay in (1, 2, 4, 8, 16, 32, 60, 60):
            await failed_turn(gateway)
            before = len(woken.calls)
            await clock.advance(delay - 0.01)
            assert len(woken.calls) == before
            await clock.advance(0.01)
            assert woken.calls[before:] == [(clock.monotonic(), MAIN, (CHILD,))]


async def test_a_good_turn_ends_the_growing(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: after a turn that ended well the next failed one begins with 1 s again."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        for delay in (1, 2, 4):
            await failed_turn(gateway)
            await clock.advance(delay)
        await show(gateway)
        await human(gateway)
        await clock.advance(0.25)
        await failed_turn(gateway)
        before = len(woken.calls)
        await clock.advance(1)
        assert len(woken.calls) == before + 1


async def test_cancelled_turn_is_a_failed_one(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a cancelled turn, which gave its notices back, is followed by a wake."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), gateway.turn(MAIN):
                await asyncio.Event().wait()
        await clock.advance(1)
        assert len(woken.calls) == 2


async def test_failed_turn_that_had_acknowledged(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.9: a failed turn with nothing pending after it wakes nobody."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        with pytest.raises(ZeroDivisionError):
            async with gateway.turn(MAIN) as turn:
                await turn.acknowledge()
                raise ZeroDivisionError
        await seconds(clock, 5)
        assert len(woken.calls) == 1


async def test_taken_notices_wake_nobody(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.8, 4.9: a notice that an open turn has taken wakes nobody while the turn runs."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN):
            await seconds(clock, 5)
        assert woken.calls == []


async def test_cancelled_right_after_a_good_body(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.8, 4.9: a turn that was cancelled after its body had ended well left its rest in no failed turn: 250 ms, not 1 s."""
    async with opening(wake=woken) as gateway:
        for target in (CHILD, OTHER):
            await gateway.watch(MAIN, target)
            await human(gateway, target)
        await clock.advance(0.25)
        ended = asyncio.Event()

        async def turn() -> None:
            async with gateway.turn(MAIN, notices_max=1):
                ended.set()

        task = asyncio.create_task(turn())
        await ended.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await clock.advance(0.25)
        assert woken.calls[1:] == [(0.5, MAIN, (OTHER,))]


async def test_new_notice_of_a_pair_watched_anew_wakes(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.5, 4.9: a pair watched anew during a turn that holds its old notice is woken for the new one."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        async with gateway.turn(MAIN):
            await gateway.unwatch(MAIN, CHILD)
            await gateway.watch(MAIN, CHILD)
            await human(gateway)
            await clock.advance(1)
        assert woken.keys == [MAIN]


# -- reset, deletion, the host's own calls ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["unwatch", "reset", "delete", "delete target"])
async def test_no_wake_for_what_is_gone(opening: Opening, clock: ManualClock, woken: Woken, how: str) -> None:
    """Rules 3.4, 3.5, 4.9: a wake that was requested for a notice that is gone by then is not made."""
    async with opening(wake=woken) as gateway:
        await family(gateway)
        await human(gateway)
        if how == "unwatch":
            await gateway.unwatch(MAIN, CHILD)
        elif how == "reset":
            await gateway.reset_session(MAIN)
        else:
            await gateway.delete_session(MAIN if how == "delete" else CHILD)
        await seconds(clock, 5)
        assert woken.calls == []


async def test_turn_inside_the_wake(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: the callback may itself run the turn that it is called for."""
    inside: list[Gateway] = []
    shown: list[str] = []

    async def wake(key: str, reasons: tuple[str, ...]) -> None:
        shown.extend(await show(inside[0], key))

    async with opening(wake=wake) as gateway:
        inside.append(gateway)
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
        assert len(shown) == 1
        assert await gateway.pending(MAIN) == []


async def test_leaving_ends_running_wakes(opening: Opening, clock: ManualClock) -> None:
    """Rule 4.9: leaving the gateway cancels a wake that is running; nothing is left behind."""
    ended: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async with opening(wake=Woken(clock, hang)) as gateway:
        await family(gateway)
        await human(gateway)
        await clock.advance(0.25)
    assert ended == ["ended"]


# -- 4.11 wakes at a start ---------------------------------------------------------------------------------------------------------------


async def test_watchers_are_woken_at_a_start(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rules 4.9, 4.11: at a start the watcher of every pending pair is woken, with all its targets; nobody else."""
    async with opening() as gateway:
        for target in (CHILD, OTHER, OPS):
            await gateway.watch(MAIN, target)
        await gateway.watch(OPS, CHILD)
        await human(gateway, CHILD)
        await human(gateway, OTHER)
        await show(gateway, OPS)
    async with opening(wake=woken):
        await clock.advance(0.25)
        assert [(key, sorted(reasons)) for _, key, reasons in woken.calls] == [(MAIN, [CHILD, OTHER])]


async def test_many_watchers_are_woken_at_a_start(opening: Opening, clock: ManualClock, woken: Woken) -> None:
    """Rule 4.11: nobody is forgotten at a start, however many there are."""
    watchers = [f"agent:w{number}:main" for number in range(1_100)]
    async with opening() as gateway:
        await asyncio.gather(*(gateway.watch(watcher, CHILD) for watcher in watchers))
        await human(gateway)
    async with opening(wake=woken):
        await seconds(clock, 1)
        assert sorted(woken.keys) == sorted(watchers)
