"""One look at the database for all who listen: what was recorded, by whatever process, and which notices were opened or cleared.

A client that does not keep up loses what is waiting for it, and is told that it did; it never makes the queue grow. Nothing is looked
at while nobody listens.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ....storage.protocol import Store
from ....storage.records import Cursor, Followed, LogPosition
from ...clock import Clock
from ...logs import logger
from ...notices import notice
from ...summaries import Language
from ..rows import event_row, notice_row
from .endpoint import Refused, closing

POLL_S: Final = 0.1
RETRY_S: Final = 1.0
EVENTS_MAX: Final = 500
"""How many events one look takes."""
OPENED_MAX: Final = 2_000
"""With more opened notices than that their changes are not told one by one."""
WAITING_MAX: Final = 2_000
"""How many messages may wait for one client."""
LISTENERS_MAX: Final = 64
BACKLOG_MAX: Final = 5_000
"""How many events one who comes back is given."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One message of the stream."""

    kind: str
    """`ready`, `recorded`, `notices` or `gap`."""
    data: Mapping[str, Any]
    position: int
    """Up to here everything was told; who comes back with it misses nothing."""
    sequence: int = 0
    """Of a recorded event."""

    def encoded(self) -> bytes:
        """As the stream carries it. JSON has no line breaks of its own."""
        return f"id: {self.position}\nevent: {self.kind}\ndata: {json.dumps(self.data)}\n\n".encode()


@dataclass(slots=True, eq=False)
class Listener:
    """One client's queue."""

    waiting: deque[Sent] = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def offer(self, message: Sent) -> None:
        """Put the message into the queue; where it is full, all that waits is lost, and a gap tells so."""
        if len(self.waiting) >= WAITING_MAX:
            lost = sum(waiting.data.get("lost", 0) if waiting.kind == "gap" else 1 for waiting in self.waiting)
            self.waiting.clear()
            self.waiting.append(gap("too_slow", message.position, lost=lost))
        self.waiting.append(message)
        self.woken.set()

    def end(self) -> None:
        """No more will come."""
        self.ended = True
        self.woken.set()

    async def take(self) -> list[Sent]:
        """What waits, as soon as something does; nothing at the end."""
        while not self.waiting and not self.ended:
            self.woken.clear()
            await self.woken.wait()
        taken = list(self.waiting)
        self.waiting.clear()
        return taken


class Follower:
    """Looks ten times a second, as long as somebody listens."""

    def __init__(self, store: Store, language: Language, clock: Clock) -> None:
        self._store = store
        self._language = language
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self._position: LogPosition | None = None
        self._opened: Mapping[tuple[Any, ...], Cursor] | None = None
        """The notices that were opened at the last look, by what names them; None: they were too many."""

    async def listen(self, after: int | None) -> tuple[Listener, list[Sent]]:
        """A queue of all that comes from now on, and what came behind the position `after`, where one is given.

        Raises `StoreError`, and `Refused` where there are too many already.
        """
        if self._closed:
            raise closing()
        if len(self._listeners) >= LISTENERS_MAX:
            raise Refused(503, "too_many_streams", f"there may be {LISTENERS_MAX} streams at a time")
        listener = Listener()
        # Before anything is waited for: those who come at the same time count too, and it is ended if all are ended meanwhile.
        self._listeners.add(listener)
        try:
            await self._begin()
            return listener, await self._before(after)
        except BaseException:
            self.leave(listener)
            raise

    def leave(self, listener: Listener) -> None:
        """That client is gone. When the last one is, nothing is looked at any more."""
        self._listeners.discard(listener)
        if not self._listeners and self._looking is not None:
            self._looking.cancel()
            self._looking, self._position = None, None

    async def close(self) -> None:
        """End all streams, and open no more."""
        self._closed = True
        for listener in tuple(self._listeners):
            listener.end()
            self._listeners.discard(listener)
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            await asyncio.wait([looking])

    async def _begin(self) -> None:
        """Look, unless somebody else who listens has begun it."""
        if self._position is None:
            self._look_for_the_first_time(await self._store.follow(None, events_max=EVENTS_MAX, opened_max=OPENED_MAX))
        if self._looking is None and not self._closed:
            self._looking = asyncio.create_task(self._look_again_and_again(), name="kizuki follower")

    def _look_for_the_first_time(self, read: Followed) -> None:
        if self._position is None:
            self._position, self._opened = read.position, _by_name(read.opened)

    async def _before(self, after: int | None) -> list[Sent]:
        """What somebody missed who comes back, between a word that the stream is there and what it brings."""
        fresh = Sent("ready", {"resumed": False}, self._settled)
        if after is None:
            return [fresh]
        newest = await self._store.events(address=None, limit=1)
        if after > (newest[-1].sequence if newest else 0):
            return [fresh, gap("unknown_position", fresh.position)]
        read = await self._store.follow(LogPosition(after), events_max=BACKLOG_MAX, opened_max=1)
        if read.more:
            return [fresh, gap("too_much", fresh.position)]
        pruned = [gap("pruned", after)] if await self._may_be_pruned(after) else []
        return [Sent("ready", {"resumed": True}, after), *pruned, *self._recorded(read, after)]

    async def _may_be_pruned(self, after: int) -> bool:
        """Whether events behind the position may have been pruned: so it is where the oldest that is kept is not right behind it."""
        oldest = await self._store.follow(LogPosition(0), events_max=1, opened_max=1)
        return bool(oldest.events) and oldest.events[0].sequence > after + 1

    @property
    def _settled(self) -> int:
        return 0 if self._position is None else self._position.settled

    async def _look_again_and_again(self) -> None:
        failed = False
        while True:
            try:
                more = await self._look()
                failed = False
            except Exception as error:  # noqa: BLE001 - a stream in which nothing comes would look like one in which nothing happens
                if not failed:
                    logger().warning("the log could not be followed, it is tried again", error=repr(error))
                more, failed = False, True
            # Where more is waiting it is taken at once, but not before the clients had their turn.
            await (asyncio.sleep(0) if more else self._clock.sleep(RETRY_S if failed else POLL_S))

    async def _look(self) -> bool:
        """Tell what is new; whether there is more."""
        before = self._settled
        read = await self._store.follow(self._position, events_max=EVENTS_MAX, opened_max=OPENED_MAX)
        self._position = read.position
        self._tell(self._recorded(read, before))
        if read.missed:
            self._tell([gap("missed", read.position.settled)])
        self._tell(self._notices(read))
        return read.more

    def _tell(self, messages: Iterable[Sent]) -> None:
        for message in messages:
            for listener in self._listeners:
                listener.offer(message)

    def _recorded(self, read: Followed, before: int) -> list[Sent]:
        """Everything up to the new position is told only with the last of them."""
        last = len(read.events) - 1
        return [
            Sent("recorded", event_row(event, self._language), read.position.settled if number == last else before, event.sequence)
            for number, event in enumerate(read.events)
        ]

    def _notices(self, read: Followed) -> list[Sent]:
        before, self._opened = self._opened, _by_name(read.opened)
        settled = read.position.settled
        if before is None or self._opened is None:
            return [] if before is self._opened else [gap("too_many_notices", settled)]
        opened = [self._notice(self._opened[name]) for name in self._opened if name not in before]
        cleared = [self._notice(before[name]) for name in before if name not in self._opened]
        return [Sent("notices", {"opened": opened, "cleared": cleared}, settled)] if opened or cleared else []

    def _notice(self, cursor: Cursor) -> dict[str, Any]:
        return {"watcher": cursor.watcher} | notice_row(notice(cursor, self._language))


def gap(reason: str, position: int, *, lost: int | None = None) -> Sent:
    """Word that something was not told, and all must be read anew."""
    return Sent("gap", {"reason": reason} if lost is None else {"reason": reason, "lost": lost}, position)


def _by_name(opened: Iterable[Cursor] | None) -> dict[tuple[Any, ...], Cursor] | None:
    """By what tells a notice from any other (rule 4.5)."""
    if opened is None:
        return None
    return {(cursor.watcher, cursor.target, cursor.positions.last_seen, cursor.positions.notified): cursor for cursor in opened}
