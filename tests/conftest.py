"""What holds for every test: nothing is left running, the loop is never blocked, and in CI nothing is skipped in silence."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import os
import signal
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
import structlog
from blockbuster import blockbuster_ctx

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

LIBRARY = ("kizuki.actors", "kizuki.storage")

SKIP_ALLOWED = "fixtures:"
"""How the reason of a skip begins that is honest in CI, too: what the test reads does not travel with the repository."""

THREAD_END_S = 2.0
"""How long a thread that has been told to end may take for it."""

MAY_BLOCK = (
    # A stack trace that is being logged reads the source files that it shows.
    ("os.stat", "linecache.py", "checkcache"),
    ("io.TextIOWrapper.read", "linecache.py", "updatecache"),
    ("io.BufferedReader.read", "linecache.py", "updatecache"),
    # Whoever connects to PostgreSQL looks for files with passwords and certificates.
    ("os.stat", "asyncpg/connect_utils.py", "_connect"),
    ("io.TextIOWrapper.read", "asyncpg/connect_utils.py", "_connect"),
    # The pause that lets the database's thread have the interpreter lock: some tens of microseconds a turn, and only of a busy loop.
    ("time.sleep", "storage/handoff.py", "_pause"),
)
"""Calls that may block the loop for a moment: the call, and the file and the function below which it may."""

_THREADS_BEFORE = pytest.StashKey[frozenset[threading.Thread]]()


def pytest_configure() -> None:
    """Let the processes that tests start be interrupted: who runs the tests in the background of a shell has them ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest) -> None:
    """Sees to it that a test leaves no task and no thread, and that a test on a loop never blocks it."""
    request.node.stash[_THREADS_BEFORE] = frozenset(threading.enumerate())
    if isinstance(request.node, pytest.Function) and inspect.iscoroutinefunction(request.node.obj):
        request.getfixturevalue("loop_never_blocked")
        request.getfixturevalue("no_task_left")


@pytest.fixture(autouse=True)
def structlog_left_alone() -> Iterator[None]:
    """Undoes what a test configured: `capture_logs` leaves structlog configured, and then the library's logger is another one."""
    yield
    structlog.reset_defaults()


@pytest_asyncio.fixture
async def no_task_left() -> AsyncIterator[None]:
    """Fails a test after which, and after whose fixtures, a task is left on its loop."""
    yield
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks left after the test: {left}"


@pytest.fixture
def loop_never_blocked() -> Iterator[None]:
    """Raises `BlockingError` where code of the library, or what it calls, blocks the loop."""
    with blockbuster_ctx([_found(name) for name in LIBRARY]) as blockbuster:
        for call, file, function in MAY_BLOCK:
            blockbuster.functions[call].can_block_in(file, function)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """The one PostgreSQL of this run of the tests."""
    from tests.postgres import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture
def schema(postgres: PostgresServer) -> str:
    """An empty schema of the PostgreSQL."""
    name = postgres.new_schema()
    asyncio.run(postgres.make(name))
    return name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fails a test after which a thread is left; looked at when its fixtures are gone and its loop is closed."""
    yield
    before = item.stash.get(_THREADS_BEFORE, frozenset(threading.enumerate()))
    left = [thread for thread in threading.enumerate() if thread not in before and not _ends(thread)]
    assert not left, f"threads left after the test: {left}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test has failed."""
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """In CI a skipped test file has failed."""
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as a skip as well, but it did run.
    if not os.environ.get("KIZUKI_CI") or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if not reason.startswith(SKIP_ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"


def _found(name: str) -> ModuleType:
    # Found but not run: a fault in one package shall not stop the tests of the other.
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed"
    return importlib.util.module_from_spec(spec)


def _ends(thread: threading.Thread) -> bool:
    thread.join(THREAD_END_S)
    return not thread.is_alive()
