"""One history, played once."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from ..disk import Disk
from ..faults import Fault
from ..loop import Deadlock, OutOfSteps
from ..oracle.oracle import Oracle
from ..oracle.violations import Violation
from ..world import World
from .histories import History
from .player import Player

STEPS_PER_OPERATION: Final = 20_000
"""Far more than any operation takes; a history that needs more turns in a circle."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it."""

    problem: str | None
    """What was broken, in a sentence; None: nothing."""
    rule: str | None
    counts: Counter[str] = field(default_factory=Counter)
    """What happened, by kind."""
    struck: Counter[str] = field(default_factory=Counter)
    """The faults that struck, by kind."""
    trace: str = ""


def play(history: History, disk: Disk, *, traced: bool = False) -> Outcome:
    """Play the history on an empty database."""
    oracle = Oracle(retention_rows=history.retention_rows, openings_max=history.openings_max)
    world = World(history.seed, history.faults, disk=disk, traced=traced, observers=[oracle])
    rule, problem = None, None
    try:
        with world:
            oracle.attach(world)
            world.run(Player(history, oracle).story, steps_max=STEPS_PER_OPERATION * (len(history.operations) + 20))
            _check_loops(world)
    except Violation as violation:
        rule, problem = violation.rule, str(violation)
    except (Deadlock, OutOfSteps) as error:
        rule, problem = "1.9", f"something waits for ever: {error}"
    except Exception as error:  # noqa: BLE001 - whatever the code under test lets through is a finding as well
        rule, problem = type(error).__name__, "".join(traceback.format_exception(error))
    counts = oracle.counts + Counter({"steps": world.scheduler.steps, "wakes": oracle.waking.wakes})
    counts["crashes between commit and reply"] = sum(process.died_unanswered for process in world.processes)
    return Outcome(problem, rule, counts, Counter(kind_of(fault) for fault in world.injector.struck), world.trace.text())


def kind_of(fault: Fault) -> str:
    """The fault's name in figures."""
    return type(fault).__name__


def _check_loops(world: World) -> None:
    """No callback of a gateway's loop may fail unseen."""
    for name, problem in world.problems():
        if "exception" in problem and "callback" in problem.get("message", ""):
            raise Violation("no failure unseen", f"{name}: {problem['message']}: {problem['exception']!r}")
