"""Actor mail: every message that one actor of kizuki sends to another, as a frozen value.

Three kinds of mail are not here, since they are values already: a session actor forwards a write of `storage.writes` to the
log actor, which takes all of them as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from ..storage.records import SessionDraft, Shown
from .identity import Actor

# -- to a session actor: what a host reports about its session -----------------------------------------------------------


class OpenSession(NamedTuple):
    """Create the session's row, or change what the draft gives. Answer: the `SessionRecord`."""

    draft: SessionDraft


class HumanTurn(NamedTuple):
    """A person sent a turn straight to the session. Answer, here and for the next four: the `StateEvent`, or None."""

    channel: str
    actor_id: str | None
    run_id: str | None
    occurred_at_ms: object
    """As the caller gave it: anything that is not a finite number means now (rule 1.7)."""
    dedupe_key: str | None
    turns: int = 1
    """How many turns of a person the event stands for (rule 1.5)."""


class GoalChanged(NamedTuple):
    """The session's goal was `created`, `updated` or `cleared`."""

    change: str
    actor: Actor


class Spawned(NamedTuple):
    """The session was created as the child of another, by one run."""

    parent: str
    parent_agent_id: str
    run_id: str
    session_id: str | None


class RunEnded(NamedTuple):
    """A run of the session ended: `ok`, `error`, `timeout` or `cancelled`."""

    run_id: str
    outcome: str


class Compacted(NamedTuple):
    """The session's history was compacted by one operation."""

    operation_id: str


class RunStarted(NamedTuple):
    """A run of the session began. Answer, here and for the next: None."""

    run_id: str


class RunFinished(NamedTuple):
    """A run of the session is over, without a word on how it ended."""

    run_id: str


class Reset(NamedTuple):
    """Give the session a new session id. Answer: the `SessionRecord`, or None if there is no such session."""


class Delete(NamedTuple):
    """Remove the session. Answer: whether there was one."""


# -- to the log actor, beside the writes ---------------------------------------------------------------------------------


class Flush(NamedTuple):
    """The log actor's mail to itself: commit what is queued."""


# -- to a watcher actor --------------------------------------------------------------------------------------------------


class Take(NamedTuple):
    """Take notices for a turn. Answer: `PendingRead`, what it holds being taken."""

    turn: int
    """The turn's number in `Claims`; a turn that has ended by then takes nothing."""
    limit: int


class ReadPending(NamedTuple):
    """Read pending notices without taking them. Answer: `PendingRead`."""

    limit: int | None


class ReadWatches(NamedTuple):
    """Read all cursors of the watcher. Answer: a tuple of `Cursor`."""


class AcknowledgeShown(NamedTuple):
    """Acknowledge what was shown. Answer: `Acknowledged`."""

    shown: tuple[Shown, ...]


class TurnOver(NamedTuple):
    """A turn of the watcher has ended and holds nothing any more. Answer: None."""

    failed: bool


class GiveBack(NamedTuple):
    """Give back in the store what no open turn of the watcher holds any more. Answer: None."""


# -- to the replayer, the neighbours, the retention actor, the upstream monitor, the heartbeat and the supervisor -------------------------


class Join(NamedTuple):
    """Register the gateway, and take over from those that are gone. Answer: None."""


class BeginSweep(NamedTuple):
    """To the replay actor: remove a first slice of what has expired, which in most databases is all of it."""


class BeginReplay(NamedTuple):
    """Replay the first slice, and remove what is left of what has expired. Answer: None."""


class ReplayNext(NamedTuple):
    """The replayer's mail to itself: replay one more slice."""


class ReplayWatcher(NamedTuple):
    """Replay one watcher before all others, since it is about to be served. Answer: None."""

    watcher: str


class Prune(NamedTuple):
    """Prune now. Answer: the number of events removed."""


class CheckUpstream(NamedTuple):
    """Begin a check of all watched links, after the one under way if there is one. Answer: the `TickReport`."""


class ReadLinks(NamedTuple):
    """The upstream monitor's mail to itself: read the watched links. Answer: a tuple of `LinkRecord`."""


class Tick(NamedTuple):
    """A timer's mail to the actor that owns it: the time has come."""


class WakeEnded(NamedTuple):
    """The heartbeat's mail to itself: a wake callback has answered, or has failed to in time."""

    watcher: str
    busy: bool


class Begin(NamedTuple):
    """Start the permanent children. Answer: None; what fails in it is the asker's."""


class ChildEnded(NamedTuple):
    """The runtime's word to the supervisor that a permanent child has ended."""

    name: str
    error: BaseException | None


class StartChild(NamedTuple):
    """The supervisor's mail to itself, after the backoff: start the child again."""

    name: str
