"""The JSON values on one line of a transcript."""

from __future__ import annotations

import json
import re

from ..formats.rows import Unreadable

NOT_JSON = Unreadable("not JSON")
RECOVERY_ATTEMPTS_MAX = 256
"""Bounds the work on one broken line."""

_decoder = json.JSONDecoder()
_blank = re.compile("[ \t\r\n\ufeff]*")
_object_start = re.compile(r'\{\s*"')


def values_on(line: bytes) -> list[object]:
    """Every JSON value on the line, in order, with an `Unreadable` in the place of what is none; a blank line has none at all.

    Two writers can put two objects on one line, so values may follow each other. Bytes that are not UTF-8 are replaced, which
    keeps a row readable when they are inside a string.
    """
    text = line.decode("utf-8", "replace")
    values: list[object] = []
    at = _after_blank(text, 0)
    while at < len(text):
        try:
            value, end = _decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return [*values, NOT_JSON, *_glued_row(text, at + 1)]
        values.append(value)
        at = _after_blank(text, end)
    return values


def _after_blank(text: str, at: int) -> int:
    match = _blank.match(text, at)
    return match.end() if match else at


def _glued_row(text: str, at: int) -> list[object]:
    """The whole object at the end of a line that begins with a torn one.

    A writer that dies inside a row leaves no line end, so the next row is glued to the torn one. An object nested in the torn
    row is not taken for it, for such an object does not reach the end of the line.
    """
    for attempt, start in enumerate(_object_start.finditer(text, at)):
        if attempt == RECOVERY_ATTEMPTS_MAX:
            break
        try:
            value, end = _decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        if _after_blank(text, end) == len(text):
            return [value]
    return []
