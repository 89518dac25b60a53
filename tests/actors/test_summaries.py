"""Summaries: their wording, their cleaning, their translation."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.kinds import EventKind
from kizuki.actors.summaries import clean, render, summary

WORDING = [
    (EventKind.HUMAN_DIRECT_MESSAGE, "telegram", "human message via telegram", "telegram 経由の人間のメッセージ"),
    (EventKind.GOAL_CHANGED, "created", "goal created", "ゴールが作成されました"),
    (EventKind.GOAL_CHANGED, "updated", "goal updated", "ゴールが更新されました"),
    (EventKind.GOAL_CHANGED, "cleared", "goal cleared", "ゴールが解除されました"),
    (EventKind.CHILD_SPAWNED, "", "child session spawned", "子セッションが作成されました"),
    (EventKind.RUN_COMPLETED, "ok", "child run completed", "子セッションの実行が完了しました"),
    (EventKind.RUN_FAILED, "error", "child run failed", "子セッションの実行が失敗しました"),
    (EventKind.RUN_FAILED, "timeout", "child run timed out", "子セッションの実行がタイムアウトしました"),
    (EventKind.RUN_FAILED, "cancelled", "child run cancelled", "子セッションの実行がキャンセルされました"),
    (EventKind.COMPACTED, "", "session compacted", "セッションの履歴が圧縮されました"),
    (EventKind.UPSTREAM_MISSING, "claude", "upstream missing via claude", "claude 側の元セッションが見つかりません"),
    (EventKind.ADOPTED, "codex", "session adopted via codex", "codex 経由でセッションが取り込まれました"),
]
WITH_SLOT = [EventKind.HUMAN_DIRECT_MESSAGE, EventKind.UPSTREAM_MISSING, EventKind.ADOPTED]


def is_one_clean_line(text: str) -> bool:
    categories = {unicodedata.category(c) for c in text}
    return 0 < len(text) <= 200 and not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"} and text == " ".join(text.split())


@pytest.mark.parametrize(("kind", "detail", "english", "japanese"), WORDING)
def test_the_wording(kind: EventKind, detail: str, english: str, japanese: str) -> None:
    """Rule 1.2: every kind has its summary, and a stored one is rendered in Japanese when it is read."""
    assert summary(kind, detail) == english
    assert render(kind, english, "en") == english
    assert render(kind, english, "ja") == japanese


def test_every_kind_has_a_wording() -> None:
    """Rule 1.2: no kind is without a summary."""
    assert {kind for kind, *_ in WORDING} == set(EventKind)


def test_an_unknown_change_is_a_programming_error() -> None:
    """Rule 1.9: a change that the kind does not have raises at once."""
    with pytest.raises(KeyError):
        summary(EventKind.GOAL_CHANGED, "improved")


@given(st.sampled_from(WITH_SLOT), st.text(max_size=600))
def test_any_channel_gives_one_clean_line(kind: EventKind, detail: str) -> None:
    """Rule 1.2: whatever the caller passed, a summary is one line of at most 200 characters without control or formatting ones."""
    english = summary(kind, detail)
    assert is_one_clean_line(english)
    assert is_one_clean_line(render(kind, english, "ja"))
    assert render(kind, english, "en") == english


@given(st.sampled_from(WITH_SLOT), st.text(st.characters(categories=["L", "Nd"]), min_size=1, max_size=150))
def test_the_channel_survives_translation(kind: EventKind, detail: str) -> None:
    """Rule 1.2: a channel that is clean and fits stands in the summary of both languages."""
    english = summary(kind, detail)
    assert english.endswith(f" via {detail}")
    assert render(kind, english, "ja").startswith(f"{detail} ")


@given(st.sampled_from([*EventKind, "no such kind"]), st.text(), st.sampled_from(["en", "ja"]))
def test_rendering_is_total(kind: str, text: str, language: str) -> None:
    """Rule 1.2: rendering accepts whatever was stored; a text that fits no template is only cleaned."""
    rendered = render(kind, text, "ja" if language == "ja" else "en")
    assert rendered == "" or is_one_clean_line(rendered)


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    """A clean text stays as it is."""
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize("detail", ["", "   ", "\x00\x01", "\u202e\u200b", "\ud800"])
def test_a_channel_of_nothing_is_unknown(detail: str) -> None:
    """Rule 1.2: a channel of which nothing is left after cleaning is called unknown."""
    assert summary(EventKind.HUMAN_DIRECT_MESSAGE, detail) == "human message via unknown"


def test_a_megabyte_becomes_two_hundred_characters() -> None:
    """Rule 1.2: a summary never exceeds 200 characters, and shows that it was cut."""
    text = summary(EventKind.HUMAN_DIRECT_MESSAGE, "x" * 1_000_000)
    assert len(text) == 200
    assert text.endswith("x…")


@pytest.mark.parametrize(
    ("dirty", "expected"),
    [
        ("  a \t b\n\nc ", "a b c"),
        ("a\u2028b", "a b"),
        ("a \u200b b", "a b"),
        ("re\u202eversed", "reversed"),
        ("\x1b[31mred", "[31mred"),
        ("a\U000e0041b", "ab"),
        ("{}", "{}"),
    ],
)
def test_cleaning(dirty: str, expected: str) -> None:
    """Rule 1.2: white space collapses to single spaces; control, formatting and tag characters go."""
    assert clean(dirty) == expected


def test_a_channel_with_braces_is_plain_text() -> None:
    """A channel that looks like a template's slot is not one."""
    english = summary(EventKind.HUMAN_DIRECT_MESSAGE, "{}{0}")
    assert english == "human message via {}{0}"
    assert render(EventKind.HUMAN_DIRECT_MESSAGE, english, "ja") == "{}{0} 経由の人間のメッセージ"


def test_another_kinds_summary_is_not_translated() -> None:
    """A text is taken apart by its own kind's templates alone."""
    assert render(EventKind.COMPACTED, "goal updated", "ja") == "goal updated"
