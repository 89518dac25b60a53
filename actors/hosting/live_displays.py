"""How `kizuki watch` shows the sessions that it watches: as a table on a terminal, as lines in a pipe, as JSON for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..clock import SystemClock
from .columns import Column, flexible, folded, number
from .exits import ExitCode
from .follow import HumanReporter, JsonReporter, Reporter
from .live import Choice, Seen, View, watch_once, watch_until_cancelled
from .output import Cut, console, since, table, text, write_json
from .rows import notice_row
from .settings import Settings

_ACTOR_STYLES: Final = {"human": "green", "agent": "cyan", "system": "dim"}


def run_live(settings: Settings, choice: Choice, *, once: bool, as_json: bool) -> ExitCode:
    """Watch until the command is interrupted; with `once` look once."""
    output = console()
    if once:
        asyncio.run(watch_once(settings, choice, Once(lambda view: _show_once(output, view, settings.db, as_json=as_json))))
        return ExitCode.OK
    with Live(console=output, auto_refresh=False) if output.is_terminal and not as_json else nullcontext() as live:
        display = Lines(JsonReporter() if as_json else HumanReporter(output, None)) if live is None else Table(live)
        asyncio.run(watch_until_cancelled(settings, choice, display))
    return ExitCode.OK


class Once:
    """Shows one view, by a function."""

    acknowledges = True

    def __init__(self, show: Callable[[View], None]) -> None:
        self.show = show


class Table:
    """A table that is drawn anew. It goes on showing what has changed since it began."""

    acknowledges = False

    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, view: View) -> None:
        self._live.update(_table(view, SystemClock().now_ms()), refresh=True)


class Lines:
    """A line for each session when it is first seen, and each notice with what changed."""

    acknowledges = True

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._known: set[str] = set()

    def show(self, view: View) -> None:
        names = {session.key: session.name for session in view.sessions}
        for session in view.sessions:
            if session.key not in self._known:
                self._known.add(session.key)
                self._reporter.following(session.name, session.key)
        for notice in view.notices:
            self._reporter.notice(notice, view.deltas[notice.target], names.get(notice.target, notice.target))


def _show_once(output: Console, view: View, database: str, *, as_json: bool) -> None:
    if as_json:
        write_json(document(view, database))
    else:
        output.print(_table(view, SystemClock().now_ms()))


def document(view: View, database: str) -> dict[str, Any]:
    """A view as JSON shows it."""
    return {
        "database": database,
        "catalogs": [_source_row(asdict(source)) for source in view.sources],
        "tick": {"checked": view.tick.checked, "failed": view.tick.failed, "humanTurns": view.tick.human_turns, "events": view.tick.events},
        "sessions": [_session_row(session) for session in view.sessions],
        "notices": [notice_row(notice) | {"stateChanges": view.deltas[notice.target]} for notice in view.notices],
    }


def _source_row(source: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if value is not None}


def _session_row(session: Seen) -> dict[str, Any]:
    thread = session.thread
    return {
        "sessionKey": session.key,
        "agentId": session.agent_id,
        "catalog": session.catalog,
        "threadId": thread.thread_id,
        "hostId": thread.host_id,
        "title": thread.title,
        "updatedAt": thread.updated_at_ms,
        "stateVersion": session.version,
        "lastActor": session.last_actor,
        "lastHumanTurn": session.last_human_ms,
        "pending": session.pending,
    }


def _table(view: View, now_ms: int) -> RenderableType:
    made = table(
        folded("SESSION"), flexible("NAME"), Column("LAST ACTOR", goes=2), number("VERSION", goes=3), Column("LAST HUMAN TURN", goes=1),
        "NOTICES",
    )  # fmt: skip
    for session in view.sessions:
        actor = text(session.last_actor or "-", _ACTOR_STYLES.get(session.last_actor or "", "dim"))
        human = text("-", "dim") if session.last_human_ms is None else text(since(session.last_human_ms, now_ms))
        pending = text("1 pending", "bold yellow") if session.pending else text("-", "dim")
        made.add_row(text(session.key), Cut(session.name), actor, text(session.version), human, pending)
    return Group(made, _footer(view)) if view.sessions else _footer(view)


def _footer(view: View) -> Text:
    found = ", ".join(f"{source.catalog} {source.threads if source.error is None else 'unreadable'}" for source in view.sources)
    watched = f"{len(view.sessions)} sessions watched" if view.sessions else "no session is recent enough: see --days"
    return text(f"{watched}; found: {found}", "dim")
