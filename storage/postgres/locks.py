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
from .cursors import REPLAYED_TARGETS
from .folds import FOLD_COLUMNS, to_fold
from .line import Database
from .transaction import Stale

KNOWN_MAX: Final = 100_000


@dataclass(slots=True)
class Needs:
    """The heads that a batch locks."""

    made: set[Address] = field(default_factory=set)
    """Made if they are missing."""
    found: set[Address] = field(default_factory=set)
    """Locked if they are there."""
    keys: set[str] = field(default_factory=set)
    """Watchers, under whatever agent."""
    looked_up: list[tuple[str, Row]] = field(default_factory=list)
    """Queries for further ids."""


_HELD_BY = "SELECT c.target_id FROM cursors c JOIN heads w ON w.head_id = c.watcher_id WHERE w.session_key = $1 AND w.agent_id = $2"
_OPEN_OF = (
    "SELECT c.target_id FROM cursors c JOIN heads w ON w.head_id = c.watcher_id WHERE w.session_key = $1 AND c.notified > c.last_seen"
)
_OWED_TO = (
    "SELECT c.target_id FROM heads w JOIN cursors c ON c.watcher_id = w.head_id JOIN heads t ON t.head_id = c.target_id "
    "WHERE w.session_key = $1 AND t.owed_sequence IS NOT NULL"
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
    needs = Needs()
    for write in writes:
        _need(needs, write, gateway_id)
    return needs


def _need(needs: Needs, write: Write, gateway_id: int) -> None:  # noqa: C901 - a few lines per kind of write
    match write:
        case Append():
            needs.made.update(addresses([write]))
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
            needs.looked_up.append((_OWED_TO, (write.watcher,)))
        case _:
            needs.looked_up.extend(_of_many(write, gateway_id))


def _of_many(write: Write, gateway_id: int) -> Sequence[tuple[str, Row]]:
    match write:
        case OpenOwed(watcher=str() as watcher):
            return [(_OWED_TO, (watcher,))]
        case OpenOwed():
            return [(_OWED_FIRST, (write.limit,))]
        case Replay(watcher=str() as watcher):
            return [(_OPEN_OF, (watcher,)), (_OWED_TO, (watcher,))]
        case Replay():
            slice_ = (REPLAYED_TARGETS, (gateway_id, *(write.after or (0, 0)), write.limit))
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
    """The heads that are locked now."""

    folds: dict[Address, Fold]
    made: tuple[Address, ...]
    """Those made for this transaction."""


_MAKE = (
    "INSERT INTO heads (session_key, agent_id) SELECT * FROM unnest($1::text[], $2::text[]) AS v(session_key, agent_id) ORDER BY 1, 2 "
    "ON CONFLICT (session_key, agent_id) DO NOTHING RETURNING session_key, agent_id"
)
_FIND = (
    "SELECT h.head_id FROM unnest($1::text[], $2::text[]) AS v(session_key, agent_id) "
    "JOIN heads h ON h.session_key = v.session_key AND h.agent_id = v.agent_id"
)
_FIND_KEYS = "SELECT head_id FROM heads WHERE session_key = ANY($1::text[])"
_LOCK = f"SELECT {FOLD_COLUMNS} FROM heads WHERE head_id = ANY($1::bigint[]) ORDER BY head_id FOR UPDATE"


async def lock(connection: Database, needs: Needs, known: KnownHeads) -> Locked:
    """Lock the heads, making those that must be there. `Stale` if one was known that is gone."""
    ids = {head_id for address in needs.made | needs.found if (head_id := known.get(address)) is not None}
    unknown_made = [address for address in needs.made if known.get(address) is None]
    unknown = [*unknown_made, *(address for address in needs.found if known.get(address) is None)]
    made = await connection.fetch(_MAKE, *columns(unknown_made, 2)) if unknown_made else []
    if unknown:
        ids.update(row[0] for row in await connection.fetch(_FIND, *columns(unknown, 2)))
    if needs.keys:
        ids.update(row[0] for row in await connection.fetch(_FIND_KEYS, list(needs.keys)))
    for sql, parameters in needs.looked_up:
        ids.update(row[0] for row in await connection.fetch(sql, *parameters))
    folds = await _lock(connection, ids)
    gone = {address for address in needs.made | needs.found if address not in folds and (address in needs.made or known.get(address))}
    if gone:
        known.forget(gone)
        raise Stale
    return Locked(folds, tuple(Address(*row) for row in made))


async def _lock(connection: Database, ids: set[int]) -> dict[Address, Fold]:
    if not ids:
        return {}
    rows = await connection.fetch(_LOCK, list(ids))
    return {Address(row[1], row[2]): to_fold(tuple(row)) for row in rows}
