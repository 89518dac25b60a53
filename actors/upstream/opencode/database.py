"""Reading OpenCode's database, read-only. Everything here blocks, and raises `sqlite3.Error` and `OSError`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ..formats.fields import JsonRow

BUSY_TIMEOUT_S: Final = 2.0
DATA_CHARACTERS_MAX: Final = 1024 * 1024
"""Of a larger row only what tells its kind is read, and the beginning of its text."""
TEXT_CHARACTERS_MAX: Final = 4_096

# The model's own rows are most of a database and tell nothing, so they are left where they are.
_ROLE = "CASE WHEN json_valid(m.data) THEN json_extract(m.data, '$.role') END"
_SMALL = f"""
    CASE WHEN length({{0}}) <= {DATA_CHARACTERS_MAX} THEN {{0}} WHEN json_valid({{0}}) THEN json_object(
        'type', json_extract({{0}}, '$.type'), 'synthetic', json_extract({{0}}, '$.synthetic'),
        'ignored', json_extract({{0}}, '$.ignored'), 'text', substr(json_extract({{0}}, '$.text'), 1, {TEXT_CHARACTERS_MAX})
    ) END
"""
PARTS: Final = f"""
    SELECT p.id, p.time_created, 'part', p.message_id, {_ROLE}, {_SMALL.format("p.data")}
    FROM part p JOIN message m ON m.id = p.message_id
    WHERE p.session_id = ? AND p.time_created >= ? AND {_ROLE} IS NOT 'assistant' ORDER BY p.time_created, p.id LIMIT ?
"""  # noqa: S608 - put together from constants
MESSAGES: Final = f"""
    SELECT s.id, s.time_created, 'session_message', s.type, NULL, {_SMALL.format("s.data")} FROM session_message s
    WHERE s.session_id = ? AND s.time_created >= ? AND s.type IS NOT 'assistant' ORDER BY s.time_created, s.id LIMIT ?
"""  # noqa: S608 - put together from constants


@dataclass(frozen=True, slots=True)
class Entry:
    """A part of a message, or a message of version 2."""

    id: str
    created_at_ms: int
    rows: tuple[JsonRow, ...]
    """What the reader is given for it."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session."""

    id: str
    parent_id: str | None
    title: str | None
    updated_at_ms: int
    goal: str | None


class Database:
    """One open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def sessions(self) -> list[SessionRow]:
        """All sessions, the latest first."""
        return [self._session(row) for row in self._connection.execute(f"{self._select()} ORDER BY time_updated DESC")]

    def session(self, session_id: str) -> SessionRow | None:
        """The session of this id; None if there is none."""
        row = self._connection.execute(f"{self._select()} WHERE id = ?", (session_id,)).fetchone()
        return self._session(row) if row is not None else None

    def children(self, session_id: str) -> list[str]:
        """The ids of the sessions whose parent it is, the eldest first."""
        statement = "SELECT id FROM session WHERE parent_id = ? ORDER BY time_created, id"
        return [str(row[0]) for row in self._connection.execute(statement, (session_id,))]

    def entries(self, session_id: str, since_ms: int, limit: int) -> list[Entry]:
        """What was not said by the model since a time, in order, at most `limit` entries (-1: all)."""
        statement = PARTS if self._entries(session_id) == "part" else MESSAGES
        return [_entry(row) for row in self._connection.execute(statement, (session_id, since_ms, limit))]

    def _entries(self, session_id: str) -> str:
        """Version 2 writes messages of its own; a session of version 1 goes on as one, and could be there twice."""
        if not self._has("session_message", "session_id"):
            return "part"
        if not self._has("message", "session_id"):
            return "session_message"
        old = self._connection.execute("SELECT 1 FROM message WHERE session_id = ? LIMIT 1", (session_id,)).fetchone()
        return "session_message" if old is None else "part"

    def _select(self) -> str:
        goal = "goal" if self._has("session", "goal") else "NULL"
        return f"SELECT id, parent_id, title, time_updated, {goal} FROM session"  # noqa: S608 - one of two constants

    def _has(self, table: str, column: str) -> bool:
        statement = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"
        return self._connection.execute(statement, (table, column)).fetchone() is not None

    def _session(self, row: tuple[object, ...]) -> SessionRow:
        identity, parent, title, updated_at_ms, goal = row
        return SessionRow(str(identity), _text(parent), _text(title), updated_at_ms if isinstance(updated_at_ms, int) else 0, _text(goal))


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The database, open for reading and for this long. Raises `FileNotFoundError` if there is none."""
    path.stat()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN")  # one state of the database for all that is asked
            yield Database(connection)
        except UnicodeDecodeError as error:  # SQLite quotes what is damaged, and Python takes no message that is no text
            raise sqlite3.DatabaseError(f"the database is damaged: {error}") from error


def _entry(row: tuple[object, ...]) -> Entry:
    identity, created_at_ms, table, first, role, data = row
    at = created_at_ms if isinstance(created_at_ms, int) else 0
    fields: JsonRow = {"table": table, "id": identity, "time_created": created_at_ms, "data": _decoded(data)}
    if table != "part":
        return Entry(str(identity), at, ({**fields, "type": first},))
    message: JsonRow = {"table": "message", "id": first, "data": {"role": role}}
    return Entry(str(identity), at, (message, {**fields, "message_id": first}))


def _decoded(data: object) -> object:
    try:
        return json.loads(data) if isinstance(data, str | bytes) else None
    except (ValueError, RecursionError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
