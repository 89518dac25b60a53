"""What a gateway and a node tell each other, as JSON.

A node has the catalogs of its machine, and answers three questions about each of them: which threads there are (`threads`), where to
begin with one (`end`), and what was appended behind positions (`read`). A position is the marker of a link: the node keeps none, so it
can be killed and started at any time. All three are asked with `POST /v1/hosts/<host>/catalogs/<catalog>/<question>` and a JSON object,
and come in pages: so many threads, so many positions. Transcripts and the host's own texts stay where they are; of the texts there are
digests.

An answer is believed only if it is the right status with the right form: everything else means that nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from ....storage.records import Address
from ..catalog import Activity, Discovered, Failed, Happening, JsonObject, Missing, Nothing, Outcome, Probe, Start
from ..echo import TextDigest, digested

THREADS_MAX: Final = 500
"""Threads on one page."""
PROBES_MAX: Final = 50
"""Positions on one page."""
REQUEST_BYTES_MAX: Final = 8 * 1024 * 1024
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
NO_THREAD: Final = "no such thread"
"""The `reason` in the body of a 404 by which a node says that it has looked: a 404 without it may be anybody's."""


class WireError(ValueError):
    """A JSON value does not have the form that was agreed on."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a JSON object, each asked for by its type. Every method raises `WireError`."""

    of: Mapping[str, object]

    @classmethod
    def in_(cls, value: object) -> Self:
        if not isinstance(value, dict):
            raise WireError(f"a JSON object is needed, not {type(value).__name__}")
        return cls(value)

    def text(self, name: str) -> str:
        value = self.of.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.of.get(name) is None else self.text(name)

    def number(self, name: str) -> int:
        value = self.of.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(name, "a whole number")
        return value

    def optional_number(self, name: str) -> int | None:
        return None if self.of.get(name) is None else self.number(name)

    def json_object(self, name: str) -> JsonObject:
        value = self.of.get(name)
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value

    def items(self, name: str) -> Sequence[object]:
        value = self.of.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(Fields({name: item}).text(name) for item in self.items(name))

    def _wrong(self, name: str, kind: str) -> WireError:
        return WireError(f"{name} must be {kind}")


def thread_to_json(thread: Discovered) -> JsonObject:
    return {
        "thread": thread.thread_id,
        "source": thread.source,
        "updatedAtMs": thread.updated_at_ms,
        "title": thread.title,
        "parent": thread.parent_thread_id,
    }


def thread_from_json(value: object, host_id: str) -> Discovered:
    """A thread of the host that was asked. Raises `WireError`."""
    told = Fields.in_(value)
    updated_at_ms, title = told.number("updatedAtMs"), told.optional_text("title")
    return Discovered(told.text("thread"), host_id, told.text("source"), updated_at_ms, title, told.optional_text("parent"))


def start_to_json(start: Start) -> JsonObject:
    return {"source": start.source, "marker": dict(start.marker)}


def start_from_json(value: object) -> Start:
    """Raises `WireError`."""
    told = Fields.in_(value)
    return Start(told.text("source"), told.json_object("marker"))


def probe_to_json(probe: Probe) -> JsonObject:
    return {
        "sessionKey": probe.address.session_key,
        "agentId": probe.address.agent_id,
        "thread": probe.thread_id,
        "source": probe.source,
        "marker": dict(probe.marker),
        "adoptedAtMs": probe.adopted_at_ms,
        "ownDigests": [list(own) for own in digested(probe.own_texts)],
        "accountedIds": sorted(probe.accounted_ids),
    }


def probe_from_json(value: object, host_id: str) -> Probe:
    """A probe of a host's thread. Raises `WireError`."""
    asked = Fields.in_(value)
    return Probe(
        Address(asked.text("sessionKey"), asked.text("agentId")),
        asked.text("thread"),
        host_id,
        asked.text("source"),
        asked.json_object("marker"),
        asked.number("adoptedAtMs"),
        tuple(_own_digest(pair) for pair in asked.items("ownDigests")),
        frozenset(asked.texts("accountedIds")),
    )


def _own_digest(pair: object) -> tuple[str, str]:
    parts = Fields({"ownDigests": pair}).texts("ownDigests")
    if len(parts) != 2:
        raise WireError("ownDigests must be a list of pairs")
    return parts[0], TextDigest(parts[1])


def outcome_to_json(outcome: Outcome) -> JsonObject:
    match outcome:
        case Nothing(marker=None):
            return {"type": "nothing"}
        case Nothing(marker=marker):
            return {"type": "nothing", "marker": dict(marker or {})}
        case Missing():
            return {"type": "missing"}
        case Failed():
            return {"type": "failed", "reason": outcome.reason}
        case Activity():
            return _activity_to_json(outcome)


def outcome_from_json(value: object) -> Outcome:
    """Raises `WireError`."""
    told = Fields.in_(value)
    match told.text("type"):
        case "nothing":
            return Nothing(told.json_object("marker") if "marker" in told.of else None)
        case "missing":
            return Missing()
        case "failed":
            return Failed(told.text("reason"))
        case "activity":
            return _activity_from(told)
        case other:
            raise WireError(f"there is no outcome {other[:40]!r}")


def _activity_to_json(found: Activity) -> JsonObject:
    return {
        "type": "activity",
        "marker": dict(found.marker),
        "humanTurns": found.human_turns,
        "occurredAtMs": found.occurred_at_ms,
        "accountedIds": list(found.accounted_ids),
        "happenings": [[each.kind, each.id, each.occurred_at_ms, each.detail] for each in found.happenings],
        "restarted": found.restarted,
        "more": found.more,
    }


def _activity_from(told: Fields) -> Activity:
    return Activity(
        told.json_object("marker"),
        told.number("humanTurns"),
        told.optional_number("occurredAtMs"),
        told.texts("accountedIds"),
        tuple(_happening(item) for item in told.items("happenings")),
        told.optional_text("restarted"),
        told.of.get("more") is True,
    )


def _happening(item: object) -> Happening:
    if not isinstance(item, list) or len(item) != 4:
        raise WireError("a happening must be a list of four")
    told = Fields(dict(zip(("kind", "id", "occurredAtMs", "detail"), item, strict=True)))
    return Happening(told.text("kind"), told.text("id"), told.optional_number("occurredAtMs"), told.text("detail"))
