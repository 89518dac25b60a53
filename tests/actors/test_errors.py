"""What the errors say."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.errors import (
    CatalogUnavailable,
    DispatchRefused,
    GatewayClosed,
    InvalidArgument,
    InvalidSessionKey,
    KizukiError,
    StoreUnavailable,
    UnknownSession,
    UnknownThread,
    shown,
)

ERRORS = [
    InvalidSessionKey("a b", "no white space"),
    InvalidArgument("limit", 0, "it must be 1 to 200"),
    UnknownSession("agent:main:x", "main"),
    GatewayClosed("turn"),
    StoreUnavailable("watch", OSError("disk full")),
    DispatchRefused("not today"),
    UnknownThread("fake", "t1", "local"),
    CatalogUnavailable("fake", OSError("no disk")),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_is_a_kizuki_error(error: KizukiError) -> None:
    """Every error of the library can be caught as `KizukiError`."""
    assert isinstance(error, KizukiError)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_survives_pickling(error: KizukiError) -> None:
    """An error that crosses a process boundary still says the same."""
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ERRORS[0], "'a b' is not a session key: no white space"),
        (ERRORS[1], "limit is 0: it must be 1 to 200"),
        (ERRORS[2], "no session 'agent:main:x' of agent 'main': it must have been opened, spawned, watched or recorded before"),
        (UnknownSession("agent:main:x"), "no session 'agent:main:x': it must have been opened, spawned, watched or recorded before"),
        (ERRORS[4], "watch: the database failed: disk full"),
        (ERRORS[5], "the message was refused: 'not today'"),
        (ERRORS[6], "no thread 't1' on host 'local': it must be one that the catalog 'fake' lists"),
        (ERRORS[7], "the catalog 'fake' failed: 'no disk'; the call may be tried again"),
    ],
)
def test_an_error_says_what_was_wrong_with_which_value(error: KizukiError, text: str) -> None:
    """`str()` of an error says what was wrong with which value, and what is allowed."""
    assert str(error) == text


def test_a_closed_gateway_says_where_calls_are_possible() -> None:
    """The error of a closed gateway names the call that was made, and where such calls are allowed."""
    text = str(GatewayClosed("turn"))
    assert text.startswith("'turn' was called on a ")
    assert text.endswith(": calls are possible inside `async with open_gateway(...)` only")


class Ruder:
    """An object that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("value", [10**5000, Ruder()], ids=["number", "object"])
def test_a_value_without_a_repr_is_named_by_its_type(value: object) -> None:
    """Interface: `str()` of an error says what was wrong, also of a value that Python refuses to show."""
    assert str(InvalidArgument("limit", value, "it must be 1 to 200")) == f"limit is <{type(value).__name__}>: it must be 1 to 200"


def test_a_megabyte_is_shown_in_eighty_characters() -> None:
    """A long value is cut, with a mark that it was."""
    assert shown("x" * 1_000_000) == "'" + "x" * 78 + "…"


class Rude:
    """A value whose `repr` holds control characters."""

    def __repr__(self) -> str:
        return "two\nlines \x1b[31m"


def test_control_characters_of_a_repr_are_escaped() -> None:
    """A value's own `repr` cannot smuggle control characters into a message."""
    assert shown(Rude()) == "two\\nlines \\x1b[31m"


@given(st.text())
def test_any_text_is_shown_printable_and_short(text: str) -> None:
    """Whatever the text, it is shown in at most 80 printable characters."""
    assert len(shown(text)) <= 80
    assert shown(text).isprintable()


@given(st.text(max_size=15).filter(str.isascii))
def test_a_short_text_is_shown_as_its_repr(text: str) -> None:
    """What fits is shown whole."""
    assert shown(text) == repr(text)
