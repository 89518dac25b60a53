"""The documents of the reading commands as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .columns import Column, flexible, folded, number
from .output import Cut, Grid, since, table, text

Row = Mapping[str, Any]

WIDE: Final = 100
"""Columns of a terminal from which on a table of sessions shows everything."""

_ACTOR_STYLES: Final = {"human": "green", "agent": "cyan", "system": "dim"}


def show_status(console: Console, document: Row, now_ms: int, *, after: int) -> None:
    """One session, and the changes that were asked for."""
    facts = Table.grid(padding=(0, 2))
    for name, value in _status_facts(document):
        facts.add_row(Text(name, "dim"), value)
    console.print(text(document["sessionKey"], "bold"))
    console.print(Padding.indent(facts, 2))
    changes = document.get("stateChanges")
    if changes is not None:
        console.print()
        show_changes(console, changes, now_ms, after=after, head=document["stateVersion"])


def _status_facts(document: Row) -> Iterable[tuple[str, Text]]:
    yield "agent", text(document["agentId"])
    yield "session id", text(document["sessionId"])
    yield "status", Text.assemble(text(document["status"]), ("  a database cannot tell which runs are active", "dim"))
    yield "state version", text(document["stateVersion"])


def show_changes(console: Console, changes: Row, now_ms: int, *, after: int, head: int | None = None) -> None:
    """What changed after a version: the events, and what the reader must know beside them. `head` is the state version, if known."""
    if changes["historyGap"]:
        console.print(Text.assemble(("history gap  ", "bold red"), _gap(changes, after, head)))
        if not changes["events"]:
            return
    if not changes["events"]:
        console.print(Text("no changes", "dim"))
        return
    console.print(events_table(changes["events"], now_ms, with_session=False))
    if changes["truncated"]:
        console.print(Text(f"more follow: --since {changes['nextChangesSince']}", "yellow"))


def _gap(changes: Row, after: int, head: int | None) -> str:
    earliest = changes.get("earliestAvailableSequence")
    last = head if earliest is None else earliest - 1
    gone = f"Changes after version {after}" + ("" if last is None else f" up to {last}")
    return f"{gone} are no longer kept; read the whole state from the host (sessions_history)."


def events_table(events: Iterable[Row], now_ms: int, *, with_session: bool) -> Grid:
    """Events, oldest first."""
    session = (folded("SESSION"),) if with_session else ()
    made = table(number("SEQUENCE"), Column("WHEN", goes=2), *session, folded("ACTOR", goes=1), flexible("SUMMARY"))
    for event in events:
        key = (text(event["sessionKey"]),) if with_session else ()
        made.add_row(text(event["sequence"]), text(since(event["occurredAt"], now_ms), "dim"), *key, _actor(event), _summary(event))
    return made


def _actor(event: Row) -> Text:
    name = event["actorType"] if event.get("actorId") is None else f"{event['actorType']} {event['actorId']}"
    return text(name, _ACTOR_STYLES.get(event["actorType"], ""))


def _summary(event: Row) -> Text:
    payload = "".join(f"  {name} {value}" for name, value in event.get("payload", {}).items())
    return Text.assemble(text(event["summary"]), text(payload, "dim"))


def show_events(console: Console, document: Row, now_ms: int, *, with_session: bool) -> None:
    """The newest events."""
    if not document["events"]:
        console.print(Text("no events", "dim"))
        return
    console.print(events_table(document["events"], now_ms, with_session=with_session))


def show_sessions(console: Console, document: Row, now_ms: int) -> None:
    """A page of sessions."""
    if not document["sessions"]:
        console.print(Text("no sessions", "dim"))
    else:
        console.print(_sessions_table(document["sessions"], now_ms, wide=console.width >= WIDE))
    if document["hasMore"]:
        console.print(Text.assemble(("more follow: --after ", "yellow"), text(repr(document["nextAfter"]), "yellow")))
    if "total" in document:
        console.print(Text(f"{document['total']} in all", "dim"))


def _sessions_table(sessions: Iterable[Row], now_ms: int, *, wide: bool) -> Grid:
    """Where there is no room for everything, parents and labels are left out rather than all keys folded."""
    further = (folded("PARENT", goes=5), flexible("LABEL", goes=4)) if wide else ()
    made = table(folded("SESSION"), Column("AGENT", goes=1), Column("KIND", goes=2), number("VERSION"), Column("UPDATED", goes=3), *further)
    for session in sessions:
        version, updated = text(session.get("stateVersion", "")), text(since(session["updatedAt"], now_ms), "dim")
        extra = (text(session.get("parent", "")), Cut(session.get("label", ""))) if wide else ()
        made.add_row(text(session["sessionKey"]), text(session["agentId"]), text(session["kind"]), version, updated, *extra)
    return made


def show_watches(console: Console, document: Row) -> None:
    """Cursors with their three positions."""
    if not document["watches"]:
        console.print(Text("no watches", "dim"))
        return
    made = table(
        folded("WATCHER"), folded("TARGET"), number("SEEN", goes=1), number("NOTIFIED", goes=3), number("MATERIAL", goes=2), "PENDING"
    )
    for watch in document["watches"]:
        positions = (text(watch[name]) for name in ("lastSeen", "notified", "material"))
        pending = Text("yes", "yellow") if watch["pending"] else Text("no", "dim")
        made.add_row(text(watch["watcher"]), text(watch["target"]), *positions, pending)
    console.print(made)


def show_notices(console: Console, document: Row) -> None:
    """Notices as the next turns will show them, each whole: this is what a model reads."""
    if not document["notices"]:
        console.print(Text("no notices", "dim"))
    for notice in document["notices"]:
        console.print(text(notice["text"]), soft_wrap=True)
