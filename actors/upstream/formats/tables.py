"""What the tables of all formats are made of: ordered rules, and the fold of a table over the rows of one file.

A table decides about one row at a time. What it must know beyond the row is in `Facts`, a frozen value that the rows before have
formed. So a table is a pure function, and a reader that folds it is as cheap to copy as its facts.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Generic, Protocol, Self, TypeVar, cast

from .fields import JsonRow
from .rows import Classified, Confidence, RowClass, Unreadable

WRITE_DELAY_MS = 1_000
"""A row is stamped first and written a little later: one written after the adoption can be stamped this long before it."""
SEEN_MAX = 10_000
"""How many ids of rows that signalled something are remembered."""

_REMEMBERED = frozenset(
    {
        RowClass.HUMAN,
        RowClass.AGENT,
        RowClass.EXTERNAL,
        RowClass.PROGRAMMATIC,
        RowClass.COMPACTED,
        RowClass.LIFECYCLE,
        RowClass.REPLAY,
    }
)
"""What a row may have signalled, here or before the adoption: the ids of others need not be known again."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What every table may have to know beyond the row."""

    adopted_at_ms: int | None = None
    """None where the whole file is of interest."""
    repeated: bool = False
    """Whether a row of the same id came before."""


F = TypeVar("F", bound=Facts)


@dataclass(frozen=True, slots=True)
class Rule(Generic[F]):
    """One line of a table."""

    number: int
    """Of the line in the description of its format; 0 for what holds for every format."""
    name: str
    applies: Callable[[JsonRow, F], bool]
    """Called with objects only, but for the rules of `NO_ROWS`."""
    row_class: RowClass
    confidence: Confidence | None = None
    awaits_expansion: bool = False
    """Whether the class holds only if the next row of the chain is a meta row that expands this one."""


class Reader(Protocol):
    """Folds a table over the rows of one file, in order.

    Copy the reader before rows that may turn out not to count, and go on with the copy only when they did.
    """

    def feed(self, row: object) -> list[Classified]:
        """The verdicts that this row settles: one for every row, though at times a later one, in order."""
        ...

    def finish(self) -> list[Classified]:
        """The verdicts that are still owed when no more rows will come."""
        ...

    def copy(self) -> Self:
        """A reader in the same state that goes on by itself."""
        ...


@dataclass(frozen=True, slots=True)
class Table(Generic[F]):
    """How rows of one format are judged."""

    rules: tuple[Rule[F], ...]
    """In order: the first that applies decides."""
    learn: Callable[[F, JsonRow], F]
    """What the row tells of the file, before the row itself is judged."""
    judged: Callable[[F, JsonRow, Rule[F]], F]
    """What the verdict on the row means for those that follow."""
    identity: Callable[[object], str | None]
    classified: Callable[[object, Rule[F], F], Classified]

    def rule_for(self, row: object, facts: F) -> Rule[F]:
        """The first rule that applies to the row; an unknown one where none does."""
        return first_rule(self.rules, row, facts)


def first_rule(rules: tuple[Rule[F], ...], row: object, facts: F) -> Rule[F]:
    """The first of the rules that applies to the row; rule 0, unknown, where none does."""
    found = next((rule for rule in rules if rule.applies(cast(JsonRow, row), facts)), None)
    return found or Rule(0, "no rule applies", _always, RowClass.UNKNOWN)


def no_rows(number: int = 0) -> tuple[Rule[F], Rule[F]]:
    """The two rules that every table begins with: what is no row, and what is no object."""
    return (
        Rule(number, "unreadable", _is_unreadable, RowClass.UNREADABLE),
        Rule(number, "no object", _is_no_object, RowClass.UNKNOWN),
    )


def is_replay(occurred_at_ms: int | None, facts: Facts) -> bool:
    """Whether a row came before, or is older than the adoption. A row without a time of its own is not taken for an old one."""
    too_old = facts.adopted_at_ms is not None and occurred_at_ms is not None and occurred_at_ms < facts.adopted_at_ms - WRITE_DELAY_MS
    return facts.repeated or too_old


class SeenIds:
    """Ids of rows, the newest `SEEN_MAX` of them."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def __contains__(self, identity: str | None) -> bool:
        return identity in self._ids

    def copy(self) -> SeenIds:
        """The same ids, to go on with by itself."""
        other = SeenIds()
        other._ids = dict(self._ids)
        return other

    def add(self, identity: str | None) -> None:
        """Remember an id, and forget the oldest beyond the bound."""
        if identity is None:
            return
        self._ids[identity] = None
        if len(self._ids) > SEEN_MAX:
            del self._ids[next(iter(self._ids))]


class TableReader(Generic[F]):
    """The `Reader` of a table: one verdict for every row, at once."""

    def __init__(self, table: Table[F], facts: F) -> None:
        self._table = table
        self._facts = facts
        self._seen = SeenIds()

    def copy(self) -> Self:
        """A reader in the same state that goes on by itself."""
        other = copy(self)
        other._seen = self._seen.copy()  # noqa: SLF001 - another of its own class
        return other

    def feed(self, row: object) -> list[Classified]:
        """The verdict on the row."""
        rule, facts = self._judge(row)
        return [self._table.classified(row, rule, facts)]

    def finish(self) -> list[Classified]:
        """Nothing: no verdict waits."""
        return []

    def _judge(self, row: object) -> tuple[Rule[F], F]:
        """The row's rule, and the facts that it was judged by."""
        identity = self._table.identity(row)
        fields: JsonRow = row if isinstance(row, dict) else {}
        facts = replace(self._table.learn(self._facts, fields), repeated=identity in self._seen)
        rule = self._table.rule_for(row, facts)
        self._facts = self._table.judged(facts, fields, rule)
        if rule.row_class in _REMEMBERED:
            self._seen.add(identity)
        return rule, facts


def unchanged(facts: F, _row: JsonRow, _rule: Rule[F]) -> F:
    """For a table whose verdicts mean nothing for the rows that follow."""
    return facts


def _is_unreadable(row: object, _: Facts) -> bool:
    return isinstance(row, Unreadable)


def _is_no_object(row: object, _: Facts) -> bool:
    return not isinstance(row, dict)


def _always(_row: JsonRow, _: Facts) -> bool:
    return True
