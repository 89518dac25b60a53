from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import GatewayConfig, open_gateway
from kizuki.actors.upstream.installed import installed_catalogs
from kizuki.actors.upstream.thread_key import thread_key
from tests.hosting.cast import MAIN
from tests.hosting.conftest import Kizuki, run_process
from tests.hosting.tools import CLAUDE_ID, CODEX_ID, all_tools, append, claude_file, claude_row, codex_file, codex_header, codex_row


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def tick(database: Path, watcher: str) -> list[dict[str, Any]]:
    """What a gateway with the catalogs of this machine has to tell the watcher after one check."""

    async def check() -> list[dict[str, Any]]:
        async with open_gateway(database, config=GatewayConfig(), catalogs=installed_catalogs()) as gateway:
            await gateway.check_upstream()
            notices = await gateway.drain(watcher)
            return [await gateway.session_status(notice.target, changes_since=notice.changes_since) for notice in notices]

    return asyncio.run(check())


@pytest.mark.parametrize(
    ("catalog", "thread"), [("claude", CLAUDE_ID), ("codex", CODEX_ID), ("pi", "p-1"), ("gemini", "g-1"), ("opencode", "o1")]
)
def test_each_tool(kizuki: Kizuki, home: Path, tmp_path: Path, catalog: str, thread: str) -> None:
    """Rule 7.1: the sessions of each tool are listed from its own folder, and adopting one links it to the session that the list names."""
    all_tools(home)
    (listed,) = kizuki("adopt", catalog, "--json").document["threads"]
    assert listed["threadId"] == thread
    ended = kizuki("adopt", catalog, thread, "--json", "--db", tmp_path / "a.db")
    assert (ended.code, ended.document["sessionKey"]) == (0, listed["sessionKey"])
    assert listed["sessionKey"] == thread_key("main", catalog, "local", thread)
    (event,) = kizuki("events", "--json", "--db", tmp_path / "a.db").document["events"]
    assert event["summary"] == f"session adopted via {catalog}"


def test_watched_and_noticed(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """A session adopted with --watcher is watched from its present end on: what a person appends is told to that watcher."""
    path, database = append(claude_file(home / ".claude"), claude_row("1")), tmp_path / "a.db"
    ended = kizuki("adopt", "claude", CLAUDE_ID, "--watcher", MAIN, "--json", "--db", database)
    assert ended.document["watched"] is True
    append(path, claude_row("2"), claude_row("3"))
    (status,) = tick(database, MAIN)
    assert status["sessionKey"] == ended.document["sessionKey"]
    assert [(event["summary"], event["payload"]) for event in status["stateChanges"]["events"]] == [
        ("human message via claude", {"turns": 2})
    ]


def test_environment_variables(kizuki: Kizuki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's own environment variable says where its sessions are."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    append(codex_file(tmp_path / "elsewhere"), codex_header(), codex_row())
    assert [row["threadId"] for row in kizuki("adopt", "codex", "--json").document["threads"]] == [CODEX_ID]


def test_newest_first_and_limited(kizuki: Kizuki, home: Path) -> None:
    """The newest come first, at most so many as asked for, and what is left out is counted; sub-agents are listed on demand."""
    import os

    for number in range(3):
        path = append(claude_file(home / ".claude", f"t-{number}"), claude_row("1"))
        os.utime(path, (1_000 + number, 1_000 + number))
    append(home / ".claude" / "projects" / "-w" / "t-0" / "subagents" / "agent-x.jsonl", claude_row("1"))
    document = kizuki("adopt", "claude", "--limit", 2, "--json").document
    assert ([row["threadId"] for row in document["threads"]], document["total"]) == (["t-2", "t-1"], 3)
    assert "1 more" in kizuki("adopt", "claude", "--limit", 2).out
    assert kizuki("adopt", "claude", "--children", "--json").document["total"] == 4
    assert kizuki("adopt", "claude").code == 0


def test_what_is_not_there(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """An unknown thread ends with 3, an unknown catalog with 2; both say what is allowed, and no database is made."""
    all_tools(home)
    missing = kizuki("adopt", "claude", "none", "--db", tmp_path / "a.db")
    assert (missing.code, "kizuki adopt claude" in missing.err) == (3, True)
    unknown = kizuki("adopt", "cursor")
    assert (unknown.code, "claude, codex, pi, gemini, opencode" in unknown.err) == (2, True)
    assert kizuki("adopt", "claude", CLAUDE_ID, "--host", "other", "--db", tmp_path / "a.db").code == 3
    assert not (tmp_path / "a.db").exists()
    assert kizuki("adopt", "pi", "--json", "--limit", 1).document["total"] == 1


def test_a_tool_that_was_never_used(kizuki: Kizuki) -> None:
    """Of a tool that was never used here there is nothing to list, and that is no error."""
    ended = kizuki("adopt", "gemini", "--json")
    assert (ended.code, ended.document) == (0, {"catalog": "gemini", "threads": [], "total": 0})
    assert "no sessions" in kizuki("adopt", "gemini").out


def test_wrong_watchers_and_keys(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """A key that can never watch, or is the adopted one, is refused before anything is done; another name and agent can be asked for."""
    all_tools(home)
    database = tmp_path / "a.db"
    assert kizuki("adopt", "claude", CLAUDE_ID, "--watcher", "global", "--db", database).code == 2
    itself = kizuki("adopt", "claude", CLAUDE_ID, "--watcher", thread_key("main", "claude", "local", CLAUDE_ID), "--db", database)
    assert (itself.code, "cannot watch itself" in itself.err) == (2, True)
    assert kizuki("adopt", "claude", CLAUDE_ID, "--key", MAIN, "--watcher", "Agent:MAIN:main", "--db", database).code == 2
    assert not database.exists()
    assert kizuki("adopt", "claude", "--watcher", MAIN).code == 2
    named = kizuki("adopt", "claude", CLAUDE_ID, "--key", "agent:ops:notes", "--json", "--db", database).document
    assert (named["sessionKey"], named["agentId"]) == ("agent:ops:notes", "ops")
    own = kizuki("adopt", "codex", CODEX_ID, "--agent", "ops", "--json", "--db", database).document
    assert own["sessionKey"] == thread_key("ops", "codex", "local", CODEX_ID)


def test_a_tools_database_that_is_none(kizuki: Kizuki, home: Path) -> None:
    """What is there and cannot be read is an error that says so."""
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    path.write_text("this is no database" * 100, "utf-8")
    with pytest.raises(sqlite3.Error):
        sqlite3.connect(path).execute("SELECT * FROM session")
    ended = kizuki("adopt", "opencode")
    assert (ended.code, "cannot be read" in ended.err) == (1, True)


def test_as_a_process(home: Path, tmp_path: Path) -> None:
    """The command as a shell runs it prints one JSON document, and nothing else."""
    all_tools(home)
    ended = run_process("adopt", "claude", CLAUDE_ID, "--json", "--db", tmp_path / "a.db")
    assert (ended.code, ended.document["threadId"], ended.err) == (0, CLAUDE_ID, "")
