"""Links: which thread of a catalog a session was adopted from, and how far that was scanned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..folds import put_session, to_record
from ..records import Address, LinkRecord
from ..rows import Row
from ..writes import LinkPut, LinkSource, PutLink, RecordUpstream, UpstreamRecorded
from .append import append_all
from .folds import save_changed
from .line import Database
from .transaction import Transaction

# ASCII alone, so that a file name that is no text can be stored, too.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode

_AMBIGUOUS = (
    "EXISTS (SELECT 1 FROM heads o JOIN links ol ON ol.head_id = o.head_id WHERE o.session_key = h.session_key AND o.head_id <> h.head_id)"
)
_LINKS = (
    "SELECT h.session_key, h.agent_id, h.session_id, l.catalog, l.host_id, l.thread_id, l.source, l.marker_json, l.generation, l.revision, "
    f"l.missing_count, l.own_ids_json, l.adopted_at, {_AMBIGUOUS} FROM links l JOIN heads h ON h.head_id = l.head_id"
)
_WATCHED = "EXISTS (SELECT 1 FROM cursors c WHERE c.target_id = l.head_id)"


async def read(connection: Database, watched_only: bool) -> tuple[LinkRecord, ...]:
    """Links as `Store.links` says."""
    where = f" AND {_WATCHED}" if watched_only else ""
    rows = await connection.fetch(f"{_LINKS} WHERE h.session_id IS NOT NULL{where} ORDER BY h.session_key, h.agent_id")
    return tuple(_to_link(tuple(row)) for row in rows)


def _to_link(row: Row) -> LinkRecord:
    return LinkRecord(
        Address(row[0], row[1]), row[2], row[3], row[4], row[5], row[6], json.loads(row[7]), row[8], row[9], row[10],
        tuple(json.loads(row[11])), row[12], row[13],
    )  # fmt: skip


async def put(tx: Transaction, write: PutLink) -> LinkPut:
    """Refresh the link, or begin a new one (rule 7.1)."""
    fold = tx.folds[write.address]
    row = put_session(tx, fold, write.session, write.now_ms)
    await save_changed(tx.connection, [fold])
    if await _refresh(tx.connection, fold.head_id, write.link):
        return LinkPut(to_record(fold, row), None)
    await _remove(tx.connection, fold.head_id)
    await _insert(tx.connection, fold.head_id, write.link, write.marker, (), write.now_ms)
    (event,) = await append_all(tx, [write.event])
    return LinkPut(to_record(fold, row), event)


_REFRESH = (
    "UPDATE links SET revision = revision + 1, missing_count = 0 "
    "WHERE head_id = $1 AND catalog = $2 AND host_id = $3 AND thread_id = $4 AND source = $5 RETURNING 1"
)


async def _refresh(connection: Database, head_id: int, link: LinkSource) -> bool:
    return bool(await connection.fetch(_REFRESH, head_id, link.catalog, link.host_id, link.thread_id, link.source))


async def _remove(connection: Database, head_id: int) -> None:
    await connection.execute("DELETE FROM links WHERE head_id = $1", head_id)


_INSERT = (
    "INSERT INTO links (head_id, catalog, host_id, thread_id, source, marker_json, own_ids_json, adopted_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
)


async def _insert(
    connection: Database, head_id: int, link: LinkSource, marker: Mapping[str, object], own_ids: Iterable[str], adopted_at: int
) -> None:
    texts = (link.catalog, link.host_id, link.thread_id, link.source)
    await connection.execute(_INSERT, head_id, *texts, _encode(dict(marker)), _encode(list(own_ids)), adopted_at)


async def record(tx: Transaction, write: RecordUpstream) -> UpstreamRecorded:
    """Record what a check found, if the link is still what was checked (rules 7.3, 7.4 and 7.6)."""
    head_id = await _still_there(tx.connection, write.link)
    if head_id is None:
        return UpstreamRecorded(applied=False)
    events = await append_all(tx, write.events) if write.events else []
    if write.removes or write.renews:
        await _remove(tx.connection, head_id)
    else:
        await _move(tx.connection, write)
    if write.renews:
        link = write.link
        source = LinkSource(link.catalog, link.host_id, link.thread_id, link.source)
        await _insert(tx.connection, head_id, source, write.marker, write.own_ids, link.adopted_at_ms)
    return UpstreamRecorded(applied=True, events=tuple(events))


_STILL_THERE = (
    "SELECT l.head_id FROM links l JOIN heads h ON h.head_id = l.head_id "
    f"WHERE l.generation = $1 AND l.revision = $2 AND h.session_id = $3 AND NOT {_AMBIGUOUS}"
)
_MOVE = "UPDATE links SET revision = revision + 1, marker_json = $1, own_ids_json = $2, missing_count = $3 WHERE generation = $4"


async def _still_there(connection: Database, link: LinkRecord) -> int | None:
    found: int | None = await connection.fetchval(_STILL_THERE, link.generation, link.revision, link.session_id)
    return found


async def _move(connection: Database, write: RecordUpstream) -> None:
    values = (_encode(dict(write.marker)), _encode(list(write.own_ids)), write.missing_count, write.link.generation)
    await connection.execute(_MOVE, *values)
