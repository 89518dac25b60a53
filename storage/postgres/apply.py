"""Applying a batch of writes in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import assert_never

from ..records import Address
from ..writes import (
    Acknowledge,
    Append,
    Commit,
    DeleteSession,
    ExpireCursors,
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
    TakeHints,
    TakeNotices,
    TakeOver,
    Unwatch,
    Watch,
    Write,
    moment_ms,
)
from . import append, claims, cursors, gateways, housekeeping, links, openings, sessions
from .line import Database
from .locks import KnownHeads, lock, needs_of
from .transaction import OPENINGS_MAX, Transaction, Worked


async def apply(
    connection: Database,
    writes: Sequence[Write],
    *,
    known: KnownHeads,
    gateway_id: int,
    new_session_id: Callable[[], str],
    openings_max: int = OPENINGS_MAX,
) -> Worked[tuple[Commit, Transaction]]:
    """Lock what the writes concern, and apply them; appends that follow one another are recorded in bulk."""
    append.check(_events(writes))
    locked = await lock(connection, needs_of(writes, gateway_id), known)
    sequences = iter(locked.sequences) if locked.sequences else None
    tx = Transaction(
        connection,
        new_session_id,
        gateway_id,
        locked.folds,
        locked.hosts,
        sequences,
        openings_max,
        moment_ms=moment_ms(writes),
        has_others=locked.has_others,
    )
    results: list[object] = []
    for is_append, run in groupby(writes, key=lambda write: isinstance(write, Append)):
        if is_append:
            results.extend(await append.append_all(tx, [write for write in run if isinstance(write, Append)]))
        else:
            results.extend([await _applied(tx, write) for write in run])
    told = await gateways.told_here(tx, tx.moment_ms)
    await _remove_unused(tx, locked.made)
    owed = locked.owed_elsewhere or any(fold.owed is not None for fold in tx.folds.values())
    return Worked((Commit(tuple(results), told, owed, tx.recorded), tx), locked.transaction_id)


def _events(writes: Sequence[Write]) -> Iterator[Append]:
    for write in writes:
        match write:
            case Append():
                yield write
            case PutLink():
                yield write.event
            case RecordUpstream():
                yield from write.events


_REMOVE = "DELETE FROM heads h WHERE h.head_id = ANY($1::bigint[]) AND NOT EXISTS (SELECT 1 FROM cursors c WHERE c.watcher_id = h.head_id)"


async def _remove_unused(tx: Transaction, made: Sequence[Address]) -> None:
    """A head that was made to be locked, and to which nothing has happened then, is not kept."""
    unused = [fold for fold in (tx.folds[address] for address in made) if fold.session is None and not fold.last_sequence]
    for fold in unused:
        del tx.folds[fold.address]
    if unused:
        await tx.connection.execute(_REMOVE, [fold.head_id for fold in unused])


async def _applied(tx: Transaction, write: Write) -> object:  # noqa: C901 - one line per kind of write
    match write:
        case Append():
            return (await append.append_all(tx, [write]))[0]
        case PutSession():
            return await sessions.put(tx, write)
        case ResetSession():
            return await sessions.reset(tx, write)
        case DeleteSession():
            return await sessions.delete(tx, write)
        case Watch():
            return await cursors.watch(tx, write)
        case Unwatch():
            return await cursors.unwatch(tx, write)
        case Acknowledge():
            return await cursors.acknowledge_all(tx, write)
        case OpenOwed():
            return await openings.open_owed(tx, write)
        case Replay():
            return await cursors.replay_pairs(tx, write)
        case ExpireCursors():
            return await housekeeping.expire_cursors(tx, write)
        case PruneEvents():
            return await housekeeping.prune_events(tx, write)
        case ExpireHeads():
            return await housekeeping.expire_heads(tx, write)
        case PutLink():
            return await links.put(tx, write)
        case RecordUpstream():
            return await links.record(tx, write)
        case TakeNotices():
            return await claims.take(tx, write)
        case Release():
            return await claims.release(tx, write)
        case Reclaim():
            return await claims.reclaim(tx, write)
        case TakeHints():
            return await gateways.take_hints(tx, write)
        case TakeOver():
            return await gateways.take_over(tx, write)
        case _:
            assert_never(write)
