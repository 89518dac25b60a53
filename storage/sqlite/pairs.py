"""Writing rows of the table `cursors`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..pairs import PairWrite
from .values import run_rows

_PUT = "INSERT INTO cursors (watcher_id, target_id, last_seen, notified, renewed_at)"
_OVERWRITE = (
    "ON CONFLICT (watcher_id, target_id) DO UPDATE SET "
    "last_seen = excluded.last_seen, notified = excluded.notified, renewed_at = excluded.renewed_at, claimed_by = "
    "CASE WHEN cursors.last_seen = excluded.last_seen AND cursors.notified = excluded.notified THEN claimed_by END"
)


def put_pairs(connection: sqlite3.Connection, rows: Iterable[PairWrite]) -> None:
    """Write the rows, new or not. A claim is on the notice, so it goes when the positions move."""
    run_rows(connection, _PUT, list(rows), _OVERWRITE)
