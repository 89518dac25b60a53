from __future__ import annotations

import io
import json

import pytest
from rich.padding import Padding

from kizuki.actors.hosting.columns import Column, fit, flexible, folded, number
from kizuki.actors.hosting.output import Cut, console, printable, since, table, text, to_json

NOW = 1_767_225_600_000


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(*renderables: object, width: int, terminal: bool = True) -> str:
    stream = Terminal() if terminal else io.StringIO()
    output = console(stream)
    if terminal:
        output.width = width
    output.print(*renderables)
    return stream.getvalue()


def test_printable() -> None:
    """What a terminal would act on is escaped: control, bidirectional and C1 characters, lone surrogates."""
    assert printable("a\x1b[31m\u202eb\x9b\n\ud800") == "a\\x1b[31m\\u202eb\\x9b\\n\\ud800"
    assert printable("日本 ü") == "日本 ü"


def test_json_is_safe_and_valid() -> None:
    """JSON keeps every text, with what is not printable escaped."""
    value = {"key": "日本\x9b\u202e\u2028\x1b\U000e0001", "list": [1, None]}
    encoded = to_json(value, indent=2)
    assert json.loads(encoded) == value
    assert all(character.isprintable() or character == "\n" for character in encoded)


@pytest.mark.parametrize(
    ("age_ms", "shown"),
    [
        (-5_000, "0 s ago"),
        (59_999, "59 s ago"),
        (60_000, "1 min ago"),
        (3_599_999, "59 min ago"),
        (3_600_000, "1 h ago"),
        (86_400_000, "1 d ago"),
        (30 * 86_400_000, "2025-12-02"),
    ],
)
def test_since(age_ms: int, shown: str) -> None:
    """A time is shown as how long ago it was, in one unit, and as a date after 30 days."""
    assert since(NOW - age_ms, NOW) == shown


def test_keys_are_no_markup() -> None:
    """What looks like markup or an emoji code in a key is shown as it is."""
    assert printed(text("[red]agent[/red]:smile:"), width=80).strip() == "[red]agent[/red]:smile:"


KEY = "agent:main:subagent:" + "x" * 20 + ":child"


def test_titles_lose_their_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a narrow terminal a title is cut in its middle, and no line is wider than the terminal."""
    made = table(flexible("TITLE"), number("N"))
    made.add_row(Cut("about the parser and its many tokens"), text(12345))
    monkeypatch.setenv("NO_COLOR", "1")
    assert [line.rstrip() for line in printed(made, width=30).splitlines()] == [
        "TITLE                      N",
        "────────────────────────────",
        "about the…ny tokens    12345",
    ]


@pytest.mark.parametrize("width", [20, 30, 50, 80])
def test_keys_are_folded(width: int) -> None:
    """In a narrow terminal a key goes on in the next line, without losing a character, and no line is wider than the terminal."""
    made = table(folded("KEY"), Column("WHEN", goes=1))
    made.add_row(text(KEY), text("3 min ago"))
    _, _, *lines = printed(made, width=width).splitlines()
    assert "".join(lines).replace(" ", "").replace("3minago", "") == KEY
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("room", "widths"),
    [(83, {0: 40, 1: 10, 2: 8, 3: 14}), (60, {0: 17, 1: 10, 2: 8, 3: 14}), (54, {0: 16, 1: 10, 2: 8, 3: 9}), (53, {0: 23, 2: 8, 3: 14}),
     (41, {0: 16, 2: 8, 3: 9}), (40, {0: 21, 3: 14}), (5, {0: 16, 3: 9})],
)  # fmt: skip
def test_which_columns_go(room: int, widths: dict[int, int]) -> None:
    """Columns first become as narrow as they may, then the least important go; a key's column never does."""
    columns = (folded("KEY"), Column("WHEN", goes=2), number("N", goes=1), flexible("WORDS"))
    assert fit(columns, (40, 10, 8, 14), room) == widths


def test_wide_characters_are_cut_by_their_width() -> None:
    """A key of characters that are two columns wide is cut to the columns there are."""
    assert printed(Cut("日本" * 20), width=10) == "日本…日本\n"


def test_pipes_are_not_cut() -> None:
    """What is no terminal gets every key whole, and no escape sequences."""
    made = table(flexible("KEY"))
    made.add_row(Cut("k" * 300, "red"))
    shown = printed(made, width=0, terminal=False)
    assert "k" * 300 in shown
    assert "\x1b" not in shown


def test_indented_tables_in_pipes() -> None:
    """A table that is indented is as wide as its columns: no line is filled up with blanks to the width of a pipe."""
    made = table("KEY", "SUMMARY")
    made.add_row(text("agent:main:x"), text("goal updated"))
    shown = printed(Padding.indent(made, 4), width=0, terminal=False)
    assert "    agent:main:x   goal updated" in shown
    assert max(map(len, shown.splitlines())) < 40
