"""`kizuki watch`: transcripts as watched sessions of a local database.

Each file is a session, and one session, `agent:main:watch`, watches them all: a person's turn that is appended to a file is recorded in the
log, opens a notice, and the notice is taken in a turn of the watching session, with the exact changes behind it. So what is
printed has gone the whole way that it goes in a host.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, Protocol

from rich.console import Console
from rich.status import Status
from rich.text import Text

from ..clock import SystemClock
from ..errors import KizukiError
from ..gateway import Gateway, open_gateway
from ..logs import logger
from ..notices import Notice
from ..upstream.formats.scanning import FileReport, scan_whole_file
from .columns import flexible, number
from .exits import CommandFailed, ExitCode
from .output import Cut, console, printable, table, text, write_json_line
from .settings import Settings
from .tables import show_changes
from .transcripts import FollowedFile, Found, format_of, label, report_row, unreadable

WATCHER: Final = "agent:main:watch"
POLL_S: Final = 0.5

Complain = Callable[[CommandFailed], None]


def run_watch(files: Sequence[Path], settings: Settings, complain: Complain, *, from_start: bool, once: bool, as_json: bool) -> ExitCode:
    """Follow the files until the command is interrupted; with `once` look at each of them once, and at no database.

    `complain` is told of each file that cannot be read; the others are handled all the same.
    """
    failures: list[CommandFailed] = []

    def note(failure: CommandFailed) -> None:
        failures.append(failure)
        complain(failure)

    if once:
        _report(files, note, from_start=from_start, as_json=as_json)
    else:
        now_ms = SystemClock().now_ms()
        followed = [file for path in files if (file := _opened(path, now_ms, note, from_start)) is not None]
        if followed:
            asyncio.run(_follow(followed, settings, as_json=as_json))
    return max((failure.code for failure in failures), default=ExitCode.OK)


# -- once ------------------------------------------------------------------------------------------------------------------


def _report(files: Sequence[Path], note: Complain, *, from_start: bool, as_json: bool) -> None:
    if not from_start:
        logger().warning("files are looked at from their ends, where nothing can be yet: add --from-start")
    rows = []
    for path in files:
        try:
            report = scan_whole_file(path, format_of(path)) if from_start else _nothing_behind_the_end(path)
        except OSError as error:
            note(unreadable(path, error))
            continue
        rows.append(report_row(report))
        if as_json:
            write_json_line(rows[-1])
    if rows and not as_json:
        _show_reports(console(), rows)


def _nothing_behind_the_end(path: Path) -> FileReport:
    file = FollowedFile(path, 0, from_start=False)
    return FileReport(str(path), file.catalog, 0, 0, 0, {}, {})


def _show_reports(output: Console, rows: Sequence[dict[str, Any]]) -> None:
    made = table(flexible("FILE"), number("ROWS"), number("HUMAN TURNS"), number("UNKNOWN"))
    for row in rows:
        made.add_row(Cut(row["path"]), text(row["rows"]), text(row["humanTurns"], "green"), text(row["unknownRows"]))
    output.print(made)


# -- live ------------------------------------------------------------------------------------------------------------------


class Reporter(Protocol):
    """Where the live results go."""

    def following(self, name: str, key: str) -> None: ...
    def notice(self, notice: Notice, delta: dict[str, Any], path: str) -> None: ...
    def progress(self, line: str) -> None: ...


class JsonReporter:
    """One JSON object a line."""

    def following(self, name: str, key: str) -> None:
        write_json_line({"type": "following", "path": name, "sessionKey": key})

    def notice(self, notice: Notice, delta: dict[str, Any], path: str) -> None:
        write_json_line({"type": "notice", "path": path, "sessionKey": notice.target, "text": notice.text, "stateChanges": delta})

    def progress(self, line: str) -> None:
        """A program that reads lines needs none."""


class HumanReporter:
    """Lines for people, and on a terminal a last line that says how far it is."""

    def __init__(self, output: Console, status: Status | None) -> None:
        self._output = output
        self._status = status

    def following(self, name: str, key: str) -> None:
        self._output.print(Text.assemble(("following ", "dim"), text(name, "bold"), text(f"  {key}", "dim")), soft_wrap=True)
        self._output.file.flush()

    def notice(self, notice: Notice, delta: dict[str, Any], path: str) -> None:
        self._output.print(Text.assemble(("notice     ", "bold yellow"), text(path, "bold")), soft_wrap=True)
        self._output.print(text(notice.text))
        show_changes(self._output, delta, SystemClock().now_ms(), after=notice.changes_since)
        self._output.file.flush()

    def progress(self, line: str) -> None:
        if self._status is not None:
            self._status.update(Text(line, "dim"))


async def _follow(followed: Sequence[FollowedFile], settings: Settings, *, as_json: bool) -> None:
    output = console()
    display: AbstractContextManager[Status | None] = nullcontext()
    if not as_json and sys.stdout.isatty():
        display = output.status("")
    with display as status:
        reporter: Reporter = JsonReporter() if as_json else HumanReporter(output, status)
        await _Following(followed, reporter).run(settings)


def _opened(path: Path, now_ms: int, note: Complain, from_start: bool) -> FollowedFile | None:
    try:
        return FollowedFile(path, now_ms, from_start=from_start)
    except OSError as error:
        note(unreadable(path, error))
        return None


class _Following:
    """Scans the files in turn, records what is found, and shows what the watching session is told of it."""

    def __init__(self, files: Sequence[FollowedFile], reporter: Reporter) -> None:
        self._files = {file.key: file for file in files}
        self._reporter = reporter
        self._woken = asyncio.Event()
        self._rows = 0
        self._turns = 0

    async def run(self, settings: Settings) -> None:
        """Go on until cancelled."""
        async with open_gateway(settings.db, config=settings.config, wake=self._wake) as gateway:
            await gateway.open_session(WATCHER, label="kizuki watch")
            for file in self._files.values():
                await gateway.open_session(file.key, label=label(file.path))
                await gateway.watch(WATCHER, file.key)
                self._reporter.following(str(file.path), file.key)
            await self._show_notices(gateway)
            showing = asyncio.create_task(self._show_whenever_woken(gateway))
            try:
                while not showing.done():
                    await self._scan_all(gateway)
                    await asyncio.sleep(POLL_S)
            finally:
                showing.cancel()
                await asyncio.gather(showing, return_exceptions=True)
            showing.result()

    def _wake(self, _session_key: str, _reasons: tuple[str, ...]) -> None:
        self._woken.set()

    async def _scan_all(self, gateway: Gateway) -> None:
        for file in self._files.values():
            more = True
            while more:
                more = await self._scan(gateway, file)
        self._reporter.progress(f"files: {len(self._files)}, rows read: {self._rows}, turns of people: {self._turns}. Ctrl-C ends it.")

    async def _scan(self, gateway: Gateway, file: FollowedFile) -> bool:
        try:
            found = await asyncio.to_thread(file.scan)
        except OSError as error:
            if not file.is_missing:
                logger(path=printable(file.path)).warning("cannot be read, it is tried again", error=str(error))
            file.is_missing = True
            return False
        file.is_missing = False
        if found.restart is not None:
            logger(path=printable(file.path)).warning("the file is another now, it is followed from its end", why=found.restart.value)
        if not found.turns or await self._record(gateway, file, found):
            file.keep(found)
            self._rows, self._turns = self._rows + found.rows, self._turns + found.turns
            return found.more
        return False

    async def _record(self, gateway: Gateway, file: FollowedFile, found: Found) -> bool:
        """Whether it was recorded; if not, the rows are read again at the next scan."""
        event = await gateway.human_message(
            file.key, channel=file.catalog, occurred_at_ms=found.occurred_at_ms, dedupe_key=found.name, turns=found.turns
        )
        return event is not None

    async def _show_whenever_woken(self, gateway: Gateway) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            try:
                await self._show_notices(gateway)
            except KizukiError as error:
                logger().warning("notices could not be taken, they are shown later", error=str(error))

    async def _show_notices(self, gateway: Gateway) -> None:
        async with gateway.turn(WATCHER) as turn:
            for notice in turn.notices:
                status = await gateway.session_status(notice.target, agent_id=notice.target_agent_id, changes_since=notice.changes_since)
                file = self._files.get(notice.target)
                self._reporter.notice(notice, status["stateChanges"], notice.target if file is None else str(file.path))
