"""Large databases, made fast: rows in bulk by `sqlite3`, in the schema that the migrations make, as a gateway would have left them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kizuki.storage.migrate import load_migrations, migrate

from .databases import SESSION_ID

_HEAD = "INSERT INTO heads (head_id, session_key, agent_id) VALUES (?, ?, 'main')"
_CHANGED_HEAD = (
    "INSERT INTO heads (head_id, session_key, agent_id, last_sequence, recorded_at, event_count, latest_actor, latest_sequence, "
    "pruned_max_sequence) VALUES (?1, ?2, 'main', ?3, ?4, 1, '', ?3, ?5)"
)
_SESSION = (
    "INSERT INTO sessions (head_id, session_key, agent_id, session_id, kind, created_at, updated_at) "
    "VALUES (?1, ?2, 'main', ?3, ?4, ?5, ?5)"
)
_EVENT = (
    "INSERT INTO events (sequence, head_id, previous, kind, notifies, actor_type, session_id, occurred_at, recorded_at, summary) "
    "VALUES (?1, ?2, 0, 'human_direct_message', 1, 'human', ?3, ?4, ?4, 'human message via telegram')"
)
_CURSOR = "INSERT INTO cursors (watcher_id, target_id, last_seen, notified, renewed_at) VALUES (?, ?, ?, ?, ?)"


def watcher_key(number: int) -> str:
    return f"agent:main:watcher-{number}"


def child_key(number: int) -> str:
    return f"agent:main:subagent:child-{number}"


@contextmanager
def _building(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = off")  # Nobody needs it after a power cut.
        migrate(connection, load_migrations())
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def _add_sessions(connection: sqlite3.Connection, sessions: Iterable[tuple[int, str]], kind: str, now_ms: int) -> None:
    connection.executemany(_SESSION, ((head, key, SESSION_ID, kind, now_ms) for head, key in sessions))


def build_sessions(path: Path, count: int, *, watched: int = 0) -> None:
    """So many sessions, of which the first ones are watched by one watcher for each ten, all clean."""
    now_ms = time.time_ns() // 1_000_000
    watchers = [(count + 1 + number, watcher_key(number)) for number in range(-(-watched // 10))]
    children = [(number + 1, child_key(number)) for number in range(count)]
    with _building(path) as connection:
        connection.executemany(_HEAD, children)
        connection.executemany(_HEAD, watchers)
        _add_sessions(connection, children, "subagent", now_ms)
        _add_sessions(connection, watchers, "main", now_ms)
        connection.executemany(_CURSOR, ((count + 1 + number // 10, number + 1, 0, 0, now_ms) for number in range(watched)))


def build_watched(path: Path, targets: Mapping[str, int]) -> None:
    """Targets without events, each with so many watchers, all clean."""
    now_ms = time.time_ns() // 1_000_000
    watchers = [(number + 1, watcher_key(number)) for number in range(max(targets.values()))]
    heads = [(len(watchers) + 1 + number, key) for number, key in enumerate(targets)]
    with _building(path) as connection:
        for sessions, kind in ((watchers, "main"), (heads, "subagent")):
            connection.executemany(_HEAD, sessions)
            _add_sessions(connection, sessions, kind, now_ms)
        pairs = ((watcher + 1, head, 0, 0, now_ms) for head, key in heads for watcher in range(targets[key]))
        connection.executemany(_CURSOR, pairs)


KEPT_EVENTS = 50_000
CURSORS_EACH = 10
"""Cursors of a watcher, and watchers of a target, in what `build_cursors` makes."""


def build_cursors(path: Path, cursors: int, pending: int) -> None:
    """So many cursors, of ten targets for each watcher; `pending` of them, evenly spread, have a notice that was shown to nobody yet.

    Every target had one event, which the others have seen; the newest of them are kept, as retention would have it.
    """
    now_ms = time.time_ns() // 1_000_000
    size = max(1, cursors // CURSORS_EACH)
    watchers = [(number + 1, watcher_key(number)) for number in range(size)]
    children = [(size + number + 1, child_key(number)) for number in range(size)]
    pruned = max(0, size - KEPT_EVENTS)
    with _building(path) as connection:
        connection.executemany(_HEAD, watchers)
        changed = [(head, key, number + 1, now_ms, number + 1 if number < pruned else 0) for number, (head, key) in enumerate(children)]
        connection.executemany(_CHANGED_HEAD, changed)
        _add_sessions(connection, watchers, "main", now_ms)
        _add_sessions(connection, children, "subagent", now_ms)
        connection.executemany(_EVENT, ((row[2], row[0], SESSION_ID, now_ms) for row in changed[pruned:]))
        connection.executemany(_CURSOR, _spread(cursors, pending, size, now_ms))


def _spread(cursors: int, pending: int, size: int, now_ms: int) -> Iterator[tuple[int, int, int, int, int]]:
    for number in range(cursors):
        watcher, turn = divmod(number, CURSORS_EACH)
        target = (watcher + turn) % size
        is_pending = number * pending // cursors != (number + 1) * pending // cursors
        yield watcher + 1, size + target + 1, 0 if is_pending else target + 1, target + 1, now_ms
