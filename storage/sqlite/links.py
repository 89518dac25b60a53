"""Links: which thread of a catalog a session was adopted from, and how far that was scanned."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping

from ..folds import put_session, to_record
from ..records import Address, LinkRecord
from ..rows import Row
from ..writes import LinkPut, LinkSource, PutLink, RecordUpstream, UpstreamRecorded
from .append import append_all
from .folds import load_one, save
from .known import Known
from .transaction import Transaction
from .values import run_rows

# ASCII alone, so that a file name that is no text can be stored, too.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

_AMBIGUOUS = (
    "EXISTS (SELECT 1 FROM heads o CROSS JOIN links ol ON ol.head_id = o.head_id "
    "WHERE o.session_key = h.session_key AND o.head_id <> h.head_id)"
)
_LINKS = (
    "SELECT h.session_key, h.agent_id, s.session_id, l.catalog, l.host_id, l.thread_id, l.source, l.marker_json, l.generation, l.revision, "
    f"l.missing_count, l.own_ids_json, l.adopted_at, {_AMBIGUOUS} "
    "FROM links l CROSS JOIN heads h ON h.head_id = l.head_id CROSS JOIN sessions s ON s.head_id = l.head_id"
)
_WATCHED = "EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = l.head_id)"


def read(connection: sqlite3.Connection, watched_only: bool) -> tuple[LinkRecord, ...]:
    """Links as `Store.links` says."""
    where = f" WHERE {_WATCHED}" if watched_only else ""
    rows = connection.execute(f"{_LINKS}{where} ORDER BY h.session_key, h.agent_id")
    return tuple(_to_link(row) for row in rows)


def _to_link(row: Row) -> LinkRecord:
    return LinkRecord(
        Address(row[0], row[1]), row[2], row[3], row[4], row[5], row[6], json.loads(row[7]), row[8], row[9], row[10],
        tuple(json.loads(row[11])), row[12], bool(row[13]),
    )  # fmt: skip


def put(tx: Transaction, write: PutLink) -> LinkPut:
    """Refresh the link, or begin a new one (rule 7.1)."""
    fold = load_one(tx.connection, write.address)
    row = put_session(tx, fold, write.session, write.now_ms)
    save(tx.connection, [fold])
    if _refresh(tx.connection, fold.head_id, write.link):
        return LinkPut(to_record(fold, row), None)
    tx.connection.execute("DELETE FROM links WHERE head_id = ?", (fold.head_id,))
    _insert(tx.connection, fold.head_id, write.link, write.marker, (), write.now_ms)
    (event,) = append_all(tx, [write.event], Known())
    return LinkPut(to_record(load_one(tx.connection, write.address), row), event)


_REFRESH = (
    "UPDATE links SET revision = revision + 1, missing_count = 0 "
    "WHERE head_id = ? AND catalog = ? AND host_id = ? AND thread_id = ? AND source = ?"
)


def _refresh(connection: sqlite3.Connection, head_id: int, link: LinkSource) -> bool:
    values = (head_id, link.catalog, link.host_id, link.thread_id, link.source)
    return connection.execute(_REFRESH, values).rowcount > 0


_COLUMNS = "head_id, catalog, host_id, thread_id, source, marker_json, own_ids_json, adopted_at"


def _insert(
    connection: sqlite3.Connection, head_id: int, link: LinkSource, marker: Mapping[str, object], own_ids: Iterable[str], adopted_at: int
) -> None:
    texts = (link.catalog, link.host_id, link.thread_id, link.source)
    row = (head_id, *texts, _encode(dict(marker)), _encode(list(own_ids)), adopted_at)
    run_rows(connection, f"INSERT INTO links ({_COLUMNS})", [row])


def record(tx: Transaction, write: RecordUpstream) -> UpstreamRecorded:
    """Record what a check found, if the link is still what was checked (rules 7.3, 7.4 and 7.6)."""
    head_id = _still_there(tx.connection, write.link)
    if head_id is None:
        return UpstreamRecorded(applied=False)
    events = append_all(tx, write.events, Known()) if write.events else []
    if write.removes or write.renews:
        tx.connection.execute("DELETE FROM links WHERE head_id = ?", (head_id,))
    else:
        _move(tx.connection, write)
    if write.renews:
        link = write.link
        source = LinkSource(link.catalog, link.host_id, link.thread_id, link.source)
        _insert(tx.connection, head_id, source, write.marker, write.own_ids, link.adopted_at_ms)
    return UpstreamRecorded(applied=True, events=tuple(events))


_STILL_THERE = (
    "SELECT l.head_id FROM links l CROSS JOIN heads h ON h.head_id = l.head_id CROSS JOIN sessions s ON s.head_id = l.head_id "
    f"WHERE l.generation = ? AND l.revision = ? AND s.session_id = ? AND NOT {_AMBIGUOUS}"
)


def _still_there(connection: sqlite3.Connection, link: LinkRecord) -> int | None:
    row = connection.execute(_STILL_THERE, (link.generation, link.revision, link.session_id)).fetchone()
    return None if row is None else row[0]


def _move(connection: sqlite3.Connection, write: RecordUpstream) -> None:
    connection.execute(
        "UPDATE links SET revision = revision + 1, marker_json = ?, own_ids_json = ?, missing_count = ? WHERE generation = ?",
        (_encode(dict(write.marker)), _encode(list(write.own_ids)), write.missing_count, write.link.generation),
    )
