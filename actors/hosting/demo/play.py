"""`kizuki demo`: the main job in ten seconds, with a real database, real processes, and a real SIGKILL.

The gateway runs in a process of its own, `process`, which this one drives step by step, checks, and kills.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO, cast

from ....storage import open_store
from ....storage.errors import StoreError
from ....storage.protocol import Store
from ...notices import watch
from ...summaries import Language
from ..exits import CommandFailed, ExitCode
from ..output import console, printable, write_json
from ..rows import watch_row
from .checks import Checks, DemoFailed, Step
from .process import LABEL, MANAGER, OTHER_CHILD, STEPPED_INTO
from .timeline import Timeline, commands

DATABASE: Final = "kizuki-demo.db"
DELAY_S: Final = 0.7
FIRST_LIFE: Final = 7
"""Steps that the first process reports before it is killed."""
SECOND_LIFE: Final = 3
END_TIMEOUT_S: Final = 10.0


def run_demo(database: Path, language: Language, *, delay_s: float, as_json: bool) -> ExitCode:
    """Run the demo on a fresh database, which it leaves behind. Raises `DemoFailed` where anything came out otherwise than it must."""
    _make_room(database)
    steps: list[Step] = []
    checks = Checks(language)
    timeline = None if as_json else Timeline(console())
    failure: DemoFailed | None = None

    def take(step: Step) -> None:
        steps.append(step)
        checks.check(step)
        if timeline is not None:
            timeline.show(step)

    try:
        _play(database, language, take, delay_s)
    except DemoFailed as error:
        failure = error
    if timeline is not None and failure is None:
        timeline.end(str(database), checks.passed)
    if as_json:
        write_json(_document(database, steps, checks, failure))
    if failure is not None:
        raise failure
    return ExitCode.OK


def _document(database: Path, steps: list[Step], checks: Checks, failure: DemoFailed | None) -> dict[str, Any]:
    failed = {} if failure is None else {"failed": failure.row()}
    figures = {"checks": checks.passed, "steps": len(steps)}
    return {"ok": failure is None, "database": str(database), "figures": figures, "steps": steps, "try": commands(str(database))} | failed


def _play(database: Path, language: Language, take: Callable[[Step], None], delay_s: float) -> None:
    with _process(database, "first", language) as first:
        for _ in range(FIRST_LIFE):
            take(_next_step(first))
            time.sleep(delay_s)
        first.kill()
        first.wait(END_TIMEOUT_S)
        take(_killed(database, first))
    time.sleep(delay_s)
    with _process(database, "second", language) as second:
        for _ in range(SECOND_LIFE):
            take(_next_step(second))
            time.sleep(delay_s)
        if second.wait(END_TIMEOUT_S) != 0:
            raise CommandFailed(f"the second process of the demo ended with {second.returncode}")


@contextmanager
def _process(database: Path, life: str, language: Language) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-P", "-m", f"{__package__}.process", str(database), life, language]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:  # noqa: S603, our own module
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def _next_step(process: subprocess.Popen[str]) -> Step:
    """Ask for one more step, and read what happened."""
    stdin, stdout = cast("TextIO", process.stdin), cast("TextIO", process.stdout)
    try:
        stdin.write("\n")
        stdin.flush()
        line = stdout.readline()
    except BrokenPipeError:
        line = ""
    if not line:
        raise CommandFailed(f"the demo's process ended early, with {process.wait(END_TIMEOUT_S)}: its own words are above")
    step: Step = json.loads(line)
    return step


def _killed(database: Path, process: subprocess.Popen[str]) -> Step:
    """How the process ended, and what it left in the file, as a third party reads it."""
    signal_name = signal.Signals(-process.returncode).name if process.returncode < 0 else None
    return {"step": "killed", "pid": process.pid, "signal": signal_name} | asyncio.run(_left_behind(database))


async def _left_behind(database: Path) -> dict[str, Any]:
    async with open_store(database, read_only=True) as store:
        statistics = await store.statistics()
        watches = [watch_row(watch(cursor)) for cursor in await store.cursors(MANAGER)]
    return {"eventsInFile": statistics.events, "watches": watches}


# -- the place of the database ---------------------------------------------------------------------------------------------


def _make_room(database: Path) -> None:
    """Remove what an earlier demo left; a file that no demo made is left alone, and the demo refused."""
    files = [database, *(database.with_name(database.name + suffix) for suffix in ("-wal", "-shm"))]
    if database.exists() and not asyncio.run(_is_demo(database)):
        raise CommandFailed(f"{printable(database)} is there and no demo made it: name another file with --db")
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise CommandFailed(f"{printable(database)} cannot be replaced: {error.strerror}") from error


async def _is_demo(database: Path) -> bool:
    """Whether the file is empty, or a database that holds the demo's sessions and no others."""
    if database.is_file() and database.stat().st_size == 0:  # noqa: ASYNC240, nothing else runs on this loop
        return True
    try:
        async with open_store(database, read_only=True) as store:
            return await _holds_only_the_demo(store)
    except StoreError:
        return False


async def _holds_only_the_demo(store: Store) -> bool:
    page = await store.sessions(agent_id=None, kind=None, parent=None, limit=4, after=None, with_total=False)
    keys = {record.address.session_key for record in page.sessions}
    labels = {record.label for record in page.sessions if record.address.session_key == MANAGER}
    return keys <= {MANAGER, STEPPED_INTO, OTHER_CHILD} and labels <= {LABEL}
