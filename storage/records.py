"""Frozen values that cross the store's seam.

Times are integers in milliseconds since the epoch, sequences are positive integers, keys and agent ids are canonical.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, NamedTuple, TypeAlias


class Address(NamedTuple):
    """What names a session in the log: heads, events and cursors are kept per (key, agent)."""

    session_key: str
    agent_id: str


@dataclass(frozen=True, slots=True)
class SessionDraft:
    """What a session's row gets when it is created; what is given (not None) also changes a row that exists."""

    kind: str
    """Derived from the key: `main`, `subagent`, ...; never changes."""
    session_id: str | None = None
    """None: keep the present id, or make a new one."""
    parent: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session's row."""

    address: Address
    session_id: str
    kind: str
    parent: str | None
    label: str | None
    created_at_ms: int
    updated_at_ms: int
    """The later of the row's last change and the session's last recording."""
    version: int
    """The state version; 0 before the first event."""


@dataclass(frozen=True, slots=True)
class StateEvent:
    """One typed row of the signal log: metadata, never content."""

    sequence: int
    session_key: str
    agent_id: str
    session_id: str
    kind: str
    actor_type: str
    actor_id: str | None
    run_id: str | None
    occurred_at_ms: int
    summary: str
    payload: Mapping[str, object] | None = field(hash=False)


_Thawed = make_dataclass("_Thawed", [attribute.name for attribute in fields(StateEvent)], slots=True)


def state_event(*values: Any) -> StateEvent:
    """A `StateEvent` of its fields in their order, made in a quarter of the time: one is made for each event that is recorded or read, and
    a frozen dataclass sets each of its attributes by way of `object.__setattr__`."""
    event: Any = _Thawed(*values)
    event.__class__ = StateEvent
    frozen: StateEvent = event
    return frozen


EventRow: TypeAlias = tuple[int, str, str, str, str | None, str | None, int, str, str | None]
"""An event as its row has it, where the session is known: sequence, session id, kind, actor's type and id, run id, time of occurrence in
milliseconds, summary, payload as JSON. As the database gives it, for a delta has hundreds of them."""


def to_event(address: Address, row: EventRow) -> StateEvent:
    """The event in a row."""
    sequence, session_id, kind, actor_type, actor_id, run_id, occurred_at, summary, payload = row
    key, agent = address
    content = None if payload is None else json.loads(payload)
    return state_event(sequence, key, agent, session_id, kind, actor_type, actor_id, run_id, occurred_at, summary, content)


class Positions(NamedTuple):
    """A cursor's three sequences: last seen <= notified <= material; a pair is clean when all are equal."""

    last_seen: int
    notified: int
    material: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """One watcher's cursor on one target."""

    watcher: str
    target: Address
    positions: Positions


class Shown(NamedTuple):
    """A notice as it was shown: the target, and the two positions that identify it (rule 4.5)."""

    target: Address
    last_seen: int
    notified: int


class Opened(NamedTuple):
    """A pair whose notice has just been opened, or found pending by a replay."""

    watcher: str
    target: Address


@dataclass(frozen=True, slots=True)
class StatusRead:
    """One consistent read of a session: its row, its head and, where asked for, what came after a version."""

    session: SessionRecord
    pruned_max_sequence: int
    earliest_sequence: int | None
    """The smallest sequence kept; None where no event is kept."""
    rows: tuple[EventRow, ...]
    """Ascending; empty where no version was asked for."""
    more: bool
    """Whether further events follow the last one given."""

    @property
    def events(self) -> tuple[StateEvent, ...]:
        """The events in the rows, made anew each time."""
        return tuple(to_event(self.session.address, row) for row in self.rows)


@dataclass(frozen=True, slots=True)
class PendingRead:
    """What a watcher has pending, in the order of notified position, then target."""

    session_exists: bool
    cursors: tuple[Cursor, ...]
    total: int
    """All that is pending, also beyond the limit that was asked for."""
    elsewhere: bool = False
    """Whether another gateway hosts the watcher, and so gets its wakes (rule 8.2)."""


class Hint(NamedTuple):
    """Word from another gateway: it has opened a notice for a watcher that is hosted here."""

    watcher: str
    target: Address
    age_ms: int
    """How long ago that was; at least 0."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which gateways the database knows of beside this one, and whether they have left word."""

    registered: bool
    """Whether this gateway is still registered: it is not if it never was, or if it was taken for dead."""
    living: tuple[int, ...]
    dead: tuple[int, ...]
    """Ascending, like the living; each is to be taken over."""
    hinted: bool
    """Whether hints are waiting for this gateway."""


@dataclass(frozen=True, slots=True)
class SessionsPage:
    """A page of session rows, ordered by (key, agent id)."""

    sessions: tuple[SessionRecord, ...]
    has_more: bool
    total: int | None


class LastActor(NamedTuple):
    """Who changed a session last."""

    actor_type: str | None
    """None: a person or the system, the event itself is no longer kept."""
    actor_id: str | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Overview:
    """All that there is, as far as it fits within bounds; one consistent read."""

    sessions: tuple[tuple[SessionRecord, LastActor | None], ...]
    """Ordered by (key, agent id); no actor before the first event."""
    cursors: tuple[Cursor, ...]
    """Ordered by watcher, then target."""
    events: tuple[StateEvent, ...]
    """Ascending."""
    totals: StoreStatistics
    """What there is beyond the bounds, too."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """One session among those that watch it and those it watches; one consistent read."""

    session: SessionRecord
    last_actor: LastActor | None
    watchers: tuple[Cursor, ...]
    """The cursors on it, ordered by watcher."""
    more_watchers: bool
    watching: tuple[Cursor, ...]
    """The cursors that it holds, ordered by target."""
    more_watching: bool


class LogPosition(NamedTuple):
    """How far somebody has followed the log of all sessions (see `following`)."""

    settled: int
    """Up to here everything was given, and nothing will appear any more."""
    given: frozenset[int] = frozenset()
    """What was given above it."""
    up_to: int = 0
    """What is settled next, once those have ended that it waits for."""
    waiting: frozenset[str] = frozenset()
    """Transactions, by the database's names for them."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What is new in the log and in the queues, in one consistent read."""

    events: tuple[StateEvent, ...]
    """Ascending."""
    more: bool
    """Whether others follow that are visible already."""
    position: LogPosition
    """From which to go on."""
    opened: tuple[Cursor, ...] | None
    """All cursors with an opened notice, ordered by watcher, then target; None: more of them than were asked for."""
    missed: bool = False
    """Whether events may be missed from here on, since too many came while one transaction hung."""


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """What ties a session to the thread of a catalog that it was adopted from, and how far that was scanned."""

    address: Address
    session_id: str
    catalog: str
    host_id: str
    thread_id: str
    source: str
    marker: Mapping[str, object] = field(hash=False)
    generation: int
    """Names the link: another source, or adopting again what was removed, gives a higher one; none is ever used twice."""
    revision: int
    """Grows with every change of the link within its generation."""
    missing_count: int
    """How many times in a row the source was not found."""
    own_ids: tuple[str, ...]
    """The host's own texts that rows were accounted for, oldest first."""
    adopted_at_ms: int
    """When this source was adopted first."""
    ambiguous: bool
    """Whether another agent's session under the same key has a link, too."""


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Counts over the whole database, for `kizuki doctor` and `GatewayStatistics`."""

    sessions: int
    events: int
    cursors: int
    pending: int
    last_sequence: int
    schema_version: int
    bytes: int
