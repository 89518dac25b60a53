"""Rows as arrays, a parameter for each column: one statement for any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rows import Row


def columns(rows: Sequence[Row], count: int) -> list[Sequence[Any]]:
    """The columns of the rows, which have `count` of them; so many empty ones where there is no row."""
    return list(zip(*rows, strict=True)) if rows else [()] * count


def unnest(types: str, start: int = 1) -> str:
    """The call that makes rows of the parameters from `start` on, whose element types are given separated by spaces."""
    return f"unnest({', '.join(f'${number}::{kind}[]' for number, kind in enumerate(types.split(), start))})"
