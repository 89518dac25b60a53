"""The documented tables and views, and what the queries cost: found by the plan, not by the clock."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.storage import Store, open_store
from kizuki.storage.records import Address
from kizuki.storage.sqlite import openings, reads
from kizuki.storage.sqlite.files import open_for_writing
from tests.storage.writing import CHILD, MAIN, NOW, commit, event, watch

DOCUMENTED = {
    "session_state_events": "sequence dedupe_key session_key agent_id session_id kind actor_type actor_id run_id occurred_at recorded_at "
    "summary payload_json",
    "session_state_heads": "session_key agent_id last_sequence pruned_max_sequence",
    "session_watch_cursors": "watcher_session_key target_session_key target_agent_id last_seen_sequence notified_sequence",
    "session_watch_positions": "watcher_session_key target_session_key target_agent_id last_seen_sequence "
    "notified_sequence material_sequence",
    "session_upstream_links": "session_key agent_id catalog",
    "sessions": "session_key agent_id session_id kind parent label",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The test's file."""
    return tmp_path / "a.db"


@pytest_asyncio.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    """An open store on it."""
    async with open_store(path, new_session_id=lambda: "s") as opened:
        yield opened


def rows(path: Path, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    """What another program reads from the file."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, parameters).fetchall()


@pytest.mark.parametrize("table", DOCUMENTED)
async def test_documented_columns(store: Store, path: Path, table: str) -> None:
    """Every documented table or view has at least the documented columns."""
    columns = {row[1] for row in rows(path, f"PRAGMA table_info({table})")}
    assert columns >= set(DOCUMENTED[table].split())


async def test_what_the_views_show(store: Store, path: Path) -> None:
    """Events, heads with recorded changes alone, and a cursor with its three positions."""
    await commit(store, watch(), event(by=MAIN, payload={"n": 1}, dedupe_key="k"), event(), event(), event(by=MAIN))
    assert rows(
        path, "SELECT sequence, session_key, actor_id, dedupe_key, payload_json, recorded_at FROM session_state_events LIMIT 1"
    ) == [(1, CHILD.session_key, MAIN.session_key, "k", '{"n":1}', NOW)]
    assert rows(path, "SELECT session_key, last_sequence, pruned_max_sequence FROM session_state_heads") == [(CHILD.session_key, 4, 0)]
    positions = rows(path, "SELECT last_seen_sequence, notified_sequence, material_sequence FROM session_watch_positions")
    assert positions == [(0, 2, 3)]
    assert rows(path, "SELECT watcher_session_key, target_session_key, target_agent_id FROM session_watch_cursors") == [
        (MAIN.session_key, *CHILD)
    ]
    assert rows(path, "SELECT session_key FROM sessions ORDER BY 1") == [(MAIN.session_key,), (CHILD.session_key,)]


WALKED = {
    frozenset[str](): "sqlite_autoindex_sessions",
    frozenset({"agent_id"}): "sessions_agent (agent_id=? AND session_key>?)",
    frozenset({"kind"}): "sessions_kind (kind=? AND session_key>?)",
    frozenset({"agent_id", "kind"}): "sessions_agent_kind (agent_id=? AND kind=? AND session_key>?)",
    **{frozenset({"parent", *others}): "sessions_parent (parent=? AND session_key>?)" for others in ((), ("agent_id",), ("kind",))},
    frozenset({"parent", "agent_id", "kind"}): "sessions_parent (parent=? AND session_key>?)",
}


def plan(connection: sqlite3.Connection, sql: str, parameters: tuple[object, ...] | dict[str, object]) -> str:
    """How SQLite goes about a statement."""
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters))


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """An empty database, without a loop."""
    with closing(open_for_writing(path, "full")) as opened:
        yield opened


@pytest.mark.parametrize(
    "given", [set(names) for size in range(4) for names in itertools.combinations(("agent_id", "kind", "parent"), size)]
)
def test_a_page_is_found_by_an_index(connection: sqlite3.Connection, given: set[str]) -> None:
    """A page of any filter is read in order from an index, so that its cost does not grow with the sessions."""
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    filters = {name: "x" if name in given else None for name in ("agent_id", "kind", "parent")}
    reads.sessions(connection, **filters, limit=5, after=Address("a", "b"), with_total=False)
    connection.set_trace_callback(None)
    found = plan(connection, statements[-1], ())
    assert "TEMP B-TREE" not in found
    assert f"SEARCH s USING INDEX {WALKED[frozenset(given)]}" in found


def test_an_event_finds_clean_pairs_alone(connection: sqlite3.Connection) -> None:
    """The cursors of an event's target are searched by target and cleanness, so that pending ones cost nothing."""
    assert "cursors_clean (target_id=? AND <expr>=?)" in plan(connection, openings._CLEAN, ("[1]", 1))


def test_pending_reads_open_pairs_alone(connection: sqlite3.Connection) -> None:
    """A watcher's notices are searched among its open pairs, so that clean ones cost nothing."""
    assert "cursors_open (watcher_id=?" in plan(connection, reads._PENDING, {"watcher": "w", "excluding": "[]", "living": "[]", "limit": 1})
