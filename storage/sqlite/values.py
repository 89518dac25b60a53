"""Statements over many rows at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from ..rows import Row

ROWS_MANY = 256
"""Beside a busy loop each statement waits for the interpreter lock once, so that few with many rows are fast."""
ROWS_FEW = 64
"""Below this each number of rows has a statement of its own, which all are kept prepared."""


@lru_cache(maxsize=1024)
def _statement(head: str, rows: int, row: str, tail: str) -> str:
    return f"{head} VALUES {','.join([row] * rows)} {tail}"


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    if len(rows) <= ROWS_FEW:
        return iter((rows,) if rows else ())
    return _divided(rows)


def _divided(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start = 0
    while start < len(rows):
        size = ROWS_MANY if len(rows) - start >= ROWS_MANY else ROWS_FEW
        yield rows[start : start + size]
        start += size


@lru_cache(maxsize=64)
def _placeholders(columns: int) -> str:
    return f"({','.join('?' * columns)})"


def run_rows(connection: sqlite3.Connection, head: str, rows: Sequence[Row], tail: str = "", *, values: str | None = None) -> None:
    """`head VALUES (…), (…) tail`, as many statements as the rows need. `values` is one row's, if it is more than question marks.

    `sqlite3` takes plain integers, floats and texts at once, but looks for an adapter, in vain, for everything else: a None, a boolean or
    a member of an enumeration costs three times as much.
    """
    if not rows:
        return
    row = _placeholders(len(rows[0])) if values is None else values
    for chunk in _chunks(rows):
        connection.execute(_statement(head, len(chunk), row, tail), list(chain.from_iterable(chunk)))


def select_wanted(connection: sqlite3.Connection, columns: str, rows: Sequence[Row], query: str, *further: object) -> Iterator[Row]:
    """Run `query`, which joins the table `wanted(columns)` that holds the rows; `further` are the parameters after those."""
    for chunk in _chunks(rows):
        sql = _statement(f"WITH wanted({columns}) AS (", len(chunk), _placeholders(len(chunk[0])), f") {query}")
        yield from connection.execute(sql, [*chain.from_iterable(chunk), *further])
