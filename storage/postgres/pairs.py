"""Writing rows of the table `cursors`. Whoever moves positions holds the lock of the target's head."""

from __future__ import annotations

from collections.abc import Iterable

from ..pairs import PairWrite
from .arrays import columns, unnest
from .line import Database

_ROWS = unnest("bigint bigint bigint bigint bigint")
_KEEP_CLAIM = "claimed_by = CASE WHEN c.last_seen = {new}.last_seen AND c.notified = {new}.notified THEN c.claimed_by END"
_MOVE = (
    "UPDATE cursors c SET last_seen = v.last_seen, notified = v.notified, renewed_at = v.renewed_at, "
    f"{_KEEP_CLAIM.format(new='v')} FROM {_ROWS} AS v(watcher_id, target_id, last_seen, notified, renewed_at) "
    "WHERE c.watcher_id = v.watcher_id AND c.target_id = v.target_id"
)
_PUT = (
    f"INSERT INTO cursors AS c (watcher_id, target_id, last_seen, notified, renewed_at) SELECT * FROM {_ROWS} "
    "AS v(watcher_id, target_id, last_seen, notified, renewed_at) ORDER BY 2, 1 ON CONFLICT (watcher_id, target_id) DO UPDATE SET "
    f"last_seen = excluded.last_seen, notified = excluded.notified, renewed_at = excluded.renewed_at, {_KEEP_CLAIM.format(new='excluded')}"
)


async def move_pairs(connection: Database, rows: Iterable[PairWrite]) -> None:
    """Write the rows of cursors that are there; one that was removed meanwhile is not made again. A claim is on the notice, so it goes
    when the positions move."""
    rows = list(rows)
    if rows:
        await connection.execute(_MOVE, *columns(rows, 5))


async def put_pairs(connection: Database, rows: Iterable[PairWrite]) -> None:
    """Write the rows, new or not, of watchers and targets whose heads are locked both."""
    rows = list(rows)
    if rows:
        await connection.execute(_PUT, *columns(rows, 5))
