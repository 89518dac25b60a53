"""Which heads a batch of writes locks, and locking them before anything is done.

All of them at once, in the order of their ids: so no two gateways wait for each other. Heads that are missing are made before, in the order
of their keys, and nobody who waits for one of those holds a lock on any that was there. What a write concerns beside the sessions that
it names, such as the targets of all cursors that it will touch, is looked up first, without locks; should that have changed by the
time the locks are held, the server's detection of deadlocks is the second line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..folds import Fold
from ..recording import addresses
from ..records import Address
from ..rows import Row
from ..writes import (
    Acknowledge,
    Append,
    DeleteSession,
    ExpireHeads,
    OpenOwed,
    PruneEvents,
    PutLink,
    PutSession,
    Reclaim,
    RecordUpstream,
    Release,
    Replay,
    ResetSession,
    TakeNotices,
    TakeOver,
    Unwatch,
    Watch,
    Write,
)
from .arrays import columns
from .cursors import REPLAYED_TARGETS, replayed_slice
from .folds import FOLD_COLUMNS, to_fold
from .line import Database
from .transaction import Stale

KNOWN_MAX: Final = 100_000


@dataclass(slots=True)
class Needs:
    """The heads that a batch locks."""

    gateway_id: int
    """Who asks."""
    made: set[Address] = field(default_factory=set)
    """Made if they are missing."""
    found: set[Address] = field(default_factory=set)
    """Locked if they are there."""
    keys: set[str] = field(default_factory=set)
    """Watchers, under whatever agent."""
    owed_keys: set[str] = field(default_factory=set)
    """Watchers whose targets are locked as far as they owe openings."""
    events: int = 0
    """How many events are recorded at most, if all of them come by `Append`."""
    looked_up: list[tuple[str, Row]] = field(default_factory=list)
    """Queries for further ids."""


_HELD_BY = "SELECT c.target_id FROM cursors c JOIN heads w ON w.head_id = c.watcher_id WHERE w.session_key = $1 AND w.agent_id = $2"
_OPEN_OF = (
    "SELECT c.target_id FROM cursors c JOIN heads w ON w.head_id = c.watcher_id WHERE w.session_key = $1 AND c.notified > c.last_seen"
)
_OWED_FIRST = "SELECT head_id FROM heads WHERE owed_sequence IS NOT NULL ORDER BY owed_sequence LIMIT $1"
_OWED_ALL = "SELECT head_id FROM heads WHERE owed_sequence IS NOT NULL"
_PRUNED = (
    "SELECT DISTINCT e.head_id FROM (SELECT head_id, sequence, recorded_at FROM events WHERE sequence > $1 ORDER BY sequence LIMIT $2) e "
    "WHERE e.recorded_at < $3 OR e.sequence <= coalesce((SELECT sequence FROM events ORDER BY sequence DESC LIMIT 1 OFFSET $4), 0)"
)
_DELETED = "SELECT head_id FROM heads WHERE deleted_at < $1 ORDER BY head_id LIMIT $2"
_HOSTED = "SELECT head_id FROM heads WHERE host = $1 ORDER BY head_id LIMIT $2"
_CLAIMED = "SELECT target_id FROM cursors WHERE claimed_by = $1"


def needs_of(writes: Iterable[Write], gateway_id: int) -> Needs:
    """What the writes of this gateway concern."""
    needs = Needs(gateway_id)
    for write in writes:
        _need(needs, write)
    if any(isinstance(write, PutLink | RecordUpstream) for write in writes):
        needs.events = 0
    return needs


def _need(needs: Needs, write: Write) -> None:  # noqa: C901 - a few lines per kind of write
    match write:
        case Append():
            needs.made.update(addresses([write]))
            needs.events += 1
        case PutSession():
            needs.made.add(write.address)
        case PutLink():
            needs.made.update((write.address, *addresses([write.event])))
        case Watch():
            needs.made.update((write.watcher, write.target))
        case RecordUpstream():
            needs.found.add(write.link.address)
            needs.made.update(addresses(write.events))
        case Unwatch():
            needs.found.add(write.target)
            needs.keys.add(write.watcher)
        case ResetSession() | DeleteSession():
            needs.found.add(write.address)
            needs.looked_up.append((_HELD_BY, write.address))
        case Acknowledge() | Reclaim():
            needs.found.update(shown.target for shown in write.shown)
            needs.keys.add(write.watcher)
        case Release():
            needs.keys.add(write.watcher)
        case TakeNotices():
            needs.keys.add(write.watcher)
            needs.owed_keys.add(write.watcher)
        case OpenOwed(watcher=str() as watcher):
            needs.owed_keys.add(watcher)
        case Replay(watcher=str() as watcher):
            needs.owed_keys.add(watcher)
            needs.looked_up.append((_OPEN_OF, (watcher,)))
        case _:
            needs.looked_up.extend(_of_many(write, needs.gateway_id))


def _of_many(write: Write, gateway_id: int) -> Sequence[tuple[str, Row]]:
    match write:
        case OpenOwed():
            return [(_OWED_FIRST, (write.limit,))]
        case Replay():
            slice_ = (REPLAYED_TARGETS, replayed_slice(gateway_id, write))
            return [slice_] if write.after else [slice_, (_OWED_ALL, ())]
        case PruneEvents():
            return [(_PRUNED, (write.after, write.limit, write.before_ms, write.keep_rows))]
        case ExpireHeads():
            return [(_DELETED, (write.before_ms, write.limit))]
        case TakeOver():
            return [(_HOSTED, (write.dead, write.limit)), (_CLAIMED, (write.dead,))]
        case _:
            return []


class KnownHeads:
    """The ids of heads seen before. They do not change; a head that is gone is noticed when it cannot be locked."""

    def __init__(self) -> None:
        self._ids: dict[Address, int] = {}

    def get(self, address: Address) -> int | None:
        """The id, if it is known."""
        return self._ids.get(address)

    def learn(self, folds: Iterable[Fold]) -> None:
        """Keep the ids of what is committed."""
        if len(self._ids) > KNOWN_MAX:
            self._ids.clear()
        self._ids.update((fold.address, fold.head_id) for fold in folds)

    def forget(self, addresses: Iterable[Address]) -> None:
        """These may be gone."""
        for address in addresses:
            self._ids.pop(address, None)


@dataclass(frozen=True, slots=True)
class Locked:
    """The heads that are locked now, and what was learnt on the way."""

    folds: dict[Address, Fold]
    hosts: dict[str, int | None]
    made: tuple[Address, ...]
    """Those made for this transaction."""
    sequences: tuple[int, ...]
    """As many as events are recorded at most, taken when all heads were locked."""
    has_others: bool
    """Whether other gateways are registered."""
    owed_elsewhere: bool
    """Whether any head owes openings that is not locked."""
    transaction_id: int | None


_MAKE = (
    "INSERT INTO heads (session_key, agent_id) SELECT * FROM unnest($1::text[], $2::text[]) AS v(session_key, agent_id) ORDER BY 1, 2 "
    "ON CONFLICT (session_key, agent_id) DO NOTHING RETURNING session_key, agent_id"
)
_FIND = (
    "SELECT h.head_id FROM unnest($1::text[], $2::text[]) AS v(session_key, agent_id) "
    "JOIN heads h ON h.session_key = v.session_key AND h.agent_id = v.agent_id"
)
_LOCK = (
    f"WITH locked AS MATERIALIZED (SELECT {FOLD_COLUMNS}, host FROM heads WHERE head_id = ANY($1::bigint[]) "
    "OR head_id = ANY (ARRAY(SELECT head_id FROM heads WHERE session_key = ANY($2::text[]))) "
    "OR head_id = ANY (ARRAY(SELECT c.target_id FROM heads t JOIN cursors c ON c.target_id = t.head_id "
    "JOIN heads w ON w.head_id = c.watcher_id WHERE t.owed_sequence IS NOT NULL AND w.session_key = ANY($3::text[]))) "
    "ORDER BY head_id FOR UPDATE) "
    f"SELECT {FOLD_COLUMNS}, host, EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = locked.head_id), "
    # The first row says what is not of any head. No sequence is taken before the last head is locked.
    "CASE WHEN row_number() OVER () = 1 THEN ARRAY("
    "SELECT nextval('event_sequence') FROM generate_series(1, $4::integer) WHERE (SELECT count(*) FROM locked) > 0) END, "
    "CASE WHEN row_number() OVER () = 1 THEN EXISTS (SELECT 1 FROM gateways WHERE gateway_id <> $5) END, "
    "CASE WHEN row_number() OVER () = 1 THEN EXISTS (SELECT 1 FROM heads o WHERE o.owed_sequence IS NOT NULL "
    "AND o.head_id NOT IN (SELECT head_id FROM locked)) END, "
    "CASE WHEN row_number() OVER () = 1 THEN pg_current_xact_id()::text::bigint END FROM locked"
)
_NOTHING_LOCKED = (
    "SELECT EXISTS (SELECT 1 FROM gateways WHERE gateway_id <> $1), "
    "EXISTS (SELECT 1 FROM heads WHERE owed_sequence IS NOT NULL), pg_current_xact_id_if_assigned()::text::bigint"
)


async def lock(connection: Database, needs: Needs, known: KnownHeads) -> Locked:
    """Lock the heads, making those that must be there. `Stale` if one was known that is gone."""
    ids = {head_id for address in needs.made | needs.found if (head_id := known.get(address)) is not None}
    made = await _make_and_find(connection, needs, known, ids)
    for sql, parameters in needs.looked_up:
        ids.update(row[0] for row in await connection.fetch(sql, *parameters))
    locked = await _lock(connection, needs, ids, made)
    gone = {address for address in needs.made | needs.found if address not in locked.folds and _expected(address, needs, known)}
    if gone:
        known.forget(gone)
        raise Stale
    return locked


def _expected(address: Address, needs: Needs, known: KnownHeads) -> bool:
    return address in needs.made or known.get(address) is not None


async def _make_and_find(connection: Database, needs: Needs, known: KnownHeads, ids: set[int]) -> tuple[Address, ...]:
    """Find the ids that are not known, having made the heads that are missing; which those are."""
    missing = [address for address in needs.made if known.get(address) is None]
    unknown = [*missing, *(address for address in needs.found if known.get(address) is None)]
    made = await connection.fetch(_MAKE, *columns(missing, 2)) if missing else []
    if unknown:
        ids.update(row[0] for row in await connection.fetch(_FIND, *columns(unknown, 2)))
    return tuple(Address(*row) for row in made)


async def _lock(connection: Database, needs: Needs, ids: set[int], made: tuple[Address, ...]) -> Locked:
    wanted = ids or needs.keys or needs.owed_keys
    rows = (
        await connection.fetch(_LOCK, list(ids), list(needs.keys), list(needs.owed_keys), needs.events, needs.gateway_id) if wanted else []
    )
    if not rows:
        has_others, owed_elsewhere, transaction_id = await connection.fetchrow(_NOTHING_LOCKED, needs.gateway_id) or (False, False, None)
        return Locked({}, {}, made, (), has_others, owed_elsewhere, transaction_id)
    folds: dict[Address, Fold] = {}
    hosts: dict[str, int | None] = {}
    for row in rows:
        fold = to_fold(tuple(row))
        fold.watched = row[_WATCHED]
        folds[fold.address] = fold
        key = fold.address.session_key
        if key in needs.keys:  # Then all sessions of that key are locked.
            hosts[key] = max(row[_HOST] or 0, hosts.get(key) or 0) or None
    sequences, has_others, owed_elsewhere, transaction_id = rows[0][_WATCHED + 1 :]
    return Locked(folds, hosts, made, tuple(sequences), has_others, owed_elsewhere, transaction_id)


_HOST = FOLD_COLUMNS.count(",") + 1
_WATCHED = _HOST + 1
