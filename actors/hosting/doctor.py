"""`kizuki doctor`: is what kizuki runs on in order, and if it is not, what is to be done?"""

from __future__ import annotations

import asyncio
import platform
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...storage.errors import StoreError
from ...storage.opening import open_store
from ...storage.records import Neighbours, StoreStatistics
from ...storage.sqlite.examine import INVARIANTS, Examination, examine
from ...storage.sqlite.writer_lock import SQLITE_WAL_RESET
from ...storage.urls import without_password
from .doctor_catalogs import Looked, look_at_catalogs
from .documents import database_file, is_file, is_missing
from .exits import CommandFailed, ExitCode
from .output import console, printable, write_json
from .settings import Settings

PACKAGES: Final = ("kizuki", "pykka", "aiosqlite", "structlog", "typer")
SQLITE_OLDEST: Final = (3, 35, 0)
"""RETURNING came with it."""
WAL_LARGE_BYTES: Final = 256 * 1024 * 1024


class Verdict(StrEnum):
    """How one check ended. Only a problem makes the command fail."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    check: str
    verdict: Verdict
    detail: str
    advice: str | None = None
    """What to do; None where nothing is to be done."""

    def row(self) -> dict[str, Any]:
        """As JSON shows it."""
        row: dict[str, Any] = {"check": self.check, "verdict": self.verdict.value, "detail": self.detail}
        return row if self.advice is None else row | {"advice": self.advice}


def run_doctor(settings: Settings, *, as_json: bool) -> ExitCode:
    """Check, print, and say by the exit code whether a problem was found. A named database that is not there is not found (3)."""
    missing = is_missing(settings.db)
    if missing and settings.db_source is not None:
        raise CommandFailed(f"there is no database {printable(settings.db)}", ExitCode.NOT_FOUND)
    examination = None if missing else _examined(settings.db)
    catalogs = look_at_catalogs()
    findings = [*_environment(), *_database(settings.db, examination), *map(_catalog, catalogs)]
    problems = sum(finding.verdict is Verdict.PROBLEM for finding in findings)
    if as_json:
        write_json(_document(settings.db, findings, examination) | {"catalogs": [looked.row() for looked in catalogs]})
    else:
        _show(console(), findings, problems)
    return ExitCode.ERROR if problems else ExitCode.OK


def _document(db: str, findings: list[Finding], examination: Examination | Served | StoreError | None) -> dict[str, Any]:
    statistics = examination.statistics if isinstance(examination, Examination | Served) else None
    ok = all(finding.verdict is not Verdict.PROBLEM for finding in findings)
    return {"ok": ok, "database": without_password(db), "counts": _counts(statistics), "checks": [finding.row() for finding in findings]}


def _counts(statistics: StoreStatistics | None) -> dict[str, int]:
    if statistics is None:
        return {}
    return {
        "sessions": statistics.sessions,
        "events": statistics.events,
        "cursors": statistics.cursors,
        "pending": statistics.pending,
        "lastSequence": statistics.last_sequence,
        "bytes": statistics.bytes,
    }


class Served(NamedTuple):
    """What a server says of the database: it sees to the files itself."""

    statistics: StoreStatistics
    gateways: Neighbours


def _examined(db: str) -> Examination | Served | StoreError:
    try:
        if not is_file(db):
            return asyncio.run(_asked(db))
        path = database_file(db)
        return StoreError("this is a folder, not a database") if path.is_dir() else examine(path)
    except StoreError as error:
        return error


async def _asked(db: str) -> Served:
    async with open_store(db, read_only=True) as store:
        return Served(await store.statistics(), await store.neighbours())


# -- what kizuki runs on ---------------------------------------------------------------------------------------------------


def _environment() -> Iterator[Finding]:
    yield Finding("python", Verdict.OK, f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}")
    yield Finding("packages", Verdict.OK, ", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    yield sqlite_finding(sqlite3.sqlite_version_info)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


def sqlite_finding(linked: tuple[int, ...]) -> Finding:
    """What is to be said of the SQLite that this Python is linked with."""
    name = ".".join(map(str, linked))
    if linked < SQLITE_OLDEST:
        oldest = ".".join(map(str, SQLITE_OLDEST))
        return Finding("sqlite", Verdict.PROBLEM, f"SQLite {name} has no RETURNING", f"Use a Python that is linked with {oldest} or newer.")
    if linked < SQLITE_WAL_RESET:
        return Finding(
            "sqlite",
            Verdict.NOTE,
            f"SQLite {name} has the WAL-reset fault, which two processes that checkpoint one database at once can meet",
            "Gateways take turns by a lock of their own, so they cannot. Do not let other programs write to the database.",
        )
    return Finding("sqlite", Verdict.OK, f"SQLite {name}")


# -- the database ----------------------------------------------------------------------------------------------------------


def _database(db: str, examination: Examination | Served | StoreError | None) -> Iterator[Finding]:
    if examination is None:
        yield Finding("database", Verdict.NOTE, f"there is no {db} here yet", "Name a database with --db, or try kizuki demo.")
    elif isinstance(examination, StoreError):
        yield Finding("database", Verdict.PROBLEM, f"{without_password(db)}: {examination}", "Check that it is the right one.")
    elif isinstance(examination, Served):
        version = examination.statistics.schema_version
        yield Finding("database", Verdict.OK, f"{without_password(db)}: the server answers, schema version {version}")
        yield _size(examination.statistics)
        yield Finding("pending", Verdict.OK, f"open notices: {examination.statistics.pending}")
        yield _gateways(examination.gateways)
    else:
        yield from _findings(db, examination)


def _findings(db: str, found: Examination) -> Iterator[Finding]:
    yield _integrity(db, found)
    yield _schema(found)
    yield _journal(found)
    if found.statistics is not None:
        yield _size(found.statistics)
        yield _pending(found, found.statistics)
    if found.gateways is not None:
        yield _gateways(found.gateways)
    if found.statistics is not None:
        yield _invariants(found)


def _integrity(db: str, found: Examination) -> Finding:
    if not found.integrity:
        return Finding("integrity", Verdict.OK, f"{db}: SQLite finds the file whole")
    advice = "Stop every gateway on it, keep a copy, and restore a backup, or save what can be read: sqlite3 FILE .recover"
    return Finding("integrity", Verdict.PROBLEM, f"{db} is damaged: {'; '.join(found.integrity)}", advice)


def _schema(found: Examination) -> Finding:
    if found.schema_version == found.schema_newest:
        return Finding("schema", Verdict.OK, f"version {found.schema_version}, the newest")
    detail = f"version {found.schema_version}, this release has {found.schema_newest}"
    if found.schema_version > found.schema_newest:
        return Finding("schema", Verdict.PROBLEM, detail, "Use a newer release of kizuki.")
    return Finding("schema", Verdict.PROBLEM, detail, "Open it with a gateway, which brings it up to date.")


def _journal(found: Examination) -> Finding:
    if found.journal_mode != "wal":
        return Finding("journal", Verdict.PROBLEM, f"journal mode {found.journal_mode}", "Open it with a gateway, which sets it to wal.")
    detail = f"write-ahead log of {_bytes(found.wal_bytes)}"
    if found.wal_bytes <= WAL_LARGE_BYTES:
        return Finding("journal", Verdict.OK, detail)
    return Finding("journal", Verdict.NOTE, detail, "A reader that never ends keeps it from being reset: look for one, and end it.")


def _size(statistics: StoreStatistics) -> Finding:
    counts = f"{statistics.sessions} sessions, {statistics.events} events, {statistics.cursors} cursors"
    return Finding("size", Verdict.OK, f"{counts}, last sequence {statistics.last_sequence}, {_bytes(statistics.bytes)}")


def _pending(found: Examination, statistics: StoreStatistics) -> Finding:
    detail = f"open notices: {statistics.pending}"
    if not found.unopened and not found.owed:
        return Finding("pending", Verdict.OK, detail)
    detail += f", still to be opened: {found.unopened}, sessions that owe openings: {found.owed}"
    return Finding(
        "pending", Verdict.NOTE, detail, "Nothing is lost: a running gateway opens them within a second, the next start at once."
    )


def _gateways(found: Neighbours) -> Finding:
    detail = f"running: {len(found.living)}"
    if not found.dead:
        return Finding("gateways", Verdict.OK, detail)
    # The usual state between two runs: a gateway leaves what it hosts to the next one.
    return Finding("gateways", Verdict.OK, f"{detail}, gone: {len(found.dead)}, of which the next one to run takes over")


def _invariants(found: Examination) -> Finding:
    if not found.broken:
        return Finding("invariants", Verdict.OK, f"{len(INVARIANTS)} hold")
    detail = "; ".join(f"not true that {name} ({faults} faults)" for name, faults in found.broken)
    advice = "This is a fault in kizuki, or someone else wrote into the file: keep a copy, and report it with this output."
    return Finding("invariants", Verdict.PROBLEM, detail, advice)


# -- the agents' own tools -------------------------------------------------------------------------------------------------


def _catalog(looked: Looked) -> Finding:
    name = f"catalog {looked.catalog}"
    if looked.error is not None:
        return Finding(name, Verdict.NOTE, looked.detail(), "Check that the folder may be read: its sessions are not noticed until it may.")
    if looked.shapes.unknown_rows:
        advice = "Rows that are not understood are never taken for a person's. Report these shapes: they hold nothing that anybody wrote."
        return Finding(name, Verdict.NOTE, looked.detail(), advice)
    return Finding(name, Verdict.OK, looked.detail())


def _bytes(number: int) -> str:
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"


# -- for people ------------------------------------------------------------------------------------------------------------

_MARKS: Final = {Verdict.OK: Text("ok", "green"), Verdict.NOTE: Text("note", "yellow"), Verdict.PROBLEM: Text("problem", "bold red")}


def _show(output: Console, findings: list[Finding], problems: int) -> None:
    grid = Table.grid(padding=(0, 2))
    for finding in findings:
        detail = Text("\n".join(map(printable, finding.detail.split("\n"))))
        if finding.advice is not None:
            detail.append("\n" + printable(finding.advice), "italic")
        grid.add_row(_MARKS[finding.verdict], Text(finding.check, "bold"), detail)
    output.print(grid)
    output.print()
    output.print(Text("no problem found", "green") if not problems else Text(f"{problems} problem{'s' * (problems > 1)} found", "bold red"))
