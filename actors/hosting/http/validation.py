"""Checking what was sent against its schema, with an error that names the field.

It knows the words of JSON Schema that the schemas here use, and no others: a schema with any other word is refused when the
application is made (`check_schema`), so that nothing is documented that is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...errors import InvalidArgument
from .schemas import Schema

_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_ARTICLES: Final = {"integer": "an integer", "array": "an array", "object": "an object", "boolean": "true or false", "string": "a text"}
_KNOWN: Final = frozenset(
    {"type", "description", "enum", "minimum", "maximum", "maxItems", "pattern", "anyOf"}
    | {"items", "properties", "required", "additionalProperties"}
)


def check_schema(schema: Schema) -> None:
    """Raise `ValueError` for a schema with words that are not known here."""
    unknown = schema.keys() - _KNOWN
    if unknown:
        raise ValueError(f"these words of a schema are not checked: {', '.join(sorted(unknown))}")
    for inner in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else ())):
        check_schema(inner)


def check(value: Any, schema: Schema, what: str) -> None:
    """Raise `InvalidArgument` if the value, called `what`, does not fit the schema."""
    if "anyOf" in schema:
        _check_any(value, schema, what)
        return
    _check_type(value, schema["type"], what)
    if "enum" in schema and value not in schema["enum"]:
        raise InvalidArgument(what, value, f"it must be {' or '.join(schema['enum'])}")
    if isinstance(value, str):
        _check_text(value, schema, what)
    elif isinstance(value, dict):
        _check_object(value, schema, what)
    elif isinstance(value, list):
        _check_list(value, schema, what)
    else:
        _check_range(value, schema, what)


def _check_any(value: Any, schema: Schema, what: str) -> None:
    for choice in schema["anyOf"]:
        try:
            check(value, choice, what)
            return
        except InvalidArgument:
            continue
    kinds = " or ".join(_named(choice["type"]) for choice in schema["anyOf"])
    raise InvalidArgument(what, value, f"it must be {kinds}{_range(schema['anyOf'][0])}")


def _check_type(value: Any, kind: str, what: str) -> None:
    fits = isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not fits:
        raise InvalidArgument(what, value, f"it must be {_named(kind)}")


def _check_text(value: str, schema: Schema, what: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidArgument(what, value, "it must be text that UTF-8 can hold")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise InvalidArgument(what, value, f"it must match {schema['pattern']}")


def _check_range(value: float, schema: Schema, what: str) -> None:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise InvalidArgument(what, value, f"it must be {_named(schema['type'])}{_range(schema)}")


def _check_object(value: dict[str, Any], schema: Schema, what: str) -> None:
    known = schema["properties"]
    for name in value:
        if name not in known:
            raise InvalidArgument(what, name, f"there are {', '.join(known)}" if known else "it has no fields")
    for name in schema["required"]:
        if name not in value:
            raise InvalidArgument(name, None, f"{what} needs it")
    for name, inner in value.items():
        check(inner, known[name], name)


def _check_list(value: list[Any], schema: Schema, what: str) -> None:
    if len(value) > schema.get("maxItems", len(value)):
        raise InvalidArgument(what, len(value), f"there may be {schema['maxItems']} of them")
    for item in value:
        check(item, schema["items"], what)


def _named(kind: str) -> str:
    return _ARTICLES.get(kind, f"a {kind}")


def _range(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is None:
        return "" if low is None else f" of at least {low}"
    return f" from {low} to {high}"
