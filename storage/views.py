"""The reads for people, as far as they are the same for every database: which rows are shown where not all can be. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .folds import SessionRow, record_of
from .heads import NOBODY
from .pairs import Pair
from .positions import is_open
from .records import Address, Cursor, LastActor, SessionRecord
from .rows import Row

Seen = tuple[SessionRecord, LastActor | None]

SEEN_COLUMNS = (
    "s.session_key, s.agent_id, s.session_id, s.kind, s.parent, s.label, s.created_at, s.updated_at, h.recorded_at, h.last_sequence, "
    "h.latest_actor, e.actor_type, e.actor_id"
)
"""What `seen` takes: of a session s, its head h, and the event e of its last sequence, which may be gone."""


def seen(row: Row) -> Seen:
    """The session in a row of `SEEN_COLUMNS`, and who changed it last."""
    session = record_of(Address(row[0], row[1]), SessionRow(*row[2:8]), row[8], row[9])
    return session, last_actor(session.version, *row[10:])


def last_actor(version: int, latest_actor: str | None, actor_type: str | None, actor_id: str | None) -> LastActor | None:
    """Who made the last event; where that was pruned, as much as the head still knows of it."""
    if not version:
        return None
    if actor_type is None and latest_actor not in (None, NOBODY):
        return LastActor("agent", latest_actor, version)
    return LastActor(actor_type, actor_id, version)


def chosen(newest: Iterable[Seen], by_key: Iterable[Seen], limit: int) -> tuple[Seen, ...]:
    """The first `limit` of both, in the order of their addresses."""
    found: dict[Address, Seen] = {}
    for one in (*newest, *by_key):
        found.setdefault(one[0].address, one)
    kept = list(found.values())[:limit]
    return tuple(sorted(kept, key=lambda one: one[0].address))


def cut(rows: Sequence[Row], limit: int) -> tuple[tuple[Cursor, ...], bool]:
    """At most `limit` of the cursors in rows of `PAIR_COLUMNS`, clean ones left out first; and whether there are more."""
    cursors = [Pair.of(row).cursor for row in rows]
    if len(cursors) <= limit:
        return tuple(cursors), False
    spare = next((cursor for cursor in reversed(cursors) if not is_open(cursor.positions)), cursors[-1])
    return tuple(cursor for cursor in cursors if cursor is not spare), True
