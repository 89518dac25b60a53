"""The command line on real databases: in this process where that is enough, as a process where signals, pipes or terminals matter."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import structlog

from kizuki.actors import Actor, Gateway, open_gateway
from kizuki.actors.hosting import cli
from kizuki.actors.hosting.doctor_catalogs import VARIABLES
from tests.hosting.cast import CHILD, GLOBAL, MAIN, OTHER

FROM_OUTSIDE = {"NO_COLOR", "FORCE_COLOR", "CLAUDE_CODE_ENTRYPOINT", *(name for names in VARIABLES.values() for name in names)}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on standard output."""
        return json.loads(self.out)


Kizuki = Callable[..., Ended]


@pytest.fixture(autouse=True)
def nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs each test in a folder of its own, without settings from outside, and without anybody's own sessions of agents' tools."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("KIZUKI_") or name in FROM_OUTSIDE]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def kizuki(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Kizuki]:
    """Runs a command in this process."""

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["kizuki", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    yield run
    structlog.reset_defaults()


def command(*arguments: object) -> list[str]:
    """The command line as a process of its own."""
    return [sys.executable, "-P", "-m", "kizuki.actors.hosting.entry", *map(str, arguments)]


def run_process(*arguments: object, environ: Mapping[str, str] | None = None, stdin: str | None = None) -> Ended:
    """Run a command as a process of its own, to its end."""
    env = {**os.environ, **(environ or {})}
    ended = subprocess.run(command(*arguments), check=False, input=stdin, capture_output=True, encoding="utf-8", env=env, timeout=60)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database in which things have happened, left by a gateway that is gone: see `fill`."""
    path = tmp_path / "state.db"

    async def make() -> None:
        async with open_gateway(path) as gateway:
            await fill(gateway)

    asyncio.run(make())
    return path


async def fill(gateway: Gateway) -> None:
    """The main session has two children; in one a person has written twice (2 and 3) and changed the goal (4)."""
    await gateway.open_session(MAIN, label="the manager")
    await gateway.spawn(MAIN, CHILD, run_id="r1")
    await gateway.human_message(CHILD, channel="telegram", actor_id="ada")
    await gateway.human_message(CHILD, channel="telegram", turns=3)
    await gateway.goal_changed(CHILD, "updated", actor=Actor.human())
    await gateway.spawn(MAIN, OTHER, run_id="r2")
    await gateway.goal_changed(GLOBAL, "created", actor=Actor.system(), agent_id="ops")
