"""Random transactions of the store, as its hosts make them: seeded, and told to the model of the rules."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kizuki.storage.records import Address, LinkRecord, SessionDraft, Shown
from kizuki.storage.writes import (
    Acknowledge,
    Append,
    Commit,
    DeleteSession,
    LinkPut,
    LinkSource,
    OpenOwed,
    PruneEvents,
    PutLink,
    PutSession,
    RecordUpstream,
    Replay,
    ResetSession,
    TakeNotices,
    Unwatch,
    UpstreamRecorded,
    Watch,
    Write,
)
from tests.storage.model import Model
from tests.storage.writing import DRAFT, NOW, event

SESSIONS = [Address(f"agent:main:{name}", "main") for name in ("a", "b", "c", "d")]
WRITES_MAX = 6
TURN_MAX = 2


@dataclass(frozen=True)
class Known:
    """What a host may have learnt from the store before a transaction."""

    shown: dict[str, list[Shown]]
    """The newest notices of each watcher, some of them acknowledged already."""
    links: Sequence[LinkRecord]
    prunes: bool
    """Whether events may be pruned. What is owed and pruned before it is opened is pinned later than the rules' model would."""


def batch(chance: random.Random, known: Known) -> list[Write]:
    """The writes of one transaction."""
    return [write for _ in range(chance.randint(1, WRITES_MAX)) for write in _writes(chance, known)]


def _writes(chance: random.Random, known: Known) -> Sequence[Write]:
    write = _write(chance, known)
    if isinstance(write, Append) and write.seeds is not None:  # as a host's spawn does it: the parent has a row
        return [PutSession(write.seeds, DRAFT, write.recorded_at_ms), write]
    return [write]


def _write(chance: random.Random, known: Known) -> Write:
    one, other = chance.sample(SESSIONS, 2)
    now_ms = NOW + chance.randrange(10)
    rare: list[Write] = [
        Unwatch(one.session_key, other),
        PutSession(one, SessionDraft("main", label=chance.choice("xyz")), now_ms, hosts=True),
        ResetSession(one, now_ms),
        DeleteSession(one, now_ms),
        Replay(1000),
        PruneEvents(now_ms, chance.randrange(20), 1000) if known.prunes else OpenOwed(now_ms, 1),
    ]
    return chance.choices(
        [
            _event(chance, one, other, now_ms),
            _spawn(one, other),
            Watch(one, DRAFT, other, DRAFT, now_ms),
            TakeNotices(one.session_key, TURN_MAX, (), now_ms),
            Acknowledge(one.session_key, tuple(known.shown.get(one.session_key, [])[:TURN_MAX]), now_ms),
            _link(chance, one, now_ms),
            _upstream(chance, known, now_ms) or _event(chance, other, one, now_ms),
            chance.choice(rare),
        ],
        [40, 8, 12, 6, 14, 5, 10, 8],
    )[0]


def _event(chance: random.Random, target: Address, other: Address, now_ms: int) -> Append:
    return event(
        target,
        by=chance.choice((None, None, target, other)),
        notifies=chance.random() < 0.75,
        now_ms=now_ms,
        summary=chance.choice(("goal updated", "ゴールが更新されました" * chance.randint(1, 15))),
        payload=chance.choice((None, {"turns": chance.randint(2, 9)})),
        dedupe_key=chance.choice((None, None, f"run-{chance.randrange(6)}")),
        only_if_watched=chance.random() < 0.3,
    )


def _spawn(parent: Address, child: Address) -> Append:
    session = SessionDraft("main", parent=parent.session_key)
    return event(child, by=parent, kind="child_spawned", notifies=False, seeds=parent, session=session)


def _link(chance: random.Random, address: Address, now_ms: int) -> PutLink:
    source = LinkSource("claude", "local", "thread", chance.choice(("one.jsonl", "two.jsonl")))
    adopted = event(address, kind="adopted", notifies=False, now_ms=now_ms)
    return PutLink(address, DRAFT, source, {"offset": chance.randrange(100)}, adopted, now_ms)


def _upstream(chance: random.Random, known: Known, now_ms: int) -> RecordUpstream | None:
    if not known.links:
        return None
    link = chance.choice(known.links)
    events = tuple(event(link.address, now_ms=now_ms, kind="human_direct_message") for _ in range(chance.randrange(3)))
    fate = chance.random()
    marker = {"offset": chance.randrange(10_000)}
    return RecordUpstream(link, marker, 0, ("id",), events, renews=fate < 0.1, removes=fate > 0.9)


def tell(model: Model, writes: Sequence[Write], commit: Commit) -> None:
    """Let the model do the same, and compare the results."""
    told = [pair for write, result in zip(writes, commit.results, strict=True) for pair in _modelled(write, result)]
    model.commit([write for write, _ in told], Commit(tuple(result for _, result in told), (), owed=False))


def _modelled(write: Write, result: object) -> Iterator[tuple[Write, object]]:
    """The same in the model's words: claims are not in it, and a link's marker is not, but for its events."""
    match write, result:
        case TakeNotices(), _:
            pass
        case PutLink(), LinkPut(session, None):
            yield PutSession(write.address, write.session, write.now_ms), session
        case PutLink(), LinkPut(_, recorded):
            yield write.event, recorded
        case RecordUpstream(), UpstreamRecorded(applied, events):
            yield from zip(write.events if applied else (), events, strict=True)
        case _:
            yield write, result
