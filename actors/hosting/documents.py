"""What the reading commands answer, as JSON-ready documents: over a store that was opened read-only, so that nothing is hosted, claimed,
swept, woken or pruned (rule 8.4).

Rows are those of the session tools. A database cannot tell which runs are active, so every session is reported as `idle`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ...storage import open_store
from ...storage.errors import StoreError
from ...storage.protocol import Store
from ...storage.records import Address, Cursor
from .. import tools
from ..errors import UnknownSession
from ..keys import canonical_key, parse_address
from ..notices import notice, watch
from ..summaries import Language
from .exits import CommandFailed, ExitCode
from .rows import event_row, notice_row, watch_row

Document = dict[str, Any]

IDLE: Final = "idle"


@asynccontextmanager
async def reading(db: str) -> AsyncIterator[Store]:
    """Open the database read-only; `CommandFailed` says why that is not possible, `NOT_FOUND` where there is none."""
    try:
        async with open_store(db, read_only=True) as store:
            yield store
    except StoreError as error:
        raise CommandFailed(str(error), ExitCode.NOT_FOUND if is_missing(db) else ExitCode.ERROR) from error


def database_file(db: str) -> Path:
    """The file behind a path or `sqlite:///path`."""
    return Path(db.removeprefix("sqlite:///"))


def is_missing(db: str) -> bool:
    """Whether the database is a file that is not there."""
    return is_file(db) and not database_file(db).exists()


def is_file(db: str) -> bool:
    """Whether a database is named by a file, and not by the address of a server."""
    return "://" not in db.removeprefix("sqlite:///")


async def status(store: Store, key: str, agent_id: str | None, since: int | None, limit: int, language: Language) -> Document:
    """`session_status` of one session."""
    address = parse_address(key, agent_id)
    return await tools.session_status(store, _idle, address, changes_since=since, limit=limit, language=language)


async def sessions(
    store: Store, *, agent_id: str | None, kind: str | None, parent: str | None, limit: int, after: str | None, with_total: bool
) -> Document:
    """`sessions_list`."""
    return await tools.sessions_list(
        store, _idle, agent_id=agent_id, kind=kind, parent=parent, limit=limit, after=after, with_total=with_total
    )


async def events(store: Store, key: str | None, agent_id: str | None, limit: int, language: Language) -> Document:
    """The newest events, ascending, of one session or of all: `{"events": [...]}`, each with the session that it belongs to."""
    address = None if key is None else parse_address(key, agent_id)
    if address is not None and await store.status(address, changes_since=None, limit=1) is None:
        raise UnknownSession(*address)
    found = await store.events(address=address, limit=limit)
    return {"events": [event_row(event, language) for event in found]}


async def watches(store: Store, key: str | None) -> Document:
    """The cursors of one watcher, or all: `{"watches": [...]}`."""
    watcher = None if key is None else await _known(store, key)
    return {"watches": [_watch_row(cursor) for cursor in await store.cursors(watcher)]}


async def notices(store: Store, key: str, language: Language) -> Document:
    """What is pending for one watcher, derived from positions, whether it has been opened yet or not: `{"notices": [...]}`.

    In the order in which turns will show it: by the position that the notice is pinned at, or would be pinned at by a start now.
    """
    watcher = await _known(store, key)
    pending = [cursor for cursor in await store.cursors(watcher) if _is_pending(cursor)]
    return {"notices": [_notice_row(cursor, language) for cursor in sorted(pending, key=_pinned_order)]}


async def _known(store: Store, key: str) -> str:
    canonical = canonical_key(key)
    if not await store.session_exists(canonical):
        raise UnknownSession(canonical)
    return canonical


def _idle(_address: Address) -> str:
    return IDLE


def _is_pending(cursor: Cursor) -> bool:
    return cursor.positions.material > cursor.positions.last_seen


def _is_open(cursor: Cursor) -> bool:
    return cursor.positions.notified > cursor.positions.last_seen


def _pinned_order(cursor: Cursor) -> tuple[int, Address]:
    return (cursor.positions.notified if _is_open(cursor) else cursor.positions.material, cursor.target)


def _watch_row(cursor: Cursor) -> Document:
    return {"watcher": cursor.watcher} | watch_row(watch(cursor))


def _notice_row(cursor: Cursor, language: Language) -> Document:
    pinned = {"notified": _pinned_order(cursor)[0], "opened": _is_open(cursor)}
    return {"watcher": cursor.watcher} | notice_row(notice(cursor, language)) | pinned
