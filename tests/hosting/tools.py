"""Sessions in the agents' own tools, as those tools leave them: real files in the folders where each tool keeps them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

CLAUDE_ID = "0b9b27f0-2e7f-40c7-b31f-219f8444d0d2"
CODEX_ID = "5973b6c0-94b8-487b-a530-2aeb6098ae0e"


def now() -> str:
    return datetime.now(UTC).isoformat()


def claude_row(uuid: str, text: str = "rename the flag", **fields: object) -> str:
    """One row that a person typed now into Claude Code."""
    typed = {"type": "user", "uuid": uuid, "timestamp": now(), "origin": {"kind": "human"}, "promptSource": "typed"}
    return line(typed | {"message": {"role": "user", "content": text}} | fields)


def codex_header(thread_id: str = CODEX_ID) -> str:
    return line(
        {"timestamp": now(), "type": "session_meta", "payload": {"id": thread_id, "cwd": "/w", "source": "cli", "thread_source": "user"}}
    )


def codex_row() -> str:
    """A person's turn in Codex."""
    return line({"timestamp": now(), "type": "event_msg", "payload": {"type": "user_message", "message": "rename the flag", "images": []}})


def pi_rows() -> tuple[str, str]:
    header = {"type": "session", "version": 3, "id": "p-1", "timestamp": now(), "cwd": "/w"}
    said = {"type": "message", "id": "aaaa0001", "parentId": None, "timestamp": now(), "message": {"role": "user", "content": "hello"}}
    return line(header), line(said)


def gemini_rows() -> tuple[str, str]:
    header = {"sessionId": "g-1", "projectHash": "h", "startTime": now(), "lastUpdated": now(), "kind": "main"}
    return line(header), line({"id": "m1", "timestamp": now(), "type": "user", "content": [{"text": "rename the flag"}]})


def line(row: object) -> str:
    return json.dumps(row) + "\n"


def append(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(rows)
    return path


def claude_file(folder: Path, thread_id: str = CLAUDE_ID) -> Path:
    """Below `CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    return folder / "projects" / "-w" / f"{thread_id}.jsonl"


def codex_file(folder: Path, thread_id: str = CODEX_ID) -> Path:
    """Below `CODEX_HOME`, or `~/.codex`."""
    return folder / "sessions" / "2026" / "11" / "02" / f"rollout-2026-11-02T10-00-00-{thread_id}.jsonl"


def pi_file(folder: Path) -> Path:
    """Below `~/.pi/agent`."""
    return folder / "sessions" / "--w--" / "2026-11-02T10-00-00_p-1.jsonl"


def gemini_file(folder: Path) -> Path:
    """Below `~`."""
    return folder / ".gemini" / "tmp" / "project" / "chats" / "session-2026-11-02T10-00-g-1.jsonl"


def opencode_database(folder: Path) -> Path:
    """Below `XDG_DATA_HOME`, or `~/.local/share`: one session in which a person wrote, and a part of a kind that nobody knows."""
    path = folder / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
            CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
            CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
            INSERT INTO session VALUES ('o1', NULL, 'the parser', 1, 1);
            INSERT INTO message VALUES ('m1', 'o1', 1, '{"role": "user", "time": {"created": 1}}');
            INSERT INTO part VALUES ('p1', 'm1', 'o1', 1, '{"type": "text", "text": "rename the flag"}');
            INSERT INTO part VALUES ('p2', 'm1', 'o1', 2, '{"type": "novelty"}');
            """
        )
    return path


def all_tools(home: Path) -> None:
    """A session of each tool, in its default place, in each of which a person has written once."""
    append(claude_file(home / ".claude"), claude_row("1"))
    append(codex_file(home / ".codex"), codex_header(), codex_row())
    append(pi_file(home / ".pi" / "agent"), *pi_rows())
    append(gemini_file(home), *gemini_rows())
    opencode_database(home / ".local" / "share")
