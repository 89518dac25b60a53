"""`kizuki watch` without files, on real sessions of the agents' tools in a home folder of the test's own."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import open_gateway
from kizuki.actors.hosting.follow import WATCHER
from kizuki.actors.upstream.thread_key import thread_key
from tests.hosting.conftest import Kizuki, command
from tests.hosting.tools import CLAUDE_ID, CODEX_ID, all_tools, append, claude_file, claude_row, codex_file, codex_row

CLAUDE_KEY = thread_key("main", "claude", "local", CLAUDE_ID)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    all_tools(path)
    return path


def once(kizuki: Kizuki, tmp_path: Path, *arguments: object) -> Any:
    ended = kizuki("watch", "--once", "--json", "--db", tmp_path / "w.db", *arguments)
    assert ended.code == 0, ended.err
    return ended.document


def sessions(document: Any) -> dict[str, Any]:
    return {row["catalog"]: row for row in document["sessions"]}


def test_first_look(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """The recent sessions of all tools are adopted from their present ends on, so that a first look has nothing to tell."""
    document = once(kizuki, tmp_path)
    assert set(sessions(document)) == {"claude", "codex", "pi", "gemini"}  # the one of opencode is of 1970
    claude = sessions(document)["claude"]
    assert (claude["sessionKey"], claude["threadId"], claude["stateVersion"] > 0) == (CLAUDE_KEY, CLAUDE_ID, True)
    assert (claude["lastActor"], claude["lastHumanTurn"], claude["pending"]) == (None, None, False)
    assert document["notices"] == []
    assert {source["catalog"]: source["threads"] for source in document["catalogs"]} == dict.fromkeys(
        ("claude", "codex", "pi", "gemini", "opencode"), 1
    )


def test_a_second_look(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """What a person wrote since the last look is told once, with the exact change and who it was."""
    once(kizuki, tmp_path)
    append(claude_file(home / ".claude"), claude_row("2"), claude_row("3"))
    before_ms = time.time_ns() // 1_000_000
    document = once(kizuki, tmp_path)
    claude = sessions(document)["claude"]
    assert (claude["lastActor"], claude["pending"]) == ("human", True)
    assert before_ms - 60_000 < claude["lastHumanTurn"] <= before_ms + 60_000
    (notice,) = document["notices"]
    (event,) = notice["stateChanges"]["events"]
    assert (notice["target"], event["payload"], document["tick"]["humanTurns"]) == (CLAUDE_KEY, {"turns": 2}, 2)
    assert document["sessions"][0] == claude
    third = once(kizuki, tmp_path)
    assert (third["notices"], sessions(third)["claude"]["lastHumanTurn"]) == ([], claude["lastHumanTurn"])


def test_which_sessions(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """Only sessions that were used lately are watched, the newest so many, and no sub-agents."""
    old, day = claude_file(home / ".claude", "old"), 86_400
    append(old, claude_row("1"))
    os.utime(old, (time.time() - 3 * day, time.time() - 3 * day))
    append(home / ".claude" / "projects" / "-w" / CLAUDE_ID / "subagents" / "agent-x.jsonl", claude_row("1"))

    def threads(*arguments: object) -> list[str]:
        return [row["threadId"] for row in once(kizuki, tmp_path, *arguments)["sessions"] if row["catalog"] == "claude"]

    assert threads("--days", 1) == [CLAUDE_ID]
    assert threads() == [CLAUDE_ID, "old"]
    assert len(once(kizuki, tmp_path, "--max", 2)["sessions"]) == 2


def test_a_catalog_that_cannot_be_read(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """A tool whose sessions cannot be read keeps nobody from seeing the others."""
    (home / ".local" / "share" / "opencode" / "opencode.db").write_text("this is no database" * 100, "utf-8")
    document = once(kizuki, tmp_path)
    (source,) = (source for source in document["catalogs"] if source["catalog"] == "opencode")
    assert ("cannot be read" in source["error"], len(document["sessions"])) == (True, 4)


def test_as_a_table(kizuki: Kizuki, home: Path, tmp_path: Path) -> None:
    """Looking once without --json prints the table; with nothing recent it says what to do."""
    assert "LAST HUMAN TURN" in kizuki("watch", "--once", "--db", tmp_path / "w.db").out
    assert "see --days" in kizuki("watch", "--once", "--days", 0, "--db", tmp_path / "w.db").out
    assert kizuki("watch", "--from-start", "--db", tmp_path / "w.db").code == 2


@asynccontextmanager
async def live(tmp_path: Path, *arguments: object) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    words = command("watch", "--interval", "0.1", "--db", tmp_path / "w.db", *arguments)
    process = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def read(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode()


async def interrupted(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    return process.returncode, err.decode()


async def test_in_a_pipe(home: Path, tmp_path: Path) -> None:
    """Into a pipe it prints plain lines: each session once, each notice with what changed. Ctrl-C ends it quietly."""
    async with live(tmp_path) as process:
        assert [line.split()[0] for line in [await read(process) for _ in range(4)]] == ["following"] * 4
        append(codex_file(home / ".codex"), codex_row())
        assert (await read(process)).split()[:2] == ["notice", "codex"]
        assert thread_key("main", "codex", "local", CODEX_ID) in await read(process)
        assert await interrupted(process) == (130, "")


async def test_json_lines(home: Path, tmp_path: Path) -> None:
    """With --json it is one object a line; what was told is not told again, not even by the next process."""
    async with live(tmp_path, "--json") as process:
        found = [json.loads(await read(process)) for _ in range(4)]
        assert {row["type"] for row in found} == {"following"}
        append(claude_file(home / ".claude"), claude_row("2"))
        notice = json.loads(await read(process))
        assert (notice["sessionKey"], notice["stateChanges"]["events"][0]["summary"]) == (CLAUDE_KEY, "human message via claude")
        append(claude_file(home / ".claude"), claude_row("3"))
        assert json.loads(await read(process))["text"] != notice["text"]
        assert await interrupted(process) == (130, "")
    async with open_gateway(tmp_path / "w.db") as gateway:
        assert await gateway.pending(WATCHER) == []


@contextmanager
def terminal(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    reading, writing = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "NO_COLOR": "1"}
    words = command("watch", "--interval", "0.1", "--db", tmp_path / "w.db")
    process = subprocess.Popen(words, stdout=writing, stderr=subprocess.PIPE, env=env)
    os.close(writing)
    try:
        yield process, reading
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
        os.close(reading)


def read_until(terminal_: int, word: str) -> str:
    seen = ""
    while word not in seen:
        seen += os.read(terminal_, 65_536).decode()
    return seen


def test_on_a_terminal(home: Path, tmp_path: Path) -> None:
    """On a terminal it is a table that is drawn anew; what it showed counts as told when it ends."""
    with terminal(tmp_path) as (process, screen):
        first = read_until(screen, "sessions watched")
        assert "LAST HUMAN TURN" in first
        assert "1 pending" not in first
        append(claude_file(home / ".claude"), claude_row("2"))
        assert "human" in read_until(screen, "1 pending")
        process.send_signal(signal.SIGINT)
        rest = b""
        while chunk := _read_to_the_end(screen):
            rest += chunk
        assert process.wait(timeout=60) == 130
        assert b"Traceback" not in rest

    async def told() -> list[object]:
        async with open_gateway(tmp_path / "w.db") as gateway:
            return list(await gateway.pending(WATCHER))

    assert asyncio.run(told()) == []


def _read_to_the_end(screen: int) -> bytes:
    try:
        return os.read(screen, 65_536)
    except OSError:  # the other end is closed
        return b""
