"""Letting the database's thread have the interpreter lock while the loop is busy.

A thread that comes back from SQLite needs the interpreter lock again. A busy loop holds it: between two of its turns it lets go for
a microsecond only, and the thread takes fifty to wake up, so that the lock changes hands when the interpreter's switch interval forces it
to, which is 5 ms for each statement. One commit has many. A short real sleep of the loop in each turn is what lets the thread in.

So while something runs on a database's thread, the loop looks at how long its own turns take. An idle one is left alone but for another
look from time to time, a busy one pauses for some tens of microseconds a turn, however many threads are waiting.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from weakref import WeakKeyDictionary

BUSY_TURN_S = 25e-6
"""A turn of an idle loop takes less."""
PAUSE_S = 30e-6
"""What is asked for; the operating system rounds it up by about as much again."""
LOOK_AGAIN_S = 0.002


def pause_s(turn_s: float) -> float:
    """How long the loop is to pause after a turn in which others ran for so long; 0 if the loop is idle."""
    return PAUSE_S if turn_s >= BUSY_TURN_S else 0.0


class Handoff:
    """Pauses one loop while it is entered, which it may be several times at once."""

    def __init__(self) -> None:
        self._entered = 0
        self._turn_began_s = 0.0
        self._next: asyncio.Handle | None = None

    def __enter__(self) -> None:
        self._entered += 1
        if self._entered == 1:
            self._look_at_turn()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._entered -= 1
        if not self._entered and self._next is not None:
            self._next.cancel()
            self._next = None  # It holds the loop, for which this is kept.

    def _look_at_turn(self) -> None:
        self._turn_began_s = time.perf_counter()
        self._next = asyncio.get_running_loop().call_soon(self._turn_over)

    def _turn_over(self) -> None:
        pause = pause_s(time.perf_counter() - self._turn_began_s)
        if pause:
            time.sleep(pause)
            self._look_at_turn()
        else:
            self._next = asyncio.get_running_loop().call_later(LOOK_AGAIN_S, self._look_at_turn)


_handoffs: WeakKeyDictionary[asyncio.AbstractEventLoop, Handoff] = WeakKeyDictionary()


def handoff() -> Handoff:
    """The running loop's, to be entered around the wait for another thread."""
    loop = asyncio.get_running_loop()
    found = _handoffs.get(loop)
    if found is None:
        found = _handoffs[loop] = Handoff()
    return found
