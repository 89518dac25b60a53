"""The actor system behind one gateway: what is shared, who is permanent, and how sessions and watchers come and go.

State that must outlive an actor is here as plain values (claims, active runs, the wake book, how far the replay has come); the
actors are handed what they need of it and of each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from pykka import ActorDeadError

from ..storage.protocol import Store
from ..storage.records import Address, Hint, Opened
from .callbacks import Callbacks
from .claims import Claims
from .clock import Clock, ManualClock
from .config import GatewayConfig
from .counters import Counters
from .directory import ActorDirectory
from .errors import GatewayClosed, KizukiError, StoreUnavailable
from .heartbeat import HeartbeatActor, Wake
from .keys import is_subagent
from .log import LogActor, LogState
from .logs import logger
from .messages import Begin, BeginReplay, BeginSweep, ChildEnded, Join, ReplayNext
from .neighbours import Neighbourhood, NeighboursActor
from .observing import Observers
from .replay import ReplayActor, ReplayProgress
from .restarts import RestartPolicy
from .retention import RetentionActor
from .runs import ActiveRuns
from .runtime import AsyncioActorRef, Runtime
from .session import SessionActor
from .supervisor import SupervisorActor
from .upstream.batch import BatchCheck
from .upstream.catalog import Catalog
from .upstream.catalogs import Catalogs
from .upstream.monitor import UpstreamMonitorActor
from .upstream.recent import AskTexts, RecentTexts
from .wakes import WakeBook
from .watcher import WatcherActor

LOG: Final = "log"
REPLAY: Final = "replay"
RETENTION: Final = "retention"
HEARTBEAT: Final = "heartbeat"
UPSTREAM: Final = "upstream"
NEIGHBOURS: Final = "neighbours"

Ref = AsyncioActorRef[Any]


class ActorSystem:
    """Runs the actors of one gateway on the running loop."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        config: GatewayConfig,
        *,
        wake: Wake | None,
        recent_texts: AskTexts | None,
        catalogs: Iterable[Catalog],
        budget_clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.store = store
        self.clock = clock
        self.config = config
        self.counters = Counters()
        self.observers = Observers()
        self.claims = Claims()
        self.runs = ActiveRuns()
        self.wakes = WakeBook(config.wake_coalesce_s)
        self.callbacks = Callbacks(clock)
        self.catalogs = Catalogs(catalogs, self.callbacks, clock, config.catalog_timeout_s)
        self.runtime = Runtime(on_end=self._ended, monotonic=budget_clock)
        self._wake = wake
        self._recent_texts = recent_texts
        self._closed: str | None = None
        """Why no call is taken any more."""
        self._log_state = LogState(owed_waits=True)
        self._replay = ReplayProgress()
        self._neighbourhood = Neighbourhood()
        self._permanent: ActorDirectory = ActorDirectory()
        self._resident: ActorDirectory = ActorDirectory()
        """Session actors by address, watcher actors by key."""
        self._get_log, self._get_child = self.log, self.child
        """Bound once: a bound method for each resident actor would be one more object for every full garbage collection to look at."""
        self._supervisor: Ref | None = None

    async def start(self) -> None:
        """Start the permanent actors; returns when the gateway is registered, the replay has begun and expired cursors are gone.

        Raises `StoreError`.
        """
        if isinstance(self.clock, ManualClock):
            self.clock.register(self)
        self._supervisor = self.runtime.start(
            SupervisorActor,
            self._children(),
            permanent=self._permanent,
            resident=self._resident,
            clock=self.clock,
            idle_actor_s=self.config.idle_actor_s,
            policy=RestartPolicy(),
            escalate=self.fail,
        )
        await self._supervisor.ask(Begin())
        await self.child(REPLAY).ask(BeginSweep())
        await self.child(NEIGHBOURS).ask(Join())
        await self.child(REPLAY).ask(BeginReplay())

    async def stop(self) -> None:
        """Take no more calls, let what was mailed finish, then stop every actor. Host calls that are still running are cancelled."""
        self.fail("it was left")
        if self._supervisor is not None:
            await self._supervisor.stop()
        for name in (NEIGHBOURS, HEARTBEAT, UPSTREAM, REPLAY, RETENTION):
            ref = self._permanent.get(name)
            if ref is not None:
                await ref.stop()
        await self.callbacks.cancel()
        self._log_state.owed = False
        await self.runtime.idle()
        await self.runtime.stop_all()
        if isinstance(self.clock, ManualClock):
            self.clock.unregister(self)

    def fail(self, reason: str) -> None:
        """Take no more calls. The host sees it at its next one; the first reason stands."""
        self._closed = self._closed or reason

    @property
    def is_open(self) -> bool:
        """Whether calls are taken."""
        return self._closed is None

    def check_open(self, name: str) -> None:
        """Raise `GatewayClosed` in the name of a method that was called too late."""
        if self._closed is not None:
            raise GatewayClosed(name, self._closed)

    def unavailable(self, name: str, error: Exception) -> KizukiError:
        """What a method raises for a failing database, or an actor that is away: too late, or worth another try."""
        return StoreUnavailable(name, error) if self._closed is None else GatewayClosed(name, self._closed)

    async def at_rest(self) -> None:
        """Return when no mail is waiting, nothing is uncommitted and no call into the host is running."""
        await self.runtime.idle()
        await self.callbacks.settle()
        await self.runtime.idle()

    def child(self, name: str) -> Ref:
        """The permanent actor of this name. Raises `ActorDeadError` while it is being restarted."""
        ref = self._permanent.get(name)
        if ref is None:
            raise ActorDeadError(f"the {name} actor is being restarted")
        return ref

    def log(self) -> Ref:
        """The log actor."""
        return self.child(LOG)

    def session(self, address: Address) -> Ref:
        """The session's actor, started if it is not resident."""
        return self._resident.get_or_start(address, lambda: self._start_session(address))

    def watcher(self, key: str) -> Ref:
        """The watcher's actor, started if it is not resident."""
        return self._resident.get_or_start(key, lambda: self._start_watcher(key))

    def forget(self, address: Address) -> None:
        """Drop what is kept in memory of a session that was reset or deleted: its queue of notices and wakes."""
        self.claims.forget(address.session_key)
        self.wakes.forget(address.session_key)

    def residents(self) -> int:
        """How many session and watcher actors are in memory."""
        return len(self._resident)

    def _start_session(self, address: Address) -> Ref:
        return self.runtime.start(
            SessionActor, address, self._get_log, self.clock, self.runs, record_unwatched=self.config.record_unwatched
        )

    def _start_watcher(self, key: str) -> Ref:
        return self.runtime.start(
            WatcherActor,
            key,
            store=self.store,
            child=self._get_child,
            clock=self.clock,
            claims=self.claims,
            wakes=self.wakes,
            replay=self._replay,
        )

    def _children(self) -> dict[str, Callable[[], Ref]]:
        children = {
            LOG: self._start_log,
            NEIGHBOURS: self._start_neighbours,
            REPLAY: self._start_replay,
            RETENTION: self._start_retention,
        }
        if self._wake is not None:
            children[HEARTBEAT] = partial(self._start_heartbeat, self._wake)
        if self.catalogs:
            children[UPSTREAM] = self._start_upstream
        return children

    def _start_log(self) -> Ref:
        return self.runtime.start(
            LogActor,
            self.store,
            self.clock,
            self.counters,
            self.observers,
            self._log_state,
            busy_timeout_s=self.config.busy_timeout_s,
            on_opened=self._opened,
            on_unknown=self._replay_again,
        )

    def _start_neighbours(self) -> Ref:
        return self.runtime.start(
            NeighboursActor,
            self.store,
            log=self.log,
            watcher=self.watcher,
            clock=self.clock,
            config=self.config,
            claims=self.claims,
            neighbourhood=self._neighbourhood,
            on_hints=self._hinted,
        )

    def _start_replay(self) -> Ref:
        return self.runtime.start(ReplayActor, self.log, self.clock, self.config, self._replay, self._log_state)

    def _start_retention(self) -> Ref:
        return self.runtime.start(RetentionActor, self.log, self.clock, self.config)

    def _start_heartbeat(self, wake: Wake) -> Ref:
        counts = self.counters, self.observers
        return self.runtime.start(HeartbeatActor, wake, self.store, self.clock, *counts, self.claims, self.wakes, self.callbacks)

    def _start_upstream(self) -> Ref:
        texts = RecentTexts(self._recent_texts, self.callbacks, self.clock)
        unwatched = self.config.record_unwatched
        batches = BatchCheck(self.catalogs, texts, self.runs, self.log, self.clock, record_unwatched=unwatched)
        return self.runtime.start(UpstreamMonitorActor, self.catalogs, batches, self.store, self.clock, self.config)

    def _opened(self, pairs: Sequence[Opened]) -> None:
        """Sub-agents see their notices on their next turn; every other watcher is to be woken (rule 4.9).

        What is told of before the replay, when the gateway takes over from those that are gone, the replay tells again, without what has
        expired.
        """
        if self._wake is None or not self._replay.asked_for:
            return
        now = self.clock.monotonic()
        targets: dict[str, list[str]] = {}
        for watcher, target in pairs:
            targets.setdefault(watcher, []).append(target.session_key)
        for watcher, keys in targets.items():
            if not is_subagent(watcher):
                self.wakes.opened(watcher, tuple(keys), now)

    def _hinted(self, hints: Sequence[Hint]) -> None:
        """Another gateway has opened them: the wake is due when it would be, had it been done here."""
        self.counters.notices_opened += len(hints)
        if self._wake is None:
            return
        now = self.clock.monotonic()
        for watcher, target, age_ms in hints:
            if not is_subagent(watcher):
                self.wakes.opened(watcher, (target.session_key,), now - age_ms / 1000)

    def _replay_again(self) -> None:
        """A commit whose outcome is unknown may have opened notices that nobody was told of: look for them in the store."""
        self._replay.restart(self.claims.watchers())
        ref = self._permanent.get(REPLAY)
        if ref is not None:
            ref.tell(ReplayNext())

    def _ended(self, ref: Ref, error: BaseException | None) -> None:
        """An actor has ended. Sessions and watchers start again at their next mail; the permanent ones are the supervisor's."""
        if self._permanent.remove(ref.name, ref) and self._supervisor is not None and self._supervisor.is_alive():
            self._supervisor.tell(ChildEnded(str(ref.name), error))
        self._resident.remove(ref.name, ref)
        if ref is self._supervisor and error is not None:
            logger().critical("the supervisor failed, the gateway closes", error=repr(error))
            self.fail(f"its supervisor failed with {error!r}")
