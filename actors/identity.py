"""Who caused an event (rule 1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from .identifiers import one_of, optional_one_line
from .keys import canonical_key

ActorType = Literal["human", "agent", "system"]
_TYPES = ("human", "agent", "system")


@dataclass(frozen=True, slots=True)
class Actor:
    """A person, an agent or the system. For an agent `id` is its canonical session key; else it is optional, and blank means none.

    Raises `InvalidArgument` for an unknown type or an id that is not one line, `InvalidSessionKey` for an agent without a key.
    """

    type: ActorType
    id: str | None = None

    def __post_init__(self) -> None:
        one_of(self.type, "actor type", _TYPES)
        identity = canonical_key(self.id) if self.type == "agent" else optional_one_line(self.id, "actor id")
        object.__setattr__(self, "id", identity)

    @classmethod
    def human(cls, id: str | None = None) -> Self:  # noqa: A002, the documented name
        """A person, with the id that the host knows them by."""
        return cls("human", id)

    @classmethod
    def agent(cls, session_key: str) -> Self:
        """The agent that runs in this session."""
        return cls("agent", session_key)

    @classmethod
    def system(cls) -> Self:
        """The gateway, or the host's own machinery."""
        return cls("system")
