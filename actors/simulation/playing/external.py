"""Sessions in agents' own tools, as a catalog that is simulated: rows are what people typed, and a thread can vanish."""

from __future__ import annotations

from collections.abc import Sequence

from ...upstream.catalog import Activity, Discovered, Missing, Nothing, Outcome, Probe, Start, ThreadNotFound


class ExternalSessions:
    """See `Catalog`. A row is the moment at which a person typed, in milliseconds since the epoch; the marker counts rows."""

    def __init__(self, name: str, threads: Sequence[str]) -> None:
        self.name = name
        self._rows: dict[str, list[int]] = {thread: [] for thread in threads}

    def typed(self, thread: str, at_ms: int) -> None:
        """A person types into the session; into one that has vanished nobody does."""
        if thread in self._rows:
            self._rows[thread].append(at_ms)

    def vanish(self, thread: str) -> None:
        """The session's source goes."""
        self._rows.pop(thread, None)

    async def list(self) -> Sequence[Discovered]:
        return [Discovered(thread, "local", self._source(thread), 0) for thread in self._rows]

    async def link(self, thread_id: str, host_id: str) -> Start:  # noqa: ARG002 - all are on one machine
        if thread_id not in self._rows:
            raise ThreadNotFound(thread_id)
        return Start(self._source(thread_id), {"rows": len(self._rows[thread_id])})

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        return [self._outcome(probe) for probe in probes]

    def _source(self, thread: str) -> str:
        return f"/{self.name}/{thread}.jsonl"

    def _outcome(self, probe: Probe) -> Outcome:
        rows = self._rows.get(probe.thread_id)
        if rows is None:
            return Missing()
        read = probe.marker["rows"]
        new = rows[read:] if isinstance(read, int) else []
        return Activity({"rows": len(rows)}, len(new), new[-1]) if new else Nothing()
