"""What a catalog is: a source of external sessions, and what is asked of it.

A catalog discovers sessions, says where to start following one, and checks a batch of them at a time. It decides nothing about
recording: it is given a marker and gives back what it found behind it together with the marker to store if that was recorded. It
keeps nothing that matters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...storage.records import Address

JsonObject = Mapping[str, object]


class ThreadNotFound(Exception):
    """The catalog has looked, and there is definitely no such thread."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """A session that a catalog knows of."""

    thread_id: str
    host_id: str
    source: str
    """Where it is kept: a path, or what else the catalog finds it by."""
    updated_at_ms: int
    title: str | None = None
    parent_thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Where to start following a thread."""

    source: str
    """Identifies what is followed: another source means a new generation of the link (rule 7.1)."""
    marker: JsonObject
    """JSON-ready; opaque to everybody but the catalog."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One link to check."""

    address: Address
    thread_id: str
    host_id: str
    source: str
    marker: JsonObject
    adopted_at_ms: int
    own_texts: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The host's latest texts of the session as (id, text), oldest first, at most ten (rule 7.5)."""
    accounted_ids: frozenset[str] = frozenset()
    """Own texts that rows were accounted for already."""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something else that the source tells reliably: a compaction, a child, a run's end, a changed goal."""

    kind: str
    """`compacted`, `child_spawned`, `run_ended` or `goal_changed`."""
    id: str
    """What it is deduplicated by: operation id, child's thread id, run id, or the row's own id."""
    occurred_at_ms: int | None
    detail: str = ""
    """A run's outcome (`ok`, `error`, `timeout`, `cancelled`), or a goal's change (`created`, `updated`, `cleared`)."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The thread is there, and nothing was appended that counts. `marker`, if given, saves reading the same rows again."""

    marker: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """The thread is definitely not there any more."""


@dataclass(frozen=True, slots=True)
class Failed:
    """This probe could not be checked; the others are not concerned."""

    reason: str


@dataclass(frozen=True, slots=True)
class Activity:
    """What the rows behind the marker hold."""

    marker: JsonObject
    human_turns: int
    occurred_at_ms: int | None
    """When the last human turn was: by its row, else at the latest when the source was last modified."""
    accounted_ids: tuple[str, ...] = ()
    """Own texts that these rows were accounted for."""
    happenings: tuple[Happening, ...] = ()
    restarted: str | None = None
    """Why following began anew at the end of the source, as a new generation (rule 7.7)."""
    more: bool = False
    """Whether there was more than one check may read."""


Outcome = Nothing | Missing | Failed | Activity


class Catalog(Protocol):
    """A source of external sessions. Every method may be slow or fail: its caller bounds the time and confines the failure."""

    name: str

    async def list(self) -> Sequence[Discovered]:
        """Every thread that can be adopted, newest first."""
        ...

    async def link(self, thread_id: str, host_id: str) -> Start:
        """Where to start following a thread: at the end of its last complete row. Raises `ThreadNotFound`."""
        ...

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        """One outcome per probe, in their order. A failure of one is its `Failed`, never the batch's."""
        ...
