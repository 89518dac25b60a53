"""Which columns of a table are shown, and how wide each is, where a terminal has no room for all of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

FOLDED_MIN: Final = 16
FLEXIBLE_MIN: Final = 9
_AROUND: Final = 3
"""Cells between two columns."""


class Manner(Enum):
    """What a column does where there is little room."""

    WHOLE = "whole"
    """Each cell is one line, and as wide as it is."""
    FOLDED = "folded"
    """Every character stays, over as many lines as that takes: keys and ids, which somebody wants to copy."""
    FLEXIBLE = "flexible"
    """Words wrap, and a title is cut."""


_LEAST: Final = {Manner.FOLDED: FOLDED_MIN, Manner.FLEXIBLE: FLEXIBLE_MIN}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    manner: Manner = Manner.WHOLE
    right: bool = False
    goes: int = 0
    """The column with the highest number is left out first; one with 0 never is."""

    def least(self, natural: int) -> int:
        """How narrow it may become, if its cells are `natural` wide."""
        return min(natural, _LEAST.get(self.manner, natural))


def folded(name: str, *, goes: int = 0) -> Column:
    """A column of keys or ids."""
    return Column(name, Manner.FOLDED, goes=goes)


def flexible(name: str, *, goes: int = 0) -> Column:
    """A column of words."""
    return Column(name, Manner.FLEXIBLE, goes=goes)


def number(name: str, *, goes: int = 0) -> Column:
    """A column of numbers."""
    return Column(name, right=True, goes=goes)


def fit(columns: Sequence[Column], natural: Sequence[int], room: int) -> dict[int, int]:
    """The width of each column that is shown, by its index, ascending. `natural` says how wide the cells of each are."""
    widths = {index: column.least(natural[index]) for index, column in enumerate(columns)}
    leaving = sorted((index for index in widths if columns[index].goes), key=lambda index: columns[index].goes)
    while _total(widths) > room and leaving:
        del widths[leaving.pop()]
    _widen(widths, natural, room - _total(widths))
    return widths


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + _AROUND * len(widths) - 1


def _widen(widths: dict[int, int], natural: Sequence[int], spare: int) -> None:
    """Give what is left to the narrowest of those that need more, a cell at a time."""
    for _ in range(spare):
        lacking = [index for index in widths if widths[index] < natural[index]]
        if not lacking:
            return
        widths[min(lacking, key=widths.__getitem__)] += 1
