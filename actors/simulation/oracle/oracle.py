"""The oracle's front door: told of everything that a host asks and is answered, and of every write, it raises at the first broken rule.

    oracle = Oracle(retention_rows=50_000)
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

import itertools
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ..faults import CommitFails, Fault, HintsLost, ReadFails, WakeFails, WallJump
from ..observer import Observer
from .durable import Address, Change, Durable, Event, Pair, Snapshot
from .effects import NOTIFYING, Acknowledge, Drain, Effect, News, Record, Shown
from .explaining import Circumstances, explain
from .operations import Asked
from .turns import Held, Turns, check_shown
from .violations import Violation
from .waking import Waking

if TYPE_CHECKING:
    from ..process import Process
    from ..world import World

DAY_MS: Final = 86_400_000
TROUBLE_MS: Final = 20_000
"""How long after a failure of its database a gateway may still fail what queued behind it."""
GHOST_MS: Final = 20_000
"""How long after it was cancelled a call may still take effect."""
REPLAY_MS: Final = 15_000
"""How long after a commit of unknown outcome a gateway may still look for what it opened."""
JUMP_MS: Final = 60_000
"""How long after a jump of the wall clock housekeeping may still go by what it showed before."""


class Oracle(Observer):
    """See the module."""

    def __init__(self, *, retention_rows: int, retention_days: float = 30) -> None:
        self._retention_rows = retention_rows
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

    # -- what hosts ask ----------------------------------------------------------------------------------------------------------------

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

    # -- answers ------------------------------------------------------------------------------------------------------------------------

    def recorded(self, asked: Asked, event: Any) -> None:
        """A recording call was answered with an event, or None. Raises `Violation`."""
        self.answered(asked)
        record = cast(Record, asked.effects[0])
        if event is None:
            self._check_unrecorded(asked, record)
            return
        self.counts["acknowledged events"] += 1
        found = self._event(record.address, event.sequence)
        if found is None and record.unseen:
            return
        if found is None:
            raise Violation("1.10", f"{asked.what} was answered with event {event.sequence}, which was never committed")
        told = (
            event.session_key, event.agent_id, event.session_id, event.kind, event.actor_type, event.actor_id, event.run_id,
            event.occurred_at_ms,
        )  # fmt: skip
        if told != (*found[1:3], *found[3:9]):
            raise Violation("1.6", f"{asked.what} was answered with {event}, and the log has {found}")
        if record.event is None and not self._is_repeat(asked, record, found):
            self._swap(record, found)
            if record.event is None:
                raise Violation("1.6", f"{asked.what} was answered with {found}, which is another one's")
        elif record.event is not None and record.event.sequence != found.sequence:
            self._swap(record, found)
            if record.event.sequence != found.sequence:
                raise Violation("1.10", f"{asked.what} recorded {record.event}, and was answered with {found}")

    def _check_unrecorded(self, asked: Asked, record: Record) -> None:
        if self.is_excused(asked):
            self.counts["lost recordings"] += 1
            return
        if record.event is not None:
            raise Violation("1.10", f"{asked.what} recorded {record.event}, and was answered with None")
        if record.only_if_watched and any(not self._is_watched(state, record.address) for state in self.states(asked)):
            return
        raise Violation("1.9", f"{asked.what} recorded nothing, and nothing had failed")

    def _is_watched(self, state: Snapshot, address: Address) -> bool:
        row = state.rows.get(address)
        return (row is not None and row.parent is not None) or any(target == address for _, target in state.cursors)

    def _is_repeat(self, asked: Asked, record: Record, found: Event) -> bool:
        """Whether the dedupe key gave the first event, which was kept at some moment of the call."""
        same = record.dedupe_key is not None and (record.kind, record.dedupe_key) == (found.kind, found.dedupe_key)
        self.counts["repeats"] += same
        return same and self._died.get(found.sequence, asked.since + 1) > asked.since

    def _swap(self, record: Record, found: Event) -> None:
        """Two calls that cannot be told apart: the answers decide which recorded which."""
        for asked in (*self._live, *(ghost for _, ghost in self._ghosts)):
            for other in asked.effects:
                if isinstance(other, Record) and other.event == found and other.fits(found) and record.fits(found):
                    other.event, record.event = record.event, other.event
                    other.done, record.done = other.event is not None, True
                    return

    def status(self, asked: Asked, address: Address, since: int | None, limit: int, answer: dict[str, Any]) -> None:
        """A status was given (rules 5.1 to 5.3). Raises `Violation`."""
        self.answered(asked)
        if not any(self._fits_status(state, address, since, limit, answer) for state in self.states(asked)):
            head = self.now.heads.get(address)
            kept = [event.sequence for event in self.kept_at(self.now, address)]
            raise Violation("5", f"{asked.what} was answered with {answer}; the head is {head}, kept are {kept}")

    def _fits_status(self, state: Snapshot, address: Address, since: int | None, limit: int, answer: dict[str, Any]) -> bool:
        row, head = state.rows.get(address), state.heads.get(address)
        last, pruned = (0, 0) if head is None else head
        if row is None or (answer["sessionId"], answer["stateVersion"]) != (row.session_id, last):
            return False
        if since is None:
            return "stateChanges" not in answer
        kept = [event.sequence for event in self.kept_at(state, address)]
        after = [sequence for sequence in kept if sequence > since]
        changes = answer["stateChanges"]
        told = ([event["sequence"] for event in changes["events"]], changes["truncated"], changes["historyGap"], "hint" in changes)
        more = len(after) > limit
        return (
            told == (after[:limit], more, since < pruned, since < pruned)
            and changes.get("nextChangesSince") == (after[limit - 1] if more else None)
            and changes.get("earliestAvailableSequence") == (kept[0] if kept else None)
        )

    def listed(self, asked: Asked, rows: Sequence[dict[str, Any]]) -> None:
        """All sessions were listed (rule 5.5). Raises `Violation`."""
        self.answered(asked)
        told = [(row["sessionKey"], row["agentId"], row["sessionId"], row.get("parent"), row.get("stateVersion")) for row in rows]
        if not any(told == self._list(state) for state in self.states(asked)):
            raise Violation("5.5", f"{asked.what} was answered with {told}, and there are {self._list(self.now)}")

    def _list(self, state: Snapshot) -> list[tuple[Any, ...]]:
        return [
            (*address, row.session_id, row.parent, state.heads[address].last if address in state.heads else None)
            for address, row in sorted(state.rows.items())
        ]

    def watches(self, asked: Asked, watcher: str, told: Sequence[tuple[Address, int, int, int, bool]]) -> None:
        """A watcher's cursors were listed. Raises `Violation`."""
        self.answered(asked)
        if not any(list(told) == _watches(state, watcher) for state in self.states(asked)):
            raise Violation("4.8", f"{asked.what} was answered with {told}, and there are {_watches(self.now, watcher)}")

    def fact(self, asked: Asked, rule: str, told: object, fits: Callable[[Snapshot], bool]) -> None:
        """Something was answered that must hold of one of the states. Raises `Violation`."""
        self.answered(asked)
        if not asked.has_rival and not any(fits(state) for state in self.states(asked)):
            raise Violation(rule, f"{asked.what} was answered with {told!r}")

    def applied(self, asked: Asked, watcher: str, count: int) -> None:
        """A host acknowledged what it had shown elsewhere (rule 4.5). Raises `Violation`."""
        self.answered(asked)
        acknowledge = cast(Acknowledge, asked.effects[0])
        if not asked.has_rival and count != (len(acknowledge.applied) if acknowledge.done else 0):
            raise Violation("4.5", f"{asked.what} applied {count} of {acknowledge.shown}, and {acknowledge.applied} were acknowledged")
        if not acknowledge.done:
            self._check_acknowledged(asked, watcher, acknowledge.shown)

    def pruned(self, asked: Asked) -> None:
        """All is pruned that was to be when it was asked for (rules 3.5, 6.1). Raises `Violation`."""
        self.answered(asked)
        before_ms = asked.earliest_ms - self._retention_ms
        old = [event.sequence for event in self._durable.kept.values() if event.recorded_at < before_ms]
        since = sum(self._born[sequence] > asked.since for sequence in self._durable.kept)
        if old or len(self._durable.kept) > self._retention_rows + since:
            raise Violation("6.1", f"{asked.what} has left {old or len(self._durable.kept)}")
        first = next(state for state in self.states(asked) if state.number == asked.since)
        for pair, cursor in self.now.cursors.items():
            if cursor.renewed_at < before_ms and first.cursors.get(pair) == cursor:
                raise Violation("3.5", f"{asked.what} has left the cursor {cursor} of {pair}")

    def hosted(self, asked: Asked) -> None:
        """The call has made its gateway the host of the session (rule 8.2)."""
        if asked.hosts is not None and not any(other.hosts == asked.hosts for other in self._live if other is not asked):
            self.waking.hosted(asked.hosts, asked.process, self.now_ms)

    # -- turns --------------------------------------------------------------------------------------------------------------------------

    def shown(
        self,
        asked: Asked,
        watcher: str,
        notices: Sequence[Shown],
        *,
        limit: int | None,
        remaining: int | None = None,
        drained: bool = False,
    ) -> None:
        """A call shows these notices, and holds none of them itself. Raises `Violation`."""
        claimed = self.turns.claimed(asked, watcher, takes=limit is not None)
        check_shown(asked.what, tuple(notices), claimed, self.states(asked), watcher, limit, remaining)
        self.counts["notices shown"] += len(notices)
        if drained:
            self._check_drained(asked, watcher, notices)

    def _check_drained(self, asked: Asked, watcher: str, notices: Sequence[Shown]) -> None:
        drain = cast(Drain, asked.effects[0])
        if drain.done and set(drain.applied) != set(notices) and not asked.has_rival and not self.is_excused(asked):
            raise Violation("4.8", f"{asked.what} shows {notices}, and acknowledged {drain.applied}")
        self._check_acknowledged(asked, watcher, notices)

    def opened(self, asked: Asked, watcher: str, notices: Sequence[Shown], limit: int, remaining: int) -> Held:
        """A turn has its notices. Raises `Violation`."""
        self.shown(asked, watcher, notices, limit=limit, remaining=remaining)
        self.answered(asked)
        self.hosted(asked)
        self.counts["turns"] += 1
        self.waking.settle(watcher)
        return self.turns.opened(asked, watcher, notices, self._next_tick())

    def acknowledges(self, held: Held, what: str) -> Asked:
        """The turn acknowledges what it holds, now."""
        return self.asks(held.process, what, Acknowledge(watcher=held.watcher, shown=held.shown))

    def acknowledged(self, asked: Asked, held: Held) -> None:
        """It has been told that it did. Raises `Violation`."""
        self.answered(asked)
        held.shown = tuple(self._check_acknowledged(asked, held.watcher, held.shown))

    def _check_acknowledged(self, asked: Asked, watcher: str, notices: Sequence[Shown]) -> list[Shown]:
        pending = self.now.pending(watcher)
        left = [shown for shown in notices if shown.target in pending and pending[shown.target][:2] == shown[1:]]
        if left and not self.is_excused(asked):
            raise Violation("4.8", f"{asked.what} acknowledged {left}, and they are pending still")
        self.counts["acknowledged notices"] += len(notices) - len(left)
        return left

    def ends(self, held: Held) -> None:
        """The body of the turn is over, well or not: what it holds is free, or acknowledged soon."""
        held.ended_at = (self._next_tick(), self.now_ms)

    def left_over(self, process: Process, watcher: str) -> None:
        """A turn of the watcher is over: what is left wants a wake (rule 4.9), of the gateway that hosts it (rule 8.2)."""
        if self.now.pending(watcher) and self.waking.is_hosted_by(process, watcher):
            self.waking.owe(watcher, self.now_ms)

    def overdue(self) -> list[str]:
        """Watchers that are still to be woken."""
        return list(self.waking.overdue(self.now, self.turns.is_busy))

    def has_trouble(self, name: str) -> bool:
        """Whether the gateway's database failed lately."""
        return self._trouble.get(name, -TROUBLE_MS) > self.now_ms - TROUBLE_MS

    # -- what the world tells --------------------------------------------------------------------------------------------------------------

    def starting(self, name: str) -> None:
        """A gateway is being started: it may pin anew until it has (rule 4.11)."""
        self._starting[name] = self.now.number

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
        self._guard(self.waking.woken, process, session_key, self.now, self.now_ms)

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

    # -- states -------------------------------------------------------------------------------------------------------------------------

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

    def kept_at(self, state: Snapshot, address: Address) -> list[Event]:
        """A session's events, as they were kept in that state."""
        number = state.number
        log = self._log.get(address, ())
        return [e for e in log if self._born[e.sequence] <= number < self._died.get(e.sequence, number + 1)]

    def check(self) -> None:
        """Raise what was found where nobody could be told."""
        if self.violation is not None:
            raise self.violation

    def check_log(self) -> None:
        """Whether the log is what was seen of it, row by row. Raises `Violation`."""
        self._look()
        stored = self._durable.stored()
        if stored != self._durable.kept:
            raise Violation("1", "rows of the log have changed after they were recorded")

    # -- inside -------------------------------------------------------------------------------------------------------------------------

    def _guard(self, function: Callable[..., None], *args: Any) -> None:
        if self.violation is None:
            try:
                function(*args)
            except Exception as error:  # noqa: BLE001 - an error of the oracle itself must come out as well
                self.violation = error

    def _next_tick(self) -> int:
        self._tick += 1
        return self._tick

    def _over(self, asked: Asked) -> None:
        asked.over = True
        if asked.watcher is not None:
            self.turns.took(asked)

    def _look(self, process: Process | None = None) -> None:
        """Read the durable state, and find out how it came to it: by what the process was asked for, which has just written."""
        self.counts["looks"] += 1
        change = self._durable.look()
        if change is not None:
            self._check_new(change)
            calls = self._calls(process)
            effects = [effect for asked in calls for effect in asked.effects if not effect.done]
            # What a drain takes is seen by what it acknowledges, so whatever names its notices comes first.
            explain(change, sorted(effects, key=lambda effect: isinstance(effect, Drain)), self._circumstances(process, calls))
            self._take_in(change)

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
            retained_from_ms=self._latest_wall_ms() - self._retention_ms,
            retention_rows=self._retention_rows,
            replaying=name in self._starting or self._replays.get(name, 0) > self.now_ms,
            mentioned=frozenset(address for asked in calls for address in asked.mentions),
            session_ids=self._session_ids,
            deleted=self._deleted,
            in_turns=frozenset(((watcher, shown.target), *shown[1:]) for watcher, shown in self.turns.open_notices()),
        )

    def _latest_wall_ms(self) -> int:
        """The latest that housekeeping can take for now."""
        return max(self._world.clock.now_ms(), *(wall for at_ms, wall in self._walls if at_ms > self.now_ms - JUMP_MS), 0)

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

    def _take_in(self, change: Change) -> None:
        self._durable.keep(change)
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
        self._past.append(change.after)
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
            self._deleted[address] = self._latest_wall_ms()
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

    def _event(self, address: Address, sequence: int) -> Event | None:
        return next((event for event in reversed(self._log.get(address, ())) if event.sequence == sequence), None)


def _watches(state: Snapshot, watcher: str) -> list[tuple[Address, int, int, int, bool]]:
    """What `watches` tells: pending is derived (rule 4.11)."""
    return sorted(
        (target, cursor.last_seen, cursor.notified, cursor.material, cursor.material > cursor.last_seen)
        for (owner, target), cursor in state.cursors.items()
        if owner == watcher
    )
