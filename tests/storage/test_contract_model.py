"""Any writes in any batches, against the model: on every backend through the store, and on SQLite with next to no opening budget."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kizuki.storage import Store
from kizuki.storage.records import Address, SessionDraft, Shown
from kizuki.storage.sqlite import reads
from kizuki.storage.sqlite.apply import apply
from kizuki.storage.sqlite.files import open_for_writing
from kizuki.storage.sqlite.known import KnownFolds
from kizuki.storage.sqlite.presence import Presence
from kizuki.storage.sqlite.transaction import Transaction, transact
from kizuki.storage.writes import (
    Acknowledge,
    Append,
    Commit,
    DeleteSession,
    OpenOwed,
    PruneEvents,
    PutSession,
    Replay,
    ResetSession,
    Unwatch,
    Watch,
    Write,
)
from tests.storage.conftest import Backend
from tests.storage.model import Model, acknowledging, shown_of
from tests.storage.writing import DRAFT, NOW, event

SESSIONS = [Address(f"agent:main:{name}", "main") for name in ("a", "b", "c")]
ANY = st.sampled_from(SESSIONS)
TWO = st.permutations(SESSIONS).map(lambda order: order[:2])
DRAFTS = st.sampled_from([DRAFT, DRAFT, SessionDraft("main", parent="agent:main:p")])
APPENDS = st.builds(
    event,
    ANY,
    by=st.one_of(st.none(), ANY),
    notifies=st.sampled_from([True, True, False]),
    now_ms=st.integers(NOW, NOW + 9),
    session=DRAFTS,
    dedupe_key=st.sampled_from([None, None, "k"]),
    only_if_watched=st.booleans(),
    seeds=st.none(),
)
SPAWNS = TWO.map(lambda pair: event(pair[0], by=pair[1], kind="child_spawned", notifies=False, seeds=pair[1]))
WATCHES = TWO.map(lambda pair: Watch(pair[0], DRAFT, pair[1], DRAFT, NOW))
ACKNOWLEDGEMENTS = ANY.map(lambda watcher: Acknowledge(watcher.session_key, (), NOW))
"""Filled in with what the watcher is shown at that moment, or was shown at an earlier one."""
COMMON = st.one_of(APPENDS, APPENDS, APPENDS, SPAWNS, WATCHES, ACKNOWLEDGEMENTS)
RARE = st.one_of(
    TWO.map(lambda pair: Unwatch(pair[0].session_key, pair[1])),
    st.builds(PutSession, ANY, DRAFTS, st.just(NOW)),
    st.builds(ResetSession, ANY, st.just(NOW)),
    st.builds(DeleteSession, ANY, st.just(NOW)),
    st.just(Replay(1000)),
    ANY.map(lambda watcher: Replay(0, watcher=watcher.session_key)),
)
PRUNES = st.builds(PruneEvents, st.integers(NOW, NOW + 9), st.integers(0, 9), st.just(1000))
OWED = st.one_of(st.just(OpenOwed(NOW, 1)), ANY.map(lambda watcher: OpenOwed(NOW, 0, watcher.session_key)))


def batches(*others: st.SearchStrategy[Write]) -> st.SearchStrategy[list[list[Write]]]:
    """Transactions of a few writes each."""
    writes: st.SearchStrategy[Write] = st.one_of(COMMON, COMMON, RARE, *others)
    return st.lists(st.lists(writes, min_size=1, max_size=6), min_size=1, max_size=25)


class Hosts:
    """What the watchers were shown so far."""

    def __init__(self) -> None:
        self._shown: dict[str, list[Shown]] = {}

    def see(self, watcher: str, now: Sequence[Shown]) -> None:
        """Now these are shown."""
        known = self._shown.setdefault(watcher, [])
        known[:0] = [shown for shown in now if shown not in known]

    def filled(self, write: Write) -> Write:
        """An acknowledgement gets the newest few notices, of which some may be stale."""
        return acknowledging(write, self._shown.get(write.watcher, [])[:2]) if isinstance(write, Acknowledge) else write


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(batches=batches(PRUNES))
def test_any_writes_against_the_model(backend: Backend, batches: list[list[Write]]) -> None:
    """Rules 1.6, 1.8, 1.11, 3.1 to 3.5, 4.3 to 4.6, 4.11, 5.1 to 5.3: after every transaction the store holds what the model holds."""
    backend.renew()
    asyncio.run(_against_the_model(backend, batches))


async def _against_the_model(backend: Backend, batches: list[list[Write]]) -> None:
    model, hosts = Model(), Hosts()
    async with backend.open() as store:
        for batch in batches:
            writes = [hosts.filled(write) for write in batch]
            model.commit(writes, await store.commit(writes, busy_timeout_s=1))
            model.check_cursors(await store.cursors(None), owed=False)
            await _check_sessions(store, model)
            for session in SESSIONS:
                read = await store.pending(session.session_key, limit=None, excluding=[])
                hosts.see(session.session_key, [shown_of(cursor) for cursor in read.cursors])


async def _check_sessions(store: Store, model: Model) -> None:
    for address in SESSIONS:
        since = model.version(address) // 2
        read = await store.status(address, changes_since=since, limit=200)
        assert (read is not None) == (address in model.parents)
        if read is None:
            continue
        kept = model.events(address, 0)
        assert list(read.events) == model.events(address, since)
        assert (read.session.version, read.session.parent) == (model.version(address), model.parents[address])
        assert read.pruned_max_sequence == model.pruned.get(address, 0)
        assert read.earliest_sequence == (kept[0].sequence if kept else None)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(batches=batches(OWED), budget=st.integers(0, 1))
def test_owed_openings_against_the_model(tmp_path: Path, batches: list[list[Write]], budget: int) -> None:
    """Rules 4.3, 4.10: however much is owed, whatever happens meanwhile, each notice is opened in the end, with the pin of the rules."""
    path = tmp_path / "owed.db"
    path.unlink(missing_ok=True)
    with closing(open_for_writing(path, "normal")) as connection:
        _run_with_budget(connection, Presence(path), batches, budget)


def _run_with_budget(connection: sqlite3.Connection, presence: Presence, batches: list[list[Write]], budget: int) -> None:
    model, hosts, ids, known = Model(), Hosts(), itertools.count(), KnownFolds()
    commit = _committer(connection, presence, budget, lambda: f"session-{next(ids)}", known)
    for batch in batches:
        writes = [hosts.filled(write) for write in batch]
        done = commit(writes)
        model.commit(writes, done)
        model.check_cursors(reads.cursors(connection, None), owed=done.owed)
        for session in SESSIONS:
            shown = reads.pending(connection, presence, session.session_key, None, ()).cursors
            hosts.see(session.session_key, [shown_of(cursor) for cursor in shown])
    while done.owed:
        done = commit([OpenOwed(NOW, 2)])
        assert len(set(done.opened)) == len(done.opened)
    model.check_cursors(reads.cursors(connection, None), owed=False)


def _committer(
    connection: sqlite3.Connection, presence: Presence, budget: int, new_session_id: Callable[[], str], known: KnownFolds
) -> Callable[[Sequence[Write]], Commit]:
    def commit(writes: Sequence[Write]) -> Commit:
        def work() -> Commit:
            folds = known.take(connection)
            done = apply(Transaction(connection, new_session_id, presence, openings_left=budget), writes, folds)
            known.give_back(folds)
            return done

        return transact(connection, work, 1)

    return commit


def test_the_strategies_make_what_they_say() -> None:
    """The writes drawn above are writes of the store."""
    assert isinstance(event(), Append)
