"""What operations do to the durable state, by the rules: one class per operation, over a draft of the state that is to come.

An effect knows nothing of sequences before they are given: it takes the next new event that fits it. Everything else is worked out from the
state before and the rules alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, cast

from .draft import NEW_ID, Draft, Position
from .durable import Address, Change, Event, Head, Pair

NOTIFYING: Final = frozenset({"human_direct_message", "upstream_missing", "goal_changed"})
"""Rule 1.1."""


class Shown(NamedTuple):
    """What identifies a notice (rule 4.5)."""

    target: Address
    last_seen: int
    notified: int


class When(Protocol):
    """When an operation happened, as the wall clock showed it."""

    earliest_ms: int
    latest_ms: int


@dataclass(slots=True, eq=False, kw_only=True)
class Effect:
    """What one operation does once, if it does it at all."""

    when: When | None = None
    done: bool = False

    @property
    def subjects(self) -> frozenset[str]:
        """The keys of the sessions that it is about."""
        raise NotImplementedError

    def concerns(self, change: Change) -> bool:
        """Whether it can have to do with the change."""
        raise NotImplementedError

    def step(self, draft: Draft) -> bool:
        """Do it to the draft; False where it does nothing, or cannot be what happened."""
        raise NotImplementedError

    def settle(self) -> None:
        """It was done, as in the last step."""
        self.done = True

    def renewed(self, last_seen: int, notified: int) -> Position:
        """A cursor whose expiry begins anew."""
        when = cast(When, self.when)
        return Position(last_seen, notified, when.earliest_ms, when.latest_ms)


@dataclass(slots=True, eq=False, kw_only=True)
class Record(Effect):
    """Record one event (rules 1.1 to 1.8, 3.1, 4.3, 4.4, 4.6)."""

    address: Address
    kind: str
    summary: str
    actor_type: str
    actor_id: str | None = None
    run_id: str | None = None
    dedupe_key: str | None = None
    payload_json: str | None = None
    only_if_watched: bool = False
    spawned_by: str | None = None
    event: Event | None = None
    """What it became."""
    tried: Event | None = None
    """What it was in the last step."""
    unseen: bool = False
    """Whether it was deleted in the very transaction that recorded it."""

    def fits(self, event: Event) -> bool:
        """Whether the event is what this records."""
        told = (event.address, event.kind, event.summary, event.actor_type, event.actor_id, event.run_id, event.dedupe_key)
        mine = (self.address, self.kind, self.summary, self.actor_type, self.actor_id, self.run_id, self.dedupe_key)
        return told == mine and event.payload_json == self.payload_json and self._is_of_now(event)

    def _is_of_now(self, event: Event) -> bool:
        """Rule 1.7: no host here says when it occurred, so it was while it was asked for; nor is it recorded earlier."""
        when = cast(When, self.when)
        return when.earliest_ms <= event.occurred_at <= when.latest_ms and when.earliest_ms <= event.recorded_at

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.address[0], self.spawned_by or self.address[0]})

    def concerns(self, change: Change) -> bool:
        return any(self.fits(event) for event in change.new) or self._unseen_sequence(change) > 0

    def step(self, draft: Draft) -> bool:
        if self._is_repeat(draft) or not self._is_wanted(draft):
            return False
        self.tried = draft.take(self.fits)
        sequence = self._unseen_sequence(draft.change) if self.tried is None else self.tried.sequence
        if sequence <= draft.head(self.address).last:
            return False
        self._put_rows(draft)
        draft.heads[self.address] = draft.head(self.address)._replace(last=sequence)
        if self.spawned_by is not None and self.spawned_by != self.address[0]:
            self._seed(draft, (self.spawned_by, self.address), sequence)
        if self.kind in NOTIFYING:
            self._notify(draft, sequence)
        return True

    def _unseen_sequence(self, change: Change) -> int:
        """The sequence of an event that came and went: the head tells of it, and that it is gone."""
        before, after = change.before.heads.get(self.address, Head(0, 0)), change.after.heads.get(self.address, Head(0, 0))
        return after.last if after.pruned == after.last > before.last else 0

    def settle(self) -> None:
        self.done, self.event, self.unseen = True, self.tried, self.tried is None

    def _is_repeat(self, draft: Draft) -> bool:
        return self.dedupe_key is not None and draft.holds(self.address, self.kind, self.dedupe_key)

    def _is_wanted(self, draft: Draft) -> bool:
        if not self.only_if_watched:
            return True
        row = draft.row(self.address)
        has_parent = row is not None and row.parent is not None
        return has_parent or any(True for _ in draft.cursors_where(target=self.address))

    def _put_rows(self, draft: Draft) -> None:
        row = draft.ensure(self.address)
        if self.spawned_by is not None:
            draft.rows[self.address] = row._replace(parent=self.spawned_by)

    def _seed(self, draft: Draft, pair: Pair, sequence: int) -> None:
        """Rule 3.1: at the spawn, but what is pending is kept."""
        position = draft.cursor(pair)
        pending = position is not None and (position.is_open or draft.material(pair, position.last_seen) > position.last_seen)
        if position is None or not pending:
            draft.cursors[pair] = self.renewed(sequence, sequence)
        else:
            draft.cursors[pair] = self.renewed(position.last_seen, position.notified)

    def _notify(self, draft: Draft, sequence: int) -> None:
        actor = self.actor_id if self.actor_type == "agent" else None
        draft.news[self.address] = {**draft.news_of(self.address), actor: sequence}
        for pair, position in list(draft.cursors_where(target=self.address)):
            if pair[0] != actor and not position.is_open:
                draft.cursors[pair] = self.renewed(position.last_seen, sequence)


@dataclass(slots=True, eq=False, kw_only=True)
class PutRow(Effect):
    """Create a session's row, or change what is given (rule 3.5: it seeds nothing)."""

    address: Address
    parent: str | None = None
    label: str | None = None

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.address[0]})

    def concerns(self, change: Change) -> bool:
        return self.address in change.rows

    def step(self, draft: Draft) -> bool:
        row = draft.ensure(self.address)
        draft.rows[self.address] = row._replace(parent=self.parent or row.parent, label=self.label or row.label)
        return True


def _spawns(change: Change, key: str) -> bool:
    """Whether the session is the child or the parent of a spawn."""
    return any(event.kind == "child_spawned" and key in (event.session_key, event.actor_id) for event in change.new)


@dataclass(slots=True, eq=False, kw_only=True)
class Watch(Effect):
    """Seed a cursor at the target's version, or renew it (rule 3.2)."""

    pair: Pair

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.pair[0], self.pair[1][0]})

    def concerns(self, change: Change) -> bool:
        return self.pair in change.cursors

    def step(self, draft: Draft) -> bool:
        watcher, target = self.pair
        draft.ensure((watcher, watcher.split(":")[1]))
        draft.ensure(target)
        position = draft.cursor(self.pair)
        version = draft.head(target).last
        draft.cursors[self.pair] = self.renewed(*(position[:2] if position is not None else (version, version)))
        return True


@dataclass(slots=True, eq=False, kw_only=True)
class Unwatch(Effect):
    """Remove a cursor (rule 3.4)."""

    pair: Pair

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.pair[0], self.pair[1][0]})

    def concerns(self, change: Change) -> bool:
        """A cursor that a spawn seeds may be gone within the same transaction."""
        return self.pair in change.cursors or _spawns(change, self.pair[1][0])

    def step(self, draft: Draft) -> bool:
        if draft.cursor(self.pair) is None:
            return False
        draft.cursors[self.pair] = None
        return True


@dataclass(slots=True, eq=False, kw_only=True)
class Acknowledge(Effect):
    """Acknowledge notices, each while its cursor still has its positions (rule 4.5)."""

    watcher: str
    shown: Sequence[Shown]
    applied: tuple[Shown, ...] = ()

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.watcher})

    def concerns(self, change: Change) -> bool:
        return any((self.watcher, shown.target) in change.cursors for shown in self.shown)

    def step(self, draft: Draft) -> bool:
        applied = []
        for shown in self.shown:
            position = draft.cursor((self.watcher, shown.target))
            if position is not None and position.is_open and position[:2] == shown[1:]:
                self._acknowledge(draft, (self.watcher, shown.target), shown.notified)
                applied.append(shown)
        self.applied = tuple(applied)
        return bool(applied)

    def _acknowledge(self, draft: Draft, pair: Pair, notified: int) -> None:
        draft.cursors[pair] = self.renewed(notified, draft.material(pair, notified))


@dataclass(slots=True, eq=False, kw_only=True)
class Drain(Acknowledge):
    """Take and acknowledge in one step (rule 4.8): what it took is seen when it is acknowledged."""

    shown: Sequence[Shown] = ()

    def concerns(self, change: Change) -> bool:
        return any(pair[0] == self.watcher for pair in change.cursors)

    def step(self, draft: Draft) -> bool:
        after = draft.change.after.cursors
        self.shown = [
            Shown(pair[1], position.last_seen, position.notified)
            for pair, position in draft.cursors_where(watcher=self.watcher)
            if position.is_open and pair in after and after[pair].last_seen >= position.notified
        ]
        return Acknowledge.step(self, draft)


@dataclass(slots=True, eq=False, kw_only=True)
class Reset(Effect):
    """A new session id, and what it watched is forgotten (rule 3.5)."""

    address: Address

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.address[0]})

    def concerns(self, change: Change) -> bool:
        return self.address in change.rows

    def step(self, draft: Draft) -> bool:
        row = draft.row(self.address)
        if row is None:
            return False
        draft.rows[self.address] = row._replace(session_id=NEW_ID)
        for pair, _ in list(draft.cursors_where(watcher=self.address[0])):
            draft.cursors[pair] = None
        return True


@dataclass(slots=True, eq=False, kw_only=True)
class Delete(Effect):
    """Row, events and cursors go; the head stays, its mark raised (rules 1.11, 3.5)."""

    address: Address

    @property
    def subjects(self) -> frozenset[str]:
        return frozenset({self.address[0]})

    def concerns(self, change: Change) -> bool:
        """So may a parent that came with a spawn."""
        return self.address in change.rows or self.address in change.heads or _spawns(change, self.address[0])

    def step(self, draft: Draft) -> bool:
        if draft.row(self.address) is None and not any(True for _ in draft.cursors_where(watcher=self.address[0])):
            return False
        draft.rows[self.address] = None
        head = draft.head(self.address)
        draft.heads[self.address] = head._replace(pruned=head.last)
        draft.deleted = draft.deleted | {self.address}
        for pair, _ in [*draft.cursors_where(watcher=self.address[0]), *draft.cursors_where(target=self.address)]:
            draft.cursors[pair] = None
        return True
