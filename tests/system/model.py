"""The rules as a plain program: lists, dictionaries and loops, no actors and no database. What a gateway answers is compared with it.

It keeps every event that is kept, and per cursor what was seen and where the pending notice is pinned; everything else is worked out
anew at each question. Sequences are not predicted: they are what the gateway gave, as long as they increase.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Address = tuple[str, str]
"""A session's key and agent."""

RETENTION_MS = 30 * 86_400_000
NOTIFYING = ("human_direct_message", "goal_changed", "upstream_missing")


@dataclass(frozen=True)
class Event:
    """One event, as far as the rules look at it."""

    sequence: int
    target: Address
    kind: str
    agent: str | None
    """The actor's session key, if it is an agent."""
    dedupe_key: str | None
    recorded_at: int


@dataclass
class Cursor:
    """What one watcher has seen of one target, and where its notice is pinned."""

    last_seen: int
    renewed_at: int
    pin: int | None = None


@dataclass
class Head:
    """What stays of a session without its events."""

    version: int = 0
    pruned: int = 0
    deleted_at: int | None = None
    latest: dict[str | None, int] = field(default_factory=dict)
    """The last notifying sequence by actor, pruned events included."""


@dataclass(frozen=True)
class Shown:
    """A notice: which, since when, and where it is pinned."""

    target: Address
    last_seen: int
    pin: int


class Model:
    """One database and the gateway on it."""

    def __init__(self, retention_rows: int) -> None:
        self.retention_rows = retention_rows
        self.events: list[Event] = []
        self.heads: dict[Address, Head] = {}
        self.sessions: dict[Address, str | None] = {}
        """The rows that there are, and their parents."""
        self.cursors: dict[tuple[str, Address], Cursor] = {}
        self.turns: dict[int, tuple[str, list[Shown]]] = {}
        """Open turns: whose, and what they hold."""
        self.highest = 0

    # -- recording -----------------------------------------------------------------------------------------------------------

    def put_session(self, address: Address, parent: str | None = None) -> None:
        self.sessions[address] = parent or self.sessions.get(address)
        self.heads.setdefault(address, Head()).deleted_at = None

    def repeated(self, target: Address, kind: str, dedupe_key: str | None) -> Event | None:
        """The kept event that a dedupe key repeats (rule 1.6)."""
        if dedupe_key is None:
            return None
        return next((e for e in self.events if (e.target, e.kind, e.dedupe_key) == (target, kind, dedupe_key)), None)

    def is_recorded(self, target: Address) -> bool:
        """Whether a human turn is recorded (rule 1.8)."""
        return self.sessions.get(target) is not None or any(address == target for _, address in self.cursors)

    def record(self, event: Event, *, parent: str | None = None) -> None:
        """Take a new event in, and open what it opens (rules 4.3, 4.4, 4.6)."""
        assert event.sequence > self.highest, "sequences increase"
        self.highest = event.sequence
        self.put_session(event.target, parent)
        head = self.heads[event.target]
        head.version = event.sequence
        self.events.append(event)
        if event.kind in NOTIFYING:
            head.latest[event.agent] = event.sequence
            for (watcher, target), cursor in self.cursors.items():
                if target == event.target and watcher != event.agent and cursor.pin is None:
                    cursor.pin, cursor.renewed_at = event.sequence, event.recorded_at

    def seed(self, watcher: str, target: Address, now_ms: int) -> None:
        """A spawn or a watch: a new cursor at the target's version; one that has something pending is kept (rules 3.1, 3.2)."""
        cursor = self.cursors.get((watcher, target))
        if cursor is None:
            self.cursors[watcher, target] = Cursor(self.heads[target].version, now_ms)
        else:
            cursor.renewed_at = now_ms

    def spawn_seeds(self, watcher: str, target: Address, now_ms: int) -> None:
        """A spawn seeds at its own sequence, also where a clean cursor is there already."""
        cursor = self.cursors.get((watcher, target))
        if cursor is not None and cursor.pin is None:
            cursor.last_seen = self.heads[target].version
        self.seed(watcher, target, now_ms)

    # -- notices -------------------------------------------------------------------------------------------------------------

    def material(self, watcher: str, target: Address) -> int:
        """The last change by another actor, at least what was seen."""
        news = [sequence for agent, sequence in self.heads[target].latest.items() if agent != watcher]
        return max([self.cursors[watcher, target].last_seen, *news])

    def free(self, watcher: str) -> list[Shown]:
        """The notices in no open turn, in the order in which they are shown (rule 4.7)."""
        taken = [shown for owner, held in self.turns.values() if owner == watcher for shown in held]
        found = [
            Shown(target, cursor.last_seen, cursor.pin)
            for (owner, target), cursor in self.cursors.items()
            if owner == watcher and cursor.pin is not None
        ]
        return sorted((shown for shown in found if shown not in taken), key=lambda shown: (shown.pin, shown.target))

    def acknowledge(self, watcher: str, shown: list[Shown], now_ms: int) -> int:
        """Rule 4.5; how many applied."""
        applied = 0
        for notice in shown:
            cursor = self.cursors.get((watcher, notice.target))
            if cursor is None or (cursor.last_seen, cursor.pin) != (notice.last_seen, notice.pin):
                continue
            applied += 1
            cursor.last_seen, cursor.renewed_at = notice.pin, now_ms
            rest = self.material(watcher, notice.target)
            cursor.pin = rest if rest > notice.pin else None
        for owner, held in self.turns.values():
            if owner == watcher:
                held[:] = [notice for notice in held if notice not in shown]
        return applied

    # -- the ends of things ----------------------------------------------------------------------------------------------------

    def reset(self, address: Address) -> None:
        """The session forgets what it watched, and its queue (rule 3.5)."""
        self._forget(address)
        self.cursors = {pair: cursor for pair, cursor in self.cursors.items() if not self._is_watcher(pair[0], address)}

    def delete(self, address: Address) -> bool:
        """Everything but the head goes (rules 1.11, 3.5)."""
        if address not in self.sessions:
            return False
        self.reset(address)
        self.cursors = {pair: cursor for pair, cursor in self.cursors.items() if pair[1] != address}
        self.events = [event for event in self.events if event.target != address]
        head = self.heads[address]
        head.pruned = head.version
        del self.sessions[address]
        return True

    def mark_deleted(self, address: Address, now_ms: int) -> None:
        self.heads[address].deleted_at = now_ms

    def prune(self, now_ms: int) -> int:
        """Expired cursors, old events, surplus events, and heads deleted long ago go (rules 3.5, 6.1, 1.11); how many events."""
        before = now_ms - RETENTION_MS
        self.cursors = {pair: cursor for pair, cursor in self.cursors.items() if cursor.renewed_at >= before}
        surplus = len(self.events) - self.retention_rows
        gone = [event for number, event in enumerate(self.events) if number < surplus or event.recorded_at < before]
        for event in gone:
            head = self.heads[event.target]
            head.pruned = max(head.pruned, event.sequence)
        self.events = [event for event in self.events if event not in gone]
        for address, head in list(self.heads.items()):
            if head.deleted_at is not None and head.deleted_at < before and not self._is_referred_to(address):
                del self.heads[address]
        return len(gone)

    def restart(self, now_ms: int) -> None:
        """A new gateway: no turn is open, what is pending is pinned at its material position (rule 4.11)."""
        self.turns.clear()
        before = now_ms - RETENTION_MS
        self.cursors = {pair: cursor for pair, cursor in self.cursors.items() if cursor.renewed_at >= before}
        for (watcher, target), cursor in self.cursors.items():
            if cursor.pin is not None:
                cursor.pin = self.material(watcher, target)
        self.prune(now_ms)

    def _forget(self, address: Address) -> None:
        for owner, held in self.turns.values():
            if self._is_watcher(owner, address):
                held.clear()

    def _is_watcher(self, watcher: str, address: Address) -> bool:
        return watcher == address[0]

    def _is_referred_to(self, address: Address) -> bool:
        return any(target == address or self._is_watcher(watcher, address) for watcher, target in self.cursors)
