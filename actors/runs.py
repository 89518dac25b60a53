"""Which sessions have an active run. In memory only: active runs end with the gateway."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..storage.records import Address


@dataclass(slots=True)
class ActiveRuns:
    """The active run ids by session; it outlives the session actors that keep it."""

    _runs: dict[Address, set[str]] = field(default_factory=dict)

    def started(self, session: Address, run_id: str) -> None:
        """Note that a run began; noting it twice changes nothing."""
        self._runs.setdefault(session, set()).add(run_id)

    def finished(self, session: Address, run_id: str) -> None:
        """Note that a run is over; one that was never noted changes nothing."""
        runs = self._runs.get(session)
        if runs is None:
            return
        runs.discard(run_id)
        if not runs:
            del self._runs[session]

    def forget(self, session: Address) -> None:
        """Drop all runs of a session that was deleted."""
        self._runs.pop(session, None)

    def status(self, session: Address) -> str:
        """`running` while the session has an active run, else `idle`."""
        return "running" if session in self._runs else "idle"
