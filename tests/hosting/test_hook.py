"""`kizuki hook claude` as Claude Code runs it: a process for each event, with the event on its standard input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kizuki.actors import Gateway, open_gateway
from kizuki.actors.upstream.installed import installed_catalogs
from kizuki.actors.upstream.thread_key import thread_key
from tests.hosting.conftest import Ended, Kizuki, command, run_process
from tests.hosting.tools import append, claude_file, claude_row

T = TypeVar("T")

ME = thread_key("main", "claude", "local", "session-1")
OTHER = thread_key("main", "claude", "local", "session-2")
PATIENT = ("--deadline", 30)
"""For a machine that is busy with other tests."""


def event(name: str = "UserPromptSubmit", session: str = "session-1", **fields: object) -> str:
    common = {"session_id": session, "transcript_path": "/none.jsonl", "cwd": "/w", "permission_mode": "default", "hook_event_name": name}
    return json.dumps(common | ({"prompt": "rename the flag"} if name == "UserPromptSubmit" else {}) | fields)


def hook(database: Path, said: str, *arguments: object, environ: dict[str, str] | None = None) -> Ended:
    return run_process("hook", "claude", "--db", database, *(arguments or PATIENT), stdin=said, environ=environ)


def context(ended: Ended) -> str:
    """What the model is told; empty where the hook said nothing."""
    assert ended.code == 0, ended.err
    return ended.document["hookSpecificOutput"]["additionalContext"] if ended.out else ""


def with_gateway(database: Path, use: Callable[[Gateway], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_gateway(database, catalogs=installed_catalogs()) as gateway:
            return await use(gateway)

    return asyncio.run(run())


@pytest.fixture
def watching(tmp_path: Path) -> Path:
    """A database in which session 1 watches session 2, where a person has written: version 1."""
    database = tmp_path / "h.db"

    async def fill(gateway: Gateway) -> None:
        await gateway.watch(ME, OTHER)
        await gateway.human_message(OTHER, channel="telegram")

    with_gateway(database, fill)
    return database


def pending(database: Path) -> list[str]:
    async def look(gateway: Gateway) -> list[str]:
        return [notice.target for notice in await gateway.pending(ME)]

    return with_gateway(database, look)


def kinds(kizuki: Kizuki, database: Path, key: str) -> list[str]:
    ended = kizuki("events", key, "--json", "--db", database)
    return [row["kind"] for row in ended.document["events"]] if ended.code == 0 else []


# -- what the model is told --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["UserPromptSubmit", "SessionStart", "PostToolUse"])
def test_a_notice_is_told_once(watching: Path, name: str) -> None:
    """Rule 4.8: what is pending is told as a fact with its versions, acknowledged by that, and not told again."""
    told = hook(watching, event(name))
    assert told.document["hookSpecificOutput"]["hookEventName"] == name
    assert f'session "{OTHER}" was changed by another actor' in context(told)
    assert "last knew its state version 0; the change is version 1" in context(told)
    assert hook(watching, event(name)).out == ""
    assert pending(watching) == []


@pytest.mark.parametrize("name", ["SubagentStart", "SubagentStop", "PreCompact", "Stop", "Notification"])
def test_events_whose_answer_the_model_does_not_get(watching: Path, name: str) -> None:
    """A hook whose answer would not reach the session's own model leaves its notices pending."""
    assert hook(watching, event(name, agent_id="a1")).out == ""
    assert pending(watching) == [OTHER]


def test_events_of_sub_agents(watching: Path) -> None:
    """A tool that a sub-agent uses is no moment to tell its parent."""
    assert hook(watching, event("PostToolUse", agent_id="a1", tool_name="Bash")).out == ""
    assert pending(watching) == [OTHER]


def test_the_command_that_it_names(watching: Path) -> None:
    """The command in the text can be run as it stands, and tells what changed."""
    line = context(hook(watching, event()))
    named = shlex.split(line.partition("told by: ")[2].partition(" (as a tool")[0])
    assert named[0] == "kizuki"
    ended = run_process(*named[1:], "--json")
    assert [change["summary"] for change in ended.document["stateChanges"]["events"]] == ["human message via telegram"]


def test_in_japanese(watching: Path) -> None:
    """The language is a setting."""
    assert "状態バージョン" in context(hook(watching, event(), *PATIENT, environ={"KIZUKI_LANGUAGE": "ja"}))


def test_more_than_fit(tmp_path: Path) -> None:
    """Rule 4.7: an answer holds what a model is shown whole; the rest is told by the next ones, each notice once."""
    database = tmp_path / "h.db"
    targets = [f"agent:main:telegram:group:{number}-{'x' * 100}" for number in range(30)]

    async def fill(gateway: Gateway) -> None:
        for target in targets:
            await gateway.watch(ME, target)
            await gateway.human_message(target, channel="telegram")

    with_gateway(database, fill)
    answers = []
    while text := context(hook(database, event())):
        answers.append(text)
    assert [target for text in answers for target in targets if f'session "{target}"' in text] == targets
    assert len(answers) > 1
    assert max(map(len, answers)) <= 10_000


def test_a_gateway_beside_it(tmp_path: Path) -> None:
    """Rule 8.1: beside a running gateway a hook records into the same log, and that gateway's watchers have the notice."""
    database = tmp_path / "h.db"

    async def beside(gateway: Gateway) -> list[str]:
        await gateway.watch("agent:main:main", ME)
        await asyncio.to_thread(hook, database, event())
        return [notice.target for notice in await gateway.pending("agent:main:main")]

    assert with_gateway(database, beside) == [ME]


def test_the_settings_to_paste(watching: Path, pytestconfig: pytest.Config) -> None:
    """The settings in the README are JSON, and each command in them answers its event."""
    readme = (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
    blocks = [json.loads(block.partition("```")[0]) for block in readme.split("```json\n")[1:]]
    (settings,) = (block for block in blocks if "hooks" in block)
    told = []
    for name, entries in settings["hooks"].items():
        tool, *words = shlex.split(entries[0]["hooks"][0]["command"])
        words[words.index("--db") + 1] = str(watching)
        ended = run_process(*words, *PATIENT, stdin=event(name, agent_id="a1") if name.startswith("Subagent") else event(name))
        assert (tool, ended.code, ended.err) == ("kizuki", 0, "")
        told.append(bool(ended.out))
    assert (next(iter(settings["hooks"])), told) == ("SessionStart", [True, False, False, False, False])


# -- what is recorded --------------------------------------------------------------------------------------------------------


def watched(database: Path) -> Path:
    with_gateway(database, lambda gateway: gateway.watch("agent:main:main", ME))
    return database


def test_prompts(tmp_path: Path, kizuki: Kizuki) -> None:
    """Rule 1.8: a person's prompt is recorded of a watched session, and of no other."""
    database = watched(tmp_path / "h.db")
    hook(database, event())
    hook(database, event(session="session-2"))
    assert kinds(kizuki, database, ME) == ["human_direct_message"]
    assert kinds(kizuki, database, OTHER) == []
    (row,) = kizuki("events", ME, "--json", "--db", database).document["events"]
    assert (row["actorType"], row["summary"]) == ("human", "human message via claude")


@pytest.mark.parametrize(
    ("fields", "entrypoint"),
    [
        ({"source": "sdk"}, "cli"),
        ({"source": "schedule_wakeup"}, "cli"),
        ({"source": "something new"}, "cli"),
        ({}, "sdk-py"),
        ({"prompt": "<task-notification>done</task-notification>"}, "cli"),
        ({"prompt": "  "}, "cli"),
        ({"prompt": None}, "cli"),
        ({"agent_id": "a1"}, "cli"),
    ],
)
def test_prompts_that_nobody_wrote(tmp_path: Path, kizuki: Kizuki, fields: dict[str, Any], entrypoint: str) -> None:
    """What a program or the tool itself submits is no person's turn."""
    database = watched(tmp_path / "h.db")
    assert hook(database, event(**fields), environ={"CLAUDE_CODE_ENTRYPOINT": entrypoint}).code == 0
    assert kinds(kizuki, database, ME) == []


def test_prompts_that_a_person_wrote(tmp_path: Path, kizuki: Kizuki) -> None:
    """A prompt that the tool says a person wrote counts, whatever it mentions."""
    database = watched(tmp_path / "h.db")
    hook(database, event(source="user", prompt="what does <task-notification> mean?"), environ={"CLAUDE_CODE_ENTRYPOINT": "cli"})
    assert kinds(kizuki, database, ME) == ["human_direct_message"]


def test_sub_agents(tmp_path: Path, kizuki: Kizuki) -> None:
    """Rules 1.6 and 3.1: a sub-agent's start and end are recorded once each, and its parent watches it."""
    database = watched(tmp_path / "h.db")
    for _ in range(2):
        hook(database, event("SubagentStart", agent_id="a1", agent_type="Explore"))
        hook(database, event("SubagentStop", agent_id="a1", agent_transcript_path="/w/session-1/subagents/agent-a1.jsonl"))
    child = thread_key("main", "claude", "local", "agent-a1")
    assert kinds(kizuki, database, child) == ["child_spawned", "run_completed"]
    (watch,) = kizuki("watches", ME, "--json", "--db", database).document["watches"]
    assert watch["target"] == child
    assert hook(database, event("SubagentStop")).err == ""


def test_compaction(tmp_path: Path, kizuki: Kizuki) -> None:
    """A compaction is recorded; one of a sub-agent's own history is none of the session's."""
    database = watched(tmp_path / "h.db")
    hook(database, event("PreCompact", trigger="auto"))
    hook(database, event("PreCompact", trigger="auto", agent_id="a1"))
    assert kinds(kizuki, database, ME) == ["compacted"]


def test_adopted_and_hooked_are_one(tmp_path: Path, kizuki: Kizuki) -> None:
    """What both the hook and the check of an adopted session see counts once, under one key."""
    database, home = tmp_path / "h.db", tmp_path / "home" / ".claude"
    path = append(claude_file(home, "session-1"), claude_row("1"))
    adopted = kizuki("adopt", "claude", "session-1", "--watcher", "agent:main:main", "--json", "--db", database).document
    assert adopted["sessionKey"] == ME
    hook(database, event())
    hook(database, event("SubagentStart", agent_id="a1"))
    append(path, claude_row("2"))
    append(path.with_suffix("") / "subagents" / "agent-a1.jsonl", claude_row("3", isSidechain=True))
    with_gateway(database, lambda gateway: gateway.check_upstream())
    assert kinds(kizuki, database, ME) == ["adopted", "human_direct_message"]
    assert kinds(kizuki, database, thread_key("main", "claude", "local", "agent-a1")) == ["child_spawned"]


def test_another_agent(tmp_path: Path, kizuki: Kizuki) -> None:
    """The sessions can belong to another agent, as adopted ones can."""
    key = thread_key("ops", "claude", "local", "session-1")
    database = tmp_path / "h.db"
    with_gateway(database, lambda gateway: gateway.watch("agent:main:main", key))
    hook(database, event(), "--agent=Ops", *PATIENT)
    assert kinds(kizuki, database, key) == ["human_direct_message"]


# -- failing open ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said", ["", "junk", "[]", "null", "{}", '{"session_id": 1, "hook_event_name": "Stop"}', '{"session_id": "s"'])
def test_what_is_no_event(watching: Path, said: str) -> None:
    """What is no event ends with 0, without output, and with a line that says so."""
    ended = hook(watching, said)
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "", 1)
    assert ended.err.startswith("kizuki hook: ")


@pytest.mark.parametrize(
    "arguments",
    [("hook",), ("hook", ""), ("hook", "--db", "s.db"), ("hook", "none"), ("hook", "claude", "--what"), ("hook", "claude", "extra"),
     ("hook", "claude", "--deadline", "soon")],
)  # fmt: skip
def test_wrong_arguments(arguments: tuple[str, ...]) -> None:
    """A hook that is called wrongly must not end with the code that vetoes a prompt."""
    ended = run_process(*arguments, stdin=event())
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "", 1)


@pytest.mark.parametrize("database", ["none.db", "folder/none.db", "text.db", ".", "postgresql://host/name", "old.db"])
def test_databases_that_cannot_be_used(tmp_path: Path, database: str) -> None:
    """A database that is not there, is none, or is of another version makes no noise; and none is created."""
    (tmp_path / "text.db").write_text("this is a text and no database" * 50, "utf-8")
    with contextlib.closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript(f"PRAGMA application_id = {0x6B697A75}; PRAGMA user_version = 99;")
    before = sorted(tmp_path.iterdir())
    ended = run_process("hook", "claude", "--db", database, *PATIENT, stdin=event())
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "", 1)
    assert sorted(tmp_path.iterdir()) == before


def test_wrong_settings(watching: Path) -> None:
    """A wrong setting makes no noise, either, and the notice stays."""
    ended = hook(watching, event(), environ={"KIZUKI_LANGUAGE": "fr"})
    assert (ended.code, ended.out, "KIZUKI_LANGUAGE" in ended.err) == (0, "", True)
    assert pending(watching) == [OTHER]


@contextlib.contextmanager
def held(database: Path) -> Iterator[None]:
    """Another process has the write lock."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def test_the_deadline(watching: Path) -> None:
    """A database that stays locked is given up at the deadline: exit code 0, no output, and the notice is there for the next hook."""
    with held(watching):
        ended = hook(watching, event(), "--deadline", "0.5")
    assert (ended.code, ended.out, ended.err.count("\n")) == (0, "", 1)
    assert OTHER in context(hook(watching, event()))


def test_an_event_that_never_comes(watching: Path) -> None:
    """A standard input that stays open is given up at the deadline."""
    reading, writing = os.pipe()
    process = subprocess.Popen(command("hook", "claude", "--db", watching, "--deadline", "0.3"), stdin=reading, stderr=subprocess.PIPE)
    _, err = process.communicate(timeout=30)
    os.close(reading)
    os.close(writing)
    assert (process.returncode, b"gave up" in err) == (0, True)


# -- dying in between --------------------------------------------------------------------------------------------------------


def started(database: Path, stdout: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command("hook", "claude", "--db", database, *PATIENT), stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(event().encode())
    process.stdin.close()
    process.stdin = None
    return process


def fill_up(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x" * 4096)
    os.set_blocking(pipe, True)


def is_held(database: Path) -> bool:
    with contextlib.closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_while_it_answers(watching: Path, by: signal.Signals) -> None:
    """Rule 4.8: a hook that is killed while it writes its answer has acknowledged nothing; the next one tells it."""
    reading, writing = os.pipe()
    fill_up(writing)
    process = started(watching, writing)
    until = time.monotonic() + 30
    while not is_held(watching):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(by)
    process.communicate(timeout=30)
    os.close(reading)
    os.close(writing)
    assert process.returncode == -by
    assert OTHER in context(hook(watching, event()))


def test_nobody_reads_the_answer(watching: Path) -> None:
    """An answer that nobody could read acknowledges nothing."""
    reading, writing = os.pipe()
    os.close(reading)
    process = started(watching, writing)
    os.close(writing)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.count(b"\n")) == (0, 1)
    assert pending(watching) == [OTHER]


def test_hooks_at_once(watching: Path) -> None:
    """Rule 8.3: of several hooks of a session at the same moment exactly one has the notice."""
    processes = [started(watching, subprocess.PIPE) for _ in range(4)]
    answers = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert sum(OTHER.encode() in out for out in answers) == 1


# -- what it costs to start -------------------------------------------------------------------------------------------------------


def test_what_is_imported() -> None:
    """A hook starts without a loop, without actors, and without the command line."""
    heavy = ["asyncio", "pykka", "aiosqlite", "structlog", "typer", "rich", "importlib.resources", "kizuki.actors.gateway"]
    code = f"import sys, kizuki.actors.hosting.entry, kizuki.actors.hosting.hook; print([n for n in {heavy} if n in sys.modules])"
    ended = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "[]"


def test_the_write_ahead_log_is_put_away(watching: Path, kizuki: Kizuki) -> None:
    """Hooks alone do not let the write-ahead log grow, and leave a sound database."""
    for _ in range(3):
        hook(watching, event("PreCompact"))
    log = watching.with_name("h.db-wal")
    assert not log.exists() or log.stat().st_size == 0
    assert kizuki("doctor", "--db", watching).code == 0
