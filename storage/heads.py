"""What a session's head remembers of its notifying events, so that no event has to touch every cursor on the session. Pure.

An actor is named by its session key if it is an agent and by '' otherwise: a person or the system is nobody's self, so they need
not be told apart. Two latest sequences of distinct actors answer for every watcher which event by another actor was the last:
if the latest is the watcher's own, the other one is the last that is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

NOBODY = ""
"""The name of every actor that is not an agent: no watcher has it."""

OPENINGS_AT_ONCE = 128
"""How many notices a transaction opens by itself, for each session that its events are on: less than another commit would cost."""
FIRST_OF_A_CROWD = 16
"""How many it opens where there are more, for which whoever records does not wait."""


class Latest(NamedTuple):
    """The two latest (actor, sequence) of distinct actors; actor None and sequence 0 where there is none."""

    actor: str | None = None
    sequence: int = 0
    other_actor: str | None = None
    other_sequence: int = 0


class Owed(NamedTuple):
    """The first event whose openings are owed, and the first one after it by another actor."""

    actor: str
    sequence: int
    other_sequence: int | None


class Notifying(NamedTuple):
    """A notifying event, as far as openings ask for it."""

    sequence: int
    actor: str


def actor_name(actor_type: str, actor_id: str | None) -> str:
    """The name under which an actor is compared with a watcher (rule 4.6)."""
    return actor_id if actor_type == "agent" and actor_id is not None else NOBODY


def merge(latest: Latest, event: Notifying) -> Latest:
    """Take a later event in."""
    if event.actor == latest.actor:
        return Latest(event.actor, event.sequence, latest.other_actor, latest.other_sequence)
    return Latest(event.actor, event.sequence, latest.actor, latest.sequence)


def latest_by_another(latest: Latest, watcher: str) -> int:
    """The last notifying sequence whose actor is not the watcher; 0 if there is none."""
    return latest.other_sequence if latest.actor == watcher else latest.sequence


def material(latest: Latest, watcher: str, last_seen: int) -> int:
    """A cursor's material position."""
    return max(last_seen, latest_by_another(latest, watcher))


def openings_at_once(targets: int, left: int) -> int:
    """For how many notices at most the events' own transaction is the place, on so many targets."""
    return min(OPENINGS_AT_ONCE * targets, left)


def opened_at_once(clean: int, at_once: int) -> int:
    """How many of the clean pairs the events' own transaction opens; the rest is owed."""
    return clean if clean <= at_once else min(at_once, FIRST_OF_A_CROWD)


def owe(owed: Owed | None, event: Notifying) -> Owed:
    """Note an event whose openings are left for later; the earliest ones count, since they are the pins (rule 4.3)."""
    if owed is None:
        return Owed(event.actor, event.sequence, None)
    if owed.other_sequence is None and event.actor != owed.actor:
        return owed._replace(other_sequence=event.sequence)
    return owed


def owed_pin(owed: Owed, watcher: str, last_seen: int) -> int | None:
    """Where the owed notice of a clean pair is pinned; None if the first material event after `last_seen` is neither of the two."""
    first = owed.other_sequence if owed.actor == watcher else owed.sequence
    return first if first is not None and first > last_seen else None


def first_material(events: Iterable[Notifying], watcher: str, last_seen: int) -> int | None:
    """The first of the ascending events that is news to the watcher."""
    return next((event.sequence for event in events if event.sequence > last_seen and event.actor != watcher), None)
