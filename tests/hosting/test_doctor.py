from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from kizuki.actors.hosting.doctor import Verdict, sqlite_finding
from tests.hosting.conftest import Ended, Kizuki


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
