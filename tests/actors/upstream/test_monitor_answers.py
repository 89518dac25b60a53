"""Answers of other people's code: whatever they are, what comes out is well formed, or the one error that is expected."""

from __future__ import annotations

import contextlib
import json
from collections import UserDict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.upstream.answers import GarbageError, outcomes_of, own_texts_of, start_of
from kizuki.actors.upstream.catalog import Activity, Failed, Happening, Missing, Nothing, Start

GOOD_MARKER = {"rows": 1, "deep": [1, "ü", None]}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)
happenings: Any = st.builds(
    Happening,
    st.sampled_from(["compacted", "run_ended", "child_spawned", "goal_changed"]) | anything,
    st.text(max_size=5) | anything,
    anything,
    st.sampled_from(["", "ok", "created"]) | anything,
)
outcomes: Any = (
    st.builds(Nothing, anything)
    | st.just(Missing())
    | st.builds(Failed, anything)
    | st.builds(Activity, anything, anything, anything, anything, st.lists(happenings, max_size=2) | anything, anything, anything)
    | st.builds(
        Activity, st.just(GOOD_MARKER), st.integers(0, 3), anything, st.lists(st.text()), st.lists(happenings, max_size=2), st.none()
    )
)


class Hostile(Mapping[str, object]):
    """A mapping that does not let anybody look at it."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError

    def __len__(self) -> int:
        raise RuntimeError


@given(st.lists(outcomes | anything, max_size=3) | anything, st.integers(0, 3))
def test_any_answer_to_a_check(answer: Any, count: int) -> None:
    """Rule 7.2: an answer is either garbage as a whole, or one well-formed outcome for each probe."""
    with contextlib.suppress(GarbageError):
        found = outcomes_of(answer, count)
        assert len(found) == count
        for outcome in found:
            _well_formed(outcome)


def _well_formed(outcome: object) -> None:
    match outcome:
        case Failed():
            assert isinstance(outcome.reason, str)
        case Activity():
            assert json.loads(json.dumps(outcome.marker, allow_nan=False)) == outcome.marker
            assert outcome.human_turns in range(2**53 + 1)
            assert all(isinstance(item, str) for item in outcome.accounted_ids)
            assert all(isinstance(item, Happening) and isinstance(item.id, str) for item in outcome.happenings)
        case Nothing():
            assert outcome.marker is None or isinstance(outcome.marker, dict)
        case _:
            assert isinstance(outcome, Missing)


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=5)) | anything, max_size=12) | anything)
def test_any_answer_with_own_texts(answer: Any) -> None:
    """Rule 7.5: what the host answers is garbage, or at most ten pairs of an id and a text, the newest ones."""
    with contextlib.suppress(GarbageError):
        found = own_texts_of(answer)
        assert found == tuple(tuple(pair) for pair in answer[-10:])


@pytest.mark.parametrize("marker", [GOOD_MARKER, UserDict(GOOD_MARKER), {"rows": 1, "deep": (1, "ü", None)}], ids=repr)
def test_equal_markers_compare_equal(marker: Any) -> None:
    """Rule 7.4: a marker is what the store will give back, so that one that has not moved is seen not to have."""
    assert start_of(Start("/a", marker)) == Start("/a", GOOD_MARKER)
    assert outcomes_of([Nothing(marker)], 1) == (Nothing(GOOD_MARKER),)


@pytest.mark.parametrize("marker", [Hostile(), {"a": {1, 2}}, {"a": float("inf")}, {"a": "x" * 65_536}, [], "a", {(1, 2): 3}], ids=range(7))
def test_what_is_no_marker(marker: Any) -> None:
    """A marker must be a JSON object of bounded size."""
    with pytest.raises(GarbageError, match="marker"):
        start_of(Start("/a", marker))
    assert isinstance(outcomes_of([Activity(marker, 0, None)], 1)[0], Failed)


@pytest.mark.parametrize("source", ["", "x" * 4_097, None, 7, b"/a"], ids=range(5))
def test_what_is_no_source(source: Any) -> None:
    """A source must be a text of bounded length."""
    with pytest.raises(GarbageError, match="source"):
        start_of(Start(source, {}))
