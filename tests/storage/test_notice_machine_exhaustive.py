"""All histories of the notice machine up to a length. Longer ones: `python -m tests.storage.test_notice_machine_exhaustive 8`."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import NamedTuple

import pytest

from kizuki.storage import heads, positions
from kizuki.storage.records import Positions
from tests.storage import notice_machine
from tests.storage.notice_machine import STEPS, Seen, World, canonical, step

NOBODY_WATCHES = World()
EVERYBODY_WATCHES = World(cursors=((0, 0),) * 4, rules=(Seen(0, None),) * 4)
"""Where the interesting part of most histories begins."""


class Searched(NamedTuple):
    """What a search has seen: histories of exactly and up to its length, and the worlds in which they end."""

    histories: int
    histories_longest: int
    worlds: int
    steps: int


def search(beginning: World, length: int) -> Searched:
    """Make every possible step in every world that some history reaches; a broken rule is an `AssertionError`."""
    level: Counter[World] = Counter({canonical(beginning): 1})
    histories, steps, known = 1, 0, set(level)
    following: dict[World, list[World]] = {}
    for _ in range(length):
        ends: Counter[World] = Counter()
        for world, ways in level.items():
            if world not in following:
                following[world] = [canonical(after) for operation in STEPS if (after := step(world, operation)) is not None]
                steps += len(following[world])
            for after in following[world]:
                ends[after] += ways
        level = ends
        known.update(ends)
        histories += sum(ends.values())
    return Searched(histories, sum(level.values()), len(known), steps)


@pytest.mark.parametrize(("beginning", "length", "histories"), [(NOBODY_WATCHES, 5, 1_162_456), (EVERYBODY_WATCHES, 4, 194_713)])
def test_all_histories_of_two_watchers_and_two_targets_keep_the_rules(beginning: World, length: int, histories: int) -> None:
    """Rules 4.1 to 4.8, 4.11: in every history each pair has exactly the notice that the rules give it, pinned where they say."""
    assert search(beginning, length).histories == histories


def _acknowledge_everything(present: Positions, last_seen: int, notified: int) -> Positions | None:
    return positions.seed(present.material) if present.notified > present.last_seen else None


def _acknowledge_without_a_rest(present: Positions, last_seen: int, notified: int) -> Positions | None:
    moved = positions.acknowledge(present, last_seen, notified)
    return None if moved is None else moved._replace(notified=moved.last_seen)


def _merge_one_actor(latest: heads.Latest, event: heads.Notifying) -> heads.Latest:
    return heads.Latest(event.actor, event.sequence, None, 0)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("acknowledge", _acknowledge_everything),
        ("acknowledge", _acknowledge_without_a_rest),
        ("open_at", lambda present, pin: present._replace(notified=present.material)),
        ("replay", lambda present: present),
        ("merge", _merge_one_actor),
        ("first_material", lambda events, watcher, last_seen: next((e.sequence for e in events if e.sequence > last_seen), None)),
        ("owed_pin", lambda owed, watcher, last_seen: owed.sequence),
        ("owe", lambda owed, event: heads.Owed(event.actor, event.sequence, None)),
    ],
)
def test_the_search_finds_a_broken_machine(monkeypatch: pytest.MonkeyPatch, name: str, broken: object) -> None:
    """A machine in which one decision is wrong does not pass the search."""
    monkeypatch.setattr(notice_machine, name, broken)
    with pytest.raises(AssertionError):
        search(EVERYBODY_WATCHES, 4)


def main(length: int) -> None:
    """Print what a search sees."""
    for name, beginning in (("nobody watches", NOBODY_WATCHES), ("everybody watches", EVERYBODY_WATCHES)):
        began = time.perf_counter()
        seen = search(beginning, length)
        took_s = time.perf_counter() - began
        print(f"{name}: {seen.histories:,} histories up to length {length}, {seen.worlds:,} worlds, {seen.steps:,} steps, {took_s:.1f} s")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
