"""The page by keyboard, in the dark, in a narrow window, and for those who listen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.http.serve_process import ServeProcess, serve_process
from tests.hosting.page.browsing import Visits, focused, row
from tests.hosting.page.recording import call, record

NESTED = f"{CHILD}:subagent:deep"


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A planner with two children, one of which has a child; a person has written to both children."""
    path = tmp_path_factory.mktemp("family") / "state.db"
    record(
        path,
        call("open_session", MAIN, label="Planner"),
        call("spawn", MAIN, CHILD, run_id="r1"),
        call("spawn", CHILD, NESTED, run_id="r2"),
        call("spawn", MAIN, OTHER, run_id="r3"),
        call("human_message", CHILD, channel="telegram"),
        call("human_message", OTHER, channel="telegram"),
    )
    return path


@pytest.fixture(scope="module")
def server(family: Path) -> Iterator[ServeProcess]:
    with serve_process(family) as server:
        yield server


def press(page: Page, *keys: str) -> str | None:
    """Press the keys; the title of what has the focus then."""
    for key in keys:
        page.keyboard.press(key)
    return focused(page)


def background(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_walking_the_tree(server: ServeProcess, visits: Visits) -> None:
    """The tree is one tab stop: arrows go from row to row, open and close; Enter shows the session, Escape goes back to its row."""
    page = visits.open(server.url)
    page.get_by_label("with notices").focus()
    assert press(page, "Tab") == MAIN
    assert press(page, "ArrowDown") == CHILD
    assert press(page, "ArrowRight") == NESTED
    assert press(page, "ArrowLeft") == CHILD
    assert press(page, "ArrowLeft", "ArrowDown") == OTHER
    expect(row(page, NESTED)).to_have_count(0)
    expect(row(page, CHILD)).to_have_attribute("aria-expanded", "false")
    assert press(page, "Home") == MAIN
    assert press(page, "End") == OTHER
    press(page, "Enter")
    expect(page.get_by_role("complementary", name="other")).to_be_focused()
    expect(row(page, OTHER)).to_have_attribute("aria-selected", "true")
    assert press(page, "Escape") == OTHER
    expect(page.locator("#detail")).to_be_hidden()
    assert press(page, "Tab") != OTHER


def test_walking_the_matrix(server: ServeProcess, visits: Visits) -> None:
    """The matrix is one tab stop: arrows go from cell to cell, and Enter shows what changed since that cell's version."""
    page = visits.open(server.url)
    page.locator("#matrix [tabindex='0']").focus()
    assert press(page, "ArrowDown") == CHILD
    assert press(page, "ArrowUp") == MAIN
    assert (press(page, "ArrowRight") or "").startswith(f"{MAIN} watches {CHILD}\nlast seen 1, notified 4, material 4")
    press(page, "Enter")
    expect(page.get_by_role("complementary", name="child")).to_be_focused()
    expect(page.get_by_label("since version")).to_have_value("1")


def test_skipping(server: ServeProcess, visits: Visits) -> None:
    """The first tab stops lead past everything to the tree, the matrix and the timeline."""
    page = visits.open(server.url)
    press(page, "Tab", "Tab", "Tab")
    expect(page.get_by_role("link", name="Skip to the timeline")).to_be_focused()
    press(page, "Enter")
    expect(page.locator("#timeline")).to_be_focused()


def test_what_is_read_aloud(server: ServeProcess, visits: Visits) -> None:
    """Rows and cells say in words what they show in signs; the table has headers, and the tree its levels."""
    page = visits.open(server.url)
    planner = page.get_by_role("treeitem", name="Planner", expanded=True)
    expect(planner).to_contain_text("2 notices pending")
    expect(page.get_by_role("treeitem", name="deep last changed by agent child")).to_have_attribute("aria-level", "3")
    expect(page.get_by_role("rowheader", name="Planner")).to_be_visible()
    expect(page.get_by_role("columnheader", name="deep")).to_be_visible()
    expect(page.get_by_role("gridcell", name="pending, last seen 1 , notified 4 , material 4")).to_be_visible()
    expect(page.get_by_role("option", name="child human message via telegram a person")).to_be_visible()


def test_light_and_dark(server: ServeProcess, visits: Visits) -> None:
    """The page follows the system's theme, the button overrules it, and the choice outlasts a reload."""
    light, dark = (visits.open(server.url, color_scheme=scheme) for scheme in ("light", "dark"))
    assert light.screenshot() != dark.screenshot()
    bright, dim = background(light), background(dark)
    assert bright != dim
    light.get_by_role("button", name="Theme: auto").click()
    light.get_by_role("button", name="Theme: light").click()
    assert background(light) == dim
    light.reload()
    expect(light.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert background(light) == dim


def test_narrow(server: ServeProcess, visits: Visits) -> None:
    """In a narrow window nothing is wider than it, and a session that is opened covers the page until it is closed."""
    page = visits.open(server.url, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    row(page, CHILD).click()
    detail = page.get_by_role("complementary", name="child")
    expect(detail).to_be_focused()
    box = detail.bounding_box()
    assert box is not None
    assert (box["x"], box["width"], box["height"]) == (0, 360, 740)
    detail.get_by_role("button", name="Close this session").click()
    expect(row(page, CHILD)).to_be_focused()


def test_motion(family: Path, server: ServeProcess, visits: Visits) -> None:
    """Who wants no motion sees changes without any."""
    page = visits.open(server.url, reduced_motion="reduce")
    record(family, call("human_message", CHILD, channel="telegram"))
    expect(row(page, CHILD)).to_have_class("row session changed")
    assert row(page, CHILD).evaluate("element => getComputedStyle(element, '::after').animationName") == "none"
