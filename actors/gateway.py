"""The host's handle on its sessions, and how it is opened.

A `Gateway`'s methods check what the caller passed, ask an actor or read the store, and put the answer into the shape that is
promised; what is decided is decided elsewhere, and who does it is wired in `system`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from pykka import ActorDeadError

from ..storage import open_store
from ..storage.errors import StoreError
from ..storage.protocol import Store
from ..storage.records import Address, PendingRead, SessionDraft, SessionRecord, Shown, StateEvent
from ..storage.writes import LinkPut, Unwatch
from ..storage.writes import Watch as WatchWrite
from . import tools, views
from .clock import Clock, SystemClock
from .config import GatewayConfig
from .counters import GatewayCounts, GatewayStatistics
from .drafts import GOAL_CHANGES, OUTCOMES, Report
from .errors import InvalidArgument, KizukiError, StoreUnavailable, UnknownSession
from .heartbeat import Wake
from .identifiers import one_line, one_of, optional_one_line
from .identity import Actor
from .keys import canonical_key, is_qualified, parse_address, session_kind, watcher_address
from .logs import logger
from .messages import (
    AcknowledgeShown,
    CheckUpstream,
    Compacted,
    Delete,
    GoalChanged,
    HumanTurn,
    OpenSession,
    Prune,
    ReadPending,
    ReadWatches,
    Reset,
    RunEnded,
    RunFinished,
    RunStarted,
    Spawned,
    TurnOver,
)
from .notices import Notice, Watch, watch
from .observing import Observer
from .sending import Dispatch, Sender, parse_timeout
from .summaries import Language, render
from .system import RETENTION, UPSTREAM, ActorSystem
from .turn import Turn
from .turns import Turns
from .upstream.adoption import adoption
from .upstream.catalog import Catalog
from .upstream.recent import AskTexts
from .upstream.report import TickReport

P = ParamSpec("P")
T = TypeVar("T")

RUNTIMES: Final = ("subagent", "acp")
NOTICES_MAX: Final = 10_000
TURNS_MAX: Final = 2**53


@dataclass(frozen=True, slots=True)
class Session:
    """One session as its host sees it."""

    key: str
    agent_id: str
    session_id: str
    kind: str
    label: str | None
    parent: str | None
    status: str
    """`idle` or `running`."""


def operation(
    method: Callable[Concatenate[Gateway, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Gateway, P], Coroutine[Any, Any, T]]:
    """Let a method answer in the library's errors: `GatewayClosed` when it is too late, `StoreUnavailable` for a failing database."""

    @functools.wraps(method)
    async def checked(self: Gateway, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._system.check_open(method.__name__)
        try:
            observers = self._system.observers
            if not observers.present:
                return await method(self, *args, **kwargs)
            with observers.operation(method.__name__):
                return await method(self, *args, **kwargs)
        except (StoreError, ActorDeadError) as error:
            raise self._system.unavailable(method.__name__, error) from error

    return checked


class Gateway:
    """Hosts sessions: records what happens to them, and hands their watchers the notices. Made by `open_gateway`."""

    def __init__(self, system: ActorSystem, dispatch: Dispatch | None) -> None:
        self._system = system
        self._store = system.store
        self._config = system.config
        self._turns = Turns(system)
        self._sender = Sender(dispatch, system.callbacks, system.clock)

    @property
    def store(self) -> Store:
        """The database, for reads that no method offers, such as all cursors at once; only the gateway itself commits to it."""
        return self._store

    @property
    def language(self) -> Language:
        """Of notices and summaries."""
        return self._config.language

    @property
    def can_dispatch(self) -> bool:
        """Whether it was opened with a `dispatch`: without one, `sessions_send` has nothing to deliver with, and is not to be offered."""
        return self._sender.can_dispatch

    # -- sessions ----------------------------------------------------------------------------------------------------------

    @operation
    async def open_session(
        self, key: str, *, agent_id: str | None = None, session_id: str | None = None, parent: str | None = None, label: str | None = None
    ) -> Session:
        """Create the session's row, or change what is given; the same call twice changes nothing. `parent` seeds no cursor."""
        address = parse_address(key, agent_id)
        draft = SessionDraft(
            session_kind(address.session_key),
            session_id=optional_one_line(session_id, "session_id"),
            parent=None if parent is None else canonical_key(parent),
            label=optional_one_line(label, "label"),
        )
        return self._as_session(await self._system.session(address).ask(OpenSession(draft)))

    @operation
    async def reset_session(self, key: str, *, agent_id: str | None = None) -> Session:
        """Give the session a new session id and empty its queue: the notices that it had, and its own cursors, are gone."""
        address = parse_address(key, agent_id)
        record = await self._system.session(address).ask(Reset())
        if record is None:
            raise UnknownSession(*address)
        self._system.forget(address)
        return self._as_session(record)

    @operation
    async def delete_session(self, key: str, *, agent_id: str | None = None) -> bool:
        """Remove the session with its events, cursors and queue; False if there was none."""
        address = parse_address(key, agent_id)
        deleted: bool = await self._system.session(address).ask(Delete())
        if deleted:
            self._system.forget(address)
        return deleted

    # -- recording: best effort, never a failure of the caller's turn (rule 1.9) -----------------------------------------------

    @operation
    async def spawn(
        self,
        parent: str,
        child: str,
        *,
        run_id: str,
        runtime: Literal["subagent", "acp"] = "subagent",
        session_id: str | None = None,
        agent_id: str | None = None,
        parent_agent_id: str | None = None,
    ) -> StateEvent | None:
        """Record that `parent` created `child` for a run; the parent watches it from there on. None: could not be recorded."""
        one_of(runtime, "runtime", RUNTIMES)
        spawned_by = parse_address(parent, parent_agent_id)
        report = Spawned(*spawned_by, one_line(run_id, "run_id"), optional_one_line(session_id, "session_id"))
        return await self._record(parse_address(child, agent_id), report)

    @operation
    async def human_message(
        self,
        key: str,
        *,
        channel: str,
        actor_id: str | None = None,
        run_id: str | None = None,
        occurred_at_ms: float | None = None,
        agent_id: str | None = None,
        dedupe_key: str | None = None,
        turns: int = 1,
    ) -> StateEvent | None:
        """Record that a person sent a turn straight to the session; `turns` says how many, where several were found at once.

        None: nobody watches it, or it could not be recorded.
        """
        if not isinstance(channel, str):
            raise InvalidArgument("channel", channel, "it must be a text, such as telegram")
        report = HumanTurn(
            channel,
            optional_one_line(actor_id, "actor_id"),
            optional_one_line(run_id, "run_id"),
            occurred_at_ms,
            optional_one_line(dedupe_key, "dedupe_key"),
            _turns(turns),
        )
        return await self._record(parse_address(key, agent_id), report)

    @operation
    async def goal_changed(
        self, key: str, change: Literal["created", "updated", "cleared"], *, actor: Actor, agent_id: str | None = None
    ) -> StateEvent | None:
        """Record a change of the session's goal by `actor`. None: could not be recorded."""
        if not isinstance(actor, Actor):
            raise InvalidArgument("actor", actor, "it must be Actor.human(...), Actor.agent(key) or Actor.system()")
        return await self._record(parse_address(key, agent_id), GoalChanged(one_of(change, "change", GOAL_CHANGES), actor))

    @operation
    async def run_ended(
        self, key: str, *, run_id: str, outcome: Literal["ok", "error", "timeout", "cancelled"], agent_id: str | None = None
    ) -> StateEvent | None:
        """Record how a run of the session ended; the run is no longer active. None: could not be recorded."""
        report = RunEnded(one_line(run_id, "run_id"), one_of(outcome, "outcome", OUTCOMES))
        return await self._record(parse_address(key, agent_id), report)

    @operation
    async def compacted(self, key: str, *, operation_id: str, agent_id: str | None = None) -> StateEvent | None:
        """Record that the session's history was compacted. None: could not be recorded."""
        return await self._record(parse_address(key, agent_id), Compacted(one_line(operation_id, "operation_id")))

    @operation
    async def run_started(self, key: str, run_id: str, *, agent_id: str | None = None) -> None:
        """Note that a run of the session is active; it ends with `run_finished`, `run_ended` or the gateway."""
        await self._note(parse_address(key, agent_id), RunStarted(one_line(run_id, "run_id")))

    @operation
    async def run_finished(self, key: str, run_id: str, *, agent_id: str | None = None) -> None:
        """Note that a run of the session is over."""
        await self._note(parse_address(key, agent_id), RunFinished(one_line(run_id, "run_id")))

    # -- watching ----------------------------------------------------------------------------------------------------------

    @operation
    async def watch(self, watcher: str, target: str, *, target_agent_id: str | None = None) -> bool:
        """Watch a session from its present state on; watching again renews. False for itself and for what cannot watch."""
        source = watcher_address(watcher)
        if source is None:
            return False
        watched = parse_address(target, target_agent_id)
        if source == watched:
            return False
        kinds = SessionDraft(session_kind(source.session_key)), SessionDraft(session_kind(watched.session_key))
        await self._system.log().ask(WatchWrite(source, kinds[0], watched, kinds[1], self._system.clock.now_ms()))
        return True

    @operation
    async def unwatch(self, watcher: str, target: str, *, target_agent_id: str | None = None) -> bool:
        """Remove a cursor and its pending notice; False if there was none."""
        source = watcher_address(watcher)
        if source is None:
            return False
        removed: bool = await self._system.log().ask(Unwatch(source.session_key, parse_address(target, target_agent_id)))
        return removed

    @operation
    async def watches(self, watcher: str) -> list[Watch]:
        """Every cursor that the session holds, ordered by target; none for what cannot watch."""
        source = watcher_address(watcher)
        if source is None:
            return []
        cursors = await self._system.watcher(source.session_key).ask(ReadWatches())
        return [watch(cursor) for cursor in cursors]

    # -- notices -----------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def turn(self, key: str, *, notices_max: int | None = None) -> AsyncIterator[Turn]:
        """One run of the session's model, with its notices.

        They are acknowledged when the body ends well, and given back when it raises or is cancelled. Raises `UnknownSession`,
        `StoreUnavailable`, both before the body.
        """
        self._system.check_open("turn")
        limit = self._config.notices_max if notices_max is None else _notices_max(notices_max)
        source = await self._watching_session(key)
        if source is None:
            yield Turn((), 0, _nothing)
            return
        with self._system.observers.operation("turn"):
            async with self._turns.open(source, limit) as current:
                yield current

    @operation
    async def drain(self, key: str, *, notices_max: int | None = None) -> list[Notice]:
        """Take and acknowledge in one step, for hosts that have no end of a turn. A failing database shows nothing, or shows it again.

        One step is one step for a cancelled caller, too: what was taken by then counts as shown. Who may be cancelled uses `turn`.
        """
        limit = self._config.notices_max if notices_max is None else _notices_max(notices_max)
        try:
            source = await self._watching_session(key)
            return [] if source is None else await self._turns.drain(source, limit)
        except (StoreError, ActorDeadError, StoreUnavailable) as error:
            logger(watcher=key).warning("drain failed", error=str(error))
            return []

    @operation
    async def pending(self, key: str, *, notices_max: int | None = None) -> list[Notice]:
        """The notices that the next turn would be shown, those in an open turn left out; all of them by default."""
        limit = None if notices_max is None else _notices_max(notices_max)
        source = await self._watching_session(key)
        if source is None:
            return []
        read: PendingRead = await self._system.watcher(source).ask(ReadPending(limit))
        if not read.session_exists:
            raise UnknownSession(source)
        return self._turns.notices(read)

    @operation
    async def acknowledge(self, watcher: str, notices: Iterable[Notice]) -> int:
        """Acknowledge notices that were shown elsewhere than in a turn; returns how many it still applied to (rule 4.5)."""
        source = watcher_address(watcher)
        given = [_as_shown(item, source.session_key if source else None) for item in notices]
        if source is None or not given:
            return 0
        acknowledged = await self._system.watcher(source.session_key).ask(AcknowledgeShown(tuple(given)))
        if acknowledged.applied and self._system.wakes.waits_for_host(source.session_key):
            self._system.watcher(source.session_key).ask(TurnOver(failed=False))
        return len(acknowledged.applied)

    # -- tools -------------------------------------------------------------------------------------------------------------

    @operation
    async def session_status(
        self, key: str, *, agent_id: str | None = None, changes_since: int | str | None = None, limit: int = 200
    ) -> dict[str, Any]:
        """One session's status, and with `changes_since` the exact delta after that state version."""
        address = parse_address(key, agent_id)
        language = self._config.language
        status = self._system.runs.status
        return await tools.session_status(self._store, status, address, changes_since=changes_since, limit=limit, language=language)

    @operation
    async def sessions_list(
        self,
        *,
        agent_id: str | None = None,
        kind: str | None = None,
        parent: str | None = None,
        limit: int = 100,
        after: str | None = None,
        with_total: bool = False,
    ) -> dict[str, Any]:
        """A page of sessions ordered by key; pass `nextAfter` as `after` for the next page."""
        return await tools.sessions_list(
            self._store,
            self._system.runs.status,
            agent_id=agent_id,
            kind=kind,
            parent=parent,
            limit=limit,
            after=after,
            with_total=with_total,
        )

    @operation
    async def sessions_send(
        self, sender: str, key: str, message: str, *, watch: bool | None = None, timeout_s: float = 30.0
    ) -> dict[str, Any]:
        """Send a message through the host's `dispatch`; with `watch` the sender then watches the session that received it."""
        source = canonical_key(sender)
        if not isinstance(message, str):
            raise InvalidArgument("message", message, "it must be a text")
        registers = functools.partial(self._watch_receiver, source) if watch else None
        return await self._sender.send(source, canonical_key(key), message, registers, parse_timeout(timeout_s))

    # -- views: what a person is shown -----------------------------------------------------------------------------------------

    @operation
    async def overview(self, *, events_max: int = 500) -> dict[str, Any]:
        """Sessions with their last actor, cursors, the newest events and totals, each within bounds, from one consistent read."""
        return await views.overview(self._store, self._system.runs.status, events_max=events_max, language=self._config.language)

    @operation
    async def surroundings(self, key: str, *, agent_id: str | None = None, limit: int = 200) -> dict[str, Any]:
        """One session, who watches it, whom it watches, and its pending notices, taken ones included. Raises `UnknownSession`."""
        address = parse_address(key, agent_id)
        status = self._system.runs.status
        return await views.surroundings(self._store, status, address, limit=limit, language=self._config.language)

    # -- upstream ----------------------------------------------------------------------------------------------------------

    @operation
    async def adopt(
        self, catalog: str, thread_id: str, *, host_id: str = "local", agent_id: str = "main", key: str | None = None
    ) -> Session:
        """Link a session to a catalog's thread, from the thread's present end on; the same source again changes nothing.

        `key` is by default `agent:<agent>:catalog:<catalog>:<hash>`, the same for the same thread; a qualified key names its agent
        itself. Raises `UnknownThread`, which is an `UnknownSession`, and `CatalogUnavailable`.
        """
        source = self._system.catalogs.named(catalog)
        write = await adoption(self._system.catalogs, source, thread_id, host_id, agent_id, key, self._system.clock.now_ms())
        put: LinkPut = await self._system.log().ask(write)
        return self._as_session(put.session)

    @operation
    async def check_upstream(self) -> TickReport:
        """Check all watched links now, after the check under way if there is one. Without catalogs there is nothing to check."""
        if not self._system.catalogs:
            return TickReport()
        report: TickReport = await self._system.child(UPSTREAM).ask(CheckUpstream())
        return report

    # -- housekeeping ------------------------------------------------------------------------------------------------------

    @operation
    async def prune(self) -> int:
        """Prune now instead of at the next hour; returns how many events went."""
        removed: int = await self._system.child(RETENTION).ask(Prune())
        return removed

    @operation
    async def idle(self) -> None:
        """Return when no mail is waiting and nothing is uncommitted."""
        await self._system.runtime.idle()

    @operation
    async def statistics(self) -> GatewayStatistics:
        """What the gateway has done, and what there is right now."""
        pending = (await self._store.statistics()).pending
        return GatewayStatistics(**asdict(self.counts()), notices_pending=pending)

    def counts(self) -> GatewayCounts:
        """What of `statistics` needs no database: at once, from any thread, and of a closed gateway, too."""
        return GatewayCounts(
            **asdict(self._system.counters), actors_resident=self._system.residents(), mail_waiting=self._system.runtime.mail_waiting
        )

    def observe(self, observer: Observer) -> Callable[[], None]:
        """Tell an observer of operations, commits and wakes from now on; call what is returned to stop that."""
        return self._system.observers.add(observer)

    # -- inside ------------------------------------------------------------------------------------------------------------

    def _as_session(self, record: SessionRecord) -> Session:
        address = record.address
        status = self._system.runs.status(address)
        return Session(*address, record.session_id, record.kind, record.label, record.parent, status)

    async def _record(self, address: Address, report: Report) -> StateEvent | None:
        """The event in the reader's language, once it is committed; None where it was not to be or could not be recorded."""
        try:
            event: StateEvent | None = await self._system.session(address).ask(report)
        except (StoreError, ActorDeadError) as error:
            self._system.counters.recordings_lost += 1
            logger(session_key=address.session_key).error("recording lost", error=str(error))
            return None
        if event is None or self._config.language == "en":
            return event
        return replace(event, summary=render(event.kind, event.summary, self._config.language))

    async def _note(self, address: Address, note: RunStarted | RunFinished) -> None:
        """What is noted in memory is noted; that the session's row could not be created as well is no failure of the turn."""
        try:
            await self._system.session(address).ask(note)
        except (StoreError, ActorDeadError) as error:
            logger(session_key=address.session_key).warning("session row not written", error=str(error))

    async def _watching_session(self, key: str) -> str | None:
        """The watcher's canonical key; None for a session that can never be one, and so has no notices (rule 2.4)."""
        canonical = canonical_key(key)
        if is_qualified(canonical):
            return canonical
        try:
            exists = await self._store.session_exists(canonical)
        except StoreError as error:
            raise StoreUnavailable("turn", error) from error
        if not exists:
            raise UnknownSession(canonical)
        return None

    async def _watch_receiver(self, sender: str, receiver: str) -> bool:
        """Whether the sender now watches who received its message. The message is out, so a failure here is only an answer."""
        try:
            return await self.watch(sender, receiver)
        except KizukiError as error:
            logger(watcher=sender, target=receiver).warning("watch after send failed", error=str(error))
            return False


def _notices_max(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= NOTICES_MAX:
        return value
    raise InvalidArgument("notices_max", value, f"it must be an integer from 1 to {NOTICES_MAX}")


def _turns(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= TURNS_MAX:
        return value
    raise InvalidArgument("turns", value, f"it must be an integer from 1 to {TURNS_MAX}")


def _as_shown(item: Notice, watcher: str | None) -> Shown:
    if not isinstance(item, Notice) or item.watcher != watcher:
        raise InvalidArgument("notices", item, "each must be a Notice of this watcher, as a turn or pending showed it")
    return Shown(Address(item.target, item.target_agent_id), item.changes_since, item.notified)


async def _nothing() -> None:
    """A turn without notices has nothing to acknowledge."""


@asynccontextmanager
async def open_gateway(
    database: str | os.PathLike[str],
    *,
    config: GatewayConfig | None = None,
    clock: Clock | None = None,
    dispatch: Dispatch | None = None,
    wake: Wake | None = None,
    recent_texts: AskTexts | None = None,
    catalogs: Iterable[Catalog] = (),
) -> AsyncIterator[Gateway]:
    """Open a gateway on a database: a path, `sqlite:///path` or `postgresql://...`.

    `dispatch(sender, key, message)` delivers for `sessions_send`; `wake(session_key, reasons)` is called when a session has
    notices; `recent_texts(session_key)` gives what the host itself wrote into an adopted session lately, as (id, text) pairs,
    newest last. All three may be sync or async. `catalogs` are where sessions can be adopted from. With more than 100,000 cursors,
    `wake` may be called shortly before the gateway is there; what it raises counts as busy. Leaving stops every actor and closes the
    database. Raises `StoreUnavailable` if the database cannot be opened, `InvalidArgument`.
    """
    config = config or GatewayConfig()
    try:
        opening = open_store(database, synchronous=config.synchronous)
        store = await opening.__aenter__()
    except StoreError as error:
        raise StoreUnavailable("open_gateway", error) from error
    try:
        system = ActorSystem(store, clock or SystemClock(), config, wake=wake, recent_texts=recent_texts, catalogs=catalogs)
        async with running(system, dispatch) as gateway:
            yield gateway
    finally:
        await opening.__aexit__(None, None, None)


@asynccontextmanager
async def running(system: ActorSystem, dispatch: Dispatch | None) -> AsyncIterator[Gateway]:
    """The gateway of an actor system, which is started here and stopped on leaving. Raises `StoreUnavailable`."""
    try:
        await _start(system)
        yield Gateway(system, dispatch)
    finally:
        await system.stop()


async def _start(system: ActorSystem) -> None:
    try:
        await system.start()
    except (StoreError, ActorDeadError) as error:
        raise StoreUnavailable("open_gateway", error) from error
