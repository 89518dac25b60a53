"""The cursor machine, pure."""

from __future__ import annotations

import pytest

from kizuki.storage.positions import acknowledge, is_open, is_pending, open_at, replay, seed
from kizuki.storage.records import Positions


def test_a_seeded_pair_is_clean() -> None:
    """Rule 3.2: a seeded pair has seen everything up to the version."""
    assert seed(7) == Positions(7, 7, 7)
    assert not is_open(seed(7))
    assert not is_pending(seed(7))


def test_opening_pins() -> None:
    """Rule 4.3: a clean pair is pinned at the event, and last seen stays."""
    assert open_at(Positions(3, 3, 9), 5) == Positions(3, 5, 9)


def test_an_open_notice_keeps_its_pin() -> None:
    """Rule 4.4: while a notice is pending a further material event opens no second one."""
    assert open_at(Positions(3, 5, 9), 9) == Positions(3, 5, 9)


def test_what_was_seen_opens_nothing() -> None:
    """Rule 3.2: an event up to last seen is earlier history."""
    assert open_at(Positions(5, 5, 5), 5) == Positions(5, 5, 5)


@pytest.mark.parametrize(
    ("before", "after"),
    [(Positions(3, 5, 5), Positions(5, 5, 5)), (Positions(3, 5, 9), Positions(5, 9, 9))],
)
def test_acknowledging(before: Positions, after: Positions) -> None:
    """Rule 4.5: last seen becomes the notified position, and a rest opens one notice pinned at material."""
    assert acknowledge(before, 3, 5) == after


@pytest.mark.parametrize("shown", [(3, 6), (2, 5), (5, 5)])
def test_acknowledging_another_notice(shown: tuple[int, int]) -> None:
    """Rule 4.5: other positions than the cursor's change nothing."""
    assert acknowledge(Positions(3, 5, 9), *shown) is None


def test_a_clean_pair_has_nothing_to_acknowledge() -> None:
    """Rule 4.5: not even with its own positions."""
    assert acknowledge(Positions(5, 5, 9), 5, 5) is None


@pytest.mark.parametrize(
    ("before", "after"),
    [(Positions(3, 5, 9), Positions(3, 9, 9)), (Positions(3, 3, 9), Positions(3, 9, 9)), (Positions(9, 9, 9), Positions(9, 9, 9))],
)
def test_replaying(before: Positions, after: Positions) -> None:
    """Rule 4.11: what is pending, opened or owed, is pinned at material; a clean pair stays; twice is once."""
    assert replay(before) == after
    assert replay(after) == after
