"""Statements over many rows at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

Row = tuple[Any, ...]

ROWS_PER_STATEMENT = 64


@lru_cache(maxsize=1024)
def _statement(head: str, rows: int, columns: int, tail: str) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{head} VALUES {','.join([row] * rows)} {tail}"


def _chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        yield rows[start : start + ROWS_PER_STATEMENT]


def run_rows(connection: sqlite3.Connection, head: str, rows: Sequence[Row], tail: str = "") -> None:
    """`head VALUES (…), (…) tail`, as many statements as the rows need."""
    for chunk in _chunks(rows):
        connection.execute(_statement(head, len(chunk), len(chunk[0]), tail), list(chain.from_iterable(chunk)))


def select_wanted(connection: sqlite3.Connection, columns: str, rows: Sequence[Row], query: str, *further: object) -> Iterator[Row]:
    """Run `query`, which joins the table `wanted(columns)` that holds the rows; `further` are the parameters after those."""
    for chunk in _chunks(rows):
        sql = _statement(f"WITH wanted({columns}) AS (", len(chunk), len(chunk[0]), f") {query}")
        yield from connection.execute(sql, [*chain.from_iterable(chunk), *further])
