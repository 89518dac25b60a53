"""Deliberately broken variants of the system: each breaks one rule, inside this process and for a while.

They reach into the library as its own code does, and change one decision. The oracle is not told which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kizuki.actors import claims as claims_in_memory
from kizuki.actors import drafts, system, tools, turns, wakes, watcher
from kizuki.actors import notices as actor_notices
from kizuki.actors.messages import AcknowledgeShown
from kizuki.storage import heads, pairs, positions, recording
from kizuki.storage.recording import ROW_COLUMNS
from kizuki.storage.records import Positions
from kizuki.storage.sqlite import append, apply, claims, cursors, folds, gateways, housekeeping, openings, reads, sessions

Patch = pytest.MonkeyPatch
MUTATIONS: dict[str, Mutation] = {}


@dataclass(frozen=True)
class Mutation:
    """One broken variant."""

    name: str
    what: str
    apply: Callable[[Patch], None]

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The system is broken for a while."""
        with pytest.MonkeyPatch.context() as patch:
            self.apply(patch)
            yield


def mutation(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """Take it into the list; its docstring says what is broken."""
    name = function.__name__
    MUTATIONS[name] = Mutation(name, (function.__doc__ or "").strip(), function)
    return function


# -- acknowledging -----------------------------------------------------------------------------------------------------------------


@mutation
def acknowledge_to_the_head(patch: Patch) -> None:
    """An acknowledgement moves last seen to the material position instead of the notified one."""

    def acknowledge(now: Positions, last_seen: int, notified: int) -> Positions | None:
        moved = positions.acknowledge(now, last_seen, notified)
        return None if moved is None else moved._replace(last_seen=moved.notified)

    patch.setattr(cursors, "acknowledge", acknowledge)


@mutation
def acknowledgement_not_durable(patch: Patch) -> None:
    """An acknowledgement is answered, and not written."""

    def acknowledge_all(tx: Any, write: Any) -> Any:
        tx.connection.execute("SAVEPOINT mutant")
        result = cursors.acknowledge_all(tx, write)
        tx.connection.execute("ROLLBACK TO mutant")
        return result

    broken = type("Broken", (), {**vars(cursors), "acknowledge_all": staticmethod(acknowledge_all)})
    patch.setattr(apply, "cursors", broken)


@mutation
def stale_acknowledgement_applies(patch: Patch) -> None:
    """An acknowledgement applies to whatever notice is pending, not only to the one that was shown."""
    patch.setattr(cursors, "acknowledge", lambda now, _seen, _notified: positions.acknowledge(now, now.last_seen, now.notified))


@mutation
def failed_turn_acknowledges(patch: Patch) -> None:
    """A turn that raises or is cancelled acknowledges what it showed."""
    over = turns.Turns._over

    def broken(self: Any, watcher: str, number: int, current: Any, ended_well: bool) -> None:
        held = self._system.claims.held(watcher, number)
        over(self, watcher, number, current, ended_well)
        if held and not ended_well and self._system.is_open:
            self._system.watcher(watcher).ask(AcknowledgeShown(held))

    patch.setattr(turns.Turns, "_over", broken)


@mutation
def failed_turn_keeps_its_notices(patch: Patch) -> None:
    """A turn that raises or is cancelled does not give its notices back."""

    def release(self: claims_in_memory.Claims, watcher: str, turn: int) -> tuple[Any, ...]:
        return self._turns.get(watcher, {}).get(turn, ())

    patch.setattr(claims_in_memory.Claims, "release", release)


# -- notices -----------------------------------------------------------------------------------------------------------------------


@mutation
def own_event_is_material(patch: Patch) -> None:
    """A watcher is told of its own event."""
    patch.setattr(
        openings, "first_material", lambda events, _watcher, seen: next((event.sequence for event in events if event.sequence > seen), None)
    )


@mutation
def own_event_moves_material(patch: Patch) -> None:
    """What is left after an acknowledgement counts the watcher's own events."""
    patch.setattr(pairs, "material", lambda latest, _watcher, seen: heads.material(latest, "", seen))


@mutation
def pin_moves_while_pending(patch: Patch) -> None:
    """A further material event pins the pending notice anew."""

    def open_fresh(tx: Any, touched: Any, now_ms: int) -> None:
        touched = list(touched)
        for fold in touched:
            if fold.fresh:
                sql = "UPDATE cursors SET notified = ? WHERE target_id = ? AND notified > last_seen"
                tx.connection.execute(sql, (fold.fresh[-1].sequence, fold.head_id))
        openings.open_fresh(tx, touched, now_ms)

    patch.setattr(append, "open_fresh", open_fresh)


@mutation
def second_notice_while_pending(patch: Patch) -> None:
    """A further material event opens the notice again, as if nothing were pending, and seen up to there."""

    def open_fresh(tx: Any, touched: Any, now_ms: int) -> None:
        touched = list(touched)
        for fold in touched:
            if fold.fresh:
                sql = "UPDATE cursors SET last_seen = notified, notified = ? WHERE target_id = ? AND notified > last_seen"
                tx.connection.execute(sql, (fold.fresh[-1].sequence, fold.head_id))
        openings.open_fresh(tx, touched, now_ms)

    patch.setattr(append, "open_fresh", open_fresh)


@mutation
def text_not_pinned(patch: Patch) -> None:
    """A notice names the newest version instead of what was last seen."""

    def notice(cursor: Any, language: Any) -> Any:
        made = actor_notices.notice(cursor, language)
        moved = replace(cursor, positions=cursor.positions._replace(last_seen=cursor.positions.material))
        return replace(made, text=actor_notices.notice(moved, language).text)

    patch.setattr(turns, "notice", notice)


@mutation
def opening_forgotten(patch: Patch) -> None:
    """A material event opens no notice."""
    patch.setattr(append, "open_fresh", lambda *_: None)


# -- openings that are owed --------------------------------------------------------------------------------------------------------


@mutation
def owed_opening_forgotten(patch: Patch) -> None:
    """What a commit does not open itself is never opened."""
    patch.setattr(openings, "_owe_all", lambda *_: None)


@mutation
def owed_opening_pinned_at_the_last_event(patch: Patch) -> None:
    """An opening that is made later is pinned at the last event instead of the first."""
    patch.setattr(openings, "owed_pin", lambda *_: None)
    patch.setattr(openings, "_later_pin", lambda _connection, debtor, watcher, _seen: heads.latest_by_another(debtor.latest, watcher))


@mutation
def served_before_what_is_owed(patch: Patch) -> None:
    """A watcher is served without the notices that are still to be opened for it."""

    async def settle(self: watcher.WatcherActor) -> None:
        await self._replayed()

    patch.setattr(watcher.WatcherActor, "_settle", settle)
    patch.setattr(claims, "open_owed", lambda *_: 0)


# -- the order ---------------------------------------------------------------------------------------------------------------------


@mutation
def order_by_target(patch: Patch) -> None:
    """A turn takes its notices by target instead of by notified position."""
    by_target = reads._PENDING.replace("ORDER BY c.notified LIMIT", "ORDER BY c.target_id LIMIT")
    patch.setattr(reads, "_PENDING", by_target)


@mutation
def limit_ignored(patch: Patch) -> None:
    """A turn takes all that is pending."""
    broken = type("Broken", (), {"pending": staticmethod(lambda c, p, w, _limit, e: reads.pending(c, p, w, None, e))})
    patch.setattr(claims, "reads", broken)


@mutation
def watch_seeds_at_zero(patch: Patch) -> None:
    """A watch seeds the cursor at the beginning of the target's history."""
    patch.setattr(cursors, "seed", lambda _version: positions.seed(0))


@mutation
def spawn_overwrites_what_is_pending(patch: Patch) -> None:
    """A spawn seeds the parent's cursor anew, also where a notice is pending."""
    patch.setattr(recording, "_has_pending", lambda *_: False)


# -- the log -----------------------------------------------------------------------------------------------------------------------


@mutation
def dedupe_ignored(patch: Patch) -> None:
    """A repeated dedupe key records another event."""

    def append_all(tx: Any, writes: Any, known: Any) -> Any:
        given = {row[0] for row in tx.connection.execute("SELECT dedupe_key FROM events WHERE dedupe_key IS NOT NULL")}
        return append.append_all(tx, [write._replace(dedupe_key=None) if write.dedupe_key in given else write for write in writes], known)

    broken = type("Broken", (), {"append_all": staticmethod(append_all)})
    patch.setattr(apply, "append", broken)


@mutation
def occurred_long_ago(patch: Patch) -> None:
    """A person's turn is said to have occurred a minute before it did."""
    given = drafts.occurrence_ms
    patch.setattr(drafts, "occurrence_ms", lambda value, now_ms: given(value, now_ms) - 60_000)


@mutation
def recorded_too_early(patch: Patch) -> None:
    """Retention is told of a moment five seconds before the event was recorded."""
    event_row = append._event_row

    def early(fold: Any, write: Any, sequence: int, session_id: str) -> Any:
        row = list(event_row(fold, write, sequence, session_id))
        row[ROW_COLUMNS.split(", ").index("recorded_at")] -= 5_000
        return tuple(row)

    patch.setattr(append, "_event_row", early)


@mutation
def head_stays_behind(patch: Patch) -> None:
    """The head is not moved with the event."""
    patch.setattr(folds, "_move_heads", lambda *_: None)


@mutation
def unwatched_turns_recorded(patch: Patch) -> None:
    """A person's turn is recorded although nobody watches the session."""
    patch.setattr(recording, "_has_parent", lambda *_: True)


@mutation
def gap_mark_forgotten(patch: Patch) -> None:
    """Pruning raises no mark."""
    patch.setattr(housekeeping, "_raise_pruned_marks", lambda *_: None)


@mutation
def deletion_forgets_the_mark(patch: Patch) -> None:
    """A deleted session's head does not say that all before it is gone."""

    def delete(tx: Any, write: Any) -> Any:
        deleted = sessions.delete(tx, write)
        tx.connection.execute("UPDATE heads SET pruned_max_sequence = 0 WHERE session_key = ? AND agent_id = ?", write.address)
        return deleted

    broken = type("Broken", (), {**vars(sessions), "delete": staticmethod(delete)})
    patch.setattr(apply, "sessions", broken)


@mutation
def reset_keeps_the_queue(patch: Patch) -> None:
    """A reset session keeps what it watched."""

    def reset(tx: Any, write: Any) -> Any:
        kept = tx.connection.execute("SELECT * FROM cursors").fetchall()
        record = sessions.reset(tx, write)
        for row in kept:
            tx.connection.execute(f"INSERT OR IGNORE INTO cursors VALUES ({', '.join('?' * len(row))})", row)
        return record

    broken = type("Broken", (), {**vars(sessions), "reset": staticmethod(reset)})
    patch.setattr(apply, "sessions", broken)


@mutation
def cursors_expire_early(patch: Patch) -> None:
    """A sweep expires every cursor."""
    broken = type(
        "Broken",
        (),
        {**vars(housekeeping), "expire_cursors": staticmethod(lambda tx, w: housekeeping.expire_cursors(tx, replace(w, before_ms=2**62)))},
    )
    patch.setattr(apply, "housekeeping", broken)


# -- gateways and wakes --------------------------------------------------------------------------------------------------------------


@mutation
def hint_dropped(patch: Patch) -> None:
    """No word is left for the gateway that hosts the watcher."""
    patch.setattr(gateways, "put_hints", lambda *_: None)


@mutation
def claim_ignored(patch: Patch) -> None:
    """Other gateways do not see that a notice is in an open turn."""
    patch.setattr(claims, "_claim", lambda *_: None)


@mutation
def wake_lost_after_a_restart(patch: Patch) -> None:
    """A start pins what is pending, and tells nobody."""

    def replay(tx: Any, found: Any) -> None:
        before = list(tx.opened)
        original(tx, found)
        tx.opened[:] = before

    original = cursors._replay
    patch.setattr(cursors, "_replay", replay)


@mutation
def replay_keeps_the_pin(patch: Patch) -> None:
    """A start leaves what is pending pinned where it was."""
    patch.setattr(cursors, "replay", lambda now: now)


@mutation
def nobody_takes_over(patch: Patch) -> None:
    """What a dead gateway hosted stays with it."""
    patch.setattr(gateways, "_host_slice", lambda *_: [])


@mutation
def busy_host_not_asked_again(patch: Patch) -> None:
    """A host that was busy is not woken again."""
    patch.setattr(wakes.WakeBook, "answered_busy", lambda *_: None)


@mutation
def sub_agents_woken(patch: Patch) -> None:
    """Sub-agents are woken like everybody else."""
    patch.setattr(system, "is_subagent", lambda _key: False)


# -- answering -------------------------------------------------------------------------------------------------------------------------


@mutation
def status_tells_another_actor(patch: Patch) -> None:
    """A delta says that the system did everything."""
    event_rows = tools.event_rows
    patch.setattr(tools, "event_rows", lambda rows, language: [row | {"actorType": "system"} for row in event_rows(rows, language)])
