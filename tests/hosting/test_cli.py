from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from kizuki.actors.hosting import bench as bench_command
from kizuki.actors.upstream.thread_key import thread_key
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.conftest import Kizuki, command, run_process
from tests.hosting.tools import CLAUDE_ID, append, claude_file, claude_row

COMMANDS = ("demo", "status", "list", "events", "watches", "notices", "doctor", "prune", "watch", "adopt", "hook", "bench", "serve-node")


def on_a_terminal(*arguments: object, environ: Mapping[str, str] | None = None) -> str:
    """What a command prints on a terminal of 80 columns."""
    reading, writing = pty.openpty()
    try:
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **(environ or {})}
        subprocess.run(command(*arguments), stdout=writing, stderr=subprocess.DEVNULL, env=env, timeout=60, check=True)
        return os.read(reading, 1_000_000).decode()
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("name", COMMANDS)
def test_help(kizuki: Kizuki, name: str) -> None:
    """Every command has help with examples."""
    ended = kizuki(name, "--help")
    assert ended.code == 0
    assert f"$ kizuki {name}" in ended.out


def test_help_of_watch(kizuki: Kizuki) -> None:
    """The help of `watch` says when the notices that it shows are acknowledged."""
    assert "A notice that was shown is acknowledged" in kizuki("watch", "--help").out


def test_all_commands(kizuki: Kizuki) -> None:
    """The help of `kizuki` lists each command and the exit codes; without a command it is a usage error."""
    ended = kizuki("-h")
    assert ended.code == 0
    assert [name for name in COMMANDS if f"│ {name} " not in ended.out] == []
    assert "4 history gap" in ended.out
    assert kizuki().code == 2


def test_version(kizuki: Kizuki) -> None:
    """`--version` prints the name and the version."""
    ended = kizuki("--version")
    assert (ended.code, ended.out.split()[0].rstrip(",")) == (0, "kizuki")


def test_colour_on_a_terminal(database: Path) -> None:
    """On a terminal there is colour, unless NO_COLOR is set: then there is no escape sequence at all."""
    assert "\x1b[" in on_a_terminal("list", "--db", database)
    plain = on_a_terminal("list", "--db", database, environ={"NO_COLOR": "1"})
    assert MAIN in plain
    assert "\x1b" not in plain


ADOPTED = thread_key("main", "claude", "local", CLAUDE_ID)
NARROW = (
    ("list", "SESSION", CHILD), ("events", "SESSION", CHILD), ("watches", "TARGET", CHILD), ("watch --once", "SESSION", ADOPTED),
    ("adopt claude", "SESSION", ADOPTED), ("adopt claude", "THREAD", CLAUDE_ID),
)  # fmt: skip


@pytest.mark.parametrize(("words", "name", "expected"), NARROW)
def test_narrow_terminals(database: Path, tmp_path: Path, words: str, name: str, expected: str) -> None:
    """However narrow the terminal, no line is wider, and keys and thread ids are shown with every character."""
    append(claude_file(tmp_path / "home" / ".claude"), claude_row("1"))
    environ = {"NO_COLOR": "1", "COLUMNS": "50", "KIZUKI_DB": str(database)}
    shown = on_a_terminal(*words.split(), environ=environ)
    assert max(len(line) for line in shown.splitlines()) <= 50
    assert expected in _column(shown, name)


def _column(shown: str, name: str) -> str:
    """What stands under one heading, put together again."""
    head, _, *lines = shown.splitlines()
    start = head.index(name)
    further = re.search(r"   \S", head[start:])
    end = start + further.start() if further else None
    return "".join(line[start:end].strip() for line in lines)


def test_no_colour_in_a_pipe(database: Path) -> None:
    """What goes into a pipe or a file has no escape sequences, and logs and errors are not in it."""
    ended = run_process("list", "--db", database)
    assert (ended.code, "\x1b" in ended.out, ended.err) == (0, False, "")


def test_broken_pipe(database: Path) -> None:
    """A reader that goes away ends the command quietly, as the signal would."""
    for arguments in (("events", "--db", database), ("events", "--json", "--db", database)):
        reading, writing = os.pipe()
        os.close(reading)
        ended = subprocess.run(command(*arguments), check=False, stdout=writing, stderr=subprocess.PIPE, timeout=60)
        os.close(writing)
        assert (ended.returncode, ended.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", ["events", "doctor --json", "watch --once", "watch --help"])
def test_a_full_disk(database: Path, words: str, unbuffered: str) -> None:
    """Output that cannot be written is one line on standard error and exit code 1."""
    with Path("/dev/full").open("wb") as full:
        env = {**os.environ, "KIZUKI_DB": str(database), "PYTHONUNBUFFERED": unbuffered}
        ended = subprocess.run(command(*words.split()), check=False, stdout=full, stderr=subprocess.PIPE, env=env, timeout=60)
    assert (ended.returncode, ended.stderr) == (1, b"error: standard output cannot be written: No space left on device\n")


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C ends the demo with exit code 130, without a traceback, and takes its processes along."""
    process = subprocess.Popen(command("demo", "--delay", 30, "--db", tmp_path / "d.db"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert b"opens the database" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"")


def test_other_encodings(database: Path) -> None:
    """A terminal that cannot show a text gets it escaped, in JSON as JSON escapes."""
    environ = {"PYTHONIOENCODING": "ascii"}
    ended = run_process("events", "--language", "ja", "--limit", 1, "--db", database, environ=environ)
    assert (ended.code, "\\u30b4" in ended.out) == (0, True)
    summary = run_process("events", "--language", "ja", "--limit", 1, "--json", "--db", database, environ=environ).document["events"][0][
        "summary"
    ]
    assert summary == "ゴールが作成されました"


def test_settings_reach_the_command(kizuki: Kizuki, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database and the language can come from the environment and from a file."""
    monkeypatch.setenv("KIZUKI_DB", str(database))
    Path("kizuki.toml").write_text('language = "ja"', "utf-8")
    assert "が変更されました" in kizuki("notices", MAIN).out
    assert "was changed" in kizuki("notices", MAIN, "--language", "en").out
    monkeypatch.setenv("KIZUKI_LANGUAGE", "fr")
    ended = kizuki("notices", MAIN)
    assert (ended.code, "environment variable KIZUKI_LANGUAGE" in ended.err) == (2, True)


@dataclass(frozen=True)
class BenchRow:
    """A row as the benchmarks give it."""

    suite: str
    name: str
    value: float
    unit: str
    baseline: float | None
    ratio: float | None
    target: str | None
    ok: bool


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks that measure nothing: the command is what is tested."""
    module = types.ModuleType(bench_command.PACKAGE)

    def run(names: list[str] | None, *, scale: str, progress: object) -> list[BenchRow]:
        rows = [BenchRow("commits", "events per second", 45_000.0, "1/s", 60_000.0, 0.75, ">= 0.5", ok=True)]
        return rows if names else [*rows, BenchRow("loop", "longest block", 0.12, "s", None, None, "<= 0.05", ok=scale == "quick")]

    module.__dict__.update(run=run, SUITES={"commits": "how fast", "loop": "how smooth"})
    monkeypatch.setitem(sys.modules, bench_command.PACKAGE, module)


@pytest.mark.usefixtures("suites")
def test_bench(kizuki: Kizuki) -> None:
    """`bench` shows each row, and ends with exit code 1 where a target is missed; an unknown suite is a usage error."""
    ended = kizuki("bench")
    assert ended.code == 1
    assert "45,000" in ended.out
    assert "missed" in ended.out
    assert kizuki("bench", "--quick").code == 0
    assert kizuki("bench", "--suite", "commits", "--json").document["ratio"] == 0.75
    unknown = kizuki("bench", "--suite", "none")
    assert (unknown.code, "there are commits, loop" in unknown.err) == (2, True)
