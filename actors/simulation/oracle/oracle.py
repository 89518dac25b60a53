"""The oracle's front door: told of everything that a host asks and is answered, and of every write, it raises at the first broken rule.

    oracle = Oracle(retention_rows=50_000, openings_max=256)
    with World(seed, faults, observers=[oracle]) as world:
        oracle.attach(world)
        world.run(story)                # the story tells the oracle what it asks: `asks`, `answered`, ...
        oracle.check_log()

**Uncertainty.** What was asked may take effect until its process dies or it is answered. Which of it did is decided by what the durable
state says after each write; where nobody was answered, that is all that anybody knows. What was answered must fit one of the states that
there were between question and answer.

A violation that is found where nobody can catch it, inside the code under test, is kept in `violation`; the story asks `check`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..faults import CommitFails, Fault, HintsLost, ReadFails, WakeFails, WallJump
from ..observer import Observer
from .answers import Answers
from .durable import Address, Change, Event, Pair
from .effects import NOTIFYING, Drain, Shown
from .explaining import Circumstances, explain, still_owed
from .operations import Asked
from .violations import Violation

if TYPE_CHECKING:
    from ..process import Process

GHOST_MS: Final = 20_000
"""How long after it was cancelled a call may still take effect."""
REPLAY_MS: Final = 15_000
"""How long after a commit of unknown outcome a gateway may still look for what it opened."""


class Oracle(Answers, Observer):
    """See the module."""

    def starting(self, name: str) -> None:
        """A gateway is being started: it may pin anew until it has (rule 4.11)."""
        self._starting[name] = self.now.number
        self.waking.starts(name, [process for process in self._world.processes if process.alive])

    def start_failed(self, name: str) -> None:
        """It could not."""
        self._starting.pop(name, None)

    def started(self, process: Process) -> None:
        self._guard(self._started, process)

    def _started(self, process: Process) -> None:
        self._look()
        since = self._starting.pop(process.name)
        self._leaving.discard(process.name)
        in_turns = {(watcher, shown) for watcher, shown in self.turns.open_notices()}
        for pair, cursor in self.now.cursors.items():
            watcher, target = pair
            if not cursor.is_open:
                continue
            if not self.waking.is_left_to(process, watcher):
                continue
            self.waking.owe(watcher, self.now_ms)
            excused = (watcher, Shown(target, *cursor[:2])) in in_turns or self.turns.is_busy(watcher)
            if not excused and not self._was_replayed(pair, since):
                raise Violation("4.11", f"after the start of {process.name} {watcher} on {target} is {cursor}")

    def _was_replayed(self, pair: Pair, since: int) -> bool:
        """Whether it was pinned at its material position, or clean, at some moment of the start."""
        for state in self._past:
            cursor = state.cursors.get(pair)
            if state.number >= since and (cursor is None or not cursor.is_open or cursor.notified == cursor.material):
                return True
        return False

    def crashed(self, process: Process) -> None:
        self._guard(self._crashed, process)

    def _crashed(self, process: Process) -> None:
        self.counts["crashes"] += 1
        self._look()
        unanswered = [asked for asked in self._live if asked.process is process and any(effect.done for effect in asked.effects)]
        self.counts["crashes with a commit unanswered"] += bool(unanswered)
        self._gone(process)

    def stopped(self, process: Process) -> None:
        self._guard(self._gone, process)

    def _gone(self, process: Process) -> None:
        """What it was asked for can take effect no more; what it hosted goes to another, with its wakes."""
        self._look()
        for asked in [asked for asked in self._live if asked.process is process]:
            self._live.remove(asked)
            asked.over = True
            self.counts["calls without an answer"] += 1
        self._ghosts = [(when, asked) for when, asked in self._ghosts if asked.process is not process]
        self.turns.crashed(process)
        self._starting.pop(process.name, None)
        for watcher in {watcher for (watcher, _), cursor in self.now.cursors.items() if cursor.is_open}:
            if self.waking.is_hosted_by(process, watcher):
                self.waking.owe(watcher, self.now_ms)

    def wrote(self, process: Process) -> None:
        self._guard(self._look, process)

    def woken(self, process: Process, session_key: str, reasons: tuple[str, ...]) -> None:  # noqa: ARG002 - what a host makes of them is its own
        self._last_woken = session_key
        self._guard(self._woken, process, session_key)

    def _woken(self, process: Process, watcher: str) -> None:
        # A gateway that could not read whether anything is left wakes, for else a notice might be lost.
        self.waking.woken(process, watcher, self.now, self.now_ms, may_be_for_nothing=self.has_trouble(process.name))

    def struck(self, fault: Fault) -> None:
        match fault:
            case CommitFails() | ReadFails():
                self._trouble[fault.gateway] = self.now_ms
                self._replays[fault.gateway] = self.now_ms + REPLAY_MS
            case HintsLost():
                self.waking.hints_get_lost = True
            case WakeFails():
                self.waking.busy(self._last_woken, self.now_ms)
            case WallJump():
                self._jumped(fault)
            case _:
                pass

    def _jumped(self, fault: WallJump) -> None:
        """Told before the clock is set."""
        before = self._world.clock.now_ms()
        self._walls.append((self.now_ms, before))
        for asked in (*self._live, *(ghost for _, ghost in self._ghosts)):
            asked.sees(before)
            asked.sees(before + fault.by_ms)

    def check_log(self) -> None:
        """Whether the log is what was seen of it, row by row. Raises `Violation`."""
        self._look()
        stored = self._durable.stored()
        if stored != self._durable.kept:
            raise Violation("1", "rows of the log have changed after they were recorded")

    def _guard(self, function: Callable[..., None], *args: Any) -> None:
        if self.violation is None:
            try:
                function(*args)
            except Exception as error:  # noqa: BLE001 - an error of the oracle itself must come out as well
                self.violation = error

    def _look(self, process: Process | None = None) -> None:
        """Read the durable state, and find out how it came to it: by what the process was asked for, which has just written."""
        self.counts["looks"] += 1
        change = self._durable.look()
        if change is not None:
            self._check_new(change)
            calls = self._calls(process)
            effects = [effect for asked in calls for effect in asked.effects if not effect.done]
            # What a drain takes is seen by what it acknowledges, so whatever names its notices comes first.
            draft = explain(change, sorted(effects, key=lambda effect: isinstance(effect, Drain)), self._circumstances(process, calls))
            self._take_in(change, still_owed(draft))

    def _calls(self, process: Process | None) -> list[Asked]:
        """What the process may be doing."""
        horizon, wall = self.now_ms - GHOST_MS, self._world.clock.now_ms()
        self._ghosts = [(when, asked) for when, asked in self._ghosts if when > horizon]
        calls = [asked for asked in (*self._live, *(ghost for _, ghost in self._ghosts)) if asked.process is process]
        for asked in calls:
            asked.sees(wall)
        return calls

    def _circumstances(self, process: Process | None, calls: Sequence[Asked]) -> Circumstances:
        name = "" if process is None else process.name
        return Circumstances(
            news=self._news,
            kept=self._durable.kept,
            first=self._durable.first,
            latest_wall_ms=self._latest_wall_ms(),
            retained_from_ms=self._latest_wall_ms() - self._retention_ms,
            retention_rows=self._retention_rows,
            openings_max=self._openings_max,
            replaying=name in self._starting or self._replays.get(name, 0) > self.now_ms,
            mentioned=frozenset(address for asked in calls for address in asked.mentions),
            session_ids=self._session_ids,
            deleted=self._deleted,
            in_turns=frozenset(((watcher, shown.target), *shown[1:]) for watcher, shown in self.turns.open_notices()),
        )

    def _check_new(self, change: Change) -> None:
        """What holds of new events, whoever asked for them."""
        last = {address: head.last for address, head in change.before.heads.items()}
        for event in change.new:
            if event.sequence <= last.get(event.address, 0):
                raise Violation("1.11", f"{event} does not follow {last[event.address]}")
            last[event.address] = event.sequence
            before = self._recorded_at.get(event.address, 0)
            if event.recorded_at < before:
                raise Violation("1.7", f"{event} was recorded before the one before it, at {before}")
            key = (event.address, event.kind, event.dedupe_key or "")
            if event.dedupe_key is not None and key in self._durable.first and self._durable.first[key] not in change.gone:
                raise Violation("1.6", f"{event} repeats the dedupe key of {self._durable.first[key]}")

    def _take_in(self, change: Change, owed: Mapping[Pair, int]) -> None:
        self._durable.keep(change, owed)
        self.counts["openings owed"] += len(owed.keys() - change.before.owed.keys())
        for event in change.new:
            self._record(event, change.after.number)
        for event in change.gone:
            self._died[event.sequence] = change.after.number
        for address in change.rows:
            self._take_row(address, change)
        for address in change.heads:
            if address not in change.after.heads:
                self._forget(address)
        self._take_cursors(change)
        self._past.append(self.now)
        self._trim()

    def _record(self, event: Event, number: int) -> None:
        self.counts["events"] += 1
        self._born[event.sequence] = number
        self._log.setdefault(event.address, []).append(event)
        self._recorded_at[event.address] = event.recorded_at
        if event.kind in NOTIFYING:
            self._news.setdefault(event.address, {})[event.actor_id if event.actor_type == "agent" else None] = event.sequence

    def _take_row(self, address: Address, change: Change) -> None:
        row = change.after.rows.get(address)
        if row is None:
            self._deleted[address] = min(self._walls_lately())
        else:
            self._session_ids.add(row.session_id)
            self._deleted.pop(address, None)

    def _forget(self, address: Address) -> None:
        """The head is gone: a session that is created again under the key begins anew."""
        for kept in (self._log, self._news, self._recorded_at, self._deleted):
            kept.pop(address, None)

    def _take_cursors(self, change: Change) -> None:
        self.waking.looked(change.before, self.now_ms)
        for pair in change.cursors:
            before, after = change.before.cursors.get(pair), change.after.cursors.get(pair)
            if after is not None and after.is_open and (before is None or not before.is_open or before.last_seen != after.last_seen):
                self.counts["notices opened"] += 1
                self.waking.owe(pair[0], self.now_ms)

    def _trim(self) -> None:
        """Forget the states that no call under way can have seen."""
        oldest = min((asked.since for asked in self._live), default=self.now.number)
        oldest = min(oldest, *self._starting.values(), self.now.number)
        while self._past[0].number < oldest:
            self._past.popleft()
        self.turns.clear_away(min((asked.tick for asked in self._live), default=self._tick), self.now_ms)
