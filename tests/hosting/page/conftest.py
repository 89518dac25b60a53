"""A real headless Chromium on the page of a real `kizuki serve`.

Playwright's browser holds an event loop of its own in the tests' thread, so these tests are plain functions, and what is recorded is
recorded by other processes.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import Browser, sync_playwright

from tests.hosting.http.serve_process import ServeProcess, serve_process
from tests.hosting.page.browsing import Visits

CHROMIUM = "chromium"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for a file's tests."""
    chromium = shutil.which(CHROMIUM)
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Where the database of a test is; nothing is there yet."""
    return tmp_path / "state.db"


@pytest.fixture
def server(state: Path) -> Iterator[ServeProcess]:
    """`kizuki serve` on it."""
    with serve_process(state) as server:
        yield server


@pytest.fixture
def visits(browser: Browser) -> Iterator[Visits]:
    """Opens pages, and fails a test in which one did what none may do."""
    visits = Visits(browser)
    yield visits
    visits.end()
