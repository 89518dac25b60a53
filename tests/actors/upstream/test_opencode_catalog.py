"""The catalog of OpenCode, on real databases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kizuki.actors.upstream.catalog import Activity, Failed, Happening, Missing, Nothing, Outcome, Probe, ThreadNotFound
from kizuki.actors.upstream.opencode import catalog as opencode_catalog
from kizuki.actors.upstream.opencode.catalog import OVERLAP_MS, OpenCodeCatalog, database_path
from kizuki.actors.upstream.opencode.database import opened
from kizuki.storage.records import Address

NOON_MS = 1_793_620_800_000
SCHEMA = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, time_created INTEGER, time_updated INTEGER, goal TEXT);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT, type TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
"""


class Tool:
    """OpenCode, as far as its database goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.executescript(SCHEMA)
        self._number = 0
        self.session("o1")

    def close(self) -> None:
        self._connection.close()

    def execute(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)

    def session(self, identity: str, parent: str | None = None) -> None:
        self.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, NULL)", identity, parent, f"about {identity}", NOON_MS, NOON_MS)

    def message(self, *parts: dict[str, object], at_ms: int = NOON_MS, role: str = "user", session: str = "o1") -> None:
        self._number += 1
        identity = f"m{self._number}"
        self.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", identity, session, at_ms, at_ms, json.dumps({"role": role}))
        for number, data in enumerate(parts):
            values = f"p{self._number}-{number}", identity, session, at_ms, at_ms, json.dumps(data)
            self.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", *values)

    def message_v2(self, kind: str, text: str, at_ms: int = NOON_MS) -> None:
        self._number += 1
        values = f"s{self._number}", "o1", kind, at_ms, at_ms, json.dumps({"text": text})
        self.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", *values)


def text(content: str = "rename", **fields: object) -> dict[str, object]:
    return {"type": "text", "text": content, **fields}


@pytest.fixture
def tool(tmp_path: Path) -> Iterator[Tool]:
    with closing(Tool(tmp_path / "opencode.db")) as tool:
        yield tool


@pytest.fixture
def catalog(tool: Tool) -> OpenCodeCatalog:
    return OpenCodeCatalog(tool.path)


async def adopted(catalog: OpenCodeCatalog, thread_id: str = "o1") -> Probe:
    start = await catalog.link(thread_id, "local")
    marker = json.loads(json.dumps(dict(start.marker)))
    return Probe(Address("agent:main:a", "main"), thread_id, "local", start.source, marker, adopted_at_ms=0)


async def checked(catalog: OpenCodeCatalog, probe: Probe) -> Outcome:
    (outcome,) = await catalog.check([probe])
    return outcome


async def active(catalog: OpenCodeCatalog, probe: Probe) -> tuple[Activity, Probe]:
    outcome = await checked(catalog, probe)
    assert isinstance(outcome, Activity), outcome
    return outcome, replace(probe, marker=json.loads(json.dumps(dict(outcome.marker))))


async def test_turns_are_found_once(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """Rules 7.1 and 7.4: what was there is passed over, what comes counts once the marker is stored, and again until it is."""
    tool.message(text("before"))
    probe = await adopted(catalog)
    assert await checked(catalog, probe) == Nothing()
    tool.message(text(), text("and more"), at_ms=NOON_MS + 7)
    tool.message(text("answer"), at_ms=NOON_MS + 8, role="assistant")
    tool.message(text("go on", synthetic=True), at_ms=NOON_MS + 9)
    outcome, stored = await active(catalog, probe)
    assert (outcome.human_turns, outcome.occurred_at_ms, outcome.more) == (1, NOON_MS + 7, False)
    assert (await active(catalog, probe))[0] == outcome
    assert await checked(catalog, stored) == Nothing()


async def test_rows_out_of_order(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """Two processes write rows a little out of the order of their times: those are found, too, and none twice."""
    probe = await adopted(catalog)
    tool.message(text(), at_ms=NOON_MS)
    _, probe = await active(catalog, probe)
    tool.message(text("rename"), at_ms=NOON_MS - OVERLAP_MS)
    outcome, probe = await active(catalog, probe)
    assert outcome.human_turns == 1
    tool.message(text(), at_ms=NOON_MS + 10 * OVERLAP_MS)
    outcome, probe = await active(catalog, probe)
    assert outcome.human_turns == 1
    assert await checked(catalog, probe) == Nothing()


async def test_parts_that_come_later(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """A message whose parts are not written yet is not lost; a second text of one that counted is no second turn."""
    probe = await adopted(catalog)
    tool.message()
    assert await checked(catalog, probe) == Nothing()
    add = "INSERT INTO part VALUES (?, 'm1', 'o1', ?, ?, ?)"
    tool.execute(add, "p1", NOON_MS, NOON_MS, json.dumps(text()))
    outcome, probe = await active(catalog, probe)
    assert outcome.human_turns == 1
    tool.execute(add, "p2", NOON_MS + 1, NOON_MS + 1, json.dumps(text("and more")))
    assert isinstance(await checked(catalog, probe), Nothing)


async def test_version_2(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """Messages of version 2 count in sessions that have none of version 1, in which they would be there twice."""
    probe = await adopted(catalog)
    tool.message_v2("user", "rename")
    tool.message_v2("synthetic", "go on")
    tool.message_v2("assistant", "done")
    outcome, probe = await active(catalog, probe)
    assert outcome.human_turns == 1
    tool.message(text("old"), at_ms=NOON_MS + 1)
    tool.message_v2("user", "old", at_ms=NOON_MS + 1)
    assert (await active(catalog, probe))[0].human_turns == 1


async def test_happenings(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """Compactions, children and goals are told, each once."""
    tool.session("o0", parent="o1")
    probe = await adopted(catalog)
    tool.message({"type": "compaction", "auto": True})
    tool.session("o2", parent="o1")
    tool.execute("""UPDATE session SET goal = '{"objective":"ship","tokens":1}', time_updated = 7 WHERE id = 'o1'""")
    outcome, probe = await active(catalog, probe)
    spawned, created, compacted = outcome.happenings
    assert (spawned, compacted) == (Happening("child_spawned", "o2", None), Happening("compacted", "p1-0", NOON_MS))
    assert (created.kind, created.detail, outcome.human_turns) == ("goal_changed", "created", 0)
    tool.execute("""UPDATE session SET goal = '{"objective":"ship","tokens":2}'""")
    assert await checked(catalog, probe) == Nothing()
    for goal, change in ('{"objective":"ship it"}', "updated"), (None, "cleared"), ("text", "created"):
        tool.execute("UPDATE session SET goal = ?", goal)
        outcome, probe = await active(catalog, probe)
        assert [happening.detail for happening in outcome.happenings] == [change]


async def test_sessions_of_agents(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """In a child's session an agent wrote the prompts."""
    tool.session("o2", parent="o1")
    probe = await adopted(catalog, "o2")
    tool.message(text(), session="o2")
    assert isinstance(await checked(catalog, probe), Nothing)


async def test_own_echo(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """Rule 7.5: the host's own texts count for nobody."""
    probe = await adopted(catalog)
    tool.message(text("mine"))
    outcome, _ = await active(catalog, replace(probe, own_texts=(("t1", " mine "),)))
    assert (outcome.human_turns, outcome.accounted_ids) == (0, ("t1",))


async def test_missing(catalog: OpenCodeCatalog, tool: Tool, tmp_path: Path) -> None:
    """Rule 7.6: a session or a database that is gone is missing; where the folder is gone, nothing is known."""
    probe = await adopted(catalog)
    tool.execute("DELETE FROM session")
    assert await checked(catalog, probe) == Missing()
    assert await checked(catalog, replace(probe, source=str(tmp_path / "other.db"))) == Missing()
    assert isinstance(await checked(catalog, replace(probe, source=str(tmp_path / "no" / "opencode.db"))), Failed)
    with pytest.raises(ThreadNotFound):
        await catalog.link("o1", "local")
    with pytest.raises(ThreadNotFound):
        await OpenCodeCatalog(tmp_path / "other.db").link("o1", "local")
    with pytest.raises(ThreadNotFound):
        await catalog.link("o1", "elsewhere")


async def test_replaced_database(catalog: OpenCodeCatalog, tool: Tool, tmp_path: Path) -> None:
    """Rule 7.7: another database in the place is told, and followed anew from its end."""
    with closing(Tool(tmp_path / "new.db")) as new:
        probe = await adopted(catalog)
        new.message(text())
        probe = replace(probe, source=str(new.path))
        outcome, probe = await active(catalog, probe)
        assert (outcome.restarted, outcome.human_turns) == ("replaced", 0)
        new.message(text(), at_ms=NOON_MS + 1)
        assert (await active(catalog, probe))[0].human_turns == 1


async def test_failures_are_confined(catalog: OpenCodeCatalog, tool: Tool, tmp_path: Path) -> None:
    """A wrong marker, a file that is no database and one without the tables fail alone."""
    probe = await adopted(catalog)
    tool.message(text())
    tables, nonsense = tmp_path / "tables.db", tmp_path / "nonsense.db"
    put(tables, b"")
    put(nonsense, b"x" * 4096)
    wrong = [replace(probe, marker=marker) for marker in ({}, {**probe.marker, "seen": [1]}, {**probe.marker, "inode": "1"})]
    others = [replace(probe, source=str(path)) for path in (tables, nonsense)]
    outcomes = await catalog.check([*wrong, *others, probe])
    assert [type(outcome) for outcome in outcomes] == [Failed] * 5 + [Activity]


def put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_broken_and_large_rows(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """A row that is no JSON hides no other; of a very large one enough is read to tell what it is."""
    probe = await adopted(catalog)
    tool.message(text())
    tool.execute("UPDATE part SET data = '{\"type\":' || data")
    tool.message(text("x" * 2_000_000), at_ms=NOON_MS + 1)
    tool.message(text("x" * 2_000_000, synthetic=True), at_ms=NOON_MS + 2)
    tool.message({"type": "file", "url": "data:" + "x" * 2_000_000}, at_ms=NOON_MS + 3)
    tool.execute("INSERT INTO message VALUES ('m9', 'o1', ?, ?, '{')", NOON_MS, NOON_MS)
    tool.execute("INSERT INTO part VALUES ('p9', 'm9', 'o1', ?, ?, ?)", NOON_MS, NOON_MS, json.dumps(text()))
    assert (await active(catalog, probe))[0].human_turns == 1


async def test_bounded_checks(catalog: OpenCodeCatalog, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog takes several checks of a bounded number of rows, and nothing is lost or counted twice."""
    monkeypatch.setattr(opencode_catalog, "ENTRIES_MAX", 10)
    probe, turns, more = await adopted(catalog), 0, True
    for n in range(35):
        tool.message(text(), at_ms=NOON_MS + n * OVERLAP_MS // 4)
    while more:
        outcome, probe = await active(catalog, probe)
        turns, more = turns + outcome.human_turns, outcome.more
        assert outcome.human_turns <= 10
    assert turns == 35


async def test_discovery(catalog: OpenCodeCatalog, tool: Tool) -> None:
    """All sessions are listed, the latest first, with their titles and parents."""
    tool.session("o2", parent="o1")
    tool.execute("UPDATE session SET time_updated = time_updated + 1 WHERE id = 'o2'")
    first, second = await catalog.list()
    assert (first.thread_id, first.parent_thread_id, first.title, first.updated_at_ms) == ("o2", "o1", "about o2", NOON_MS + 1)
    assert (second.thread_id, second.source) == ("o1", str(tool.path))


def test_nothing_is_written(tool: Tool) -> None:
    """The database is opened read-only."""
    with opened(tool.path) as database, pytest.raises(sqlite3.OperationalError, match="readonly"):
        database._connection.execute("DELETE FROM session")


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({}, "home/.local/share/opencode/opencode.db"),
        ({"XDG_DATA_HOME": "/d"}, "/d/opencode/opencode.db"),
        ({"XDG_DATA_HOME": "/d", "OPENCODE_DB": "mine.db"}, "/d/opencode/mine.db"),
        ({"OPENCODE_DB": "/e/mine.db"}, "/e/mine.db"),
    ],
)
def test_environment(environment: dict[str, str], path: str) -> None:
    """The tool's own variables say where its database is."""
    assert database_path(environment, Path("home")) == Path(path)
