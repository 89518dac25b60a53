"""Several hosts under one catalog's name: each thread is its host's, and no host harms another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kizuki.actors.errors import InvalidArgument
from kizuki.actors.hosting.node.app import node_app
from kizuki.actors.upstream.catalog import Activity, Catalog, Discovered, Failed, Nothing, Outcome, Probe, Start, ThreadNotFound
from kizuki.actors.upstream.files.catalog import FileCatalog
from kizuki.actors.upstream.formats.formats import CLAUDE, CODEX
from kizuki.actors.upstream.opencode.catalog import OpenCodeCatalog
from kizuki.actors.upstream.remote.catalog import RemoteCatalog
from kizuki.actors.upstream.remote.hosts import HostsCatalog, across_hosts
from kizuki.storage.records import Address
from tests.hosting.nodes import BOX, NOON_MS, TOKEN, append, row, serving


class Troubled:
    """A catalog of other people's that never answers, raises, or answers too little."""

    name = "claude"

    def __init__(self, trouble: str) -> None:
        self._trouble = trouble

    async def list(self) -> Sequence[Discovered]:
        await self._go_wrong()
        return ()

    async def link(self, thread_id: str, host_id: str) -> Start:
        raise NotImplementedError

    async def check(self, probes: Sequence[Probe]) -> Sequence[Outcome]:
        await self._go_wrong()
        return ()

    async def _go_wrong(self) -> None:
        match self._trouble:
            case "hangs":
                await asyncio.Event().wait()
            case "raises":
                raise ZeroDivisionError


@pytest.fixture
def here(tmp_path: Path) -> FileCatalog:
    append(tmp_path / "here" / "-w" / "s-1.jsonl", row("0"))
    return FileCatalog(CLAUDE, [tmp_path / "here"])


@pytest.fixture
def there(tmp_path: Path) -> FileCatalog:
    append(tmp_path / "there" / "-w" / "s-1.jsonl", row("0"))
    return FileCatalog(CLAUDE, [tmp_path / "there"], host_id="there")


async def adopted(catalog: Catalog, host_id: str, thread_id: str = "s-1") -> Probe:
    start = await catalog.link(thread_id, host_id)
    return Probe(Address(f"agent:main:{host_id}", "main"), thread_id, host_id, start.source, start.marker, adopted_at_ms=NOON_MS)


async def test_each_thread_is_its_hosts(here: FileCatalog, there: FileCatalog, tmp_path: Path) -> None:
    """Threads of one id on two hosts are two: each is begun with, and checked, where it is."""
    hosts = HostsCatalog("claude", {"local": here, "there": there})
    probes = [await adopted(hosts, host_id) for host_id in ("there", "local", "there")]
    assert [Path(probe.source).parts[-3] for probe in probes] == ["there", "here", "there"]
    append(tmp_path / "here" / "-w" / "s-1.jsonl", row("1"))
    assert [type(outcome) for outcome in await hosts.check(probes)] == [Nothing, Activity, Nothing]
    listed = await hosts.list()
    assert {(thread.host_id, thread.thread_id) for thread in listed} == {("local", "s-1"), ("there", "s-1")}
    assert [thread.updated_at_ms for thread in listed] == sorted((thread.updated_at_ms for thread in listed), reverse=True)


async def test_hosts_that_are_not_known(here: FileCatalog, there: FileCatalog) -> None:
    """Rule 7.6: on a host that is not known nothing can be adopted, and nothing is missing."""
    probe = await adopted(there, "there")
    hosts = HostsCatalog("claude", {"local": here})
    with pytest.raises(ThreadNotFound, match=r"'there'.*local"):
        await hosts.link("s-1", "there")
    assert [type(outcome) for outcome in await hosts.check([probe, await adopted(hosts, "local")])] == [Failed, Nothing]


@pytest.mark.parametrize(("trouble", "reason"), [("hangs", "within 0.2 s"), ("raises", "ZeroDivisionError"), ("shortens", "0 outcomes")])
async def test_one_host_harms_no_other(here: FileCatalog, trouble: str, reason: str) -> None:
    """Rule 7.2: a host that hangs, fails or answers garbage is the failure of its own probes; the others are checked meanwhile."""
    hosts = HostsCatalog("claude", {"troubled": Troubled(trouble), "local": here}, timeout_s=0.2)
    probe = await adopted(hosts, "local")
    bad, good, worse = await hosts.check(
        [Probe(probe.address, "t", "troubled", "/t", {}, NOON_MS), probe, Probe(probe.address, "u", "troubled", "/u", {}, NOON_MS)]
    )
    assert good == Nothing()
    assert isinstance(bad, Failed)
    assert reason in bad.reason
    assert worse == bad
    with capture_logs() as logs:
        assert [thread.host_id for thread in await hosts.list()] == ["local"]
    assert [line["host"] for line in logs] == ([] if trouble == "shortens" else ["troubled"])


async def test_the_only_host(here: FileCatalog) -> None:
    """Where there is but one host, what it raises is told, instead of an empty list."""
    with pytest.raises(ZeroDivisionError):
        await HostsCatalog("claude", {"local": Troubled("raises")}).list()


async def test_across_hosts(here: FileCatalog, tmp_path: Path) -> None:
    """Catalogs of one name become one, with this machine's as the host `local`, and each host once."""
    opencode = OpenCodeCatalog(tmp_path / "opencode.db")
    remotes = [RemoteCatalog(name, "http://127.0.0.1:9", None, host) for name, host in (("claude", "a"), ("claude", "b"), ("codex", "a"))]
    catalogs = across_hosts([here, opencode], remotes, timeout_s=0.2)
    assert [catalog.name for catalog in catalogs] == ["claude", "opencode", "codex"]
    assert (await adopted(catalogs[0], "local")).source.startswith(str(tmp_path / "here"))
    for host_id, remote in (("a", remotes[0]), ("local", RemoteCatalog("claude", "http://127.0.0.1:9", None, "local"))):
        with pytest.raises(InvalidArgument, match=f"'{host_id}'"):
            across_hosts([here], [remotes[0], remote])


async def test_all_catalogs_of_a_node(tmp_path: Path) -> None:
    """A node serves every catalog of its machine, each by its name."""
    served: list[Catalog] = [FileCatalog(CLAUDE, [tmp_path / "claude"]), FileCatalog(CODEX, [tmp_path / "codex"])]
    rollout = tmp_path / "codex" / "2026" / "11" / "02" / "rollout-2026-11-02T12-00-00-t-1.jsonl"
    append(rollout, b'{"type": "session_meta", "payload": {"id": "t-1", "cwd": "/w"}}\n')
    with serving(node_app(served, BOX, TOKEN)) as url:
        catalogs = across_hosts([], [RemoteCatalog(name, url, TOKEN, BOX) for name in ("claude", "codex")])
        assert [[thread.thread_id for thread in await catalog.list()] for catalog in catalogs] == [[], ["t-1"]]
        probe = await adopted(catalogs[1], BOX, "t-1")
        append(rollout, b'{"type": "event_msg", "payload": {"type": "user_message", "message": "rename"}}\n')
        (outcome,) = await catalogs[1].check([probe])
    assert isinstance(outcome, Activity)
    assert outcome.human_turns == 1
