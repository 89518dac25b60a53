"""A model of the store made of the rules: every event ever recorded in a list, every cursor in a dictionary, all found by looking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from kizuki.storage.records import Address, Cursor, Positions, SessionRecord, Shown, StateEvent
from kizuki.storage.writes import (
    Acknowledge,
    Acknowledged,
    Append,
    Commit,
    DeleteSession,
    OpenOwed,
    PruneEvents,
    PutSession,
    Replay,
    ResetSession,
    Unwatch,
    Watch,
    Write,
)

Pair = tuple[str, Address]


@dataclass
class Recorded:
    """One event, kept in the model also when it is gone from the log."""

    event: StateEvent
    address: Address
    notifies: bool
    recorded_at: int
    dedupe_key: str | None
    kept: bool = True

    def concerns(self, watcher: str, target: Address) -> bool:
        """Whether it is material to the watcher of the target."""
        own = self.event.actor_type == "agent" and self.event.actor_id == watcher
        return self.notifies and self.address == target and not own


@dataclass
class Seen:
    """One cursor: what was seen, and where the pending notice is pinned."""

    last_seen: int
    pin: int | None = None


@dataclass
class Model:
    """What the store should hold."""

    log: list[Recorded] = field(default_factory=list)
    parents: dict[Address, str | None] = field(default_factory=dict)
    ids: dict[Address, str] = field(default_factory=dict)
    pruned: dict[Address, int] = field(default_factory=dict)
    cursors: dict[Pair, Seen] = field(default_factory=dict)

    def version(self, address: Address) -> int:
        """Rule 1.11."""
        return max((found.event.sequence for found in self.log if found.address == address), default=0)

    def material(self, pair: Pair) -> int:
        """The last material event, or last seen."""
        return max([self.cursors[pair].last_seen, *(found.event.sequence for found in self.log if found.concerns(*pair))])

    def events(self, address: Address, since: int) -> list[StateEvent]:
        """Rule 5.1."""
        return [found.event for found in self.log if found.kept and found.address == address and found.event.sequence > since]

    def check_cursors(self, cursors: Iterable[Cursor], *, owed: bool) -> None:
        """Every cursor stands where it should; a notice may be unopened only while something is owed."""
        got = {(cursor.watcher, cursor.target): cursor.positions for cursor in cursors}
        assert got.keys() == self.cursors.keys()
        for pair, seen in self.cursors.items():
            notified = seen.last_seen if seen.pin is None else seen.pin
            wanted = Positions(seen.last_seen, notified, self.material(pair))
            unopened = replace_notified(wanted) if owed else wanted
            assert got[pair] in (wanted, unopened), (pair, got[pair], wanted)

    def commit(self, writes: Sequence[Write], commit: Commit) -> None:
        """Do the same, and compare the results."""
        for write, result in zip(writes, commit.results, strict=True):
            self._apply(write, result)

    def _apply(self, write: Write, result: object) -> None:  # noqa: C901 - one line per kind of write
        match write:
            case Append():
                self._append(write, result)
            case PutSession():
                self._put(write.address, write.session.parent, write.session.session_id, result)
                assert isinstance(result, SessionRecord)
                assert result.version == self.version(write.address)
            case Watch():
                self._put(write.watcher, write.watcher_session.parent, None, None)
                self._put(write.target, write.target_session.parent, None, None)
                self.cursors.setdefault((write.watcher.session_key, write.target), Seen(self.version(write.target)))
            case Unwatch():
                assert result == (self.cursors.pop((write.watcher, write.target), None) is not None)
            case Acknowledge():
                self._acknowledge(write, result)
            case ResetSession():
                assert (result is None) == (write.address not in self.parents)
                if isinstance(result, SessionRecord):
                    self.ids[write.address] = result.session_id
                    self._drop(held_by=write.address)
            case DeleteSession():
                assert result == (write.address in self.parents)
                self._delete(write.address)
            case Replay():
                self._replay(write.watcher)
            case PruneEvents():
                self._prune(write)
            case OpenOwed():
                pass
            case _:
                raise AssertionError(write)

    def _append(self, write: Append, result: object) -> None:
        repeated = [found for found in self.log if found.kept and self._repeats(found, write)]
        if repeated:
            assert result == repeated[0].event
        elif write.only_if_watched and not self._is_watched(write):
            assert result is None
            self._put(write.target, write.session.parent, None, None)
        else:
            assert isinstance(result, StateEvent)
            self._record(write, result)

    def _repeats(self, found: Recorded, write: Append) -> bool:
        key = (found.address, found.event.kind, found.dedupe_key)
        return write.dedupe_key is not None and key == (write.target, write.kind, write.dedupe_key)

    def _is_watched(self, write: Append) -> bool:
        parent = self.parents.get(write.target) or write.session.parent
        return parent is not None or any(target == write.target for _, target in self.cursors)

    def _record(self, write: Append, event: StateEvent) -> None:
        assert event.sequence > max((found.event.sequence for found in self.log), default=0)
        assert (event.session_key, event.agent_id, event.kind) == (*write.target, write.kind)
        self._put(write.target, write.session.parent, None, None)
        assert self.ids.setdefault(write.target, event.session_id) in ("", event.session_id)
        self.ids[write.target] = event.session_id
        before = [found.recorded_at for found in self.log if found.address == write.target]
        if write.seeds is not None:
            pair = (write.seeds.session_key, write.target)
            if pair not in self.cursors or self.material(pair) == self.cursors[pair].last_seen:
                self.cursors[pair] = Seen(event.sequence)
        recorded = Recorded(event, write.target, write.notifies, max([write.recorded_at_ms, *before]), write.dedupe_key)
        self.log.append(recorded)
        for pair, seen in self.cursors.items():
            if seen.pin is None and recorded.concerns(*pair) and event.sequence > seen.last_seen:
                seen.pin = event.sequence

    def _put(self, address: Address, parent: str | None, session_id: str | None, result: object) -> None:
        self.parents[address] = parent or self.parents.get(address)
        if isinstance(result, SessionRecord):
            assert result.parent == self.parents[address]
            assert self.ids.get(address) in (None, "", result.session_id) or session_id is not None
            self.ids[address] = result.session_id
        else:
            self.ids.setdefault(address, "")

    def _acknowledge(self, write: Acknowledge, result: object) -> None:
        applied, reopened = [], []
        for shown in write.shown:
            pair = (write.watcher, shown.target)
            seen = self.cursors.get(pair)
            if seen is None or (seen.last_seen, seen.pin) != (shown.last_seen, shown.notified):
                continue
            self.cursors[pair] = seen = Seen(shown.notified)
            applied.append(shown)
            if self.material(pair) > seen.last_seen:
                seen.pin = self.material(pair)
                reopened.append(shown.target)
        assert result == Acknowledged(tuple(applied), tuple(reopened))

    def _drop(self, *, held_by: Address | None = None, held_on: Address | None = None) -> None:
        key = None if held_by is None else held_by.session_key
        self.cursors = {pair: seen for pair, seen in self.cursors.items() if pair[0] != key and pair[1] != held_on}

    def _delete(self, address: Address) -> None:
        self._drop(held_by=address, held_on=address)
        if self.parents.pop(address, "none") != "none":
            self.pruned[address] = self.version(address)
        self.ids.pop(address, None)
        for found in self.log:
            found.kept = found.kept and found.address != address

    def _replay(self, watcher: str | None) -> None:
        for pair, seen in self.cursors.items():
            if seen.pin is not None and watcher in (None, pair[0]):
                seen.pin = self.material(pair)

    def _prune(self, write: PruneEvents) -> None:
        kept = [found for found in self.log if found.kept]
        surplus = kept[: max(0, len(kept) - write.keep_rows)]
        for found in kept:
            if found in surplus or found.recorded_at < write.before_ms:
                found.kept = False
                self.pruned[found.address] = max(self.pruned.get(found.address, 0), found.event.sequence)


def replace_notified(positions: Positions) -> Positions:
    """The same pair with its notice not yet opened."""
    return positions._replace(notified=positions.last_seen)


def shown_of(cursor: Cursor) -> Shown:
    """A cursor's notice as it is shown."""
    return Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified)


def acknowledging(write: Acknowledge, shown: Sequence[Shown]) -> Acknowledge:
    """The same acknowledgement, of these."""
    return replace(write, shown=tuple(shown))
