"""Writes as the tests of the store make them: a few sessions, and one clock reading unless a test needs more."""

from __future__ import annotations

from collections.abc import Mapping

from kizuki.storage import Store
from kizuki.storage.records import Address, Positions, SessionDraft, Shown, StateEvent
from kizuki.storage.writes import Acknowledge, Append, Commit, Watch, Write

NOW = 1_800_000_000_000
MAIN = Address("agent:main:main", "main")
OTHER = Address("agent:main:other", "main")
CHILD = Address("agent:main:subagent:child", "main")
SECOND = Address("agent:main:subagent:second", "main")
DRAFT = SessionDraft("main")


def event(
    target: Address = CHILD,
    *,
    by: Address | None = None,
    kind: str = "goal_changed",
    notifies: bool = True,
    now_ms: int = NOW,
    session: SessionDraft = DRAFT,
    summary: str = "goal updated",
    payload: Mapping[str, object] | None = None,
    dedupe_key: str | None = None,
    only_if_watched: bool = False,
    seeds: Address | None = None,
) -> Append:
    """An event by a person, or by the agent `by`."""
    return Append(
        target=target,
        session=session,
        kind=kind,
        notifies=notifies,
        actor_type="human" if by is None else "agent",
        actor_id="ada" if by is None else by.session_key,
        run_id=None,
        occurred_at_ms=now_ms,
        recorded_at_ms=now_ms,
        summary=summary,
        payload=payload,
        dedupe_key=dedupe_key,
        only_if_watched=only_if_watched,
        seeds=seeds,
    )


def spawn(parent: Address = MAIN, child: Address = CHILD) -> Append:
    """A `child_spawned`, which notifies nobody and seeds the parent's cursor."""
    return event(child, by=parent, kind="child_spawned", notifies=False, seeds=parent)


def watch(watcher: Address = MAIN, target: Address = CHILD, *, now_ms: int = NOW) -> Watch:
    """An explicit watch."""
    return Watch(watcher, DRAFT, target, DRAFT, now_ms)


def acknowledge(watcher: Address, last_seen: int, notified: int, target: Address = CHILD) -> Acknowledge:
    """The acknowledgement of one notice."""
    return Acknowledge(watcher.session_key, (Shown(target, last_seen, notified),), NOW)


async def commit(store: Store, *writes: Write) -> Commit:
    """Commit the writes in one transaction."""
    return await store.commit(writes, busy_timeout_s=1.0)


async def record(store: Store, *appends: Append) -> list[int]:
    """Commit the events in one transaction; their sequences."""
    return [result.sequence for result in (await commit(store, *appends)).results if isinstance(result, StateEvent)]


async def positions(store: Store, watcher: Address = MAIN, target: Address = CHILD) -> Positions | None:
    """Where a cursor stands; None if there is none."""
    found = [cursor.positions for cursor in await store.cursors(watcher.session_key) if cursor.target == target]
    return found[0] if found else None


async def sequences(store: Store, address: Address = CHILD, since: int = 0, limit: int = 200) -> list[int]:
    """The sequences of a session's events after a version."""
    read = await store.status(address, changes_since=since, limit=limit)
    return [] if read is None else [found.sequence for found in read.events]
