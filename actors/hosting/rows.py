"""Rows of the command line's JSON documents, in the words of the session tools."""

from __future__ import annotations

from typing import Any

from ...storage.records import StateEvent
from .. import tools
from ..notices import Notice, Watch
from ..summaries import Language

Row = dict[str, Any]


def event_row(event: StateEvent, language: Language) -> Row:
    """An event with the session that it belongs to."""
    return {"sessionKey": event.session_key, "agentId": event.agent_id} | tools.event_row(event, language)


def watch_row(watch: Watch) -> Row:
    """One cursor of a watcher."""
    return {
        "target": watch.target,
        "targetAgentId": watch.target_agent_id,
        "lastSeen": watch.last_seen,
        "notified": watch.notified,
        "material": watch.material,
        "pending": watch.pending,
    }


def notice_row(notice: Notice) -> Row:
    """One notice of a watcher."""
    return {
        "target": notice.target,
        "targetAgentId": notice.target_agent_id,
        "changesSince": notice.changes_since,
        "notified": notice.notified,
        "text": notice.text,
    }
