"""Values made of bytes: what a fuzzer changes is bytes, what most parsers look into is JSON."""

from __future__ import annotations

import ast
import copy
import inspect
import struct
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

DEPTH_MAX = 4


class Draws:
    """Takes values from bytes, from their beginning on. When they are used up every further value is the simplest."""

    def __init__(self, data: bytes, words: Sequence[str] = ()) -> None:
        self._data = data
        self._at = 0
        self._words = words

    def left(self) -> int:
        """How many bytes are left."""
        return max(0, len(self._data) - self._at)

    def take(self, size: int) -> bytes:
        """The next bytes, at most so many."""
        taken = self._data[self._at : self._at + size]
        self._at += size
        return taken

    def below(self, bound: int) -> int:
        """A number from 0 up to below the bound."""
        return int.from_bytes(self.take(1 if bound <= 256 else 4), "little") % bound

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def chance(self, one_in: int) -> bool:
        """Seldom true, and never when the bytes are used up."""
        return self.below(one_in) == one_in - 1

    def text(self) -> str:
        """A word of the format, or any text, of broken UTF-8, too, whose bytes are then lone surrogates."""
        if self._words and not self.chance(3):
            return self.pick(self._words)
        return self.take(self.below(24)).decode("utf-8", "surrogateescape")

    def number(self) -> int | float:
        """A small number, a huge one, or anything that is a float."""
        match self.below(4):
            case 0:
                return self.below(256)
            case 1:
                return -self.below(1 << 20)
            case 2:
                return int.from_bytes(self.take(12), "little", signed=True)
        value: float = struct.unpack("<d", self.take(8).ljust(8, b"\0"))[0]
        return value

    def json(self, depth: int = 0) -> Any:
        """Any JSON value."""
        match self.below(8):
            case 0:
                return None
            case 1:
                return bool(self.below(2))
            case 2:
                return self.number()
            case 3 if depth < DEPTH_MAX:
                return [self.json(depth + 1) for _ in range(self.below(4))]
            case 4 | 5 if depth < DEPTH_MAX:
                return {self.text(): self.json(depth + 1) for _ in range(self.below(6))}
        return self.text()

    def like(self, examples: Sequence[Any]) -> Any:
        """One of the examples with some of its fields changed, or anything."""
        if self.chance(8):
            return self.json()
        value = copy.deepcopy(self.pick(examples))
        for _ in range(self.below(4)):
            self._change(value)
        return value

    def _change(self, root: Any) -> None:
        """Set or remove a field, somewhere inside."""
        value: Any = root
        while isinstance(value, dict | list) and value:
            place: Any = self.pick(sorted(value) if isinstance(value, dict) else range(len(value)))
            if isinstance(value[place], dict | list) and not self.chance(3):
                value = value[place]
            elif self.chance(4):
                del value[place]
                return
            else:
                other = isinstance(value, dict) and self.chance(2)
                _put(value, self.text() if other else place, self.json(2))
                return


def _put(container: Any, place: object, value: object) -> None:
    container[place] = value


@cache
def words_of(*modules: ModuleType) -> tuple[str, ...]:
    """The short texts that stand in the source of modules: the names that their formats are made of."""
    found: set[str] = set()
    for module in modules:
        constants = (node.value for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Constant))
        found |= {text for text in constants if isinstance(text, str) and 0 < len(text) <= 40}
    return tuple(sorted(found))
