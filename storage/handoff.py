"""Letting the database's thread have the interpreter lock while the loop is busy.

A thread that comes back from SQLite needs the interpreter lock again. A busy loop holds it: between two of its turns it lets go for
a microsecond only, and the thread takes fifty to wake up, so that the lock changes hands when the interpreter's switch interval forces it
to, which is 5 ms for each statement. One commit has many. A short real sleep of the loop in each turn is what lets the thread in.

So while something runs on a database's thread, the loop looks from time to time at how much of its time it has spent computing. Spent, in
processor time: a loop that waits, be it for events, for the lock or for a processor that others use, is idle, and a pause would
only keep it from hearing that the database is done. One that computes pauses for some tens of microseconds a turn, until it does so no
more. What is over before the first look costs nothing, and an idle loop is looked at less and less often.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from weakref import WeakKeyDictionary

BUSY_SHARE = 0.2
"""An idle loop computes for less of its time, and a busy one for more, also where it shares its processor with others."""
PAUSE_S = 30e-6
"""What is asked for; the operating system rounds it up by about as much again."""
PAUSE_EVERY_S = 50e-6
"""By a timer, which a loop without work waits for: then it is not taken for a busy one because of its pauses."""
LOOK_EVERY_S = 0.0005
LOOK_AT_LEAST_EVERY_S = 0.008
"""An idle loop: each look wakes it, and to ask for a thread's processor time is an occasion for the system to take the processor away."""


def pause_s(share: float) -> float:
    """How long a loop that has computed for this share of its time is to pause in each turn; 0 if it is idle."""
    return PAUSE_S if share >= BUSY_SHARE else 0.0


class Handoff:
    """Pauses one loop while it is entered, which it may be several times at once."""

    def __init__(self) -> None:
        self._entered = 0
        self._next: asyncio.Handle | None = None
        self._pause_s = 0.0
        self._every_s = LOOK_EVERY_S
        self._from_s = 0.0
        self._computed_s = 0.0
        """What the thread had computed by then, in all."""
        self._paused_s = 0.0
        """Of the time since then."""

    def __enter__(self) -> None:
        self._entered += 1
        if self._entered == 1:
            self._every_s = LOOK_EVERY_S
            self._next = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look_first)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._entered -= 1
        if not self._entered and self._next is not None:
            self._next.cancel()
            self._next = None  # It holds the loop, for which this is kept.

    def _measure(self) -> None:
        self._from_s, self._computed_s, self._paused_s = time.perf_counter(), time.thread_time(), 0.0

    def _look_first(self) -> None:
        self._measure()
        self._look_later()

    def _look(self) -> None:
        own_s = time.perf_counter() - self._from_s - self._paused_s
        self._pause_s = pause_s((time.thread_time() - self._computed_s) / own_s) if own_s > 0 else 0.0
        self._measure()
        if self._pause_s:
            self._every_s = LOOK_EVERY_S
            self._pause()
        else:
            self._every_s = min(2 * self._every_s, LOOK_AT_LEAST_EVERY_S)
            self._look_later()

    def _look_later(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._every_s, self._look)

    def _pause(self) -> None:
        """Pause in this turn and in those that follow, until it is time for another look."""
        began_s = time.perf_counter()
        time.sleep(self._pause_s)
        now_s = time.perf_counter()
        self._paused_s += now_s - began_s
        following = self._pause if now_s - self._from_s < LOOK_EVERY_S else self._look
        self._next = asyncio.get_running_loop().call_later(PAUSE_EVERY_S, following)


_handoffs: WeakKeyDictionary[asyncio.AbstractEventLoop, Handoff] = WeakKeyDictionary()


def handoff() -> Handoff:
    """The running loop's, to be entered around the wait for another thread."""
    loop = asyncio.get_running_loop()
    found = _handoffs.get(loop)
    if found is None:
        found = _handoffs[loop] = Handoff()
    return found
