"""One thing that can be asked: how it is documented, what it takes, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .schemas import Schema, fields

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, checked against the endpoint's schemas."""

    path: Mapping[str, str]
    """The parameters in the path, decoded."""
    query: Arguments
    body: Arguments
    last_event_id: str | None = None
    """What a stream's client says that it has seen."""

    @property
    def key(self) -> str:
        """The session key in the path."""
        return self.path["key"]

    def given(self, **names: str) -> dict[str, Any]:
        """Arguments for a call, from the fields that were given: `given(run_id="runId")`."""
        sent = {**self.query, **self.body}
        return {argument: sent[name] for argument, name in names.items() if name in sent}


Handler = Callable[[Asked], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A method of a path."""

    method: str
    path: str
    """With parameters in braces, each one segment: `/api/sessions/{key}`."""
    name: str
    """The operation's id in the document."""
    tag: str
    summary: str
    handle: Handler
    """Gives what is answered as JSON, or None where the status says all. Raises `KizukiError`, `StoreError` and `Refused`."""
    answer: Schema | None
    """None: the answer is 204, without content."""
    status: int = 200
    query: Schema = field(default_factory=fields)
    body: Schema | None = None
    """None: it takes none."""
    refusals: Mapping[int, str] = field(default_factory=dict)
    """How else it may answer, beside what every endpoint may."""
    streams: bool = False
    """Whether the answer is a stream of events: then `handle` gives the response itself."""


class Refused(Exception):
    """An answer that is a refusal of the HTTP API's own: its status, the word for programs, and the text for people."""

    def __init__(self, status: int, reason: str, error: str) -> None:
        super().__init__(status, reason, error)
        self.status = status
        self.reason = reason
        self.error = error


def closing() -> Refused:
    """That nothing new is begun any more."""
    return Refused(503, "closing", "the server is ending, and begins nothing new")
