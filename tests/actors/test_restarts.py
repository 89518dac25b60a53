"""When a failed actor is started again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.restarts import Escalate, Restart, RestartPolicy, decide

POLICY = RestartPolicy(max_restarts=3, within_s=10.0, first_delay_s=1.0, max_delay_s=3.0)


def test_the_delay_doubles_up_to_its_limit_and_then_it_escalates() -> None:
    """Restarts in quick succession wait 1, 2, then at most 3 seconds; the fourth failure gives up."""
    history: tuple[float, ...] = ()
    delays = []
    for now in (100.0, 101.0, 102.0):
        decision = decide(history, now, POLICY)
        assert isinstance(decision, Restart)
        delays.append(decision.delay_s)
        history = decision.history
    assert delays == [1.0, 2.0, 3.0]
    assert decide(history, 103.0, POLICY) == Escalate(3)


@pytest.mark.parametrize(("now", "expected"), [(109.9, Escalate(3)), (110.0, Restart(3.0, (101.0, 102.0, 110.0)))])
def test_old_restarts_do_not_count(now: float, expected: Restart | Escalate) -> None:
    """A restart counts for less than `within_s` seconds."""
    assert decide((100.0, 101.0, 102.0), now, POLICY) == expected


def test_a_policy_without_restarts_escalates_at_once() -> None:
    """With no restarts allowed the first failure gives up."""
    assert decide((), 0.0, RestartPolicy(max_restarts=0)) == Escalate(0)


def test_many_restarts_do_not_overflow() -> None:
    """A generous policy computes its delay after thousands of restarts."""
    decision = decide((1.0,) * 5000, 2.0, RestartPolicy(max_restarts=10_000))
    assert isinstance(decision, Restart)
    assert decision.delay_s == 5.0


@given(st.lists(st.floats(0, 30), max_size=60))
def test_no_more_restarts_than_allowed(gaps: list[float]) -> None:
    """In no stretch of `within_s` seconds are there more than `max_restarts` restarts."""
    now, restarts = 0.0, list[float]()
    history: tuple[float, ...] = ()
    for gap in gaps:
        now += gap
        decision = decide(history, now, POLICY)
        if isinstance(decision, Restart):
            history = decision.history
            restarts.append(now)
            assert 1.0 <= decision.delay_s <= 3.0
    assert all(sum(moment - 10.0 < other <= moment for other in restarts) <= 3 for moment in restarts)
