"""What is true of every database that a gateway leaves behind, however it ended: read with plain SQL, derived again from the events."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple


class Event(NamedTuple):
    """What of an event the derivation needs."""

    sequence: int
    previous: int
    news: str | None
    """The actor as the head names it, if the kind notifies; None if it does not."""
    recorded_at: int


class Head(NamedTuple):
    """A row of `heads`."""

    head_id: int
    key: str
    last_sequence: int
    pruned_max: int
    latest: tuple[str | None, int]
    other: tuple[str | None, int]
    owed: bool
    deleted: bool


def violations(database: Path) -> list[str]:
    """Everything that is wrong with the database, in sentences; empty where all is well."""
    with closing(sqlite3.Connection(database)) as connection:
        return list(_violations(connection))


def _violations(connection: sqlite3.Connection) -> Iterator[str]:
    check = connection.execute("PRAGMA integrity_check").fetchone()[0]
    if check != "ok":
        yield f"integrity_check says {check}"
    heads = {head.head_id: head for head in _heads(connection)}
    events = _events(connection)
    yield from (f"events of the unknown head {head_id}" for head_id in events.keys() - heads.keys())
    for head in heads.values():
        yield from _of_head(head, events[head.head_id])
    yield from _of_sessions(connection, heads)
    yield from _of_cursors(connection, heads)


def _heads(connection: sqlite3.Connection) -> Iterator[Head]:
    rows = connection.execute(
        "SELECT head_id, session_key, last_sequence, pruned_max_sequence, latest_actor, latest_sequence, other_actor, other_sequence, "
        "owed_sequence IS NOT NULL, deleted_at IS NOT NULL FROM heads"
    )
    for head_id, key, last, pruned, actor, sequence, other_actor, other_sequence, owed, deleted in rows:
        yield Head(head_id, key, last, pruned, (actor, sequence), (other_actor, other_sequence), owed, deleted)


def _events(connection: sqlite3.Connection) -> defaultdict[int, list[Event]]:
    found: defaultdict[int, list[Event]] = defaultdict(list)
    rows = connection.execute(
        "SELECT head_id, sequence, previous, CASE WHEN notifies THEN iif(actor_type = 'agent', coalesce(actor_id, ''), '') END, "
        "recorded_at FROM events ORDER BY sequence"
    )
    for head_id, *event in rows:
        found[head_id].append(Event(*event))
    return found


def _of_head(head: Head, events: list[Event]) -> Iterator[str]:
    if events and events[-1].sequence != head.last_sequence:
        yield f"{head.key}: the last event is {events[-1].sequence}, its head says {head.last_sequence}"
    if not events and head.last_sequence > head.pruned_max:
        yield f"{head.key}: no event is left, and the pruned mark {head.pruned_max} does not say so"
    if head.deleted and events:
        yield f"{head.key}: deleted, with events"
    for earlier, later in pairwise(events):
        if later.previous != earlier.sequence:
            yield f"{head.key}: event {later.sequence} follows {later.previous}, not {earlier.sequence}"
        if later.recorded_at < earlier.recorded_at:
            yield f"{head.key}: event {later.sequence} was recorded before the one before it"
    latest, other = _latest(events)
    if latest[1] and head.latest != latest:
        yield f"{head.key}: the latest news is {latest}, its head says {head.latest}"
    if other[1] and head.other != other:
        yield f"{head.key}: the latest news by another actor is {other}, its head says {head.other}"


def _latest(events: list[Event]) -> tuple[tuple[str | None, int], tuple[str | None, int]]:
    """The two latest (actor, sequence) of distinct actors, as far as events are kept."""
    news = [(event.news, event.sequence) for event in reversed(events) if event.news is not None]
    latest = news[0] if news else (None, 0)
    return latest, next((item for item in news if item[0] != latest[0]), (None, 0))


def _of_sessions(connection: sqlite3.Connection, heads: dict[int, Head]) -> Iterator[str]:
    for head_id, key, agent_id in connection.execute("SELECT head_id, session_key, agent_id FROM sessions"):
        if head_id not in heads or heads[head_id].deleted:
            yield f"{key} of {agent_id}: a row without a living head"
    rowless = connection.execute(
        "SELECT session_key FROM heads h WHERE deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.head_id = h.head_id)"
    )
    yield from (f"{key}: a living head without a row" for (key,) in rowless)
    unseeded = connection.execute(
        "SELECT h.session_key FROM events e JOIN heads h USING (head_id) JOIN sessions s USING (head_id) "
        "WHERE e.kind = 'child_spawned' AND s.parent IS NULL"
    )
    yield from (f"{key}: spawned, without a parent" for (key,) in unseeded)
    homeless = connection.execute("SELECT source FROM links WHERE head_id NOT IN (SELECT head_id FROM sessions)")
    yield from (f"{source}: linked, without a session" for (source,) in homeless)


def _of_cursors(connection: sqlite3.Connection, heads: dict[int, Head]) -> Iterator[str]:
    claimed = connection.execute("SELECT count(*) FROM cursors WHERE claimed_by IS NOT NULL AND notified <= last_seen").fetchone()[0]
    if claimed:
        yield f"{claimed} claims are on no open notice"
    for watcher_id, target_id, last_seen, notified in connection.execute("SELECT watcher_id, target_id, last_seen, notified FROM cursors"):
        watcher, target = heads.get(watcher_id), heads.get(target_id)
        if watcher is None or target is None:
            yield f"a cursor of {watcher_id} on {target_id}, which are not both there"
            continue
        name = f"{watcher.key} on {target.key}"
        news = target.other[1] if target.latest[0] == watcher.key else target.latest[1]
        if not last_seen <= notified <= max(last_seen, news):
            yield f"{name}: last seen {last_seen}, notified {notified}, material {news} are out of order"
        if notified > target.last_sequence:
            yield f"{name}: notified {notified} is beyond the head's {target.last_sequence}"
        if news > last_seen and notified == last_seen and not target.owed:
            yield f"{name}: {news} is unseen after {last_seen}, and there is no notice"
