"""Ids, labels and words out of fixed sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.errors import InvalidArgument
from kizuki.actors.identifiers import BIDIRECTIONAL, one_line, one_of, optional_one_line

ONE_LINE = st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]), min_size=1, max_size=40).filter(
    lambda t: bool(t.strip())
)


@given(ONE_LINE)
def test_an_ordinary_line_is_kept_as_it_is(text: str) -> None:
    """Rule 2.3: one line of up to 512 characters is an id, and is not changed."""
    assert one_line(text, "run id") == text


@pytest.mark.parametrize("text", ["r", "x" * 512, " spaced ", "日本語", "👩\u200d🚀", 'with "quotes"'])
def test_what_is_accepted_as_an_id(text: str) -> None:
    """Rule 2.3: the limit itself, spaces, quotes, any script and joined emoji are allowed in an id."""
    assert one_line(text, "label") == text


@pytest.mark.parametrize(
    "value", ["", " ", "x" * 513, "a\nb", "a\rb", "a\x00b", "\x1b[31m", "a\u2028b", "a\u2029b", "\ud800", "\x85", 5, None, b"r", True]
)
def test_what_is_refused_as_an_id(value: object) -> None:
    """Rule 2.3: an id of more than one line, too long, blank, with control or surrogate characters, or no text at all, is refused."""
    with pytest.raises(InvalidArgument, match=r"^run id is "):
        one_line(value, "run id")


@pytest.mark.parametrize("character", sorted(BIDIRECTIONAL), ids=lambda c: f"U+{ord(c):04X}")
def test_bidirectional_formatting_is_refused(character: str) -> None:
    """Rule 2.3: no character that reorders the text around it is allowed in an id."""
    with pytest.raises(InvalidArgument):
        one_line(f"a{character}b", "label")


@pytest.mark.parametrize("value", [None, "", "  ", "\n"])
def test_blank_means_none(value: object) -> None:
    """Rule 1.6: where an id is optional, blank means none."""
    assert optional_one_line(value, "dedupe key") is None


def test_an_optional_id_obeys_the_same_rule() -> None:
    """Rule 2.3: an optional id that is given is checked like any other."""
    assert optional_one_line("k", "dedupe key") == "k"
    with pytest.raises(InvalidArgument):
        optional_one_line("a\nb", "dedupe key")


def test_one_of_lists_what_is_allowed() -> None:
    """Rule 1.9: a word outside its set raises at once, and the error lists the set."""
    assert one_of("ok", "outcome", ("ok", "error")) == "ok"
    with pytest.raises(InvalidArgument, match=r"^outcome is 'fine': it must be one of ok, error$"):
        one_of("fine", "outcome", ("ok", "error"))
    with pytest.raises(InvalidArgument):
        one_of(["ok"], "outcome", ("ok", "error"))
