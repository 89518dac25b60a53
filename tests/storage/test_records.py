"""What crosses the store's seam."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from kizuki.storage.records import StateEvent, state_event

VALUES = (7, "agent:main:main", "main", "session", "goal_changed", "human", "ada", None, 1, "goal updated", {"turns": 2})


def test_an_event_made_fast_is_an_event() -> None:
    """What `state_event` makes is what the class makes: equal, of the same hash and text, frozen, and to be copied."""
    made, plain = state_event(*VALUES), StateEvent(*VALUES)
    assert type(made) is StateEvent
    assert (made, hash(made), repr(made)) == (plain, hash(plain), repr(plain))
    assert dataclasses.replace(made, sequence=8) == dataclasses.replace(plain, sequence=8)
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.sequence = 8  # type: ignore[misc]


def test_an_event_has_all_its_fields() -> None:
    """A field too few is an error, as it is with the class."""
    with pytest.raises(TypeError):
        state_event(*VALUES[:-1])
