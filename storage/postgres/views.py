"""The reads for people, each a function over one read transaction: what there is, and what is around one session."""

from __future__ import annotations

from ..pairs import PAIR_COLUMNS, Pair
from ..records import Address, Overview, Surroundings
from ..views import SEEN_COLUMNS, Seen, chosen, cut, seen
from .line import Database
from .reads import events, statistics

_SEEN = (
    f"SELECT {SEEN_COLUMNS.replace('s.', 'h.')} FROM heads h LEFT JOIN events e ON e.sequence = h.last_sequence AND e.head_id = h.head_id "
    "WHERE h.session_id IS NOT NULL{where}"
)
_BY_KEY = f"{_SEEN.format(where='')} ORDER BY h.session_key, h.agent_id LIMIT $1"
_NEWEST = _SEEN.format(where=" AND h.head_id IN (SELECT n.head_id FROM events n ORDER BY n.sequence DESC LIMIT $1)")
_ONE = _SEEN.format(where=" AND h.session_key = $1 AND h.agent_id = $2")
_PAIRS = (
    f"SELECT {PAIR_COLUMNS} FROM ({{cursors}}) c JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id "
    "ORDER BY w.session_key, t.session_key, t.agent_id"
)
_ANY = _PAIRS.format(
    cursors="(SELECT * FROM cursors WHERE notified > last_seen LIMIT $1) "
    "UNION ALL (SELECT * FROM cursors WHERE notified <= last_seen LIMIT $1) LIMIT $1"
)
_HELD = (
    "SELECT * FROM cursors WHERE {end} = (SELECT head_id FROM heads WHERE session_key = $1 AND agent_id = $2) "
    "ORDER BY notified <= last_seen LIMIT $3"
)
_WATCHERS = _PAIRS.format(cursors=_HELD.format(end="target_id"))
_WATCHING = _PAIRS.format(cursors=_HELD.format(end="watcher_id"))


async def overview(connection: Database, sessions_max: int, cursors_max: int, events_max: int) -> Overview:
    """What there is as `Store.overview` says."""
    pairs = [Pair.of(tuple(row)) for row in await connection.fetch(_ANY, cursors_max)]
    return Overview(
        await _sessions(connection, sessions_max),
        tuple(pair.cursor for pair in pairs),
        await events(connection, None, events_max),
        await statistics(connection),
    )


async def _sessions(connection: Database, limit: int) -> tuple[Seen, ...]:
    by_key = [seen(tuple(row)) for row in await connection.fetch(_BY_KEY, limit + 1)]
    if len(by_key) <= limit:
        return tuple(by_key)
    return chosen([seen(tuple(row)) for row in await connection.fetch(_NEWEST, limit)], by_key, limit)


async def surroundings(connection: Database, address: Address, limit: int) -> Surroundings | None:
    """One session as `Store.surroundings` says."""
    row = await connection.fetchrow(_ONE, *address)
    if row is None:
        return None
    session, last_actor = seen(tuple(row))
    watchers, more_watchers = cut([tuple(found) for found in await connection.fetch(_WATCHERS, *address, limit + 1)], limit)
    watching, more_watching = cut([tuple(found) for found in await connection.fetch(_WATCHING, *address, limit + 1)], limit)
    return Surroundings(session, last_actor, watchers, more_watchers, watching, more_watching)
