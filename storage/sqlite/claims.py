"""Claims: which notices are in an open turn, over all gateways (rule 8.3). Each is in the row of the cursor whose notice it is on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from ..records import Address, Opened, PendingRead, Shown
from ..writes import OpenOwed, Reclaim, Release, TakeNotices
from . import reads
from .gateways import host, host_of, living_others, put_hints
from .openings import open_owed
from .transaction import Transaction
from .values import run_rows, select_wanted


def take(tx: Transaction, write: TakeNotices) -> PendingRead:
    """Claim what the turn is to show, and become the watcher's host."""
    open_owed(tx, OpenOwed(write.now_ms, 0, write.watcher))
    read = reads.pending(tx.connection, tx.presence, write.watcher, write.limit, write.excluding)
    if not tx.presence.gateway_id or not read.session_exists:
        return read
    host(tx, write.watcher)
    _claim(tx, write.watcher, (cursor.target for cursor in read.cursors))
    return replace(read, elsewhere=False)


_IDS = (
    "SELECT c.watcher_id, c.target_id FROM wanted CROSS JOIN heads t ON t.session_key = wanted.session_key "
    "AND t.agent_id = wanted.agent_id CROSS JOIN heads w ON w.session_key = ? "
    "CROSS JOIN cursors c ON c.watcher_id = w.head_id AND c.target_id = t.head_id"
)
_CLAIM = "UPDATE cursors SET claimed_by = v.column3 FROM ("
_CLAIMED = ") v WHERE cursors.watcher_id = v.column1 AND cursors.target_id = v.column2"


def _claim(tx: Transaction, watcher: str, targets: Iterable[Address]) -> None:
    ids = select_wanted(tx.connection, "session_key, agent_id", list(targets), _IDS, watcher)
    run_rows(tx.connection, _CLAIM, [(*pair, tx.presence.gateway_id) for pair in ids], _CLAIMED)


_RELEASE = (
    "UPDATE cursors SET claimed_by = NULL WHERE claimed_by = ? AND watcher_id IN (SELECT head_id FROM heads WHERE session_key = ?) "
    "AND (target_id, last_seen, notified) NOT IN ("
    "SELECT h.head_id, json_extract(x.value, '$[1]'), json_extract(x.value, '$[2]') FROM json_each(?) x "
    "CROSS JOIN heads h ON h.session_key = json_extract(x.value, '$[0][0]') AND h.agent_id = json_extract(x.value, '$[0][1]')) "
    "RETURNING (SELECT session_key FROM heads WHERE head_id = target_id), (SELECT agent_id FROM heads WHERE head_id = target_id)"
)


def release(tx: Transaction, write: Release) -> int:
    """Void the claims that no turn of this gateway holds any more; the watcher's host, if it is another, is hinted."""
    rows = tx.connection.execute(_RELEASE, (tx.presence.gateway_id, write.watcher, json.dumps(write.kept))).fetchall()
    host_id = host_of(tx.connection, write.watcher)
    if host_id not in (None, tx.presence.gateway_id):
        put_hints(tx, [(host_id, Opened(write.watcher, Address(*row))) for row in rows], write.now_ms)
    return len(rows)


_CLAIMABLE = (
    "SELECT t.session_key, t.agent_id, c.last_seen, c.notified FROM wanted CROSS JOIN heads t ON t.session_key = wanted.session_key "
    "AND t.agent_id = wanted.agent_id CROSS JOIN heads w ON w.session_key = ? CROSS JOIN cursors c ON c.watcher_id = w.head_id "
    "AND c.target_id = t.head_id WHERE c.last_seen = wanted.last_seen AND c.notified = wanted.notified "
    "AND coalesce(c.claimed_by, 0) NOT IN (SELECT value FROM json_each(?))"
)


def reclaim(tx: Transaction, write: Reclaim) -> tuple[Shown, ...]:
    """Claim anew what is still there and nobody else's."""
    wanted = [(*shown.target, shown.last_seen, shown.notified) for shown in write.shown]
    living = json.dumps(living_others(tx.connection, tx.presence))
    columns = "session_key, agent_id, last_seen, notified"
    rows = list(select_wanted(tx.connection, columns, wanted, _CLAIMABLE, write.watcher, living))
    found = tuple(Shown(Address(row[0], row[1]), row[2], row[3]) for row in rows)
    _claim(tx, write.watcher, (shown.target for shown in found))
    return found
