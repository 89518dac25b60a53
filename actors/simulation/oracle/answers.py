"""Whether what hosts are answered fits one of the states that there were between question and answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from .book import Book
from .durable import Address, Event, Snapshot
from .effects import Acknowledge, Drain, Record, Shown
from .operations import Asked
from .turns import Held, check_shown
from .violations import Violation

if TYPE_CHECKING:
    from ..process import Process


class Answers(Book):
    """Each method takes an answer, or what a turn does, and raises `Violation` where it cannot be."""

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
        kept = self.kept_at(state, address)
        after = [event for event in kept if event.sequence > since]
        changes = answer["stateChanges"]
        more = len(after) > limit
        return (
            (changes["truncated"], changes["historyGap"], "hint" in changes) == (more, since < pruned, since < pruned)
            and [_without_summary(row) for row in changes["events"]] == [_told(event) for event in after[:limit]]
            and changes.get("nextChangesSince") == (after[limit - 1].sequence if more else None)
            and changes.get("earliestAvailableSequence") == (kept[0].sequence if kept else None)
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
        if not any(list(told) == _watches(state, watcher) for state in self.served_states(asked, watcher)):
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
        check_shown(asked.what, tuple(notices), claimed, self.served_states(asked, watcher), watcher, limit, remaining)
        self.counts["notices shown"] += len(notices)
        if drained:
            self._check_drained(asked, watcher, notices)

    def _check_drained(self, asked: Asked, watcher: str, notices: Sequence[Shown]) -> None:
        drain = cast(Drain, asked.effects[0])
        # What was taken and not acknowledged may have gone with its target meanwhile: that it is not pending is checked below.
        if drain.done and not set(drain.applied).issubset(notices) and not asked.has_rival and not self.is_excused(asked):
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


def _watches(state: Snapshot, watcher: str) -> list[tuple[Address, int, int, int, bool]]:
    """What `watches` tells: pending is derived (rule 4.11)."""
    return sorted(
        (target, cursor.last_seen, cursor.notified, cursor.material, cursor.material > cursor.last_seen)
        for (owner, target), cursor in state.cursors.items()
        if owner == watcher
    )


def _told(event: Event) -> dict[str, Any]:
    """An event as a tool tells it, but for its summary, which is in the gateway's language."""
    told: dict[str, Any] = {
        "sequence": event.sequence,
        "kind": event.kind,
        "actorType": event.actor_type,
        "occurredAt": event.occurred_at,
    }
    said = {"actorId": event.actor_id, "runId": event.run_id, "payload": json.loads(event.payload_json or "null")}
    return told | {name: value for name, value in said.items() if value}


def _without_summary(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "summary"}
