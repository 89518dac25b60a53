"""How far a transcript, and what lies beside it, was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

from ..catalog import JsonObject
from .follower import Marker

CHILDREN_MAX = 1_000
"""How many sub-agents of a thread are told apart; one beyond that is told of, and could be told of again."""


@dataclass(frozen=True, slots=True)
class FileMarker:
    """The marker of a thread that is kept in a file."""

    file: Marker
    children: tuple[str, ...] = ()
    """Short names of the sub-agents that were there."""

    @classmethod
    def from_json(cls, value: JsonObject) -> Self:
        """The marker that `to_json` gave. Raises `ValueError` for anything else."""
        children = value.get("children")
        if not isinstance(children, list) or not all(isinstance(child, str) for child in children):
            raise ValueError("not a marker of a transcript")
        return cls(Marker.from_json(value.get("file")), tuple(children))

    def to_json(self) -> JsonObject:
        """The marker as a JSON object."""
        return {"file": self.file.to_json(), "children": list(self.children)}

    def unknown(self, children: Iterable[str]) -> list[str]:
        """Those of the sub-agents that were not there."""
        known = frozenset(self.children)
        return [child for child in children if short_name(child) not in known]

    def having(self, children: Iterable[str]) -> Self:
        """With these sub-agents there as well."""
        return replace(self, children=(*self.children, *(short_name(child) for child in children))[-CHILDREN_MAX:])


def short_name(identity: str) -> str:
    """What an id is told from others by, where there may be many."""
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
