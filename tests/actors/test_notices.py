"""Notices and watches as they are shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kizuki.actors.notices import Notice, Watch, notice, notice_text, watch
from kizuki.actors.summaries import Language
from kizuki.storage.records import Address, Cursor, Positions

CHILD = "agent:main:subagent:child"
CURSOR = Cursor("agent:main:main", Address(CHILD, "main"), Positions(12, 14, 19))


@pytest.mark.parametrize(
    ("target", "agent_id", "language", "text"),
    [
        (
            CHILD,
            None,
            "en",
            'Session "agent:main:subagent:child" was changed by another actor. Reconcile before acting: '
            'session_status sessionKey "agent:main:subagent:child" changesSince 12.',
        ),
        (
            "global",
            "ops",
            "en",
            'Session "global" was changed by another actor. Reconcile before acting: '
            'session_status sessionKey "global" agentId "ops" changesSince 12.',
        ),
        (
            CHILD,
            None,
            "ja",
            'セッション "agent:main:subagent:child" が変更されました（別のアクター）。行動する前に調整してください: '
            'session_status sessionKey "agent:main:subagent:child" changesSince 12.',
        ),
        (
            "global",
            "ops",
            "ja",
            'セッション "global" が変更されました（別のアクター）。行動する前に調整してください: '
            'session_status sessionKey "global" agentId "ops" changesSince 12.',
        ),
    ],
)
def test_the_text(target: str, agent_id: str | None, language: Language, text: str) -> None:
    """Rule 4.2: a notice's text is fixed in both languages; the call names the agent of a target without prefix."""
    assert notice_text(target, agent_id, 12, language) == text


def test_a_target_with_braces_is_plain_text() -> None:
    """Rule 4.2: a key that looks like a template's slot is shown as it is."""
    assert '"agent:main:{call}{0}" was changed' in notice_text("agent:main:{call}{0}", None, 0, "en")


def test_a_cursors_notice() -> None:
    """Rule 4.3: the notice asks for changes since what was last seen, and is pinned at the notified position."""
    assert notice(CURSOR, "en") == Notice("agent:main:main", CHILD, "main", 12, notice_text(CHILD, None, 12, "en"), 14)


def test_the_notice_stays_while_material_moves() -> None:
    """Rule 4.1: while a pair is pending its notice is the same bytes, wherever the material position goes."""
    moved = replace(CURSOR, positions=Positions(12, 14, 99))
    assert notice(moved, "ja") == notice(CURSOR, "ja")


def test_a_notice_of_a_target_without_prefix() -> None:
    """Rule 4.2: the agent id is named exactly for a target whose key does not name it."""
    cursor = replace(CURSOR, target=Address("global", "ops"))
    assert 'sessionKey "global" agentId "ops" changesSince 12.' in notice(cursor, "en").text
    assert "agentId" not in notice(CURSOR, "en").text


@pytest.mark.parametrize(
    ("positions", "pending"), [(Positions(12, 14, 19), True), (Positions(12, 12, 12), False), (Positions(0, 0, 0), False)]
)
def test_a_watch_says_whether_it_is_pending(positions: Positions, pending: bool) -> None:
    """Rule 4.11: pending is derived from the positions: material beyond last seen."""
    assert watch(replace(CURSOR, positions=positions)) == Watch(CHILD, "main", *positions, pending)
