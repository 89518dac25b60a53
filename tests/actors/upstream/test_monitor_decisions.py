"""What an outcome means for its link: the pure decisions of the upstream monitor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.upstream.catalog import Activity, Failed, Happening, Missing, Nothing, Outcome
from kizuki.actors.upstream.decisions import MISSING_MAX, OWN_IDS_MAX, decide, position_key
from kizuki.actors.upstream.thread_key import thread_key
from kizuki.storage.records import Address, LinkRecord
from kizuki.storage.writes import RecordUpstream

NOW = 1_767_225_600_000
LINK = LinkRecord(
    address=Address("agent:main:catalog:fake:1", "main"),
    session_id="s1",
    catalog="fake",
    host_id="local",
    thread_id="t1",
    source="/a",
    marker={"rows": 3},
    generation=7,
    revision=2,
    missing_count=0,
    own_ids=("m0",),
    adopted_at_ms=NOW - 5,
    ambiguous=False,
)
OWN = (("m1", "one"), ("m2", "two"))


def decided(outcome: Outcome, link: LinkRecord = LINK, **options: Any) -> RecordUpstream | None:
    """The decision, with some own texts."""
    return decide(link, outcome, OWN, NOW, record_unwatched=options.get("record_unwatched", False))


def recorded(outcome: Outcome, link: LinkRecord = LINK, **options: Any) -> RecordUpstream:
    """A decision that is not to write nothing."""
    write = decided(outcome, link, **options)
    assert write is not None
    return write


@pytest.mark.parametrize("outcome", [Nothing(), Nothing({"rows": 3}), Failed("why"), Activity({"rows": 3}, 0, None)])
def test_what_changes_nothing_writes_nothing(outcome: Outcome) -> None:
    """Rule 7.4: an outcome that leaves the link as it is costs no transaction."""
    assert decided(outcome) is None


@pytest.mark.parametrize("outcome", [Nothing(), Failed("why"), Activity({"rows": 3}, 0, None)])
def test_whatever_is_not_missing_resets_the_count(outcome: Outcome) -> None:
    """Rule 7.6: in a row means that nothing else came between."""
    link = replace(LINK, missing_count=2)
    assert recorded(outcome, link) == RecordUpstream(link, LINK.marker, 0, LINK.own_ids)


@pytest.mark.parametrize("count", range(MISSING_MAX - 1))
def test_missing_is_counted(count: int) -> None:
    """Rule 7.6: below three times only the count moves."""
    link = replace(LINK, missing_count=count)
    assert recorded(Missing(), link) == RecordUpstream(link, LINK.marker, count + 1, LINK.own_ids)


def test_missing_too_often() -> None:
    """Rule 7.6: the third time removes the link, with one event whose dedupe key is the link's present position."""
    link = replace(LINK, missing_count=MISSING_MAX - 1)
    write = recorded(Missing(), link)
    (event,) = write.events
    assert (event.kind, event.notifies, event.actor_type, event.target) == ("upstream_missing", True, "system", LINK.address)
    assert event.dedupe_key == position_key(link, link.marker)
    assert (write.removes, write.renews) == (True, False)


def test_turns_are_one_event() -> None:
    """Rules 1.5 and 1.8: one event for all turns, recorded only where somebody may care, unless the configuration lifts that."""
    (event,) = recorded(Activity({"rows": 9}, 4, NOW - 1)).events
    assert (event.kind, event.actor_type, event.summary) == ("human_direct_message", "human", "human message via fake")
    assert (event.payload, event.occurred_at_ms, event.recorded_at_ms, event.only_if_watched) == ({"turns": 4}, NOW - 1, NOW, True)
    assert not recorded(Activity({"rows": 9}, 4, None), record_unwatched=True).events[0].only_if_watched


def test_the_marker_moves_with_its_events() -> None:
    """Rule 7.4: marker, ids and events are one write for the link as it was read."""
    write = recorded(Activity({"rows": 9}, 1, None, accounted_ids=("m2",)))
    assert (write.link, write.marker, write.own_ids, len(write.events)) == (LINK, {"rows": 9}, ("m0", "m2"), 1)


def test_a_restart_renews() -> None:
    """Rule 7.7: whatever the reason, the link becomes a new generation, even where the marker is the same."""
    assert recorded(Activity({"rows": 3}, 0, None, restarted="")).renews
    assert recorded(Activity({"rows": 0}, 0, None, restarted="replaced")).marker == {"rows": 0}


def test_only_the_hosts_ids_are_kept() -> None:
    """Rule 7.5: an id is stored once, the newest last, and no other than the host's."""
    write = recorded(Activity({"rows": 9}, 0, None, accounted_ids=("m2", "m9", "m1", "m2")))
    assert write.own_ids == ("m0", "m2", "m1")


@given(st.lists(st.text(max_size=3), max_size=2 * OWN_IDS_MAX))
def test_ids_are_bounded(ids: list[str]) -> None:
    """Rule 7.5: however many own texts were accounted for, a bounded number of the newest ids is kept."""
    own = tuple((id_, "text") for id_ in ids)
    write = decide(LINK, Activity({"rows": 9}, 0, None, tuple(ids)), own, NOW, record_unwatched=False)
    assert write is not None
    assert write.own_ids == tuple(dict.fromkeys(["m0", *ids]))[-OWN_IDS_MAX:]


@pytest.mark.parametrize(
    ("happening", "kind", "run_id", "payload"),
    [
        (Happening("compacted", "x", None), "compacted", None, None),
        (Happening("run_ended", "x", None, "ok"), "run_completed", "x", None),
        (Happening("run_ended", "x", None, "timeout"), "run_failed", "x", {"outcome": "timeout"}),
        (Happening("goal_changed", "x", None, "cleared"), "goal_changed", None, None),
    ],
)
def test_happenings(happening: Happening, kind: str, run_id: str | None, payload: dict[str, str] | None) -> None:
    """Rules 1.1 and 1.6: each kind becomes its event on the session, deduplicated by the happening's id."""
    (event,) = recorded(Activity({"rows": 9}, 0, None, happenings=(happening,))).events
    assert (event.kind, event.target, event.dedupe_key, event.run_id, event.payload) == (kind, LINK.address, "x", run_id, payload)
    assert (event.occurred_at_ms, event.actor_type) == (NOW, "system")


def test_a_spawned_child() -> None:
    """Rules 1.3 and 3.1: a child is recorded on its own session, by its parent, whose cursor it seeds."""
    (event,) = recorded(Activity({"rows": 9}, 0, None, happenings=(Happening("child_spawned", "t2", NOW - 9),))).events
    assert event.target == Address(thread_key("main", "fake", "local", "t2"), "main")
    assert (event.actor_id, event.seeds, event.session.parent) == (LINK.address.session_key, LINK.address, LINK.address.session_key)
    assert (event.dedupe_key, event.occurred_at_ms) == ("t2", NOW - 9)


@pytest.mark.parametrize(
    "other",
    [
        (replace(LINK, generation=8), {"rows": 9}),
        (replace(LINK, source="/b"), {"rows": 9}),
        (LINK, {"rows": 10}),
    ],
)
def test_a_position_is_generation_source_and_marker(other: tuple[LinkRecord, dict[str, int]]) -> None:
    """Rule 1.6: whichever of the three differs, it is another position; the order of a marker's members is none of them."""
    assert position_key(*other) != position_key(LINK, {"rows": 9})
    assert position_key(LINK, {"a": 1, "b": 2}) == position_key(replace(LINK, revision=9), {"b": 2, "a": 1})
