"""A session's actor: publishes what the host reports about the session to the log.

It holds nothing of its own. What it reports goes to the log actor together with the caller's reply, so the answer comes straight from
the commit; what is active is in `ActiveRuns`, and everything else is in the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..storage.records import Address, SessionDraft
from ..storage.writes import DeleteSession, PutSession, ResetSession, Write
from .clock import Clock
from .drafts import Report, draft
from .keys import session_kind
from .messages import Compacted, Delete, GoalChanged, HumanTurn, OpenSession, Reset, RunEnded, RunFinished, RunStarted, Spawned
from .runs import ActiveRuns
from .runtime import AsyncioActor, AsyncioActorRef

SessionMail = Report | OpenSession | RunStarted | RunFinished | Reset | Delete


class SessionActor(AsyncioActor):
    """One session. `log` gives the log actor of the moment, for that may have been restarted."""

    def __init__(
        self, address: Address, log: Callable[[], AsyncioActorRef[Any]], clock: Clock, runs: ActiveRuns, *, record_unwatched: bool
    ) -> None:
        super().__init__()
        self._address = address
        self._log = log
        self._clock = clock
        self._runs = runs
        self._record_unwatched = record_unwatched

    def on_receive(self, message: SessionMail) -> None:
        match message:
            case HumanTurn() | GoalChanged() | Compacted():
                self._record(message)
            case RunEnded():
                self._runs.finished(self._address, message.run_id)
                self._record(message)
            case Spawned():
                parent = Address(message.parent, message.parent_agent_id)
                self._log().ask(PutSession(parent, SessionDraft(session_kind(parent.session_key)), self._clock.now_ms()))
                self._record(message)
            case OpenSession():
                self._publish(PutSession(self._address, message.draft, self._clock.now_ms(), hosts=True))
            case RunStarted():
                self._runs.started(self._address, message.run_id)
                self._publish(self._row())
            case RunFinished():
                self._runs.finished(self._address, message.run_id)
                self._publish(self._row())
            case Reset():
                self._publish(ResetSession(self._address, self._clock.now_ms()))
            case Delete():
                self._runs.forget(self._address)
                self._publish(DeleteSession(self._address, self._clock.now_ms()))

    def _record(self, report: Report) -> None:
        self._publish(draft(self._address, report, self._clock.now_ms(), record_unwatched=self._record_unwatched))

    def _row(self) -> PutSession:
        return PutSession(self._address, SessionDraft(session_kind(self._address.session_key)), self._clock.now_ms())

    def _publish(self, write: Write) -> None:
        self._log().forward(write, self.take_reply())
