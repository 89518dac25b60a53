"""Reading a TOML document so that each error says where it is, with which value, and what is allowed there."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from ..errors import KizukiError, shown
from .durations import ALLOWED, ALLOWED_SPAN, Span, parse_duration, parse_span

T = TypeVar("T")

_MISSING: Any = object()
TEXT_MAX = 400


class ScenarioError(KizukiError):
    """A scenario cannot be used."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class Place:
    """One table of the document. Every key that is there is asked for by the schema, or refused by `close`."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table = table
        self._where = where
        self._asked: dict[str, None] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._table

    @property
    def where(self) -> str:
        """The path of the table in its file."""
        return self._where

    def wrong(self, key: str, reason: str) -> NoReturn:
        """Say what is wrong with the value of a key."""
        value = f" is {shown(self._table[key])}" if key in self._table else " is missing"
        raise ScenarioError(f"{self._where}.{key}" if self._where else key, f"it{value}: {reason}")

    def named(self, name: str) -> None:
        """Have errors below name the table, too, and not only its number."""
        self._where = f"{self._where} ({shown(name)})"

    def text(self, key: str, default: str = _MISSING) -> str:
        """One line of printable text."""
        allowed = f"write one line of text, 1 to {TEXT_MAX} characters"
        return str(
            self._get(key, default, lambda value: isinstance(value, str) and 0 < len(value) <= TEXT_MAX and value.isprintable(), allowed)
        )

    def choice(self, key: str, choices: Sequence[str], default: str = _MISSING) -> str:
        """One of a few words."""
        return str(self._get(key, default, lambda value: value in choices, f"write {_either(choices)}"))

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        return bool(self._get(key, default, lambda value: isinstance(value, bool), "write true or false"))

    def count(self, key: str, most: int, default: int = _MISSING) -> int:
        """A whole number from 1."""
        return int(
            self._get(key, default, lambda value: type(value) is int and 1 <= value <= most, f"write a whole number from 1 to {most:,}")
        )

    def number(self, key: str, most: float, default: float) -> float:
        """A number from 0."""
        allowed = f"write a number from 0 to {most:g}"
        return float(self._get(key, default, lambda value: type(value) in (int, float) and 0 <= value <= most, allowed))

    def duration(self, key: str, default: float | None = _MISSING) -> Any:
        """A duration in seconds."""
        return self._parsed(key, default, parse_duration, ALLOWED)

    def span(self, key: str, default: Span = _MISSING) -> Span:
        """A duration, or a range of them."""
        span: Span = self._parsed(key, default, parse_span, ALLOWED_SPAN)
        return span

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a text alone is a list of one."""
        values = self._list(key)
        if not all(isinstance(value, str) and value for value in values):
            self.wrong(key, 'write a list of names, such as ["worker"]')
        return tuple(dict.fromkeys(values))

    def durations(self, key: str) -> tuple[float, ...]:
        """A list of durations, ascending; one alone is a list of one."""
        allowed = f'write a list of times since the beginning, such as ["5m", "12m 30s"]; {ALLOWED}'
        try:
            return tuple(sorted(parse_duration(value) for value in self._list(key)))
        except (ValueError, TypeError, AttributeError):
            self.wrong(key, allowed)

    def tables(self, key: str) -> Iterator[Place]:
        """The tables of an array."""
        values = self._get(key, [], lambda value: isinstance(value, list) and all(isinstance(each, dict) for each in value), "write tables")
        for index, table in enumerate(values):
            yield Place(table, f"{self._where}.{key}[{index + 1}]" if self._where else f"{key}[{index + 1}]")

    def table(self, key: str) -> Place | None:
        """One table, if it is there."""
        value = self._get(key, None, lambda value: isinstance(value, dict), "write a table")
        return None if value is None else Place(value, f"{self._where}.{key}" if self._where else key)

    def close(self) -> None:
        """Refuse whatever was not asked for."""
        for key in self._table:
            if key not in self._asked:
                near = difflib.get_close_matches(key, self._asked, n=1)
                meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._asked)}"
                raise ScenarioError(self._where or "the file", f"there is no key {shown(key)} here: {meant}")

    def _list(self, key: str) -> list[Any]:
        self._asked[key] = None
        value = self._table.get(key, [])
        return value if isinstance(value, list) else [value]

    def _parsed(self, key: str, default: Any, parse: Callable[[str], T], allowed: str) -> Any:
        value = self._get(key, default, lambda value: isinstance(value, str), allowed)
        if key not in self._table:
            return default
        try:
            return parse(value)
        except ValueError:
            self.wrong(key, allowed)

    def _get(self, key: str, default: Any, fits: Callable[[Any], bool], allowed: str) -> Any:
        self._asked[key] = None
        if key not in self._table:
            if default is _MISSING:
                self.wrong(key, allowed)
            return default
        value = self._table[key]
        if not fits(value):
            self.wrong(key, allowed)
        return value


def _either(choices: Sequence[str]) -> str:
    return f"{', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else choices[0]
