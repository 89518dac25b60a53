"""What the oracle keeps: the states that there were, the log as it was seen, and the calls that are under way."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from .draft import News
from .durable import Address, Durable, Event, Pair, Snapshot
from .effects import Acknowledge, Effect
from .operations import Asked
from .turns import Turns
from .violations import Violation
from .waking import Waking

if TYPE_CHECKING:
    from ..process import Process
    from ..world import World

DAY_MS: Final = 86_400_000
TROUBLE_MS: Final = 20_000
"""How long after a failure of its database a gateway may still fail what queued behind it."""
JUMP_MS: Final = 60_000
"""How long after a jump of the wall clock housekeeping may still go by what it showed before."""


class Book:
    """Asked under which states, and what may still take effect."""

    def __init__(self, *, retention_rows: int, openings_max: int, retention_days: float = 30) -> None:
        self._retention_rows = retention_rows
        self._openings_max = openings_max
        self._retention_ms = int(retention_days * DAY_MS)
        self.violation: Exception | None = None
        self.turns = Turns()
        self.waking = Waking()
        self.counts: Counter[str] = Counter()
        self._live: list[Asked] = []
        """Asked, and not over: it may take effect at any moment."""
        self._ghosts: list[tuple[int, Asked]] = []
        """Cancelled, and perhaps not over; with when."""
        self._news: dict[Address, News] = {}
        self._log: dict[Address, list[Event]] = {}
        """Everything that was ever recorded."""
        self._died: dict[int, int] = {}
        """In which state events were gone."""
        self._born: dict[int, int] = {}
        self._recorded_at: dict[Address, int] = {}
        self._deleted: dict[Address, int] = {}
        self._session_ids: set[str] = set()
        self._trouble: dict[str, int] = {}
        """The last failure of each gateway's database."""
        self._replays: dict[str, int] = {}
        """Until when a gateway may pin anew."""
        self._starting: dict[str, int] = {}
        """The gateways that are starting, and in which state they began to."""
        self._leaving: set[str] = set()
        self._last_woken = ""
        self._tick = 0
        self._walls: list[tuple[int, int]] = []
        """What the wall clock showed before it jumped, and when."""

    def attach(self, world: World) -> None:
        """Look at this world."""
        self._world = world
        self._durable = Durable(world.disk.look)
        self._past: deque[Snapshot] = deque([self._durable.now])

    @property
    def now(self) -> Snapshot:
        """The durable state."""
        return self._durable.now

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self._world.clock.elapsed_ms

    def states(self, asked: Asked) -> Iterator[Snapshot]:
        """The states that there were while it was asked for, the last one first."""
        for state in reversed(self._past):
            yield state
            if state.number <= asked.since:
                return

    def served_states(self, asked: Asked, watcher: str) -> Iterator[Snapshot]:
        """Those of them under which the watcher can be served: what was owed to it when it was asked for is opened by then (rule 1.10)."""
        states = list(self.states(asked))
        owed = {pair for pair in states[-1].owed if pair[0] == watcher}
        return (state for state in states if not any(pair in state.owed and state.owed[pair] == states[-1].owed[pair] for pair in owed))

    @property
    def owed(self) -> Mapping[Pair, int]:
        """The openings that are still to be made."""
        return self.now.owed

    def kept_at(self, state: Snapshot, address: Address) -> list[Event]:
        """A session's events, as they were kept in that state."""
        number = state.number
        log = self._log.get(address, ())
        return [e for e in log if self._born[e.sequence] <= number < self._died.get(e.sequence, number + 1)]

    def asks(
        self,
        process: Process,
        what: str,
        *effects: Effect,
        mentions: Sequence[Address] = (),
        takes: str | None = None,
        hosts: str | None = None,
    ) -> Asked:
        """A host calls its gateway, now."""
        wall = self._world.clock.now_ms()
        asked = Asked(process, what, self._next_tick(), self.now.number, self.now_ms, wall, wall, effects, tuple(mentions), takes, hosts)
        for effect in effects:
            effect.when = asked
        self._find_rivals(asked)
        self._live.append(asked)
        if takes is not None:
            self.turns.takes(asked)
        if hosts is not None:
            self.waking.hosted(hosts, None, self.now_ms)
        return asked

    def _find_rivals(self, asked: Asked) -> None:
        """Calls at once about the same sessions: which of them did what, and in which order, need not be seen from outside."""
        for other in (*self._live, *(ghost for _, ghost in self._ghosts)):
            if other.process is asked.process:
                for effect, rival in itertools.product(asked.effects, other.effects):
                    same = isinstance(effect, Acknowledge) and isinstance(rival, Acknowledge)
                    if effect.subjects & rival.subjects and (same or not isinstance(effect, Acknowledge)):
                        asked.has_rival = other.has_rival = True

    def answered(self, asked: Asked) -> None:
        """The call came to its end, one way or another; it takes no effect any more."""
        self._live.remove(asked)
        self._over(asked)

    def cancelled(self, asked: Asked) -> None:
        """The call was cancelled: what it asked for may still take effect."""
        self._live.remove(asked)
        self._ghosts.append((self.now_ms, asked))
        asked.over = True

    def unclear(self, asked: Asked) -> None:
        """The call is over, and may have taken notices that nobody was given."""
        self._live.remove(asked)
        asked.over = True

    def failed(self, asked: Asked, error: BaseException) -> None:
        """The call has raised. Raises `Violation` where nothing excuses it."""
        self.unclear(asked)
        if not self.is_excused(asked):
            raise Violation("1.9", f"{asked.what} raised {error!r}, and nothing had failed")

    def is_excused(self, asked: Asked) -> bool:
        """Whether the gateway's database failed lately, or the gateway is being left."""
        troubled = self._trouble.get(asked.process.name, -TROUBLE_MS)
        return troubled > asked.at_ms - TROUBLE_MS or not asked.process.alive or asked.process.name in self._leaving

    def leaves(self, name: str) -> None:
        """The gateway of this name is being left: with it go its claims, at some moment before its process."""
        self._leaving.add(name)
        self.turns.left(name, self._next_tick(), self.now_ms)

    def has_trouble(self, name: str) -> bool:
        """Whether the gateway's database failed lately."""
        return self._trouble.get(name, -TROUBLE_MS) > self.now_ms - TROUBLE_MS

    def check(self) -> None:
        """Raise what was found where nobody could be told."""
        if self.violation is not None:
            raise self.violation

    def _event(self, address: Address, sequence: int) -> Event | None:
        return next((event for event in reversed(self._log.get(address, ())) if event.sequence == sequence), None)

    def _next_tick(self) -> int:
        self._tick += 1
        return self._tick

    def _over(self, asked: Asked) -> None:
        asked.over = True
        if asked.watcher is not None:
            self.turns.took(asked)

    def _latest_wall_ms(self) -> int:
        """The latest that housekeeping can take for now."""
        return max(self._walls_lately())

    def _walls_lately(self) -> list[int]:
        """What whoever writes can have taken for now."""
        return [self._world.clock.now_ms(), *(wall for at_ms, wall in self._walls if at_ms > self.now_ms - JUMP_MS)]
