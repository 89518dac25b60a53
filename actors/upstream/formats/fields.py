"""Reading single fields of a JSON row that may hold anything: a field of the wrong type reads as one that is not there."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ...identifiers import is_one_line

JsonRow = dict[str, object]

MILLISECONDS_MAX = 1 << 62

_unprintable = re.compile(r"[^A-Za-z0-9_.:-]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "number", float: "number", type(None): "null"}


def present(row: JsonRow, name: str) -> bool:
    """Whether the field is there and not null."""
    return row.get(name) is not None


def is_set(row: JsonRow, name: str) -> bool:
    """Whether the field is there and neither null, false, zero nor empty."""
    return bool(row.get(name))


def text_of(row: JsonRow, name: str) -> str:
    """The field's text, empty where it is none."""
    value = row.get(name)
    return value if isinstance(value, str) else ""


def object_of(row: object, name: str) -> JsonRow:
    """The object in the field, empty where it is none, or where the row itself is none."""
    value = row.get(name) if isinstance(row, dict) else None
    return value if isinstance(value, dict) else {}


def objects_in(content: object) -> list[JsonRow]:
    """The objects among the elements of a list, none where it is no list."""
    return [element for element in content if isinstance(element, dict)] if isinstance(content, list) else []


def identity_in(row: object, name: str) -> str | None:
    """The field as an id by which the row is recognised when it comes again; None where it is unfit to be one."""
    identity = row.get(name) if isinstance(row, dict) else None
    return identity if is_one_line(identity) else None


def time_in(row: JsonRow, name: str) -> int | None:
    """The ISO 8601 time in the field in whole milliseconds, rounded down, in UTC where it names no zone."""
    try:
        moment = datetime.fromisoformat(text_of(row, name))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def milliseconds_in(row: JsonRow, name: str) -> int | None:
    """The number of milliseconds in the field, rounded down."""
    value = row.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if abs(value) < MILLISECONDS_MAX else None


def word(value: object) -> str:
    """A value as part of a shape: a name of the format cut short, made plain and put on one line; of anything else only its type."""
    return _unprintable.sub("?", value[:40]) if isinstance(value, str) else json_type(value)


def json_type(value: object) -> str:
    """What JSON calls the type of a value."""
    return _JSON_TYPES.get(type(value), "other")
