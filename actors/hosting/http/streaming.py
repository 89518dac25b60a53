"""`GET /api/stream`: server-sent events of all that is recorded on the database, by whatever process, and of notices.

| event | data | then |
| --- | --- | --- |
| `ready` | `{"resumed": true or false}` | once, first; from here on everything is told. If nothing was resumed, read now what you show |
| `recorded` | an event, as `GET /api/events` gives it | |
| `notices` | `{"opened": [...], "cleared": [...]}`, notices with their watcher | those that came and went between two looks are not told |
| `gap` | `{"reason": "too_slow" and others, "lost"?: how many}` | something was not told: read anew what you show |

Every event has an id. A client that comes back with the last one, as `EventSource` does by itself, or with `?after=`, is given what was
recorded meanwhile, at most 5,000 events; some of them may be given twice, so go by their sequences. Notices are not given again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from .endpoint import Asked, Endpoint
from .follower import Follower, Listener, Sent
from .schemas import fields, integer, text

KEEP_ALIVE_S: Final = 15.0
RETRY_MS: Final = 1_000
SEQUENCE_MAX: Final = 2**53


def stream_endpoint(follower: Follower) -> Endpoint:
    """The stream of a follower."""

    async def listen(asked: Asked) -> Any:
        listener, before = await follower.listen(_position(asked))
        return Stream(follower, listener, before)

    return Endpoint(
        method="GET",
        path="/api/stream",
        name="stream",
        tag="reading",
        summary="Server-sent events: recorded, notices, gap; after a first one, ready. Come back with Last-Event-ID and miss nothing.",
        handle=listen,
        answer=text(),
        query=fields(
            after=integer("Begin behind this position, an id of the stream; Last-Event-ID goes first.", minimum=0, maximum=SEQUENCE_MAX)
        ),
        streams=True,
    )


class Stream(StreamingResponse):
    """One client's stream, until it goes or the application ends it."""

    def __init__(self, follower: Follower, listener: Listener, before: list[Sent]) -> None:
        self._follower = follower
        self._listener = listener
        super().__init__(self._messages(before), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._follower.leave(self._listener)

    async def _messages(self, before: list[Sent]) -> AsyncIterator[bytes]:
        yield f"retry: {RETRY_MS}\n\n".encode()
        yield b"".join(message.encoded() for message in before)
        # What came while the backlog was read is in both.
        given = {message.sequence for message in before if message.sequence}
        while messages := await self._next():
            yield b"".join(message.encoded() for message in messages if message.sequence not in given) or b": again\n\n"

    async def _next(self) -> list[Sent]:
        """What comes next; a sign of life where nothing does, so that a client that is gone is noticed."""
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                return await self._listener.take()
        except TimeoutError:
            return [ALIVE]


class _Alive(Sent):
    def encoded(self) -> bytes:
        return b": keep-alive\n\n"


ALIVE: Final = _Alive("alive", {}, 0)


def _position(asked: Asked) -> int | None:
    """Where the client wants to go on. An id that is none of ours is a position that was never reached."""
    given = asked.last_event_id
    if not given:
        after: int | None = asked.query.get("after")
        return after
    return min(int(given), SEQUENCE_MAX) if given.isascii() and given.isdigit() and len(given) < 20 else SEQUENCE_MAX
