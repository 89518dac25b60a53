"""The catalog of OpenCode, which keeps all its sessions in one SQLite database.

Rows get their place by the time of their creation, which two processes can write out of order. So a check looks a little further
back than its marker, which holds the ids of what was seen there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import blake2b
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Self

from ...identifiers import is_one_line
from ..catalog import Activity, Discovered, Failed, Happening, JsonObject, Missing, Nothing, Outcome, Probe, Start, ThreadNotFound
from ..files.catalog import LOCAL_HOST, CatalogBusy
from ..files.marker import CHILDREN_MAX, short_name
from ..files.threads import in_thread
from ..formats import opencode
from ..formats.findings import findings
from ..formats.formats import Environment
from ..formats.rows import Classified
from ..own_host import check_own
from .database import Database, Entry, SessionRow, opened

OVERLAP_MS = 5_000
ENTRIES_MAX = 5_000
"""How many rows of one session a check reads."""
SEEN_MAX = 2_000
_GOAL_FIELDS = ("objective", "text", "title", "description", "status")


@dataclass(frozen=True, slots=True)
class SessionMarker:
    """How far a session was read."""

    inode: int
    """Of the database."""
    created_at_ms: int
    """Of the last entry."""
    seen: tuple[str, ...]
    """Short names of the entries that were created within `OVERLAP_MS` before that."""
    children: tuple[str, ...]
    """Short names of the sessions whose parent it is."""
    goal: str
    """A digest of the goal; empty where there is none."""
    generation: int = 1

    def to_json(self) -> JsonObject:
        """The marker as a JSON object."""
        return {**asdict(self), "seen": list(self.seen), "children": list(self.children)}

    @classmethod
    def from_json(cls, value: JsonObject) -> Self:
        """The marker that `to_json` gave. Raises `ValueError` for anything else."""
        numbers, texts = ("inode", "created_at_ms", "generation"), ("seen", "children")
        plain = all(type(value.get(name)) is int for name in numbers) and isinstance(value.get("goal"), str)
        if value.keys() != {field.name for field in fields(cls)} or not plain or not all(_is_texts(value[name]) for name in texts):
            raise ValueError("not a marker of a session")
        return cls(**{name: tuple(part) if isinstance(part, list) else part for name, part in value.items()})  # type: ignore[arg-type]


class OpenCodeCatalog:
    """A `Catalog` of the sessions in a database. The source of a thread is the database's path."""

    name = opencode.CATALOG

    def __init__(self, database: Path, *, host_id: str = LOCAL_HOST) -> None:
        self.database = database
        self._host_id = host_id
        self._checking = threading.Lock()

    async def list(self) -> Sequence[Discovered]:
        """Every session, the latest first; none where there is no database. Raises `OSError`, `sqlite3.Error`."""
        return await in_thread(lambda _: self._list())

    async def link(self, thread_id: str, host_id: str) -> Start:
        """Behind the last row of a session. Raises `ThreadNotFound`, `OSError`, `sqlite3.Error`."""
        if host_id != self._host_id:
            raise ThreadNotFound(f"{self.name}: there is no host {host_id!r} but {self._host_id!r}")
        return await in_thread(lambda _: self._link(thread_id))

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        """One outcome for each probe. Raises `CatalogBusy`."""
        return await check_own(self._host_id, probes, lambda own: in_thread(lambda abandoned: self._check(tuple(own), abandoned)))

    def _list(self) -> Sequence[Discovered]:
        try:
            with opened(self.database) as database:
                return [self._discovered(session) for session in database.sessions()]
        except FileNotFoundError:
            return ()

    def _discovered(self, session: SessionRow) -> Discovered:
        return Discovered(session.id, self._host_id, str(self.database), session.updated_at_ms, session.title, session.parent_id)

    def _link(self, thread_id: str) -> Start:
        try:
            with opened(self.database) as database:
                session = database.session(thread_id)
                if session is not None:
                    return Start(str(self.database), _at_the_end(database, session, _inode(self.database)).to_json())
        except FileNotFoundError:
            pass
        raise ThreadNotFound(f"{self.name}: there is no session {thread_id!r} in {self.database}")

    def _check(self, probes: tuple[Probe, ...], abandoned: threading.Event) -> Sequence[Outcome]:
        if not self._checking.acquire(blocking=False):
            raise CatalogBusy(f"{self.name}: a check that was given up has not ended")
        try:
            return self._check_all(probes, abandoned)
        finally:
            self._checking.release()

    def _check_all(self, probes: tuple[Probe, ...], abandoned: threading.Event) -> Sequence[Outcome]:
        by_source: dict[str, list[int]] = {}
        for index, probe in enumerate(probes):
            by_source.setdefault(probe.source, []).append(index)
        outcomes: list[Outcome] = [Nothing()] * len(probes)
        for source, indices in by_source.items():
            found = _in_database(Path(source), [probes[index] for index in indices], abandoned.is_set)
            for index, outcome in zip(indices, found, strict=True):
                outcomes[index] = outcome
        return outcomes


def database_path(environment: Environment, home: Path) -> Path:
    """Where OpenCode keeps its database."""
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    return data / (environment.get("OPENCODE_DB") or "opencode.db")


def _in_database(path: Path, probes: Sequence[Probe], is_abandoned: Callable[[], bool]) -> Sequence[Outcome]:
    try:
        with opened(path) as database:
            return [Nothing() if is_abandoned() else _outcome(database, probe, path) for probe in probes]
    except FileNotFoundError:
        gone: Outcome = Missing() if path.parent.is_dir() else Failed(f"there is no folder that {path} could be in")
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one database concerns no other
        gone = Failed(f"{type(error).__name__}: {error}")
    return [gone] * len(probes)


def _outcome(database: Database, probe: Probe, path: Path) -> Outcome:
    try:
        return _check_one(database, probe, path)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one session concerns no other
        return Failed(f"{type(error).__name__}: {error}")


def _check_one(database: Database, probe: Probe, path: Path) -> Outcome:
    marker, inode = SessionMarker.from_json(probe.marker), _inode(path)
    session = database.session(probe.thread_id)
    if session is None:
        return Missing()
    if inode != marker.inode:
        anew = replace(_at_the_end(database, session, inode), generation=marker.generation + 1)
        return Activity(anew.to_json(), 0, None, restarted="replaced")
    limit = ENTRIES_MAX + len(marker.seen)
    entries = database.entries(session.id, marker.created_at_ms - OVERLAP_MS, limit)
    children = database.children(session.id)
    after = _after(marker, entries, children, _goal_digest(session.goal))
    happenings = (*_spawned(marker, children), *_goal_changed(marker, after, session))
    found = findings(_verdicts(entries, marker, probe, session), probe, None)
    more = len(entries) == limit
    if not found and not happenings and not more:
        return Nothing(after.to_json()) if after != marker else Nothing()
    told = (*happenings, *found.happenings)
    return Activity(after.to_json(), found.human_turns, found.occurred_at_ms, found.accounted_ids, told, more=more)


def _verdicts(entries: Sequence[Entry], marker: SessionMarker, probe: Probe, session: SessionRow) -> list[tuple[str, Classified]]:
    """What was seen is read as well, for it tells which messages have counted already."""
    reader = opencode.SessionReader(adopted_at_ms=probe.adopted_at_ms, child=session.parent_id is not None)
    read = [(entry.id, verdict) for entry in entries for row in entry.rows for verdict in reader.feed(row)]
    known = frozenset(marker.seen)
    return [(identity, verdict) for identity, verdict in read if short_name(identity) not in known]


def _at_the_end(database: Database, session: SessionRow, inode: int) -> SessionMarker:
    begun = SessionMarker(inode, 0, (), (), "")
    return _after(begun, database.entries(session.id, 0, -1), database.children(session.id), _goal_digest(session.goal))


def _after(marker: SessionMarker, entries: Sequence[Entry], children: Sequence[str], goal: str) -> SessionMarker:
    latest = max([marker.created_at_ms, *(entry.created_at_ms for entry in entries)])
    seen = tuple(short_name(entry.id) for entry in entries if entry.created_at_ms >= latest - OVERLAP_MS)
    there = tuple(short_name(child) for child in children)
    return replace(marker, created_at_ms=latest, seen=seen[-SEEN_MAX:], children=there[-CHILDREN_MAX:], goal=goal)


def _spawned(marker: SessionMarker, children: Sequence[str]) -> list[Happening]:
    known = frozenset(marker.children)
    new = (child for child in children[-CHILDREN_MAX:] if short_name(child) not in known)
    return [Happening("child_spawned", child, None) for child in new if is_one_line(child)]


def _goal_changed(marker: SessionMarker, after: SessionMarker, session: SessionRow) -> list[Happening]:
    if marker.goal == after.goal:
        return []
    change = "cleared" if not after.goal else "updated" if marker.goal else "created"
    return [Happening("goal_changed", f"{session.updated_at_ms}:{after.goal}", None, change)]


def _goal_digest(goal: str | None) -> str:
    """What the goal is, without what is counted along with it."""
    if not goal or goal == "null":
        return ""
    try:
        decoded = loads(goal)
    except (JSONDecodeError, RecursionError):
        decoded = goal
    what = [decoded.get(name) for name in _GOAL_FIELDS] if isinstance(decoded, dict) else decoded
    return blake2b(dumps(what).encode(), digest_size=8).hexdigest()


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def _inode(path: Path) -> int:
    return path.stat().st_ino
