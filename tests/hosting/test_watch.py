from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import open_gateway
from kizuki.actors.hosting.follow import WATCHER
from kizuki.actors.hosting.transcripts import FollowedFile, session_key
from kizuki.actors.upstream.files.follower import Restart
from kizuki.actors.upstream.formats.recognise import recognise
from tests.hosting.conftest import Kizuki, command
from tests.hosting.tools import append, claude_row, codex_file, codex_header, codex_row, gemini_file, gemini_rows, line, pi_rows

LONG_AGO_MS = 0


def row(uuid: str, text: str = "rename the flag", **fields: object) -> str:
    """One row that a person typed now."""
    typed = {"type": "user", "uuid": uuid, "timestamp": datetime.now(UTC).isoformat(), "origin": {"kind": "human"}, "promptSource": "typed"}
    return json.dumps(typed | {"message": {"role": "user", "content": text}} | fields) + "\n"


def transcript(path: Path, *rows: str) -> Path:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(rows)
    return path


def test_whole_files(kizuki: Kizuki, tmp_path: Path) -> None:
    """`--from-start --once --json` prints one object a file, and makes no database."""
    first = transcript(tmp_path / "a.jsonl", row("1"), row("2"), '{"type": "assistant"}\n', '{"type": "novelty"}\n', "broken\n")
    second = transcript(tmp_path / "b.jsonl")
    ended = kizuki("watch", "--from-start", "--once", "--json", first, second)
    found = [json.loads(line) for line in ended.out.splitlines()]
    names = ("path", "catalog", "rows", "humanTurns", "unknownRows")
    assert [tuple(report[name] for name in names) for report in found] == [
        (str(first), "claude", 4, 2, 2),
        (str(second), "claude", 0, 0, 0),
    ]
    assert (ended.code, list(tmp_path.glob("*.db*"))) == (0, [])
    assert "HUMAN TURNS" in kizuki("watch", "--from-start", "--once", first).out


def test_real_transcripts(kizuki: Kizuki, pytestconfig: pytest.Config) -> None:
    """In each of the two real transcripts there is exactly one turn of a person."""
    files = sorted((pytestconfig.rootpath.parent / "shared" / "fixtures" / "claude").glob("*.jsonl"))
    if not files:
        pytest.skip("fixtures: the real transcripts are not here")
    ended = kizuki("watch", "--from-start", "--once", "--json", *files)
    assert [json.loads(line)["humanTurns"] for line in ended.out.splitlines()] == [1, 1]


def test_files_of_every_tool(kizuki: Kizuki, tmp_path: Path) -> None:
    """A transcript of any tool is recognised by what it begins with, whatever it is called, and its catalog is named accordingly."""
    rows = {"codex": (codex_header(), codex_row()), "pi": pi_rows(), "gemini": gemini_rows(), "claude": (claude_row("1"),)}
    files = [transcript(tmp_path / f"{number}.jsonl", *rows[name]) for number, name in enumerate(rows)]
    ended = kizuki("watch", "--from-start", "--once", "--json", *files)
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [(report["catalog"], report["humanTurns"], report["unknownRows"]) for report in found] == [(name, 1, 0) for name in rows]


def test_recognising(tmp_path: Path) -> None:
    """A header too long to be read whole is enough, and of a file without rows its name and place tell."""
    long = line({"timestamp": "", "type": "session_meta", "payload": {"base_instructions": "x" * 200_000}})
    assert recognise(transcript(tmp_path / "a", long)).name == "codex"
    for empty, name in ((codex_file(tmp_path), "codex"), (gemini_file(tmp_path), "gemini"), (tmp_path / "b.jsonl", "claude")):
        assert recognise(append(empty)).name == name
    assert recognise(transcript(tmp_path / "c", "junk\n", claude_row("1"))).name == "claude"


def test_compressed(kizuki: Kizuki, tmp_path: Path) -> None:
    """A compressed transcript is refused with what to do about it."""
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    ended = kizuki("watch", "--from-start", "--once", path)
    assert (ended.code, "compressed" in ended.err) == (1, True)


async def test_another_tool_live(tmp_path: Path) -> None:
    """A followed transcript of another tool is recorded under that tool's name."""
    path = transcript(tmp_path / "a.jsonl", codex_header())
    async with watching(path, "--db", tmp_path / "w.db") as process:
        assert (await said(process))["sessionKey"] == session_key(path, "codex")
        transcript(path, codex_row())
        (event,) = (await said(process))["stateChanges"]["events"]
        assert event["summary"] == "human message via codex"
        assert await interrupted(process) == (130, "")


def test_files_that_cannot_be_read(kizuki: Kizuki, tmp_path: Path) -> None:
    """A missing file and a folder are errors of their own, and the files beside them are handled."""
    good = transcript(tmp_path / "a.jsonl", row("1"))
    missing = kizuki("watch", "--from-start", "--once", "--json", tmp_path / "none", good)
    assert (missing.code, json.loads(missing.out)["humanTurns"]) == (3, 1)
    assert "there is no such file" in missing.err
    folder = kizuki("watch", "--from-start", "--once", "--json", tmp_path, good)
    assert (folder.code, json.loads(folder.out)["humanTurns"]) == (1, 1)
    assert kizuki("watch", tmp_path / "none").code == 3


def test_once_without_from_start(kizuki: Kizuki, tmp_path: Path) -> None:
    """Looking once from the end finds nothing, and a line on standard error says why."""
    ended = kizuki("watch", "--once", "--json", transcript(tmp_path / "a.jsonl", row("1")))
    assert (ended.code, json.loads(ended.out)["rows"]) == (0, 0)
    assert "--from-start" in ended.err


def test_session_keys(tmp_path: Path) -> None:
    """A file's session key is the same each time, and another for another file."""
    keys = [session_key(path) for path in (tmp_path / "a", tmp_path / "a", tmp_path / "b", Path("a"))]
    assert keys[0] == keys[1] == keys[3] != keys[2]
    assert keys[0].startswith("agent:main:catalog:claude:")


def test_nothing_moves_until_it_is_kept(tmp_path: Path) -> None:
    """What was found is found again until it is kept, with the same name; then only what is added is found."""
    path = transcript(tmp_path / "a.jsonl", row("1"), row("2"))
    file = FollowedFile(path, LONG_AGO_MS, from_start=True)
    found = file.scan()
    again = file.scan()
    assert (found.rows, found.turns) == (again.rows, again.turns) == (2, 2)
    assert found.name == again.name
    file.keep(again)
    assert file.scan().turns == 0
    transcript(path, row("3"), row("1"))
    assert file.scan().turns == 1


def test_a_file_that_becomes_another(tmp_path: Path) -> None:
    """Rule 7.7: a file that became smaller is followed from its new end."""
    path = transcript(tmp_path / "a.jsonl", row("1"), row("2"))
    file = FollowedFile(path, LONG_AGO_MS, from_start=False)
    path.write_text(row("3"), "utf-8")
    found = file.scan()
    assert (found.restart, found.turns) == (Restart.TRUNCATED, 0)
    file.keep(found)
    transcript(path, row("4"))
    assert file.scan().turns == 1


@asynccontextmanager
async def watching(*arguments: object) -> AsyncIterator[asyncio.subprocess.Process]:
    """`kizuki watch --json` as a process, which is killed if it is still running afterwards."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command("watch", "--json", *arguments), stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def said(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    async with asyncio.timeout(30):
        line: dict[str, Any] = json.loads(await process.stdout.readline())
    return line


async def interrupted(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    return process.returncode, err.decode()


async def test_live(tmp_path: Path) -> None:
    """Rule 1.5: turns appended to a file become one event and one notice with the exact change; Ctrl-C ends it quietly."""
    path = transcript(tmp_path / "a.jsonl", row("0"))
    async with watching(path, "--db", tmp_path / "w.db") as process:
        following = await said(process)
        assert following == {"type": "following", "path": str(path), "sessionKey": session_key(path)}
        transcript(path, row("1") + row("2"))
        first = await said(process)
        (event,) = first["stateChanges"]["events"]
        assert (event["summary"], event["payload"]) == ("human message via claude", {"turns": 2})
        assert first["text"].endswith("changesSince 0.")
        transcript(path, row("3"))
        second = await said(process)
        assert second["text"].endswith(f"changesSince {event['sequence']}.")
        assert await interrupted(process) == (130, "")


async def test_from_start_twice(tmp_path: Path) -> None:
    """Rule 1.6: a file that is read from its start again records nothing again, and what was added meanwhile is recorded."""
    path, database = transcript(tmp_path / "a.jsonl", row("1"), row("2")), tmp_path / "w.db"
    async with watching("--from-start", path, "--db", database) as process:
        await said(process)
        assert (await said(process))["stateChanges"]["events"][0]["payload"] == {"turns": 2}
    async with watching("--from-start", path, "--db", database) as process:
        await said(process)
        transcript(path, row("3"))
        events = (await said(process))["stateChanges"]["events"]
        assert len(events) == 1


async def test_a_notice_that_was_not_shown(tmp_path: Path) -> None:
    """A notice that is pending from before is shown as the command starts, and only once."""
    path, database = transcript(tmp_path / "a.jsonl"), tmp_path / "w.db"
    async with open_gateway(database) as gateway:
        await gateway.watch(WATCHER, session_key(path))
        await gateway.human_message(session_key(path), channel="claude")
        (pending,) = [notice.text for notice in await gateway.pending(WATCHER)]
    async with watching(path, "--db", database) as process:
        await said(process)
        assert (await said(process))["text"] == pending
        transcript(path, row("1"))
        assert (await said(process))["text"].endswith("changesSince 1.")
