"""What must be true after each step of the demo, checked against what its processes reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...notices import notice_text
from ...summaries import Language
from ..exits import CommandFailed
from .process import CONCURRENT, MANAGER, OTHER_CHILD, SEQUENTIAL, STEPPED_INTO

CHANGES: Final = 1 + CONCURRENT + SEQUENTIAL

Step = Mapping[str, Any]


class DemoFailed(CommandFailed):
    """Something came out otherwise than it must."""

    def __init__(self, step: str, what: str, found: object, wanted: object) -> None:
        super().__init__(f"demo, step {step}: {what} is {found!r}, it must be {wanted!r}")
        self.step = step
        self.what = what
        self.found = found
        self.wanted = wanted

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {"step": self.step, "what": self.what, "found": self.found, "wanted": self.wanted}


class Checks:
    """Checks step after step; what later steps are measured by is taken from the earlier ones."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._step = ""
        self._pid = 0
        self._seen: dict[str, int] = {}
        self._sequences: list[int] = []
        self._text = ""
        self.passed = 0

    def check(self, step: Step) -> None:
        """Raises `DemoFailed` where anything about the step is wrong."""
        self._step = step["step"]
        by_step: dict[str, Callable[[Step], None]] = {
            "opened": self._opened,
            "spawned": self._spawned,
            "changed": self._changed,
            "noticed": self._noticed,
            "read": self._read,
            "given_back": self._given_back,
            "held": self._held,
            "killed": self._killed,
            "replayed": self._replayed,
            "reconciled": self._reconciled,
            "left": self._left,
        }
        by_step[self._step](step)

    def _expect(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            raise DemoFailed(self._step, what, found, wanted)
        self.passed += 1

    def _opened(self, step: Step) -> None:
        self._expect("the session", step["session"], MANAGER)
        self._pid = step["pid"]

    def _spawned(self, step: Step) -> None:
        events = self._recorded(step)
        self._expect("the kinds of the events", [event["kind"] for event in events], ["child_spawned"] * 2)
        self._expect("the actors of the events", [(event["actorType"], event["actorId"]) for event in events], [("agent", MANAGER)] * 2)
        self._expect("the sessions of the events", [event["sessionKey"] for event in events], [STEPPED_INTO, OTHER_CHILD])
        self._seen = {event["sessionKey"]: event["sequence"] for event in events}
        self._expect("the manager's cursors", _positions(step), {key: (seen, seen, seen) for key, seen in self._seen.items()})

    def _changed(self, step: Step) -> None:
        events = self._recorded(step)
        self._sequences = sorted(event["sequence"] for event in events)
        kinds = sorted(event["kind"] for event in events)
        self._expect("the number of changes", len(set(self._sequences)), CHANGES)
        self._expect("the kinds of the changes", kinds, ["goal_changed"] * SEQUENTIAL + ["human_direct_message"] * (1 + CONCURRENT))
        self._expect("the earliest sequence", min(self._sequences[0], self._seen[STEPPED_INTO]), self._seen[STEPPED_INTO])
        self._expect("the manager's cursors", _positions(step), self._cursors_while_pending())

    def _noticed(self, step: Step) -> None:
        self._text = notice_text(STEPPED_INTO, None, self._seen[STEPPED_INTO], self._language)
        self._expect("the wakes", step["wakes"], [MANAGER])
        self._the_one_notice(step)

    def _read(self, step: Step) -> None:
        self._expect("what the turn shows", step["promptLines"], [self._text])
        self._expect("what is left for later turns", step["remaining"], 0)
        self._exact_delta(step)

    def _given_back(self, step: Step) -> None:
        self._the_one_notice(step)
        self._expect("the manager's cursors", _positions(step), self._cursors_while_pending())

    def _held(self, step: Step) -> None:
        self._expect("what the turn shows", step["promptLines"], [self._text])
        self._expect("what is pending beside the turn", step["pendingElsewhere"], [])

    def _killed(self, step: Step) -> None:
        self._expect("how the process ended", step["signal"], "SIGKILL")
        self._expect("the events in the file", step["eventsInFile"], CHANGES + 2)
        self._expect("the manager's cursors in the file", _positions(step), self._cursors_while_pending())

    def _replayed(self, step: Step) -> None:
        self._expect("the processes", len({step["pid"], self._pid}), 2)
        self._expect("the wakes", step["wakes"], [MANAGER])
        self._the_one_notice(step)
        pinned = (self._seen[STEPPED_INTO], self._sequences[-1], self._sequences[-1])
        self._expect("the cursor after the replay", _positions(step)[STEPPED_INTO], pinned)

    def _reconciled(self, step: Step) -> None:
        self._expect("what the turn shows", step["promptLines"], [self._text])
        self._exact_delta(step)
        self._expect("what is pending afterwards", step["notices"], [])
        self._expect("the cursor afterwards", _positions(step)[STEPPED_INTO], (self._sequences[-1],) * 3)

    def _left(self, step: Step) -> None:
        found = [(notice["target"], notice["changesSince"]) for notice in step["notices"]]
        self._expect("the event is recorded", len(self._recorded(step)), 1)
        self._expect("the notice that is left", found, [(OTHER_CHILD, self._seen[OTHER_CHILD])])

    def _recorded(self, step: Step) -> list[Step]:
        events: list[Step] = [event for event in step["events"] if event is not None]
        self._expect("the number of events that could not be recorded", len(step["events"]) - len(events), 0)
        return events

    def _the_one_notice(self, step: Step) -> None:
        self._expect("the notices", [notice["text"] for notice in step["notices"]], [self._text])
        self._expect("its changesSince", step["notices"][0]["changesSince"], self._seen[STEPPED_INTO])

    def _exact_delta(self, step: Step) -> None:
        delta = step["delta"]
        self._expect("the delta", [event["sequence"] for event in delta["events"]], self._sequences)
        self._expect("whether the delta is whole", (delta["historyGap"], delta["truncated"]), (False, False))

    def _cursors_while_pending(self) -> dict[str, tuple[int, ...]]:
        other = self._seen[OTHER_CHILD]
        return {STEPPED_INTO: (self._seen[STEPPED_INTO], self._sequences[0], self._sequences[-1]), OTHER_CHILD: (other, other, other)}


def _positions(step: Step) -> dict[str, tuple[int, ...]]:
    return {watch["target"]: (watch["lastSeen"], watch["notified"], watch["material"]) for watch in step["watches"]}
