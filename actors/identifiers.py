"""One-line texts that name something: run, actor and operation ids, labels, words out of a fixed set (rule 2.3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import TypeGuard

from .errors import InvalidArgument

IDENTIFIER_MAX = 512
"""Characters in an id, a label or a session key."""

BIDIRECTIONAL = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""The formatting characters that can make a text read differently from what it says."""

_REFUSED_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ALLOWED = f"one line of 1 to {IDENTIFIER_MAX} characters, not blank, without control or bidirectional formatting characters"


def one_line(value: object, what: str) -> str:
    """The text itself, unchanged, if it is fit to be an id or a label; else `InvalidArgument` naming `what`."""
    if not is_one_line(value):
        raise InvalidArgument(what, value, f"it must be {_ALLOWED}")
    return value


def optional_one_line(value: object, what: str) -> str | None:
    """As `one_line`, where None and a blank text mean that there is none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return one_line(value, what)


def one_of(value: object, what: str, allowed: Collection[str]) -> str:
    """The word itself if it is among the allowed ones; else `InvalidArgument` that lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidArgument(what, value, f"it must be one of {', '.join(allowed)}")
    return value


def is_one_line(value: object) -> TypeGuard[str]:
    """Whether the value is fit to be an id or a label."""
    return isinstance(value, str) and len(value) <= IDENTIFIER_MAX and bool(value.strip()) and _is_clean(value)


def _is_clean(text: str) -> bool:
    plain = text.isascii() and text.isprintable()  # nearly every id, and much faster than a look at each character
    return plain or not any(map(_is_refused, text))


def _is_refused(character: str) -> bool:
    return character in BIDIRECTIONAL or unicodedata.category(character) in _REFUSED_CATEGORIES
