"""A gateway that adopts the sessions of another machine, through `kizuki serve-node` as a process that can be killed."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from kizuki.actors import CatalogUnavailable, Gateway, ManualClock, TickReport, UnknownThread, open_gateway
from kizuki.actors.upstream.installed import installed_catalogs
from kizuki.actors.upstream.remote.catalog import RemoteCatalog
from kizuki.actors.upstream.remote.hosts import across_hosts
from tests.hosting.cast import MAIN
from tests.hosting.nodes import BOX, NOON_MS, TOKEN, NodeProcess, append, moved, node_process, row

OPENCODE = """
CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
INSERT INTO session VALUES ('o-1', NULL, 'about', 1, 1);
"""


@pytest.fixture
def box(tmp_path: Path) -> Path:
    """The home folder of the other machine, with one session."""
    append(tmp_path / "box" / ".claude" / "projects" / "-w" / "s-1.jsonl", row("0"))
    return tmp_path / "box"


@pytest.fixture
def session(box: Path) -> Path:
    return box / ".claude" / "projects" / "-w" / "s-1.jsonl"


@pytest.fixture
def node(box: Path) -> Iterator[NodeProcess]:
    with node_process(box) as node:
        yield node


@pytest_asyncio.fixture
async def gateway(node: NodeProcess, tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway with the catalogs of its own machine, where a session of the same id is, and of the box."""
    append(tmp_path / "home" / ".claude" / "projects" / "-w" / "s-1.jsonl", row("0"))
    own = installed_catalogs({}, tmp_path / "home")
    remote = [RemoteCatalog(name, node.url, TOKEN, BOX) for name in ("claude", "opencode")]
    async with open_gateway(tmp_path / "state.db", clock=ManualClock(NOON_MS), catalogs=across_hosts(own, remote)) as gateway:
        await gateway.open_session(MAIN)
        yield gateway


async def adopted(gateway: Gateway, catalog: str, thread_id: str, host_id: str = BOX) -> str:
    """Adopt a thread, and have the main session watch it; the session's key."""
    key = (await gateway.adopt(catalog, thread_id, host_id=host_id)).key
    await gateway.watch(MAIN, key)
    return key


async def events(gateway: Gateway, key: str) -> list[tuple[str, int]]:
    """The kinds of a session's events, and how many turns each stands for."""
    told = (await gateway.session_status(key, changes_since=0))["stateChanges"]["events"]
    return [(event["kind"], event.get("payload", {}).get("turns", 1)) for event in told]


def counts(report: TickReport) -> tuple[int, int, int, int]:
    return report.checked, report.human_turns, report.missing, report.failed


async def test_adopting_from_another_machine(gateway: Gateway, session: Path, tmp_path: Path) -> None:
    """Rules 7.1 and 7.4: a thread of another host is linked there, and what people do in it becomes one event and one notice."""
    key, own = await adopted(gateway, "claude", "s-1"), await adopted(gateway, "claude", "s-1", "local")
    assert key != own
    append(session, *(row(str(number)) for number in range(1, 201)))
    assert counts(await gateway.check_upstream()) == (2, 200, 0, 0)
    assert counts(await gateway.check_upstream()) == (2, 0, 0, 0)
    assert await events(gateway, key) == [("adopted", 1), ("human_direct_message", 200)]
    assert await events(gateway, own) == [("adopted", 1)]
    assert [notice.target for notice in await gateway.drain(MAIN)] == [key]


async def test_killed_and_restarted(gateway: Gateway, node: NodeProcess, session: Path) -> None:
    """Rule 7.6: a node that is killed harms nobody else and makes nothing missing; when it is there again, nothing was lost."""
    key, own = await adopted(gateway, "claude", "s-1"), await adopted(gateway, "claude", "s-1", "local")
    append(session, row("1"), row("2")[:50])
    assert counts(await gateway.check_upstream()) == (2, 1, 0, 0)
    node.kill()
    append(session, row("2")[50:], row("3"))
    for _ in range(4):
        assert counts(await gateway.check_upstream()) == (2, 0, 0, 1)
    with pytest.raises(CatalogUnavailable, match="ConnectError"):
        await gateway.adopt("claude", "s-1", host_id=BOX, key="agent:main:other")
    node.restart()
    assert counts(await gateway.check_upstream()) == (2, 2, 0, 0)
    assert await events(gateway, key) == [("adopted", 1), ("human_direct_message", 1), ("human_direct_message", 2)]
    assert await events(gateway, own) == [("adopted", 1)]


async def test_gone_from_another_machine(gateway: Gateway, node: NodeProcess, session: Path) -> None:
    """Rule 7.6: what the node has looked for and not found three times in a row is gone; that it could not look is no such time."""
    key = await adopted(gateway, "claude", "s-1")
    moved(session, session.with_suffix(".gone"))
    seen = [await gateway.check_upstream() for _ in range(2)]
    node.kill()
    seen.append(await gateway.check_upstream())
    node.restart()
    seen += [await gateway.check_upstream() for _ in range(2)]
    assert [(report.missing, report.removed) for report in seen] == [(1, 0), (1, 0), (0, 0), (1, 0), (1, 0)]
    assert (await gateway.check_upstream()).removed == 1
    assert (await events(gateway, key))[-1] == ("upstream_missing", 1)
    with pytest.raises(UnknownThread):
        await gateway.adopt("claude", "s-1", host_id=BOX)
    with pytest.raises(UnknownThread):
        await gateway.adopt("claude", "s-1", host_id="elsewhere")


async def test_database_of_another_machine(gateway: Gateway, box: Path) -> None:
    """OpenCode's sessions on another machine are followed as well, and one that was deleted there is missing."""
    path = box / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript(OPENCODE)
        await adopted(gateway, "opencode", "o-1")
        for number in range(1, 121):
            database.execute("INSERT INTO message VALUES (?, 'o-1', ?, ?, ?)", (f"m{number}", NOON_MS, NOON_MS, '{"role": "user"}'))
            text = '{"type": "text", "text": "rename"}'
            database.execute("INSERT INTO part VALUES (?, ?, 'o-1', ?, ?, ?)", (f"p{number}", f"m{number}", NOON_MS, NOON_MS, text))
        assert counts(await gateway.check_upstream()) == (1, 120, 0, 0)
        assert counts(await gateway.check_upstream()) == (1, 0, 0, 0)
        database.execute("DELETE FROM session")
        assert counts(await gateway.check_upstream()) == (1, 0, 1, 0)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_ending(box: Path, how: signal.Signals) -> None:
    """A node says where it serves what, ends when it is told to, and has said nothing of its token."""
    with node_process(box) as node:
        assert node.told == {"type": "serving", "url": node.url, "hostId": BOX, "catalogs": ["claude", "codex", "pi", "gemini", "opencode"]}
        code, said = node.end(how)
    assert code in (-how, 130)
    assert (TOKEN in said, "Traceback" in said) == (False, False)
