"""Applying a batch of writes in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import assert_never, cast

from ..records import Opened
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
from .known import Known
from .transaction import Transaction


def apply(tx: Transaction, writes: Sequence[Write], known: Known | None = None) -> Commit:
    """Apply the writes; appends that follow one another are recorded in bulk. `known` is what `KnownFolds` gave, and is kept true."""
    known = Known() if known is None else known
    results: list[object] = []
    for kind, run in groupby(writes, key=type):
        if kind is Append:
            results.extend(append.append_all(tx, cast("list[Append]", list(run)), known))
        else:
            results.extend(_apply_one(tx, write, known) for write in run)
    return Commit(tuple(results), _told(tx, writes, known), _is_owed(tx, known), tx.recorded)


def _told(tx: Transaction, writes: Sequence[Write], known: Known) -> tuple[Opened, ...]:
    if not tx.opened:
        return ()
    if known.others is None:
        known.others = gateways.has_others(tx)
    return gateways.told_here(tx, moment_ms(writes)) if known.others else tuple(tx.opened)


def _is_owed(tx: Transaction, known: Known) -> bool:
    if known.owed is None:
        known.owed = bool(tx.connection.execute("SELECT EXISTS (SELECT 1 FROM heads WHERE owed_sequence IS NOT NULL)").fetchone()[0])
    return known.owed


def _apply_one(tx: Transaction, write: Write, known: Known) -> object:
    _forget(known, write)
    return _applied(tx, write)


def _forget(known: Known, write: Write) -> None:
    """Drop what the write may change behind the folds' back."""
    known.owed = None
    match write:
        case Acknowledge():
            for shown in write.shown:  # It adds and removes no cursor, but makes some clean.
                if shown.target in known:
                    known[shown.target].all_open = False
        case TakeOver():
            known.others = None
        case TakeNotices() | Release() | Reclaim() | TakeHints():
            pass  # They, too, make no cursor clean, they add and remove none, and the folds know nothing of hosts and claims.
        case PutSession():
            known.pop(write.address, None)
        case _:
            known.forget()


def _applied(tx: Transaction, write: Write) -> object:  # noqa: C901 - one line per kind of write
    match write:
        case Append():
            return append.append_all(tx, [write], Known())[0]
        case PutSession():
            return sessions.put(tx, write)
        case ResetSession():
            return sessions.reset(tx, write)
        case DeleteSession():
            return sessions.delete(tx, write)
        case Watch():
            return cursors.watch(tx, write)
        case Unwatch():
            return cursors.unwatch(tx, write)
        case Acknowledge():
            return cursors.acknowledge_all(tx, write)
        case OpenOwed():
            return openings.open_owed(tx, write)
        case Replay():
            return cursors.replay_pairs(tx, write)
        case ExpireCursors():
            return housekeeping.expire_cursors(tx, write)
        case PruneEvents():
            return housekeeping.prune_events(tx, write)
        case ExpireHeads():
            return housekeeping.expire_heads(tx, write)
        case PutLink():
            return links.put(tx, write)
        case RecordUpstream():
            return links.record(tx, write)
        case TakeNotices():
            return claims.take(tx, write)
        case Release():
            return claims.release(tx, write)
        case Reclaim():
            return claims.reclaim(tx, write)
        case TakeHints():
            return gateways.take_hints(tx, write)
        case TakeOver():
            return gateways.take_over(tx, write)
        case _:
            assert_never(write)
