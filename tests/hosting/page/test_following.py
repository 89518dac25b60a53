"""The page follows the database: what other processes record appears by itself, and nothing is lost where the connection was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.conftest import run_process
from tests.hosting.http.serve_process import ServeProcess, serve_process
from tests.hosting.page.browsing import Visits, row
from tests.hosting.page.recording import call, record

SPAWNED = call("open_session", MAIN, label="Planner"), call("spawn", MAIN, CHILD, run_id="r1")
TOLD = call("human_message", CHILD, channel="telegram", actor_id="ada")


def test_nothing_yet(state: Path, server: ServeProcess, visits: Visits) -> None:
    """An empty database shows what to do, and gives way to the first session by itself."""
    page = visits.open(server.url)
    expect(page.get_by_role("heading", name="Nothing has happened yet")).to_be_visible()
    expect(page.locator("#sessions")).to_be_hidden()
    record(state, *SPAWNED)
    expect(row(page, CHILD)).to_be_visible()
    expect(page.locator("#welcome")).to_be_hidden()


def test_another_process(state: Path, server: ServeProcess, visits: Visits, record_property: Callable[[str, object], None]) -> None:
    """What another process records is seen in the tree, the matrix, the timeline and the totals, and the new notice is announced."""
    record(state, *SPAWNED)
    page = visits.open(server.url)
    expect(page.locator("#matrix td.watch")).to_have_text("nothing pending at 1")
    record(state, TOLD)
    recorded = time.monotonic()
    expect(page.locator("#matrix td.lit")).to_have_text("pending, last seen 1 ▸ , notified 2 ▸ , material 2")
    record_property("seen_after_s", time.monotonic() - recorded)
    expect(row(page, CHILD)).to_contain_text("last changed by person ada")
    expect(row(page, CHILD).locator(".version")).to_have_text("v2")
    expect(row(page, MAIN).locator(".badge")).to_contain_text("1 notice pending")
    expect(page.locator("#events .row").first).to_contain_text("human message via telegram")
    expect(page.locator("#totals")).to_contain_text("1")
    expect(page.locator("#announcer")).to_have_text("New notice for Planner: child was changed")
    assert page.title() == "(1) kizuki"


def test_while_paused(state: Path, server: ServeProcess, visits: Visits) -> None:
    """A paused page stands still, counts what waits, and shows it when it goes on."""
    record(state, *SPAWNED)
    page = visits.open(server.url)
    page.get_by_role("button", name="Pause").click()
    record(state, TOLD, TOLD)
    expect(page.get_by_role("button", name="Resume (2 new)")).to_be_visible()
    expect(page.locator("#connection")).to_have_text("Paused")
    expect(row(page, CHILD).locator(".version")).to_have_text("v1")
    page.get_by_role("button", name="Resume").click()
    expect(row(page, CHILD).locator(".version")).to_have_text("v3")


def test_server_gone(state: Path, visits: Visits) -> None:
    """Where the server is gone the page says so; when it is there again the page shows what was recorded meanwhile."""
    record(state, *SPAWNED)
    with serve_process(state) as server:
        page = visits.open(server.url)
        server.kill()
        expect(page.locator("#connection")).to_have_text("Offline, trying again")
    record(state, TOLD)
    with serve_process(state, "--port", server.url.rpartition(":")[2]):
        expect(page.locator("#connection")).to_have_text("Live", timeout=15_000)
        expect(row(page, CHILD).locator(".version")).to_have_text("v2")


def test_one_session(state: Path, server: ServeProcess, visits: Visits) -> None:
    """A session's delta is what came after a version, and grows by itself; its watchers, notices and parent are beside it."""
    record(state, *SPAWNED, call("spawn", MAIN, OTHER, run_id="r2"), call("watch", CHILD, OTHER), TOLD, TOLD)
    page = visits.open(server.url)
    page.locator("#matrix td.lit").first.click()
    detail = page.get_by_role("complementary", name="child")
    changes = detail.locator(".changes li")
    expect(changes).to_have_count(2)
    expect(detail.locator(".delta")).to_contain_text("2 events from version 1 to 4")
    record(state, TOLD)
    expect(changes).to_have_count(3)
    detail.get_by_label("since version").fill("4")
    detail.get_by_role("button", name="Show", exact=True).click()
    expect(changes).to_have_count(1)
    expect(detail.get_by_role("button", name="other", exact=True)).to_be_visible()
    detail.locator(".facts").get_by_role("button", name="Planner").click()
    notice = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
    expect(page.get_by_role("complementary", name="Planner").locator(".notices li")).to_have_text([notice])


def test_history_gap(state: Path, server: ServeProcess, visits: Visits) -> None:
    """Rule 5.3: where events before a version were pruned the page says that there is a gap, and what is the earliest one kept."""
    record(state, *SPAWNED, *[TOLD] * 3)
    assert run_process("prune", "--db", state, environ={"KIZUKI_RETENTION_ROWS": "1"}).code == 0
    page = visits.open(server.url)
    row(page, CHILD).click()
    page.get_by_label("since version").fill("0")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".gap")).to_contain_text("History gap.")
    expect(page.locator(".gap")).to_contain_text("The earliest one kept is 4.")


def test_token(state: Path, visits: Visits) -> None:
    """Where there is a token the page asks for it, once, and refuses a wrong one."""
    record(state, *SPAWNED)
    with serve_process(state, token="c3d4e5f6a7b8c9d0e1") as server:
        page = visits.open_only(server.url)
        page.get_by_label("Token of this server").fill("another")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        page.get_by_label("Token of this server").fill("c3d4e5f6a7b8c9d0e1")
        page.get_by_role("button", name="Sign in").click()
        expect(row(page, CHILD)).to_be_visible()
        page.reload()
        expect(row(page, CHILD)).to_be_visible()
        expect(page.get_by_role("dialog")).to_be_hidden()
