"""Whose transcript a file is, told by what it begins with, and by its name and place where it is empty yet."""

from __future__ import annotations

from pathlib import Path

from ..files.walking import first_row
from . import gemini
from .fields import JsonRow
from .formats import CLAUDE, CODEX, GEMINI, PI, Format

_HEAD_BYTES = 256
_CODEX_HEADER = b'"session_meta"'


def recognise(path: Path) -> Format:
    """The format of a transcript; Claude Code's for a file that no other claims. Raises `OSError`."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return (_by_beginning(head, first_row(path)) if head.strip() else None) or _by_place(path)


def _by_beginning(head: bytes, row: JsonRow) -> Format | None:
    """A header can be longer than what is read of it."""
    if _CODEX_HEADER in head or (row.get("type") == "session_meta"):
        return CODEX
    if row.get("type") == "session" and "version" in row:
        return PI
    if "sessionId" in row and "projectHash" in row:
        return GEMINI
    return CLAUDE if row else None


def _by_place(path: Path) -> Format:
    if path.name.startswith("rollout-"):
        return CODEX
    if gemini.CHATS_FOLDER in path.parts[-3:-1] and path.name.startswith("session-"):
        return GEMINI
    return CLAUDE
