"""The reads for people, each a function over one read transaction: what there is, and what is around one session."""

from __future__ import annotations

import sqlite3

from ..pairs import PAIR_COLUMNS, Pair
from ..records import Address, Overview, Surroundings
from ..views import SEEN_COLUMNS, Seen, chosen, cut, seen
from .reads import events, statistics

_SEEN = (
    f"SELECT {SEEN_COLUMNS} FROM {{sessions}} CROSS JOIN heads h ON h.head_id = s.head_id "
    "LEFT JOIN events e ON e.sequence = h.last_sequence AND e.head_id = h.head_id"
)
_BY_KEY = f"{_SEEN.format(sessions='sessions s')} ORDER BY s.session_key, s.agent_id LIMIT ?"
_NEWEST = _SEEN.format(
    sessions="(SELECT DISTINCT head_id FROM (SELECT head_id FROM events ORDER BY sequence DESC LIMIT ?)) n "
    "CROSS JOIN sessions s ON s.head_id = n.head_id"
)
_ONE = f"{_SEEN.format(sessions='sessions s')} WHERE s.session_key = ? AND s.agent_id = ?"
_PAIRS = (
    f"SELECT {PAIR_COLUMNS} FROM ({{cursors}}) c "
    "CROSS JOIN heads w ON w.head_id = c.watcher_id CROSS JOIN heads t ON t.head_id = c.target_id "
    "ORDER BY w.session_key, t.session_key, t.agent_id"
)
_ANY = _PAIRS.format(
    cursors="SELECT * FROM (SELECT * FROM cursors INDEXED BY cursors_open WHERE notified > last_seen LIMIT :limit) "
    "UNION ALL SELECT * FROM (SELECT * FROM cursors WHERE notified <= last_seen LIMIT :limit) LIMIT :limit"
)
_HELD = (
    "SELECT * FROM cursors WHERE {end} IN (SELECT head_id FROM heads WHERE session_key = ? AND agent_id = ?) "
    "ORDER BY notified <= last_seen LIMIT ?"
)
_WATCHERS = _PAIRS.format(cursors=_HELD.format(end="target_id"))
_WATCHING = _PAIRS.format(cursors=_HELD.format(end="watcher_id"))


def overview(connection: sqlite3.Connection, sessions_max: int, cursors_max: int, events_max: int) -> Overview:
    """What there is as `Store.overview` says."""
    pairs = [Pair.of(row) for row in connection.execute(_ANY, {"limit": cursors_max})]
    return Overview(
        _sessions(connection, sessions_max),
        tuple(pair.cursor for pair in pairs),
        events(connection, None, events_max),
        statistics(connection),
    )


def _sessions(connection: sqlite3.Connection, limit: int) -> tuple[Seen, ...]:
    by_key = [seen(row) for row in connection.execute(_BY_KEY, (limit + 1,))]
    if len(by_key) <= limit:
        return tuple(by_key)
    return chosen([seen(row) for row in connection.execute(_NEWEST, (limit,))], by_key, limit)


def surroundings(connection: sqlite3.Connection, address: Address, limit: int) -> Surroundings | None:
    """One session as `Store.surroundings` says."""
    row = connection.execute(_ONE, address).fetchone()
    if row is None:
        return None
    session, last_actor = seen(row)
    watchers, more_watchers = cut(connection.execute(_WATCHERS, (*address, limit + 1)).fetchall(), limit)
    watching, more_watching = cut(connection.execute(_WATCHING, (*address, limit + 1)).fetchall(), limit)
    return Surroundings(session, last_actor, watchers, more_watchers, watching, more_watching)
