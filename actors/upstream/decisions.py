"""What a check's outcome means for its link: what is recorded, and where link and marker stand afterwards. Pure (rules 7.4 to 7.7)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from ...storage.records import Address, LinkRecord
from ...storage.writes import Append, RecordUpstream
from ..drafts import Report, draft, occurrence_ms, upstream_missing
from ..identity import Actor
from ..messages import Compacted, GoalChanged, HumanTurn, RunEnded, Spawned
from .answers import OwnTexts
from .catalog import Activity, Failed, Happening, JsonObject, Missing, Nothing, Outcome
from .thread_key import thread_key

MISSING_MAX: Final = 3
"""How many times in a row a source may not be found before it has gone."""
OWN_IDS_MAX: Final = 64
"""How many accounted texts are remembered: more than the host's latest that count, since those may come and go."""


def decide(link: LinkRecord, outcome: Outcome, own_texts: OwnTexts, now_ms: int, *, record_unwatched: bool) -> RecordUpstream | None:
    """What to record of the outcome for the link, as it was when it was checked; None where that would change nothing."""
    unchanged = RecordUpstream(link, link.marker, link.missing_count, link.own_ids)
    there = replace(unchanged, missing_count=0)
    match outcome:
        case Missing():
            write = _missing(unchanged, now_ms)
        case Failed():
            write = there  # Not found in a row means that nothing else came between (rule 7.6), and this did.
        case Nothing():
            write = there if outcome.marker is None else replace(there, marker=outcome.marker)
        case Activity():
            write = _active(there, outcome, own_texts, now_ms, record_unwatched=record_unwatched)
    return None if write == unchanged else write


def _missing(write: RecordUpstream, now_ms: int) -> RecordUpstream:
    link, count = write.link, write.missing_count + 1
    if count < MISSING_MAX:
        return replace(write, missing_count=count)
    event = upstream_missing(link.address, link.catalog, now_ms, position_key(link, link.marker))
    return replace(write, missing_count=count, events=(event,), removes=True)


def _active(write: RecordUpstream, found: Activity, own_texts: OwnTexts, now_ms: int, *, record_unwatched: bool) -> RecordUpstream:
    events = [_happened(write.link, happening, now_ms) for happening in found.happenings]
    if found.human_turns:
        events.append(_human_turns(write.link, found, now_ms, record_unwatched=record_unwatched))
    own_ids = {id_ for id_, _ in own_texts}
    return replace(
        write,
        marker=found.marker,
        own_ids=_newest((*write.own_ids, *(id_ for id_ in found.accounted_ids if id_ in own_ids))),
        events=tuple(events),
        renews=found.restarted is not None,
    )


def _newest(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[-OWN_IDS_MAX:]


def _human_turns(link: LinkRecord, found: Activity, now_ms: int, *, record_unwatched: bool) -> Append:
    """All turns of one scan are one event (rule 1.5)."""
    key = position_key(link, found.marker)
    report = HumanTurn(link.catalog, None, None, found.occurred_at_ms, key, found.human_turns)
    return draft(link.address, report, now_ms, record_unwatched=record_unwatched)


def _happened(link: LinkRecord, happening: Happening, now_ms: int) -> Append:
    target, report = _report(link, happening)
    occurred_at_ms = occurrence_ms(happening.occurred_at_ms, now_ms)
    return draft(target, report, now_ms)._replace(occurred_at_ms=occurred_at_ms, dedupe_key=happening.id)


def _report(link: LinkRecord, happening: Happening) -> tuple[Address, Report]:
    match happening.kind:
        case "compacted":
            return link.address, Compacted(happening.id)
        case "run_ended":
            return link.address, RunEnded(happening.id, happening.detail)
        case "goal_changed":
            # The source tells that the goal changed, not who had it changed.
            return link.address, GoalChanged(happening.detail, Actor.system())
        case _:
            return _child_of(link, happening.id), Spawned(*link.address, happening.id, None)


def _child_of(link: LinkRecord, thread_id: str) -> Address:
    """The session that adopting the child's own thread would give."""
    agent_id = link.address.agent_id
    return Address(thread_key(agent_id, link.catalog, link.host_id, thread_id), agent_id)


def position_key(link: LinkRecord, marker: JsonObject) -> str:
    """The dedupe key of what was found up to the marker: per link generation, source and position (rule 1.6)."""
    position = json.dumps([link.source, marker], sort_keys=True).encode()
    return f"upstream:{link.generation}:{blake2b(position, digest_size=16).hexdigest()}"
