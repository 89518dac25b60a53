"""The page with 500 sessions and 5,000 events: all of it can be found, and only what is in sight is in the document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.hosting.http.serve_process import ServeProcess, serve_process
from tests.hosting.page.browsing import Visits, focused, row
from tests.hosting.page.recording import call, crowd, record

MANAGERS, WORKERS, MESSAGES = 50, 9, 4_800
IN_SIGHT_MAX = 120
"""Rows in the document: what fits into a window, and some beyond."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a crowd."""
    path = tmp_path_factory.mktemp("crowd") / "state.db"
    record(path, *crowd(MANAGERS, WORKERS, MESSAGES))
    return path


@pytest.fixture(scope="module")
def crowd_server(crowded: Path) -> Iterator[ServeProcess]:
    with serve_process(crowded) as server:
        yield server


def rows_in_document(page: Page) -> int:
    return page.locator("[role=treeitem], [role=option]").count()


class Script:
    """How long scripts have run in a page, from when it is asked first."""

    def __init__(self, page: Page) -> None:
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")

    def ms(self) -> float:
        metrics = {metric["name"]: metric["value"] for metric in self._session.send("Performance.getMetrics")["metrics"]}
        return float(metrics["ScriptDuration"]) * 1000


def test_finding_one_among_many(crowd_server: ServeProcess, visits: Visits, record_property: Callable[[str, object], None]) -> None:
    """The tree is filtered by key, name and actor, ancestors included, and rows out of sight are not in the document."""
    page = visits.open(crowd_server.url)
    script = Script(page)
    page.reload()
    expect(page.locator("#sessions-count")).to_have_text("500")
    record_property("script_until_shown_ms", script.ms())
    page.get_by_role("button", name="Expand all sessions").click()
    assert 20 < rows_in_document(page) < IN_SIGHT_MAX
    before = script.ms()
    page.get_by_label("Filter sessions").fill("team033 worker-7")
    expect(page.locator("#sessions-count")).to_have_text("1 of 500")
    expect(page.locator("#tree [role=treeitem]")).to_have_count(2)
    record_property("script_of_a_filter_ms", script.ms() - before)
    row(page, "agent:team033:subagent:worker-7").click()
    expect(page.locator("#detail h2")).to_have_text("worker-7")
    page.get_by_label("Filter sessions").fill("nobody has this name")
    expect(page.get_by_text("No session fits the filter.")).to_be_visible()


def test_the_matrix_of_many(crowd_server: ServeProcess, visits: Visits) -> None:
    """A matrix that is too large to read is a row for each watcher; filtered, it is the table of versions again."""
    page = visits.open(crowd_server.url)
    expect(page.locator("#matrix-count")).to_have_text(f"{MANAGERS} watchers · 450 targets · 450 pending")
    summary = page.locator("table.summary tbody tr")
    expect(summary).to_have_count(MANAGERS)
    expect(summary.first).to_contain_text("worker-0, worker-1, worker-2 and 6 more")
    page.get_by_label("Filter watchers and targets").fill("team007")
    expect(page.locator("#matrix td.lit")).to_have_count(WORKERS)
    expect(summary).to_have_count(0)


def test_the_timeline_of_many(crowd_server: ServeProcess, visits: Visits) -> None:
    """Five thousand events can be scrolled through to the oldest one, and be left out by who made them."""
    page = visits.open(crowd_server.url)
    expect(page.locator("#timeline-count")).to_contain_text("5,000 of 5,25")
    events = page.locator("#events")
    events.evaluate("element => element.scrollTo(0, element.scrollHeight)")
    expect(events.locator("[aria-posinset='5000']")).to_be_visible()
    assert rows_in_document(page) < IN_SIGHT_MAX
    page.get_by_role("checkbox", name="people").uncheck()
    expect(page.locator("#timeline-count")).not_to_contain_text("5,000 of")
    assert 0 < events.locator("[role=option]").count() < IN_SIGHT_MAX


def test_updates_disturb_nobody(crowded: Path, crowd_server: ServeProcess, visits: Visits) -> None:
    """While the page follows what happens, the row that has the focus keeps it, and no list that is being read moves."""
    page = visits.open(crowd_server.url)
    page.get_by_role("button", name="Expand all sessions").click()
    page.locator("#tree [tabindex='0']").focus()
    for _ in range(8):
        page.keyboard.press("PageDown")
    at, tree, events = focused(page), page.locator("#tree"), page.locator("#events")
    events.evaluate("element => element.scrollTo(0, 3200)")
    expect(events.locator("[aria-posinset='105']")).to_be_visible()
    reading = events.locator("[aria-posinset='105'] .version").inner_text()
    scrolled = tree.evaluate("element => element.scrollTop")
    key = "agent:team000:subagent:worker-0"
    record(crowded, *[call("human_message", key, channel="slack", actor_id="ben")] * 3, call("open_session", "agent:aaa:main"))
    expect(page.locator("#sessions-count")).to_have_text("501")
    expect(events.locator("[aria-posinset='108'] .version")).to_have_text(reading)
    assert (focused(page), tree.evaluate("element => element.scrollTop")) == (at, scrolled + 34)
    assert at is not None
