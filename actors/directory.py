"""Which actor answers to a stable name now, and which of them has rested long enough to be put away.

Every operation is O(1). Time comes in through `put_away` alone: what lies between two of its calls is one period, and whatever is looked up
in a period counts as used at that period's end. So a look-up reads no clock, an actor is never put away early, and late by at most
the time between two calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from .runtime import AsyncioActorRef

Ref: TypeAlias = AsyncioActorRef[Any]


def _anyone(_ref: Ref) -> bool:
    return True


class _Period:
    """The time between two calls of `put_away`; all that was used in it shares it."""

    __slots__ = ("ended_s",)
    ended_s: float


class ActorDirectory:
    """Stable names, any hashable, and the living actors that have them. In order of last use, the longest unused first.

    An actor has one name in one directory: when it was last used is kept in its ref, since an object for each entry would weigh on every
    full garbage collection.
    """

    def __init__(self) -> None:
        self._refs: OrderedDict[Hashable, Ref] = OrderedDict()
        self._period = _Period()

    def __len__(self) -> int:
        return len(self._refs)

    def get(self, name: Hashable) -> Ref | None:
        """The living actor of this name, which counts as used; None if there is none."""
        ref = self._refs.get(name)
        if ref is None or not ref.is_alive():
            return None
        if ref.period is not self._period:
            self._use(name, ref)
        return ref

    def get_or_start(self, name: Hashable, factory: Callable[[], Ref]) -> Ref:
        """The living actor of this name, or else the one that `factory()` starts. If the factory raises, the name stays free."""
        return self.get(name) or self.put(name, factory())

    def put(self, name: Hashable, ref: Ref) -> Ref:
        """Let this actor have the name, instead of the one that may have had it."""
        ref.name = name
        self._refs[name] = ref
        self._use(name, ref)
        return ref

    def remove(self, name: Hashable, ref: Ref | None = None) -> bool:
        """Free the name; with a ref only if it is still that actor's, since a late report of an end must not take the successor's name."""
        found = self._refs.get(name)
        if found is None or (ref is not None and found is not ref):
            return False
        del self._refs[name]
        return True

    def put_away(self, older_than_s: float, now: float, may_put_away: Callable[[Ref], bool] = _anyone) -> list[Ref]:
        """Stop and forget the actors that were not used for longer than this; returns their refs, the longest unused first.

        An actor that is not idle stays, and so does one that `may_put_away(ref)` refuses; both count as used now, so that none is looked
        at twice in a period and what is not old is never looked at. `now` is monotonic, in seconds.
        """
        self._period.ended_s = now
        self._period = _Period()
        evicted: list[Ref] = []
        while (oldest := self._unused_since(now - older_than_s)) is not None:
            name, ref = oldest
            if ref.is_idle() and may_put_away(ref):
                del self._refs[name]
                ref.stop()
                evicted.append(ref)
            else:
                self._use(name, ref)
        return evicted

    def _unused_since(self, limit_s: float) -> tuple[Hashable, Ref] | None:
        name = next(iter(self._refs), None)
        if name is None:
            return None
        ref = self._refs[name]
        period: _Period = ref.period
        old = period is not self._period and period.ended_s <= limit_s
        return (name, ref) if old else None

    def _use(self, name: Hashable, ref: Ref) -> None:
        ref.period = self._period
        self._refs.move_to_end(name)
