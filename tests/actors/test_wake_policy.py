"""When a watcher's host is woken."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.wake_policy import WakeRequest, busy, request


def test_the_first_request_waits_for_more() -> None:
    """Rule 4.9: the first request is due after the time in which others are merged into it."""
    assert request(None, 10.0, ["a"], 0.25) == WakeRequest(10.25, ("a",), 0)


def test_merging_never_extends_the_wait() -> None:
    """Rule 4.9: requests for the same watcher are merged over 250 ms from the first, and the wait is never extended."""
    merged = request(request(None, 10.0, ["a"], 0.25), 10.2, ["b", "a", "c"], 0.25)
    assert merged == WakeRequest(10.25, ("a", "b", "c"), 0)


def test_busy_delays_double_up_to_a_minute() -> None:
    """Rule 4.9: a busy host is asked again after 1 s, growing to 60 s."""
    wake, delays = WakeRequest(0.0, ("a",)), list[float]()
    for _ in range(9):
        wake = busy(wake, 100.0)
        delays.append(wake.due - 100.0)
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_ever_busy_hosts_do_not_overflow() -> None:
    """Rule 4.9: after any number of failures the delay is a minute."""
    assert busy(WakeRequest(0.0, ("a",), 100_000), 5.0).due == 65.0


def test_a_further_notice_does_not_hurry_a_busy_host() -> None:
    """Rule 4.9: a request that waits for a busy host keeps its due time and its count when another notice opens."""
    waiting = busy(WakeRequest(0.0, ("a",), 3), 100.0)
    assert request(waiting, 101.0, ["b"], 0.25) == WakeRequest(108.0, ("a", "b"), 4)


STEPS = st.lists(st.tuples(st.booleans(), st.floats(0, 100), st.lists(st.sampled_from("abcdef"), max_size=4)), min_size=1, max_size=30)


@given(STEPS)
def test_no_reason_is_lost_or_named_twice(steps: list[tuple[bool, float, list[str]]]) -> None:
    """Rule 4.9: through merging and busy answers, every reason is kept once, in the order in which it was first named."""
    wake: WakeRequest | None = None
    now, named = 0.0, dict[str, None]()
    for is_busy, gap, reasons in steps:
        now += gap
        if is_busy and wake is not None:
            wake = busy(wake, now)
            assert 1.0 <= round(wake.due - now, 6) <= 60.0
            continue
        due = wake.due if wake else now + 0.25
        named.update(dict.fromkeys(reasons))
        wake = request(wake, now, reasons, 0.25)
        assert wake.due == due
    assert wake is None or wake.reasons == tuple(named)
