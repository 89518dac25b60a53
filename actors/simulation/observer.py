"""Who looks at a simulated world while it runs: an oracle, a report. Nothing that an observer does may change the run."""

from __future__ import annotations

from collections.abc import Sequence

from ...storage.writes import Commit, Write
from .faults import Fault
from .process import Process


class Observer:
    """Told of what happens, at the moment at which it does. Each method does nothing by default."""

    def started(self, process: Process) -> None:
        """The process's gateway is open."""

    def crashed(self, process: Process) -> None:
        """The process is dead."""

    def stopped(self, process: Process) -> None:
        """The process's gateway was left in good order."""

    def committed(self, process: Process, writes: Sequence[Write], commit: Commit) -> None:
        """A transaction has taken effect, and nobody has been answered; the process may die before anybody is."""

    def wrote(self, process: Process) -> None:
        """A transaction is over, whatever became of it and whatever its process will be told: what took effect can be seen from now on."""

    def woken(self, process: Process, session_key: str, reasons: tuple[str, ...]) -> None:
        """The host's wake callback is called, whether or not a fault answers in its place."""

    def dispatched(self, process: Process, sender: str, session_key: str) -> None:
        """The host's dispatch is called, as above."""

    def struck(self, fault: Fault) -> None:
        """A fault has struck."""
