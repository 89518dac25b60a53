"""What a head remembers, pure: checked against the whole history."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kizuki.storage.heads import NOBODY, Latest, Notifying, Owed, actor_name, first_material, material, merge, owe, owed_pin

ACTORS = st.sampled_from([NOBODY, "agent:main:a", "agent:main:b", "agent:main:c"])
HISTORIES = st.lists(ACTORS, max_size=12).map(lambda actors: [Notifying(2 * number + 2, actor) for number, actor in enumerate(actors)])
WATCHERS = ("agent:main:a", "agent:main:b", "agent:main:nobody")


def test_only_agents_have_a_name() -> None:
    """Rule 4.6: people and the system are nobody's self, whatever their ids are."""
    assert actor_name("agent", "agent:main:a") == "agent:main:a"
    assert {actor_name("human", "agent:main:a"), actor_name("system", None), actor_name("agent", None)} == {NOBODY}


@given(HISTORIES, st.integers(0, 30))
def test_two_actors_answer_for_every_watcher(history: list[Notifying], last_seen: int) -> None:
    """Rule 4.6: material from the head is the last sequence by another actor, for every watcher and every history."""
    latest = Latest()
    for event in history:
        latest = merge(latest, event)
    for watcher in WATCHERS:
        by_others = [event.sequence for event in history if event.actor != watcher]
        assert material(latest, watcher, last_seen) == max([last_seen, *by_others])


@given(HISTORIES, st.integers(0, 30))
def test_an_owed_pin_is_the_first_material_event(history: list[Notifying], last_seen: int) -> None:
    """Rule 4.3: where the head knows the pin of an owed opening, it is the first material event after last seen."""
    owed: Owed | None = None
    for event in history:
        owed = owe(owed, event)
    for watcher in WATCHERS:
        pin = None if owed is None else owed_pin(owed, watcher, last_seen)
        first = first_material(history, watcher, last_seen)
        assert pin in (None, first)
        if last_seen < 2:
            assert pin == first


@given(HISTORIES, st.integers(0, 30))
def test_the_first_material_event(history: list[Notifying], last_seen: int) -> None:
    """Rule 4.3: the first event after last seen by another actor, None if there is none."""
    wanted = [event.sequence for event in history if event.sequence > last_seen and event.actor != WATCHERS[0]]
    assert first_material(history, WATCHERS[0], last_seen) == (wanted[0] if wanted else None)
