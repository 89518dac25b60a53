"""Names as JSON has them."""

from __future__ import annotations


def camel(name: str) -> str:
    """`notices_pending` as `noticesPending`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
