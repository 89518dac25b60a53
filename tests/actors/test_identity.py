"""Who caused an event."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kizuki.actors.errors import InvalidArgument, InvalidSessionKey
from kizuki.actors.identity import Actor


def test_the_three_types() -> None:
    """Rule 1.3: an actor is a human, an agent or the system, with an optional id."""
    assert (Actor.human().type, Actor.human().id) == ("human", None)
    assert (Actor.human("alice").type, Actor.human("alice").id) == ("human", "alice")
    assert (Actor.system().type, Actor.system().id) == ("system", None)
    assert Actor.agent("agent:main:main").type == "agent"


def test_an_agents_id_is_its_canonical_key() -> None:
    """Rule 1.3: for an agent the id is its session key, in canonical form."""
    assert Actor.agent(" AGENT:Main:Main ") == Actor.agent("agent:main:main")
    assert Actor.agent("Agent:Main:Main").id == "agent:main:main"


def test_a_person_with_the_id_of_a_key_is_a_person() -> None:
    """Rule 4.6: a person whose id equals a session key is not that session's agent."""
    assert Actor.human("agent:main:main") != Actor.agent("agent:main:main")


def test_a_blank_id_is_none() -> None:
    """Rule 1.3: the id is optional, and a blank one is none."""
    assert Actor.human(" ") == Actor.human()


@pytest.mark.parametrize(
    ("type_", "id_", "error"),
    [
        ("robot", None, InvalidArgument),
        (None, None, InvalidArgument),
        ("human", "a\nb", InvalidArgument),
        ("human", "x" * 513, InvalidArgument),
        ("human", "a\u202eb", InvalidArgument),
        ("agent", "agent:main", InvalidSessionKey),
        ("agent", None, InvalidSessionKey),
    ],
)
def test_wrong_actors_are_refused(type_: Any, id_: Any, error: type[Exception]) -> None:
    """Rule 2.3: an actor id that is not one clean line, or an agent without a key, is refused when the actor is made."""
    with pytest.raises(error):
        Actor(type_, id_)


def test_an_actor_is_frozen() -> None:
    """An actor is a value: it can be a key, and cannot be changed."""
    assert len({Actor.human("a"), Actor.human("a")}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        Actor.human("a").id = "b"  # type: ignore[misc]
