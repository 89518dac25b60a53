from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sqlite3
from pathlib import Path

import pytest

from kizuki.actors import open_gateway
from kizuki.actors.hosting.documents import reading
from kizuki.storage import StoreError, open_store
from kizuki.storage.records import Address, SessionDraft
from kizuki.storage.writes import Append, ExpireCursors, Watch
from tests.hosting.cast import CHILD, GLOBAL, MAIN, OTHER
from tests.hosting.conftest import Kizuki, command

NOTICE = f'Session "{CHILD}" was changed by another actor. Reconcile before acting: session_status sessionKey "{CHILD}" changesSince 1.'
READING = (
    ("status", MAIN), ("status", CHILD, "--since", "1"), ("list", "--total"), ("events",), ("events", CHILD), ("watches",),
    ("watches", MAIN), ("notices", MAIN), ("doctor",),
)  # fmt: skip


def test_status_is_the_tools_answer(kizuki: Kizuki, database: Path) -> None:
    """`status --json` is what session_status answers, with the state version and the exact delta."""

    async def ask() -> object:
        async with open_gateway(database) as gateway:
            return await gateway.session_status(CHILD, changes_since=1)

    ended = kizuki("status", CHILD, "--since", 1, "--json", "--db", database)
    assert (ended.code, ended.document) == (0, asyncio.run(ask()))
    assert [event["sequence"] for event in ended.document["stateChanges"]["events"]] == [2, 3, 4]


def test_status_for_people(kizuki: Kizuki, database: Path) -> None:
    """`status` shows the facts, the delta, and that activity is not known from a file."""
    ended = kizuki("status", CHILD, "--since", 1, "--db", database)
    assert ended.code == 0
    for shown in (CHILD, "state version  4", "cannot tell which runs are active", "human message via telegram", "human ada", "turns 3"):
        assert shown in ended.out


def test_truncated_status(kizuki: Kizuki, database: Path) -> None:
    """Where more follows than the limit, it says how to go on."""
    assert "more follow: --since 2" in kizuki("status", CHILD, "--since", 1, "--limit", 1, "--db", database).out


def test_history_gap(kizuki: Kizuki, database: Path) -> None:
    """Exit code 4, with the result printed, where --since is below what was pruned; at the pruned mark it is no gap."""
    assert kizuki("prune", "--rows", 3, "--db", database).code == 0
    gap = kizuki("status", CHILD, "--since", 2, "--json", "--db", database)
    assert (gap.code, gap.document["stateChanges"]["historyGap"]) == (4, True)
    shown = kizuki("status", CHILD, "--since", 2, "--db", database).out
    assert "Changes after version 2 up to 3 are no longer kept; read the whole state from the host (sessions_history)." in shown
    assert "goal updated" in shown
    assert kizuki("status", CHILD, "--since", 3, "--db", database).code == 0


def test_history_gap_with_nothing_left(kizuki: Kizuki, database: Path) -> None:
    """Where nothing of what changed is kept, people are told what is gone, and not that there were no changes."""
    assert kizuki("prune", "--rows", 1, "--db", database).code == 0
    gap = kizuki("status", CHILD, "--since", 1, "--db", database)
    assert (gap.code, "no changes" in gap.out) == (4, False)
    assert "Changes after version 1 up to 4 are no longer kept; read the whole state from the host" in gap.out


def test_list(kizuki: Kizuki, database: Path) -> None:
    """`list` filters by agent, kind and parent, counts, and goes on behind a key."""

    def keys(*arguments: object) -> list[str]:
        return [row["sessionKey"] for row in kizuki("list", "--json", "--db", database, *arguments).document["sessions"]]

    assert keys() == [MAIN, CHILD, OTHER, GLOBAL]
    assert keys("--agent", "ops") == [GLOBAL]
    assert keys("--kind", "subagent") == [CHILD, OTHER]
    assert keys("--parent", MAIN) == [CHILD, OTHER]
    page = kizuki("list", "--json", "--limit", 3, "--total", "--db", database).document
    assert (page["hasMore"], page["total"]) == (True, 4)
    assert keys("--after", page["nextAfter"]) == [GLOBAL]
    assert "the manager" in kizuki("list", "--db", database).out


def test_events(kizuki: Kizuki, database: Path) -> None:
    """`events` shows the newest of all sessions or of one, ascending, each with its session, in the reader's language."""
    rows = kizuki("events", "--json", "--limit", 2, "--db", database).document["events"]
    assert [(row["sequence"], row["sessionKey"], row["agentId"]) for row in rows] == [(5, OTHER, "main"), (6, GLOBAL, "ops")]
    one = kizuki("events", GLOBAL, "--agent", "ops", "--json", "--language", "ja", "--db", database).document["events"]
    assert [row["summary"] for row in one] == ["ゴールが作成されました"]
    assert "child session spawned" in kizuki("events", CHILD, "--db", database).out


def test_watches(kizuki: Kizuki, database: Path) -> None:
    """`watches` shows each cursor with its three positions."""
    rows = kizuki("watches", MAIN, "--json", "--db", database).document["watches"]
    assert rows[0] == {
        "watcher": MAIN, "target": CHILD, "targetAgentId": "main", "lastSeen": 1, "notified": 2, "material": 4, "pending": True,
    }  # fmt: skip
    assert [row["pending"] for row in rows] == [True, False]
    assert kizuki("watches", "--json", "--db", database).document["watches"] == rows
    assert kizuki("watches", CHILD, "--db", database).out == "no watches\n"


def test_notices(kizuki: Kizuki, database: Path) -> None:
    """`notices` shows the exact text of what is pending, and taking nothing it shows it again."""
    for _ in range(2):
        assert kizuki("notices", MAIN, "--db", database).out == NOTICE + "\n"
    (row,) = kizuki("notices", MAIN, "--json", "--db", database).document["notices"]
    assert (row["text"], row["changesSince"], row["notified"], row["opened"]) == (NOTICE, 1, 2, True)
    assert "が変更されました" in kizuki("notices", MAIN, "--language", "ja", "--db", database).out


def test_notices_not_opened_yet(kizuki: Kizuki, tmp_path: Path) -> None:
    """A pair whose opening is still owed is shown with the text that its notice will have."""
    path = tmp_path / "owed.db"
    watchers = [f"agent:main:w{number:03}" for number in range(300)]

    async def make() -> bool:
        async with open_store(path) as store:
            target, draft = Address(CHILD, "main"), SessionDraft("subagent")
            watches = [Watch(Address(key, "main"), SessionDraft("other"), target, draft, 1) for key in watchers]
            await store.commit(watches, busy_timeout_s=1)
            change = Append(target, draft, "goal_changed", notifies=True, actor_type="human", actor_id=None, run_id=None,
                            occurred_at_ms=1, recorded_at_ms=1, summary="goal updated")  # fmt: skip
            return (await store.commit([change], busy_timeout_s=1)).owed

    assert asyncio.run(make())
    rows = [kizuki("notices", key, "--json", "--db", path).document["notices"][0] for key in (watchers[0], watchers[-1])]
    assert sorted(row["opened"] for row in rows) == [False, True]
    assert {row["text"] for row in rows} == {NOTICE.replace("changesSince 1", "changesSince 0")}


def test_reading_changes_nothing(kizuki: Kizuki, database: Path) -> None:
    """Rule 8.4: no reading command changes a byte of the database or of its log, or takes, opens or prunes anything."""
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("UPDATE events SET recorded_at = 1, occurred_at = 1")  # long past the retention time
        connection.execute("UPDATE cursors SET renewed_at = 1")
        connection.commit()
        before = _bytes(database)
        for arguments in READING:
            assert kizuki(*arguments, "--json", "--db", database).code == 0
        assert _bytes(database) == before


def _bytes(database: Path) -> list[str]:
    files = (database, database.with_name(database.name + "-wal"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


async def test_reading_beside_a_gateway(database: Path) -> None:
    """Rule 8.4: beside a running gateway a reading command sees what is committed, and the gateway's notices stay its own."""
    async with open_gateway(database) as gateway:
        await gateway.human_message(CHILD, channel="slack")
        process = await asyncio.create_subprocess_exec(*command("notices", MAIN, "--db", database), stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        assert out.decode() == NOTICE + "\n"
        assert [notice.text for notice in await gateway.pending(MAIN)] == [NOTICE]


@pytest.mark.parametrize("arguments", READING[:-1])
def test_missing_database(kizuki: Kizuki, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A database that is not there is not found, is not created, and nothing is on standard output."""
    ended = kizuki(*arguments, "--db", tmp_path / "none.db")
    assert (ended.code, ended.out) == (3, "")
    assert "there is no such database" in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["status", "events", "watches", "notices"])
def test_unknown_session(kizuki: Kizuki, database: Path, name: str) -> None:
    """A key under which there is no session is not found."""
    ended = kizuki(name, "agent:main:nobody", "--db", database)
    assert (ended.code, ended.out) == (3, "")
    assert "no session 'agent:main:nobody'" in ended.err


@pytest.mark.parametrize(
    "arguments",
    [("status", "agent:x"), ("status", GLOBAL), ("status", MAIN, "--since", "x"), ("status", MAIN, "--since", -1), ("list", "--limit", 0),
     ("list", "--after", "a b c"), ("events", "--agent", "ops"), ("status",), ("nothing",), ("list", "--language", "fr")],
)  # fmt: skip
def test_usage(kizuki: Kizuki, database: Path, arguments: tuple[object, ...]) -> None:
    """What was asked wrongly ends with exit code 2, and words on standard error alone."""
    ended = kizuki(*arguments, "--db", database)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err


def test_other_files(kizuki: Kizuki, tmp_path: Path) -> None:
    """A file that is no database, somebody else's database and a folder are errors that say so."""
    (tmp_path / "text.db").write_text("no database at all, but a text that is long enough" * 20, "utf-8")
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    for name, why in (("text.db", "not a database"), ("other.db", "not one of kizuki's"), (".", "a folder")):
        ended = kizuki("list", "--db", tmp_path / name)
        assert (ended.code, why in ended.err) == (1, True)


def test_untrusted_keys(kizuki: Kizuki, tmp_path: Path) -> None:
    """A key or label full of markup is shown as it is, and one with control characters, put there by someone else, escaped."""

    async def make() -> None:
        async with open_gateway(tmp_path / "u.db") as gateway:
            await gateway.open_session("agent:main:[bold]x[/bold]", label="[link=http://x]y[/link]")

    asyncio.run(make())
    with contextlib.closing(sqlite3.connect(tmp_path / "u.db")) as connection:
        connection.execute("UPDATE sessions SET label = label || ?", ("\x1b]0;title\x07",))
        connection.commit()
    ended = kizuki("list", "--db", tmp_path / "u.db")
    assert "agent:main:[bold]x[/bold]" in ended.out
    assert "[link=http://x]y[/link]\\x1b]0;title\\x07" in ended.out


async def test_the_store_cannot_write(database: Path) -> None:
    """Rule 8.4: the store that the reading commands get refuses every write."""
    async with reading(str(database)) as store:
        with pytest.raises(StoreError, match="read-only"):
            await store.commit([ExpireCursors(before_ms=1, limit=1)], busy_timeout_s=1)
