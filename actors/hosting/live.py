"""`kizuki watch` without files: the sessions that people have in the agents' own tools, adopted and watched by one session.

Each tick looks at what was appended to them, as a host's gateway does, only more often. What is shown of a session is what the
database holds of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from ..clock import SystemClock
from ..errors import KizukiError
from ..gateway import Gateway, open_gateway
from ..kinds import EventKind
from ..logs import logger
from ..notices import Notice
from ..summaries import clean
from ..upstream.catalog import Catalog, Discovered
from ..upstream.installed import installed_catalogs
from ..upstream.report import TickReport
from .discovery import discovered, persons_own
from .exits import CommandFailed
from .follow import WATCHER
from .settings import Settings

DAY_MS: Final = 86_400_000
REDISCOVER_S: Final = 30.0
"""How often it is looked for sessions that have begun meanwhile."""
PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """Which sessions are watched, and how often they are looked at."""

    days: float
    sessions_max: int
    interval_s: float


@dataclass(frozen=True, slots=True)
class Seen:
    """One watched session, and what is known of it."""

    catalog: str
    thread: Discovered
    key: str
    agent_id: str
    version: int = 0
    last_actor: str | None = None
    """Who changed it last, but for adopting it."""
    last_human_ms: int | None = None
    pending: bool = False
    """Whether the watching session has a notice of it that was not acknowledged yet."""

    @property
    def name(self) -> str:
        """What a person knows it by."""
        return f"{self.catalog} {self.thread.title or ''} {self.thread.thread_id[:8]}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class Source:
    """One catalog, and what was found in it."""

    catalog: str
    threads: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class View:
    """All that is known after a tick."""

    sources: Sequence[Source]
    tick: TickReport
    sessions: Sequence[Seen]
    """The one that a person used last comes first."""
    notices: Sequence[Notice]
    """What the watching session has pending."""
    deltas: Mapping[str, dict[str, Any]]
    """What changed, for each notice, by its target."""


class Display(Protocol):
    """Where a view is shown."""

    acknowledges: bool
    """Whether what was shown once is not to be shown again; otherwise that is so when the display ends."""

    def show(self, view: View) -> None: ...


async def watch_once(settings: Settings, choice: Choice, display: Display) -> None:
    """Discover, look once, show."""
    async with _opened(settings) as gateway:
        watching = Watching(gateway, choice)
        await watching.discover()
        await _look_and_show(watching, display)
        await watching.acknowledge()


async def watch_until_cancelled(settings: Settings, choice: Choice, display: Display) -> None:
    """Discover, look and show, again and again."""
    async with _opened(settings) as gateway:
        watching = Watching(gateway, choice)
        try:
            await _go_on(watching, choice, display)
        finally:
            await watching.acknowledge()


def _opened(settings: Settings) -> AbstractAsyncContextManager[Gateway]:
    return open_gateway(settings.db, config=settings.config, catalogs=installed_catalogs())


async def _go_on(watching: Watching, choice: Choice, display: Display) -> None:
    loop, due = asyncio.get_running_loop(), 0.0
    while True:
        try:
            if loop.time() >= due:
                await watching.discover()
                due = loop.time() + REDISCOVER_S
            await _look_and_show(watching, display)
        except KizukiError as error:
            logger().warning("it is looked again in a moment", error=str(error))
        await asyncio.sleep(choice.interval_s)


async def _look_and_show(watching: Watching, display: Display) -> None:
    display.show(await watching.look())
    if display.acknowledges:
        await watching.acknowledge()


@dataclass(slots=True)
class Watching:
    """The sessions that are watched, by key."""

    gateway: Gateway
    choice: Choice
    _catalogs: Sequence[Catalog] = field(default_factory=installed_catalogs)
    _sources: list[Source] = field(default_factory=list)
    _sessions: dict[str, Seen] = field(default_factory=dict)
    _shown: Sequence[Notice] = ()

    async def discover(self) -> None:
        """Adopt what is recent and was not there before."""
        await self.gateway.open_session(WATCHER, label="kizuki watch")
        self._sources, recent = [], []
        for catalog in self._catalogs:
            recent += [(catalog.name, thread) for thread in await self._recent(catalog)]
        recent.sort(key=lambda found: -found[1].updated_at_ms)
        for catalog_name, thread in recent[: self.choice.sessions_max]:
            await self._adopt(catalog_name, thread)

    async def _recent(self, catalog: Catalog) -> list[Discovered]:
        try:
            threads = persons_own(await discovered(catalog))
        except CommandFailed as error:
            self._sources.append(Source(catalog.name, error=str(error)))
            return []
        self._sources.append(Source(catalog.name, len(threads)))
        oldest_ms = SystemClock().now_ms() - self.choice.days * DAY_MS
        return [thread for thread in threads if thread.updated_at_ms >= oldest_ms]

    async def _adopt(self, catalog: str, thread: Discovered) -> None:
        try:
            session = await self.gateway.adopt(catalog, thread.thread_id, host_id=thread.host_id)
        except KizukiError as error:
            logger(catalog=catalog).warning("session left out", thread=thread.thread_id, error=str(error))
            return
        known = self._sessions.get(session.key)
        if known is None:
            await self.gateway.open_session(session.key, label=clean(f"{catalog} {thread.title or ''}"))
            await self.gateway.watch(WATCHER, session.key)
        self._sessions[session.key] = replace(known, thread=thread) if known else Seen(catalog, thread, session.key, session.agent_id)

    async def look(self) -> View:
        """One tick, and what is known then."""
        tick = await self.gateway.check_upstream()
        self._shown = await self.gateway.pending(WATCHER)
        pending = {notice.target for notice in self._shown}
        for key, session in self._sessions.items():
            self._sessions[key] = replace(await self._updated(session), pending=key in pending)
        deltas = {notice.target: await self._delta(notice) for notice in self._shown}
        return View(tuple(self._sources), tick, sorted(self._sessions.values(), key=_latest_first), self._shown, deltas)

    async def acknowledge(self) -> None:
        """What was shown last is known now."""
        shown, self._shown = self._shown, ()
        try:
            await self.gateway.acknowledge(WATCHER, shown)
        except KizukiError as error:
            logger().warning("what was shown will be shown again", error=str(error))

    async def _updated(self, session: Seen) -> Seen:
        more = True
        while more:
            status = await self.gateway.session_status(session.key, changes_since=session.version, limit=PAGE)
            changes = status["stateChanges"]
            session, more = _told(session, changes["events"]), changes["truncated"]
        return replace(session, version=status["stateVersion"])

    async def _delta(self, notice: Notice) -> dict[str, Any]:
        status = await self.gateway.session_status(notice.target, agent_id=notice.target_agent_id, changes_since=notice.changes_since)
        delta: dict[str, Any] = status["stateChanges"]
        return delta


def _told(session: Seen, events: Sequence[Mapping[str, Any]]) -> Seen:
    for event in events:
        session = replace(session, version=event["sequence"])
        if event["kind"] != EventKind.ADOPTED:
            session = replace(session, last_actor=event["actorType"])
        if event["kind"] == EventKind.HUMAN_DIRECT_MESSAGE:
            session = replace(session, last_human_ms=event["occurredAt"])
    return session


def _latest_first(session: Seen) -> tuple[int, int]:
    return (-(session.last_human_ms or 0), -session.thread.updated_at_ms)
