"""`kizuki hook`: one hook event of an agent's tool on standard input, the session's pending notices on standard output.

The tool waits for this process, and a person waits for the tool. So it imports little, has a deadline, and fails open: whatever goes wrong,
it ends with exit code 0, without output, and with a line on standard error. No other code will do, for some tools take 2 as a veto.

A notice is acknowledged exactly if the tool gets it. Recording, taking and acknowledging are one transaction; the answer is written
before that is committed, and the process ends with the commit. Whoever kills it before has a hook that failed, whose output
counts for nothing, and the transaction is gone with it: the notice is there for the next hook. Two hooks of one session at once
wait for each other, and only one has the notice.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from ...storage.records import Cursor, Shown
from ...storage.sqlite.visit import Visit, visiting
from ...storage.writes import Acknowledge, OpenOwed
from ..drafts import draft
from ..messages import Compacted, HumanTurn
from .claude_hook import Heard, answer, heard
from .settings import Flag, Settings, load_settings

DEADLINE_S: Final = 0.2
"""From the start of the program to the beginning of its answer. Python's own start comes before it."""
TOOLS: Final = ("claude",)
_FLAGS: Final = ("--db", "--agent", "--config", "--deadline")


class Options(NamedTuple):
    """How the hook was called."""

    db: str | None = None
    agent: str = "main"
    config: str | None = None
    deadline_s: float = DEADLINE_S


def run_hook(arguments: Sequence[str]) -> NoReturn:
    """Answer one event, as the words of the command line say, and end the process."""
    try:
        tool, *words = arguments or ("",)
        _check_tool(tool)
        options = _options(words)
    except ValueError as error:
        complain(str(error))
        os._exit(0)
    answer_event(tool, options)


def answer_event(tool: str, options: Options) -> NoReturn:
    """Answer one event, and end the process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever interrupts it wants no answer any more
    deadline = Deadline(options.deadline_s)
    try:
        _check_tool(tool)
        _answer(options, sys.stdin.buffer.read(), deadline)
    except BaseException as error:  # noqa: BLE001 - a person's prompt must not fail because of this
        deadline.keep()  # or both would complain where a lock is given up just then
        complain(str(error) or repr(error))
    os._exit(0)


def _check_tool(tool: str) -> None:
    if not tool:
        raise ValueError(f"name the tool: {', '.join(TOOLS)}")
    if tool not in TOOLS:
        raise ValueError(f"there is no tool {tool!r}, but {', '.join(TOOLS)}")


def complain(what: str) -> None:
    """One line on standard error, if anybody reads there."""
    line = "".join(character if character.isprintable() else "?" for character in f"kizuki hook: {what}")
    try:
        os.write(2, f"{line}\n".encode("utf-8", "replace"))
    except OSError:
        return


class Deadline:
    """Ends the process in silence when its time is up, unless the answer has begun by then."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._gate = threading.Lock()
        self._kept = False
        timer = threading.Timer(seconds, self._over)
        timer.daemon = True
        timer.start()

    def left_s(self) -> float:
        """How many seconds are left."""
        return max(0.0, self._until - time.monotonic())

    def keep(self) -> None:
        """The answer begins, and is carried through. Does not return when it is too late for that."""
        if not self._kept and not self._gate.acquire(blocking=False):
            time.sleep(60)  # the other thread is just ending the process
        self._kept = True

    def _over(self) -> None:
        if self._gate.acquire(blocking=False):
            complain(f"gave up after {self._seconds:g} s, nothing was told or recorded")
            os._exit(0)


def _options(arguments: Sequence[str]) -> Options:
    """The options among the words of the command line. Raises `ValueError` for any other word."""
    given: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        flag, separator, value = word.partition("=")
        if flag not in _FLAGS:
            raise ValueError(f"there is no option {flag!r}, but {', '.join(_FLAGS)}")
        given[flag] = value if separator else next(words, "")
    db, agent, config, deadline = (given.get(flag) for flag in _FLAGS)
    return Options(db, agent or Options().agent, config, float(deadline or DEADLINE_S))


def _answer(options: Options, event: bytes, deadline: Deadline) -> None:
    now_ms = time.time_ns() // 1_000_000
    said = heard(json.loads(event), options.agent, os.environ.get("CLAUDE_CODE_ENTRYPOINT", ""), now_ms)
    if said is None:
        return
    settings = load_settings({"db": Flag("--db", options.db)}, Path(options.config) if options.config else None, os.environ)
    path = _database(settings)
    with visiting(path, synchronous=settings.config.synchronous) as visitor:
        told = visitor.transact(lambda visit: _visit(visit, said, settings, path, now_ms, deadline), busy_timeout_s=deadline.left_s())
        if told:
            os._exit(0)  # the answer is out and what it tells is acknowledged: nothing may come between that and the end


def _database(settings: Settings) -> Path:
    if "://" in settings.db.removeprefix("sqlite:///"):
        raise ValueError("hooks need an SQLite database: a path, or sqlite:///path")
    path = Path(settings.db.removeprefix("sqlite:///")).absolute()
    if not path.exists():
        raise ValueError(f"there is no database {path}")
    return path


def _visit(visit: Visit, said: Heard, settings: Settings, path: Path, now_ms: int, deadline: Deadline) -> bool:
    """Record what the event says, and answer with what is pending; whether there was anything to answer."""
    _record(visit, said, now_ms)
    watcher = said.session.session_key
    if not said.shows:
        deadline.keep()
        return False
    visit.apply(OpenOwed(now_ms, 0, watcher))
    text, told = answer(said, visit.pending(watcher, limit=settings.config.notices_max).cursors, str(path), settings.config.language)
    if told:
        visit.apply(Acknowledge(watcher, tuple(map(_shown, told)), now_ms))
    deadline.keep()
    if told:
        _write(text)
    return bool(told)


def _record(visit: Visit, said: Heard, now_ms: int) -> None:
    """What an adopted session's transcript tells is left to the check of it: the same turn must not count twice."""
    linked = any(isinstance(report, HumanTurn | Compacted) for _, report in said.reports) and visit.is_linked(said.session)
    for address, report in said.reports:
        if not (linked and isinstance(report, HumanTurn | Compacted)):
            visit.apply(draft(address, report, now_ms))


def _shown(cursor: Cursor) -> Shown:
    return Shown(cursor.target, cursor.positions.last_seen, cursor.positions.notified)


def _write(text: str) -> None:
    left = text.encode() + b"\n"
    while left:
        left = left[os.write(1, left) :]
