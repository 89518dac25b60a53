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
def _statement(head: str, rows: int, columns: int, tail: str) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{head} VALUES {','.join([row] * rows)} {tail}"


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    start = 0
    while start < len(rows):
        size = ROWS_MANY if len(rows) - start >= ROWS_MANY else ROWS_FEW
        yield rows[start : start + size]
        start += size


def run_rows(connection: sqlite3.Connection, head: str, rows: Sequence[Row], tail: str = "") -> None:
    """`head VALUES (…), (…) tail`, as many statements as the rows need."""
    for chunk in _chunks(rows):
        connection.execute(_statement(head, len(chunk), len(chunk[0]), tail), list(chain.from_iterable(chunk)))


def select_wanted(connection: sqlite3.Connection, columns: str, rows: Sequence[Row], query: str, *further: object) -> Iterator[Row]:
    """Run `query`, which joins the table `wanted(columns)` that holds the rows; `further` are the parameters after those."""
    for chunk in _chunks(rows):
        sql = _statement(f"WITH wanted({columns}) AS (", len(chunk), len(chunk[0]), f") {query}")
        yield from connection.execute(sql, [*chain.from_iterable(chunk), *further])
