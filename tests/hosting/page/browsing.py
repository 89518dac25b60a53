"""Visits of the page: what a person would look for in it, and what no page may do whatever it shows."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

WATCH_POLICY = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


class Visits:
    """Pages in contexts of their own. Errors, dialogs, violations of the policy and requests to elsewhere are noted."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._pages: list[Page] = []
        self.faults: list[str] = []

    def open(self, url: str, **context: Any) -> Page:
        """Open the page of a server, and wait until it shows what there is."""
        page = self.open_only(url, **context)
        expect(page.locator("body.ready")).to_be_attached()
        expect(page.locator("#connection")).to_have_text("Live")
        return page

    def open_only(self, url: str, **context: Any) -> Page:
        """Open the page, whatever it shows."""
        opened = self._browser.new_context(**context)
        opened.add_init_script(WATCH_POLICY)
        page = opened.new_page()
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self._check(request.url, url))
        page.goto(url)
        self._contexts.append(opened)
        self._pages.append(page)
        return page

    def _check(self, asked: str, own: str) -> None:
        if urlsplit(asked).netloc != urlsplit(own).netloc:
            self.faults.append(f"request: {asked}")

    def end(self) -> None:
        """Close the pages, and fail if one did what it may not."""
        for page in self._pages:
            self.faults += [f"policy: {violation}" for violation in page.evaluate("window.violations")]
        for context in self._contexts:
            context.close()
        assert self.faults == []


def row(page: Page, key: str) -> Locator:
    """The session's row in the tree."""
    return page.locator(f'#tree [role="treeitem"][title="{key}"]')


def focused(page: Page) -> str | None:
    """The title of what has the focus: of rows, it is the session's key."""
    title: str | None = page.evaluate("document.activeElement.getAttribute('title')")
    return title
