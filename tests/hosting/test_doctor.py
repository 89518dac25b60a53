from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from kizuki.actors.hosting import doctor_catalogs
from kizuki.actors.hosting.doctor import Verdict, sqlite_finding
from kizuki.actors.hosting.doctor_catalogs import VARIABLES
from tests.hosting.conftest import Ended, Kizuki
from tests.hosting.tools import all_tools, append, claude_file, claude_row


def change(database: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def verdicts(ended: Ended) -> dict[str, str]:
    return {row["check"]: row["verdict"] for row in ended.document["checks"]}


def test_healthy(kizuki: Kizuki, database: Path) -> None:
    """On a healthy database every check ends without a problem, and what is in it is counted."""
    ended = kizuki("doctor", "--json", "--db", database)
    assert (ended.code, ended.document["ok"]) == (0, True)
    assert ended.document["counts"] | {"bytes": 0} == {
        "sessions": 4,
        "events": 6,
        "cursors": 2,
        "pending": 1,
        "lastSequence": 6,
        "bytes": 0,
    }
    assert "problem" not in verdicts(ended).values()
    assert "no problem found" in kizuki("doctor", "--db", database).out


@pytest.mark.parametrize(
    ("invariant", "fault"),
    [
        ("last seen <= notified <= material", "UPDATE cursors SET notified = 0 WHERE last_seen > 0"),
        ("more than its target's head says", "UPDATE cursors SET last_seen = 99, notified = 99"),
        ("every cursor belongs to two heads", "UPDATE cursors SET target_id = 999 WHERE target_id = (SELECT max(target_id) FROM cursors)"),
        ("every claim is on an open notice", "UPDATE cursors SET claimed_by = 9, notified = last_seen"),
        ("every session has a head", "INSERT INTO sessions VALUES (99, 'x', 'x', 'x', 'x', NULL, NULL, 1, 1, NULL)"),
        ("every link belongs to a session", "INSERT INTO links VALUES (1, 99, 1, 'c', 'h', 't', 's', '{}', 0, '[]', 1)"),
        ("every event belongs to a head", "UPDATE events SET head_id = 99 WHERE sequence = 6"),
        ("stands at its session's last event", "DELETE FROM events WHERE sequence = 4"),
        ("stands at its session's last event", "DELETE FROM events WHERE sequence = 6"),
        ("no pruned mark is above its head", "UPDATE heads SET pruned_max_sequence = 99"),
        ("knows its latest notifying event", "UPDATE heads SET latest_sequence = 0"),
        ("form one chain", "UPDATE events SET previous = 1 WHERE sequence = 4"),
        ("form one chain", "DELETE FROM events WHERE sequence = 3"),
        ("every milepost is an event", "INSERT INTO mileposts VALUES (1, 3000)"),
        ("no sequence is above the last one given out", "UPDATE sqlite_sequence SET seq = 2 WHERE name = 'events'"),
    ],
)
def test_broken_invariants(kizuki: Kizuki, database: Path, invariant: str, fault: str) -> None:
    """Whatever is broken in the tables is found, named, and ends with exit code 1 and advice."""
    change(database, fault)
    ended = kizuki("doctor", "--json", "--db", database)
    (found,) = (row for row in ended.document["checks"] if row["check"] == "invariants")
    assert (ended.code, found["verdict"]) == (1, "problem")
    assert invariant in found["detail"]
    assert found["advice"]


def test_a_folder(kizuki: Kizuki, tmp_path: Path) -> None:
    """A folder in the place of a database is a problem that says what it is."""
    ended = kizuki("doctor", "--json", "--db", tmp_path)
    (found,) = (row for row in ended.document["checks"] if row["check"] == "database")
    assert (ended.code, found["verdict"]) == (1, "problem")
    assert "this is a folder, not a database" in found["detail"]


def test_pruned(kizuki: Kizuki, database: Path) -> None:
    """Pruning breaks no invariant."""
    assert kizuki("prune", "--rows", 2, "--db", database).code == 0
    assert kizuki("doctor", "--db", database).code == 0


def test_unopened(kizuki: Kizuki, database: Path) -> None:
    """A pending pair whose notice is not open yet is a note: a start opens it."""
    change(database, "UPDATE cursors SET notified = last_seen")
    ended = kizuki("doctor", "--json", "--db", database)
    assert (ended.code, verdicts(ended)["pending"]) == (0, "note")


def test_damaged_file(kizuki: Kizuki, database: Path) -> None:
    """A page that was overwritten is found by SQLite's own check."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'events_dedupe'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with database.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    ended = kizuki("doctor", "--json", "--db", database)
    assert (ended.code, verdicts(ended)["integrity"]) == (1, "problem")


def test_other_schema(kizuki: Kizuki, database: Path) -> None:
    """A database of a newer release is a problem that a newer release solves."""
    change(database, "PRAGMA user_version = 99")
    ended = kizuki("doctor", "--json", "--db", database)
    assert (ended.code, verdicts(ended)["schema"]) == (1, "problem")
    assert "newer release" in kizuki("doctor", "--db", database).out


def test_no_database(kizuki: Kizuki, tmp_path: Path) -> None:
    """Without a database the machine is checked all the same; one that was named and is missing is not found."""
    assert verdicts(kizuki("doctor", "--json"))["database"] == "note"
    assert kizuki("doctor").code == 0
    assert kizuki("doctor", "--db", tmp_path / "none.db").code == 3
    (tmp_path / "text.db").write_text("this is a text and no database" * 50, "utf-8")
    assert kizuki("doctor", "--db", tmp_path / "text.db").code == 1
    assert kizuki("doctor", "--db", "postgresql://host/name").code == 1


@pytest.mark.parametrize(("version", "verdict"), [((3, 34, 9), Verdict.PROBLEM), ((3, 51, 2), Verdict.NOTE), ((3, 51, 3), Verdict.OK)])
def test_sqlite_versions(version: tuple[int, ...], verdict: Verdict) -> None:
    """An SQLite without RETURNING is a problem, one with the WAL-reset fault a note."""
    assert sqlite_finding(version).verdict is verdict


def test_catalogs(kizuki: Kizuki, tmp_path: Path) -> None:
    """For each catalog it says where it looked, what it found, and which rows of the newest transcripts it did not understand."""
    all_tools(tmp_path / "home")
    append(claude_file(tmp_path / "home" / ".claude"), '{"type": "novelty"}\n', '{"type": "novelty"}\n', '{"type": "marvel"}\n')
    ended = kizuki("doctor", "--json")
    found = {row["catalog"]: row for row in ended.document["catalogs"]}
    assert [(name, row["there"], row["threads"], row["scanned"]["humanTurns"]) for name, row in found.items()] == [
        (name, True, 1, 1) for name in ("claude", "codex", "pi", "gemini", "opencode")
    ]
    claude = found["claude"]
    assert (claude["places"], claude["variables"]) == ([str(tmp_path / "home" / ".claude" / "projects")], [])
    assert (claude["scanned"]["rows"], claude["scanned"]["unknownRows"]) == (4, 3)
    assert list(claude["unknownShapes"].values()) == [2, 1]
    assert claude["newest"] == claude_file(tmp_path / "home" / ".claude").stat().st_mtime_ns // 1_000_000
    assert (found["opencode"]["scanned"]["unknownRows"], found["codex"]["scanned"]["unknownRows"]) == (1, 0)
    assert (ended.code, verdicts(ended)["catalog claude"], verdicts(ended)["catalog codex"]) == (0, "note", "ok")
    assert "2 × " in kizuki("doctor").out


@pytest.mark.parametrize("catalog", VARIABLES)
def test_variables(kizuki: Kizuki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catalog: str) -> None:
    """Each of a tool's variables moves the place that is looked at, and is named where it is set."""
    for variable in VARIABLES[catalog]:
        monkeypatch.setenv(variable, str(tmp_path / variable))
        (row,) = (row for row in kizuki("doctor", "--json").document["catalogs"] if row["catalog"] == catalog)
        assert variable in row["variables"]
        assert all(place.startswith(str(tmp_path / variable)) for place in row["places"])
        assert variable in kizuki("doctor").out


def test_a_tools_folder_that_cannot_be_read(kizuki: Kizuki, tmp_path: Path) -> None:
    """A catalog that cannot be read is a note with advice, and the others are looked at all the same."""
    all_tools(tmp_path / "home")
    (tmp_path / "home" / ".local" / "share" / "opencode" / "opencode.db").write_text("this is no database" * 100, "utf-8")
    ended = kizuki("doctor", "--json")
    (row,) = (row for row in ended.document["catalogs"] if row["catalog"] == "opencode")
    assert (ended.code, verdicts(ended)["catalog opencode"], "cannot be read" in row["error"]) == (0, "note", True)
    assert verdicts(ended)["catalog claude"] == "ok"


def test_a_large_transcript_is_passed_over(kizuki: Kizuki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read of transcripts is bounded; a large one keeps no smaller ones from being read."""
    home = tmp_path / "home" / ".claude"
    append(claude_file(home, "small"), claude_row("1"))
    append(claude_file(home, "large"), claude_row("1", "x" * 4_000))
    monkeypatch.setattr(doctor_catalogs, "BYTES_MAX", 2_000)
    (row,) = (row for row in kizuki("doctor", "--json").document["catalogs"] if row["catalog"] == "claude")
    assert (row["threads"], row["scanned"]["transcripts"]) == (2, 1)
