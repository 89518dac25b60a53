"""Keys, labels, summaries and ids come from strangers: on the page they are text and nothing else."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.hosting.http.serve_process import ServeProcess
from tests.hosting.page.browsing import Visits, row
from tests.hosting.page.recording import call, record

HEAD = "agent:main:<script>alert(1)</script>"
KEY = "agent:main:subagent:<img/src=x/onerror=alert(2)>"
LABEL = "<iframe srcdoc='<script>alert(3)</script>'></iframe><b>bold</b>"
CHANNEL = "<svg onload=alert(4)>{{7*7}}"
PERSON = "javascript:alert(5)//<style>*{display:none}</style>"
RUN = "<a href=javascript:alert(6)>run</a>"
STRANGE = ("__proto__", "constructor", "hasOwnProperty", "#sessions", "..", "a/../b?c=d&e=%41#f")
MADE = "script:not([src]), iframe, b, a[href^='javascript'], style, img[onerror], svg[onload]"


def everything_opened(page: Page) -> None:
    """Open each session, so that all of it was shown in every place."""
    for key in (HEAD, KEY, *STRANGE):
        row(page, key).click()
        expect(page.locator("#detail .whole-key")).to_have_text(key)
    expect(page.locator("#detail .failure")).to_be_hidden()


def test_markup_everywhere(state: Path, server: ServeProcess, visits: Visits) -> None:
    """HTML and script in keys, labels, summaries and ids make no element, open no dialog and violate no policy."""
    record(
        state,
        call("open_session", HEAD),
        call("spawn", HEAD, KEY, run_id=RUN),
        call("open_session", KEY, label=LABEL),
        call("human_message", KEY, channel=CHANNEL, actor_id=PERSON),
        *(call("goal_changed", key, "created", actor=["human", PERSON], agent_id="ops") for key in STRANGE),
        *(call("watch", HEAD, key, target_agent_id="ops") for key in STRANGE),
    )
    page = visits.open(server.url)
    expect(row(page, KEY).locator(".title")).to_have_text(LABEL)
    expect(page.locator("#events")).to_contain_text(f"human message via {CHANNEL}")
    expect(page.locator("#events")).to_contain_text(f"person {PERSON}")
    everything_opened(page)
    row(page, KEY).click()
    page.get_by_label("since version").fill("0")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#detail .changes")).to_contain_text(RUN)
    record(state, call("open_session", HEAD, label=LABEL), call("watch", KEY, HEAD), call("human_message", HEAD, channel=CHANNEL))
    expect(page.locator("#announcer")).to_contain_text(f"New notice for {LABEL}: {LABEL} was changed")
    assert page.locator(MADE).count() == 0
    assert page.locator("img").count() == 1
