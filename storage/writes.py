"""What the log actor may ask the store to write: one frozen value per kind of write.

Each class says in its docstring what it does and what its result in `Commit.results` is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .records import Address, LinkRecord, Opened, SessionDraft, SessionRecord, Shown, StateEvent


class Append(NamedTuple):
    """Record one event, creating the session's row if need be. Result: the `StateEvent`, the first one if the dedupe key
    repeats (then nothing else happens), or None if `only_if_watched` and the session has neither parent nor cursor on it
    (then nothing but its row is written).

    A notifying event opens the notices that it must (rule 4.3), as far as the transaction's budget reaches; what is left
    is kept durably as owed.

    A tuple, since one is made for each event and a frozen dataclass of this size takes five times as long to make.
    """

    target: Address
    session: SessionDraft
    kind: str
    notifies: bool
    actor_type: str
    actor_id: str | None
    run_id: str | None
    occurred_at_ms: int
    recorded_at_ms: int
    """Raised by the store to the session's last recording, so that it never goes backwards within a session."""
    summary: str
    payload: Mapping[str, object] | None = None
    dedupe_key: str | None = None
    only_if_watched: bool = False
    seeds: Address | None = None
    """The watcher whose cursor on the target is seeded at this event (rule 3.1)."""


@dataclass(frozen=True, slots=True)
class PutSession:
    """Create a session's row, or change what the draft gives. Result: the `SessionRecord`.

    With `hosts` this gateway becomes the session's host (rule 8.2). If another one was, or nobody while others are
    registered, what the session has pending as a watcher, and no living gateway has claimed, is told in `Commit.opened`: the first
    `PAIRS_TOLD_MAX` of it.
    """

    address: Address
    session: SessionDraft
    now_ms: int
    hosts: bool = False


@dataclass(frozen=True, slots=True)
class ResetSession:
    """Give the session a new session id; drop the cursors that it holds as a watcher, keep its events and the cursors on it.
    Result: the `SessionRecord`, None if there is no such session."""

    address: Address
    now_ms: int


@dataclass(frozen=True, slots=True)
class DeleteSession:
    """Remove row, events and every cursor from and on the session; its head stays, the pruned mark raised to its last
    sequence (rule 1.11). Result: whether there was a row."""

    address: Address
    now_ms: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Seed a cursor at the target's state version, or renew the one that is there. Both rows are created if need be.
    Result: True."""

    watcher: Address
    watcher_session: SessionDraft
    target: Address
    target_session: SessionDraft
    now_ms: int


@dataclass(frozen=True, slots=True)
class Unwatch:
    """Remove a cursor. Result: whether there was one."""

    watcher: str
    target: Address


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Acknowledge notices, each only while its cursor still has the shown positions (rule 4.5), whoever has claimed them; the claims go
    with it. Result: `Acknowledged`. Reopened pairs are in `Commit.opened` too."""

    watcher: str
    shown: tuple[Shown, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """Result of `Acknowledge`."""

    applied: tuple[Shown, ...]
    reopened: tuple[Address, ...]


@dataclass(frozen=True, slots=True)
class OpenOwed:
    """Open at most `limit` owed notices; with `watcher`, those of that watcher alone, all of them.
    Result: the number opened. Whether any is left is told by `Commit.owed`."""

    now_ms: int
    limit: int
    watcher: str | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """The start path (rule 4.11): re-pin pending pairs at their material position, and tell each of them in `Commit.opened`.

    Without `watcher`, a slice of at most `limit` pairs after `after`, passing over the watchers in `done`; with it, all pairs of
    that watcher. The first slice (`after` and `watcher` both None) also moves the pins of all that is owed to the material
    positions, so that `OpenOwed` opens those as rule 4.11 says. Result: `Replayed`.

    Pairs of watchers that another gateway hosts, and pairs claimed by another living gateway, are that gateway's: they are passed over.
    So is what was last renewed before `renewed_from_ms`: a slice may come before the sweep that removes what has expired.
    """

    limit: int
    after: tuple[int, int] | None = None
    watcher: str | None = None
    done: frozenset[str] = frozenset()
    renewed_from_ms: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of `Replay`: where to go on, None at the end."""

    after: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class ExpireCursors:
    """Remove cursors last renewed before `before_ms`, at most `limit` of those after `after`, in bounded time. Result: `Swept`."""

    before_ms: int
    limit: int
    after: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class PruneEvents:
    """Remove events recorded before `before_ms`, and all but the newest `keep_rows`, looking at no more than `limit` of them after
    sequence `after`; heads' pruned marks are raised first, in the same transaction. Result: `Swept`."""

    before_ms: int
    keep_rows: int
    limit: int
    after: int = 0


@dataclass(frozen=True, slots=True)
class ExpireHeads:
    """Remove at most `limit` heads of sessions deleted before `before_ms`. Result: `Swept`."""

    before_ms: int
    limit: int


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a slice of housekeeping: how many rows went, and where the next slice goes on (None: finished)."""

    removed: int
    after: tuple[int, int] | int | None


@dataclass(frozen=True, slots=True)
class LinkSource:
    """What a session is adopted from."""

    catalog: str
    host_id: str
    thread_id: str
    source: str


@dataclass(frozen=True, slots=True)
class PutLink:
    """Link the session to a source, creating its row if need be. Result: `LinkPut`.

    A link to the same source keeps its generation, marker, accounted texts and time of adoption; the missing count begins anew. Else
    the link is a new one with this marker, and `event` is recorded, in the same transaction. Either way what was being scanned
    for the link as it was before can no longer be recorded.
    """

    address: Address
    session: SessionDraft
    link: LinkSource
    marker: Mapping[str, object]
    event: Append
    now_ms: int


@dataclass(frozen=True, slots=True)
class LinkPut:
    """Result of `PutLink`: the session's row, and the event if the link is a new one."""

    session: SessionRecord
    event: StateEvent | None


@dataclass(frozen=True, slots=True)
class RecordUpstream:
    """Record what a check of a link found: its events, and everything that it changes of the link. Result: `UpstreamRecorded`.

    All of it, or nothing: it applies only while the link has the generation and revision of `link`, its session the same session id,
    and its key no second link under another agent.
    """

    link: LinkRecord
    """As it was read before the check."""
    marker: Mapping[str, object]
    missing_count: int
    own_ids: tuple[str, ...]
    events: tuple[Append, ...] = ()
    renews: bool = False
    """Whether the link becomes a new generation."""
    removes: bool = False
    """Whether the link goes."""


@dataclass(frozen=True, slots=True)
class UpstreamRecorded:
    """Result of `RecordUpstream`: whether it applied, and what its appends gave, as `Append` says."""

    applied: bool
    events: tuple[StateEvent | None, ...] = ()


@dataclass(frozen=True, slots=True)
class TakeNotices:
    """Take notices for a turn (rules 4.7, 8.3): make the openings that are owed to the watcher, claim the first `limit` of its opened
    notices that no other living gateway has claimed, and become its host. Result: the `PendingRead` of what was claimed; its `total`
    counts all that could have been.

    What this gateway itself has claimed is told by `excluding` alone: the notices in its other open turns. Where nothing is there to claim
    and the host stays, nothing is written. A store that is not registered claims nothing and hosts nothing: then this is a read.
    """

    watcher: str
    limit: int
    excluding: tuple[Shown, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Release:
    """Void this gateway's claims on the watcher's notices, all but those in `kept`. Result: how many went.

    If another gateway hosts the watcher by now, each pair released is a hint for it.
    """

    watcher: str
    kept: tuple[Shown, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Reclaim:
    """Claim anew what is in open turns, after this gateway was taken for dead and has registered again: each notice that is still open
    and that no other living gateway has claimed since. Result: the tuple of `Shown` that are claimed now."""

    watcher: str
    shown: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class TakeHints:
    """Take out the hints for this gateway. Result: the tuple of `Hint`, oldest first; they are not in `Commit.opened`.

    A hint whose watcher has another host by now is handed on to that one instead.
    """

    now_ms: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Take over from a dead gateway (rule 8.2): its claims and hints go, and a slice of at most `limit` of its sessions has this gateway
    as its host from now on; with the last slice its row goes. Result: `TakenOver`.

    What those sessions have pending as watchers, and no living gateway has claimed, is told in `Commit.opened`, the first
    `PAIRS_TOLD_MAX` of each; no pin is moved. Several gateways may take over from the same one at once: each session goes to one of them.
    The caller has seen in `Store.neighbours` that it is dead.
    """

    dead: int
    limit: int


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Result of `TakeOver`: whether nothing is left of the dead gateway."""

    finished: bool


PAIRS_TOLD_MAX = 100
"""How many of a watcher's pending pairs are told when it changes its host; the turn that follows the wake shows all of them."""

Write = (
    Append
    | PutSession
    | ResetSession
    | DeleteSession
    | Watch
    | Unwatch
    | Acknowledge
    | OpenOwed
    | Replay
    | ExpireCursors
    | PruneEvents
    | ExpireHeads
    | PutLink
    | RecordUpstream
    | TakeNotices
    | Release
    | Reclaim
    | TakeHints
    | TakeOver
)


def moment_ms(writes: Sequence[Write]) -> int:
    """The latest moment that any of the writes names; 0 if none does. It is when the notices were opened that they opened."""
    return max((_moment_ms(write) for write in writes), default=0)


def _moment_ms(write: Write) -> int:
    match write:
        case Append():
            return write.recorded_at_ms
        case RecordUpstream():
            return moment_ms(write.events)
        case Acknowledge() | OpenOwed() | PutSession() | PutLink() | TakeNotices():
            return write.now_ms
        case _:
            return 0


@dataclass(frozen=True, slots=True)
class Commit:
    """What one transaction did."""

    results: tuple[object, ...]
    """One per write, in their order."""
    opened: tuple[Opened, ...]
    """The pairs whose notices were opened, reopened, replayed or taken over, of the watchers that this gateway hosts or nobody does. For
    those of a watcher that another gateway hosts a hint was written instead. To a store that is not registered every host is another."""
    owed: bool
    """Whether owed openings are left in the store for a later transaction."""
    recorded: int = 0
    """How many of the appends recorded a new event."""
