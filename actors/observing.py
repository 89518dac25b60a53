"""The seam for traces and metrics: what a gateway tells whoever observes it. The core knows no library for either.

Nothing is told but what kind of thing happened, how long it took and how it ended: no session key, and nothing else that has no bound.
Without an observer the price is next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Final, Protocol

from .logs import logger

Ended = Callable[[BaseException | None], None]
"""Is told that what began has ended, and with which error."""
_UNOBSERVED: Final[AbstractContextManager[None]] = nullcontext()


class Observer(Protocol):
    """Called on the gateway's loop, so it must be quick. What it raises is logged, and harms nobody."""

    def operation(self, name: str, /) -> Ended:
        """A method of the gateway begins, named as it is: `spawn`, `turn`, ...; or `wake`, the host's callback.

        Its end may come in another task than its beginning.
        """

    def commit(self, writes: int, /) -> Ended:
        """A transaction with so many writes begins."""

    def woken(self, latency_s: float, /) -> None:
        """The host's wake callback is about to be called, so many seconds after that was asked for: by an opening, or by a turn's end.

        Not told of repetitions, which are put off on purpose.
        """


class Observers:
    """All who observe one gateway."""

    def __init__(self) -> None:
        self.present: tuple[Observer, ...] = ()
        """For the hottest path, which asks before it calls."""

    def add(self, observer: Observer) -> Callable[[], None]:
        """Let somebody observe; call what is returned to stop that."""
        self.present = (*self.present, observer)

        def remove() -> None:
            self.present = tuple(one for one in self.present if one is not observer)

        return remove

    def operation(self, name: str) -> AbstractContextManager[None]:
        """Around a method of the gateway."""
        return _Observed([_told(one.operation, name) for one in self.present]) if self.present else _UNOBSERVED

    def commit(self, writes: int) -> AbstractContextManager[None]:
        """Around a transaction."""
        return _Observed([_told(one.commit, writes) for one in self.present]) if self.present else _UNOBSERVED

    def woken(self, latency_s: float) -> None:
        """A watcher is woken for the first time for something."""
        for one in self.present:
            _told(one.woken, latency_s)


class _Observed(AbstractContextManager[None]):
    """What has begun, and whom to tell of its end."""

    __slots__ = ("_ends",)

    def __init__(self, ends: Sequence[Ended | None]) -> None:
        self._ends = ends

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None) -> None:
        for end in self._ends:
            if end is not None:
                _told(end, error)


def _told(whom: Callable[[Any], Any], what: object) -> Any:
    try:
        return whom(what)
    except Exception as error:  # noqa: BLE001 - somebody else's code, told in passing
        logger().warning("an observer failed", error=repr(error))
        return None
