"""Finding transcripts in a tool's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..formats.fields import JsonRow
from .parsing import values_on

FIRST_ROW_BYTES_MAX = 64 * 1024


def files_below(folder: Path, depth: int) -> Iterator[Path]:
    """Every file in the folder and in those below it, down to `depth` folders (1: this one alone); none where there is no folder.

    Raises the `OSError` of a folder that is there and cannot be listed: what cannot be looked into is not known to be empty. A path
    that is no proper text is left out, for nothing can store it.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in found:
        if entry.is_dir():
            yield from files_below(folder / entry.name, depth - 1) if depth > 1 else ()
        elif _is_text(entry.name):
            yield folder / entry.name


def first_row(path: Path) -> JsonRow:
    """The object that the file begins with, empty where it begins with anything else. Raises `OSError`."""
    with path.open("rb") as file:
        line = file.readline(FIRST_ROW_BYTES_MAX)
    values = values_on(line) if line.endswith(b"\n") else []
    return values[0] if values and isinstance(values[0], dict) else {}


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\udc80" <= character <= "\udcff" for character in name)
