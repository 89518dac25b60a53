"""What really happened: an observer that sees each event at its commit, before anybody is answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from ....storage.records import StateEvent
from ....storage.writes import Append, Commit, LinkPut, PutLink, RecordUpstream, UpstreamRecorded, Write
from ..loop import US_PER_S
from ..observer import Observer
from ..process import Around, Process
from ..world import START_MS
from .record import EventSeen, Record


class Truth(Observer):
    """The log as it is, whatever anybody knows of it."""

    def __init__(self, record: Record, names: Mapping[str, str]) -> None:
        self._record = record
        self._names = names
        """Of agents, by the keys of their sessions."""
        self._by_target: defaultdict[str, list[EventSeen]] = defaultdict(list)
        self._known: set[int] = set()
        self.told: list[Callable[[EventSeen], None]] = []
        """Who is told of each event."""

    def committed(self, process: Process, writes: Sequence[Write], commit: Commit) -> None:
        for write, result in zip(writes, commit.results, strict=True):
            for append, event in _events(write, result):
                if event.sequence not in self._known:
                    self._known.add(event.sequence)
                    self._note(process.world, append, event)

    def unknown(self, agent: str, target: str, version: int) -> list[EventSeen]:
        """The material events of others on the target after this version."""
        found = []
        for event in reversed(self._by_target[target]):
            if event.sequence <= version:
                break
            if event.notifies and event.actor != agent:
                found.append(event)
        return found

    def has_changed(self, agent: str, target: str, version: int) -> bool:
        """Whether others changed the target, at this version or before."""
        return any(event.notifies and event.actor != agent and event.sequence <= version for event in self._by_target[target])

    def _note(self, world: Around, append: Append, event: StateEvent) -> None:
        target = self._names.get(event.session_key, event.session_key)
        at_s = now_s(world)
        happened_s = min(at_s, max(0.0, (event.occurred_at_ms - START_MS) / 1_000))
        actor = event.actor_id or event.actor_type
        seen = EventSeen(
            at_s, happened_s, event.sequence, target, event.kind, event.summary, self._names.get(actor, actor), append.notifies
        )
        self._by_target[target].append(seen)
        self._record.events.append(seen)
        for tell in self.told:
            tell(seen)


def now_s(world: Around) -> float:
    """Seconds since the run began."""
    return world.scheduler.now_us / US_PER_S


def _events(write: Write, result: object) -> Iterator[tuple[Append, StateEvent]]:
    """What a write recorded, repeats included."""
    if isinstance(write, Append) and isinstance(result, StateEvent):
        yield write, result
    elif isinstance(write, PutLink) and isinstance(result, LinkPut) and result.event is not None:
        yield write.event, result.event
    elif isinstance(write, RecordUpstream) and isinstance(result, UpstreamRecorded):
        yield from ((append, event) for append, event in zip(write.events, result.events, strict=False) if event is not None)
