"""What a catalog or the host answered, checked: they are other people's code, and nothing of it is believed unseen. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from ..drafts import GOAL_CHANGES, OUTCOMES
from ..errors import InvalidArgument
from ..identifiers import one_line, one_of
from .catalog import Activity, Failed, Happening, JsonObject, Missing, Nothing, Outcome, Start

SOURCE_MAX: Final = 4_096
"""Characters in a source."""
MARKER_MAX: Final = 65_536
"""Characters in a marker's JSON."""
TURNS_MAX: Final = 2**53
HAPPENINGS_MAX: Final = 10_000
OWN_TEXTS_MAX: Final = 10
"""How many of the host's latest texts count (rule 7.5)."""

OwnTexts = tuple[tuple[str, str], ...]

_NO_DETAIL: Final = ("",)
_DETAILS: Final[Mapping[str, Collection[str]]] = {
    "compacted": _NO_DETAIL,
    "child_spawned": _NO_DETAIL,
    "run_ended": OUTCOMES,
    "goal_changed": GOAL_CHANGES,
}
"""The kinds of happenings, and what their detail may be."""


class GarbageError(Exception):
    """An answer is not what was promised."""


def start_of(answer: object) -> Start:
    """What `Catalog.link` answered. Raises `GarbageError`."""
    if not isinstance(answer, Start):
        raise GarbageError(f"it answered {type(answer).__name__} instead of a Start")
    return Start(_source(answer.source), _marker(answer.marker))


def outcomes_of(answer: object, count: int) -> tuple[Outcome, ...]:
    """What `Catalog.check` answered to `count` probes; an outcome that makes no sense is that probe's `Failed`. Raises `GarbageError`."""
    outcomes = _items(answer, "its answer")
    if len(outcomes) != count:
        raise GarbageError(f"it answered {len(outcomes)} outcomes to {count} probes")
    return tuple(_checked(_outcome(item)) for item in outcomes)


def own_texts_of(answer: object) -> OwnTexts:
    """The newest of what `recent_texts` answered. Raises `GarbageError`."""
    return tuple(_own_text(pair) for pair in _items(answer, "its answer")[-OWN_TEXTS_MAX:])


def _own_text(pair: object) -> tuple[str, str]:
    parts = _items(pair, "an (id, text) pair")
    if len(parts) != 2 or not isinstance(parts[1], str):
        raise GarbageError("it answered something else than (id, text) pairs of two texts")
    try:
        return one_line(parts[0], "the id of a text"), parts[1]
    except InvalidArgument as error:
        raise GarbageError(str(error)) from error


def _items(value: object, what: str) -> Sequence[object]:
    if not isinstance(value, list | tuple):
        raise GarbageError(f"{what} must be a list or a tuple, not {type(value).__name__}")
    return value


def _outcome(item: object) -> Outcome:
    if not isinstance(item, Nothing | Missing | Failed | Activity):
        raise GarbageError(f"it answered {type(item).__name__} where an outcome must be")
    return item


def _checked(outcome: Outcome) -> Outcome:
    try:
        match outcome:
            case Nothing(marker=None) | Missing():
                return outcome
            case Nothing():
                return Nothing(_marker(outcome.marker))
            case Failed():
                return Failed(_text(outcome.reason, "a reason"))
            case Activity():
                return _activity(outcome)
    except (GarbageError, InvalidArgument) as error:
        return Failed(str(error))


def _activity(outcome: Activity) -> Activity:
    if not isinstance(outcome.human_turns, int) or isinstance(outcome.human_turns, bool) or not 0 <= outcome.human_turns <= TURNS_MAX:
        raise GarbageError(f"human_turns must be a whole number from 0 up, not {outcome.human_turns!r}")
    happenings = _items(outcome.happenings, "happenings")
    if len(happenings) > HAPPENINGS_MAX:
        raise GarbageError(f"there must be at most {HAPPENINGS_MAX} happenings, not {len(happenings)}")
    return Activity(
        _marker(outcome.marker),
        outcome.human_turns,
        outcome.occurred_at_ms,
        tuple(_text(item, "an accounted id") for item in _items(outcome.accounted_ids, "accounted_ids")),
        tuple(_happening(item) for item in happenings),
        None if outcome.restarted is None else _text(outcome.restarted, "restarted"),
        bool(outcome.more),
    )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise GarbageError(f"{what} must be a text, not {type(value).__name__}")
    return value


def _happening(item: object) -> Happening:
    if not isinstance(item, Happening):
        raise GarbageError(f"happenings must be Happening, not {type(item).__name__}")
    one_of(item.kind, "the kind of a happening", _DETAILS)
    one_line(item.id, "the id of a happening")
    one_of(item.detail, f"the detail of {item.kind}", _DETAILS[item.kind])
    return item


def _source(source: object) -> str:
    if not isinstance(source, str) or not 0 < len(source) <= SOURCE_MAX:
        raise GarbageError(f"a source must be a text of 1 to {SOURCE_MAX} characters")
    return source


def _marker(marker: object) -> JsonObject:
    """The marker as it will be read from the store again, so that equal ones compare equal."""
    if not isinstance(marker, Mapping):
        raise GarbageError(f"a marker must be a JSON object, not {type(marker).__name__}")
    try:
        text = json.dumps(dict(marker), allow_nan=False)
    except Exception as error:  # whatever a mapping of other people's raises when it is looked at
        raise GarbageError(f"a marker must be JSON-ready: {error}") from error
    if len(text) > MARKER_MAX:
        raise GarbageError(f"a marker must have at most {MARKER_MAX} characters as JSON")
    loaded: JsonObject = json.loads(text)
    return loaded
