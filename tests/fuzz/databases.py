"""OpenCode's database: any values in its tables, and any bytes in its file."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from kizuki.actors.upstream.catalog import Probe, ThreadNotFound
from kizuki.actors.upstream.formats import opencode
from kizuki.actors.upstream.opencode import catalog
from kizuki.actors.upstream.opencode.catalog import OpenCodeCatalog
from kizuki.storage.records import Address
from tests.fuzz.draws import Draws, words_of
from tests.fuzz.files import check_outcome
from tests.fuzz.places import scratch
from tests.fuzz.transcripts import NOON_MS, OPENCODE_ROWS

SCHEMA = """
PRAGMA page_size = 512;
PRAGMA synchronous = off;
CREATE TABLE session (id, parent_id, title, time_created, time_updated, goal);
CREATE TABLE message (id, session_id, time_created, time_updated, data);
CREATE TABLE part (id, message_id, session_id, time_created, time_updated, data);
CREATE TABLE session_message (id, session_id, type, time_created, time_updated, data);
INSERT INTO session VALUES ('o1', NULL, 'about', 1, 1, '{"objective": "x"}'), ('o2', 'o1', NULL, 2, 2, NULL);
INSERT INTO message VALUES ('m1', 'o1', 1, 1, '{"role": "user"}');
INSERT INTO part VALUES ('p1', 'm1', 'o1', 1, 1, '{"type": "text", "text": "rename"}');
INSERT INTO session_message VALUES ('s1', 'o2', 'user', 1, 1, '{"text": "rename"}');
"""
DECLARED = (sqlite3.Error, OSError)
"""What a catalog may raise where it lists or links."""


@cache
def an_empty_one() -> bytes:
    """A database of the tool with next to nothing in it."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return connection.serialize()


def values(data: bytes) -> None:
    """Whatever is in the tables: each session can be listed, linked and checked, or the errors are those declared."""
    draws = Draws(data, (*words_of(opencode, catalog), "o1", "o2", "m1"))
    path = _written(an_empty_one())
    marker = None
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = off")
        for _ in range(2):
            for _ in range(draws.below(4)):
                _insert(connection, draws)
            marker = _asked(path, draws, marker)


def _insert(connection: sqlite3.Connection, draws: Draws) -> None:
    table, columns = draws.pick((("session", 6), ("message", 5), ("part", 6), ("session_message", 6)))
    row = [_value(draws, column, columns) for column in range(columns)]
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * columns)})", row)


def _value(draws: Draws, column: int, columns: int) -> Any:
    if column == columns - 1:
        return _encoded(draws)
    if column in (columns - 2, columns - 3) and not draws.chance(3):
        return NOON_MS + draws.below(8000)
    value = draws.pick(("o1", "m1", "o2", None, draws.take(4), draws.below(9), "x\x00y", 2**62, 0.5, float("inf")))
    return value if not draws.chance(4) else f"{value!r}{draws.below(99)}"


def _encoded(draws: Draws) -> Any:
    if draws.chance(4):
        return draws.take(20)
    return json.dumps(draws.pick(OPENCODE_ROWS).get("data") if draws.chance(2) else draws.like(OPENCODE_ROWS))


def damaged(data: bytes) -> None:
    """A file with any bytes in place of its own: the errors declared, or an outcome."""
    draws = Draws(data)
    content = bytearray(an_empty_one())
    for _ in range(1 + draws.below(12)):
        content[draws.below(len(content))] = draws.below(256)
    if draws.chance(4):
        del content[draws.below(len(content)) :]
    _asked(_written(bytes(content)), draws, None)


def _written(content: bytes) -> Path:
    path = scratch() / "opencode.db"
    for name in ("opencode.db-wal", "opencode.db-shm", "opencode.db-journal"):
        path.with_name(name).unlink(missing_ok=True)
    path.write_bytes(content)
    return path


def _asked(path: Path, draws: Draws, marker: Any) -> Any:
    """All that a catalog is asked; the marker of the session `o1`, if it could be linked."""
    asked = OpenCodeCatalog(path)
    try:
        asked._list()
        marker = dict(asked._link("o1").marker) if marker is None else marker
    except (ThreadNotFound, *DECLARED):
        pass
    given = marker if not draws.chance(4) else draws.json()
    probes = tuple(
        Probe(Address("agent:main:main", "main"), thread, "local", str(path), given if isinstance(given, dict) else {}, NOON_MS)
        for thread in ("o1", "o2")
    )
    for outcome in asked._check(probes, threading.Event()):
        check_outcome(outcome)
    return marker
