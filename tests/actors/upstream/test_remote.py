"""The catalog of another machine, through a real node on loopback: paging, losing the node, and what counts as missing."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kizuki.actors.errors import InvalidArgument
from kizuki.actors.hosting.node.app import node_app
from kizuki.actors.upstream.catalog import (
    Activity,
    Catalog,
    Failed,
    Missing,
    Nothing,
    Outcome,
    Probe,
    ThreadNotFound,
)
from kizuki.actors.upstream.files.catalog import FileCatalog
from kizuki.actors.upstream.formats.formats import CLAUDE
from kizuki.actors.upstream.formats.scanning import scan_whole_file
from kizuki.actors.upstream.remote import catalog as remote
from kizuki.actors.upstream.remote import http as remote_http
from kizuki.actors.upstream.remote.catalog import RemoteCatalog
from kizuki.actors.upstream.remote.http import NodeUnavailable
from kizuki.storage.records import Address
from tests.hosting.nodes import BOX, NOON_MS, TOKEN, append, moved, row, serving

Rule = Callable[[Scope, int], ASGIApp | None]
"""What answers a request in the node's place, by the request and how many came before it; None: the node."""


class Between:
    """Stands before a node: sees what it is asked and answers, and answers in its place where a rule says so."""

    def __init__(self, node: ASGIApp) -> None:
        self._node = node
        self.rule: Rule = lambda scope, count: None
        self.questions: list[str] = []
        self.wire = bytearray()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.rule(scope, len(self.questions)) or self._node
        self.questions.append(scope["path"].rpartition("/")[2])

        async def seen_receive() -> Message:
            message = await receive()
            self.wire += message.get("body", b"")
            return message

        async def seen_send(message: Message) -> None:
            self.wire += message.get("body", b"")
            await send(message)

        await app(scope, seen_receive, seen_send)


def answering(status: int, content: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = ()) -> ASGIApp:
    """An application that answers everything with this."""

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        await send({"type": "http.response.body", "body": content})

    return app


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "projects"


@pytest.fixture
def between(root: Path) -> Between:
    return Between(node_app([FileCatalog(CLAUDE, [root], probe_max_bytes=64 * 1024)], BOX, TOKEN))


@pytest.fixture
def url(between: Between) -> Iterator[str]:
    with serving(between) as url:
        yield url


@pytest.fixture
def box(url: str) -> RemoteCatalog:
    return RemoteCatalog("claude", url, TOKEN, BOX)


async def adopted(catalog: Catalog, thread_id: str, key: str = "agent:main:a") -> Probe:
    start = await catalog.link(thread_id, BOX)
    return Probe(Address(key, "main"), thread_id, BOX, start.source, dict(start.marker), adopted_at_ms=NOON_MS)


async def checked(catalog: Catalog, probe: Probe) -> Outcome:
    (outcome,) = await catalog.check([probe])
    return outcome


def after(probe: Probe, outcome: Outcome) -> Probe:
    """The link with the marker that was stored for the outcome."""
    marker = outcome.marker if isinstance(outcome, Activity | Nothing) else None
    return probe if marker is None else replace(probe, marker=marker)


def turns(outcome: Outcome) -> int:
    """The turns of an outcome, which may not be a failure."""
    assert isinstance(outcome, Activity | Nothing), outcome
    return outcome.human_turns if isinstance(outcome, Activity) else 0


async def test_like_a_local_catalog(box: RemoteCatalog, root: Path) -> None:
    """Through a node there is to be seen exactly what the catalog shows on its own machine, under the host's name."""
    session = append(root / "-w" / "s-1.jsonl", row("0"))
    append(root / "-w" / "s-1" / "subagents" / "agent-a.jsonl", row("1"))
    local = FileCatalog(CLAUDE, [root], host_id=BOX)
    assert list(await box.list()) == list(await local.list())
    probe = await adopted(box, "s-1")
    assert probe == await adopted(local, "s-1")
    compaction = json.dumps({"type": "system", "subtype": "compact_boundary", "uuid": "c", "timestamp": "2026-11-02T12:00:00.000Z"})
    append(session, row("2"), compaction.encode() + b"\n", row("3", timestamp=None))
    append(root / "-w" / "s-1" / "subagents" / "agent-b.jsonl", row("4"))
    outcome = await checked(box, probe)
    assert outcome == await checked(local, probe)
    assert isinstance(outcome, Activity)
    assert {happening.kind for happening in outcome.happenings} == {"child_spawned", "compacted"}
    assert await checked(box, after(probe, outcome)) == await checked(local, after(probe, outcome)) == Nothing()


async def test_a_burst_of_many(box: RemoteCatalog, between: Between, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """120 threads with bursts of 200 turns each, on pages of 50: every thread is listed, and every turn is found once."""
    monkeypatch.setattr(remote, "THREADS_MAX", 50)
    paths = [append(root / f"-p{number % 7}" / f"s-{number:03}.jsonl", row("0")) for number in range(120)]
    listed = await box.list()
    assert sorted(thread.thread_id for thread in listed) == [path.stem for path in paths]
    assert [thread.updated_at_ms for thread in listed] == sorted((thread.updated_at_ms for thread in listed), reverse=True)
    probes = [await adopted(box, path.stem, f"agent:main:{path.stem}") for path in paths]
    for path in paths:
        append(path, *(row(f"{number}") for number in range(1, 201)))
    between.questions.clear()
    found, rounds = [0] * len(probes), 0
    while rounds == 0 or any(count < 200 for count in found):
        outcomes = await box.check(probes)
        found = [count + turns(outcome) for count, outcome in zip(found, outcomes, strict=True)]
        probes = [after(probe, outcome) for probe, outcome in zip(probes, outcomes, strict=True)]
        rounds += 1
    assert found == [200] * 120
    assert between.questions == ["read"] * 3 * rounds
    assert {turns(outcome) for outcome in await box.check(probes)} == {0}


async def test_no_page_too_many(box: RemoteCatalog, between: Between, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that fills its pages exactly has no empty one behind them; nothing at all is one page."""
    monkeypatch.setattr(remote, "THREADS_MAX", 2)
    assert list(await box.list()) == []
    for number in range(4):
        append(root / "-w" / f"s-{number}.jsonl", row("0"))
    assert len(await box.list()) == 4
    assert between.questions == ["threads"] * 3


async def test_byte_by_byte(box: RemoteCatalog, root: Path) -> None:
    """A transcript that grows by single bytes and random pieces, with a check after each, gives what one scan of it gives."""
    content = b"".join(row(str(number), f"naïve — {number}", isMeta=number % 3 == 0) for number in range(1, 9)) + b'{"torn\n' + row("9")
    session, source, at = append(root / "-w" / "s-1.jsonl"), random.Random(7), 0
    probe, found = await adopted(box, "s-1"), 0
    while at < len(content):
        size = 1 if at < 170 else source.randint(1, 120)
        append(session, content[at : at + size])
        at += size
        outcome = await checked(box, probe)
        found, probe = found + turns(outcome), after(probe, outcome)
    assert found == (await asyncio.to_thread(scan_whole_file, session)).human_turns == 7


async def test_missing(box: RemoteCatalog, between: Between, root: Path) -> None:
    """Rule 7.6: what a node has looked for and not found is missing; what it cannot look for is not."""
    session = append(root / "-w" / "s-1.jsonl", row("0"))
    probe = await adopted(box, "s-1")
    moved(session, session.with_suffix(".gone"))
    assert await checked(box, probe) == Missing()
    moved(root, root.with_name("unmounted"))
    assert isinstance(await checked(box, probe), Failed)
    with pytest.raises(ThreadNotFound, match="s-1"):
        await box.link("s-1", BOX)


async def test_other_hosts(box: RemoteCatalog, root: Path) -> None:
    """Rule 7.6: a catalog knows nothing of another host's threads, so that they are not missing there, and cannot be adopted."""
    append(root / "-w" / "s-1.jsonl", row("0"))
    probe = await adopted(box, "s-1")
    strange = replace(probe, thread_id="s-2", source=str(root / "-w" / "s-2.jsonl"), host_id="local")
    assert [type(outcome) for outcome in await box.check([strange, probe, strange])] == [Failed, Nothing, Failed]
    assert isinstance(await checked(FileCatalog(CLAUDE, [root]), replace(strange, host_id=BOX)), Failed)
    with pytest.raises(ThreadNotFound, match="local"):
        await box.link("s-1", "local")


async def test_node_of_another_name(root: Path, url: str) -> None:
    """Rule 7.6: behind the address of a node there may be another machine one day: it is asked by its name, and does not answer."""
    append(root / "-w" / "s-1.jsonl", row("0"))
    probe = replace(await adopted(RemoteCatalog("claude", url, TOKEN, BOX), "s-1"), host_id="other", thread_id="s-2")
    other = RemoteCatalog("claude", url, TOKEN, "other")
    with pytest.raises(NodeUnavailable, match=r"421.*'box'"):
        await other.check([probe])


GARBAGE: list[tuple[str, ASGIApp]] = [
    ("401", answering(401, b'{"error": "no"}')),
    ("404", answering(404, b'{"detail": "Not Found"}')),
    ("404", answering(404, b"<html>")),
    ("500", answering(500, b'{"reason": "no such thread"}')),
    ("503", answering(503)),
    ("302", answering(302, b"{}", ((b"location", b"http://127.0.0.1:9/"),))),
    ("no answer", answering(200, b"no such thread")),
    ("no answer", answering(200, b"[" * 100_000)),
    ("no answer", answering(200, b"\xff")),
    ("no node may", answering(200, b"{}")),
    ("no node may", answering(200, b'{"outcomes": [], "threads": [7], "source": 7}')),
    ("no node may", answering(200, b'{"outcomes": 7, "threads": [], "next": 7, "source": "/x", "marker": []}')),
    ("no answer", answering(200, b"\x1f\x8b", ((b"content-encoding", b"gzip"),))),
]


@pytest.mark.parametrize(("told", "app"), GARBAGE)
async def test_what_is_no_answer(box: RemoteCatalog, between: Between, root: Path, told: str, app: ASGIApp) -> None:
    """Rule 7.6: any answer but a node's own, and any status but those two, means that nothing is known."""
    append(root / "-w" / "s-1.jsonl", row("0"))
    probe = await adopted(box, "s-1")
    between.rule = lambda scope, count: app
    for question in (box.check([probe]), box.list(), box.link("s-1", BOX)):
        with pytest.raises(NodeUnavailable, match=told) as raised:
            await question
        assert TOKEN not in str(raised.value)
    between.rule = lambda scope, count: None
    assert await checked(box, probe) == Nothing()


async def test_garbage_of_one_probe(box: RemoteCatalog, between: Between, root: Path) -> None:
    """An outcome that makes no sense is the failure of its probe alone."""
    append(root / "-w" / "s-1.jsonl", row("0"))
    probe = await adopted(box, "s-1")
    activity: dict[str, Any] = {"type": "activity", "marker": {}, "humanTurns": 1, "accountedIds": [], "happenings": []}
    wrong: list[object] = [
        7,
        {},
        {"type": "gone"},
        {"type": "nothing", "marker": 7},
        {"type": "failed"},
        {**activity, "humanTurns": True},
        {**activity, "humanTurns": -1},
        {**activity, "marker": []},
        {**activity, "accountedIds": [7]},
        {**activity, "happenings": [["compacted", "c"]]},
        {**activity, "happenings": [["invented", "c", None, ""]]},
        {**activity, "occurredAtMs": "noon"},
    ]
    content = json.dumps({"outcomes": [*wrong, activity, {"type": "missing"}]}).encode()
    between.rule = lambda scope, count: answering(200, content)
    outcomes = await box.check([probe] * (len(wrong) + 2))
    assert [type(outcome) for outcome in outcomes] == [Failed] * len(wrong) + [Activity, Missing]


async def test_endless_answers(box: RemoteCatalog, between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an answer without end nor a list without end is taken in."""
    monkeypatch.setattr(remote_http, "ANSWER_BYTES_MAX", 100_000)
    monkeypatch.setattr(remote, "PAGES_MAX", 3)
    between.rule = lambda scope, count: answering(200, b'{"threads": [], "next": "again"}')
    with pytest.raises(NodeUnavailable, match="no end"):
        await box.list()
    between.rule = lambda scope, count: answering(200, b" " * 1_000_000)
    with pytest.raises(NodeUnavailable, match="more than 100000 bytes"):
        await box.list()


async def test_nobody_there(root: Path) -> None:
    """Rule 7.6: where no node listens, or one that does not answer, nothing is known."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = RemoteCatalog("claude", f"http://127.0.0.1:{unused.getsockname()[1]}", TOKEN, BOX)
        probe = Probe(Address("agent:main:a", "main"), "s-1", BOX, "/s-1.jsonl", {}, NOON_MS)
        for question in (gone.check([probe]), gone.list(), gone.link("s-1", BOX)):
            with pytest.raises(NodeUnavailable, match="ConnectError"):
                await question


async def test_node_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that takes the question and never answers is waited for a bounded time."""
    monkeypatch.setattr(remote_http, "SILENCE_TIMEOUT_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        box = RemoteCatalog("claude", f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN, BOX)
        with pytest.raises(NodeUnavailable, match="ReadTimeout"):
            await box.list()


async def test_wrong_token(url: str, root: Path) -> None:
    """A node that refuses the token is an error that says so, and does not say the token."""
    for token in ("wrong", None):
        with pytest.raises(NodeUnavailable, match="the token is missing or wrong") as raised:
            await RemoteCatalog("claude", url, token, BOX).list()
        assert "'wrong'" not in repr(raised.value)


async def test_node_lost_between_pages(box: RemoteCatalog, between: Between, root: Path) -> None:
    """What was read before the node was lost stands; the rest fails without asking on, and is found at the next check."""
    paths = [append(root / "-w" / f"s-{number:03}.jsonl", row("0")) for number in range(120)]
    probes = [await adopted(box, path.stem, f"agent:main:{path.stem}") for path in paths]
    for path in paths:
        append(path, row("1"), row("2"))
    between.questions.clear()
    between.rule = lambda scope, count: answering(500) if count >= 1 else None
    outcomes = await box.check(probes)
    assert [type(outcome) for outcome in outcomes] == [Activity] * 50 + [Failed] * 70
    assert len(between.questions) == 2
    between.rule = lambda scope, count: None
    again = await box.check([after(probe, outcome) for probe, outcome in zip(probes, outcomes, strict=True)])
    assert [turns(outcome) for outcome in again] == [0] * 50 + [2] * 70


async def test_own_texts_stay(box: RemoteCatalog, between: Between, root: Path) -> None:
    """Rule 7.5: the host's own texts are matched through a node as they are at home; neither they nor a transcript are sent."""
    session = append(root / "-w" / "s-1.jsonl", row("0", origin=None))
    probe = await adopted(box, "s-1")
    texts = ("a  secret\nplan", "their own words", "a secret plan")
    append(session, *(row(text, text, origin=None) for text in texts))
    own = (("t0", "an older secret"), ("t1", " a secret plan "), ("t2", " "))
    local = FileCatalog(CLAUDE, [root], host_id=BOX)
    outcome = await checked(box, replace(probe, own_texts=own))
    assert outcome == await checked(local, replace(probe, own_texts=own))
    assert isinstance(outcome, Activity)
    assert (outcome.human_turns, outcome.accounted_ids) == (2, ("t1",))
    outcome = await checked(box, replace(probe, own_texts=own, accounted_ids=frozenset({"t1"})))
    assert turns(outcome) == 3
    assert not any(word in between.wire for word in (b"secret", b"words"))


async def test_ids_of_any_kind(between: Between, url: str, root: Path) -> None:
    """Ids that are not ASCII come through."""
    append(root / "-w" / "日本 %2F?#.jsonl", row("0"))
    box = RemoteCatalog("claude", url, TOKEN, BOX)
    (thread,) = await box.list()
    assert (await adopted(box, thread.thread_id)).source == thread.source
    assert thread.thread_id == "日本 %2F?#"


async def test_moved_transcript(box: RemoteCatalog, root: Path) -> None:
    """A transcript whose project was renamed is followed where it is now, and loses nothing; a replaced one begins anew."""
    session = append(root / "-w" / "s-1.jsonl", row("0"))
    probe = await adopted(box, "s-1")
    append(session, row("1"))
    moved(session.parent, root / "-renamed")
    outcome = await checked(box, probe)
    assert turns(outcome) == 1
    moved(append(root / "new", row("2")), root / "-renamed" / "s-1.jsonl")
    outcome = await checked(box, after(probe, outcome))
    assert isinstance(outcome, Activity)
    assert (outcome.restarted, outcome.human_turns) == ("replaced", 0)


def test_no_environment_in_between(root: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names does not see the token."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert list(asyncio.run(_listed(url))) == []


async def _listed(url: str) -> Any:
    return await RemoteCatalog("claude", url, TOKEN, BOX).list()


@pytest.mark.parametrize(
    "wrong", ["", "box:7433", "ftp://box", "http://", "http://user:pa55word@box:1", "http://box?x=1", "http://box#x", 7]
)
def test_wrong_addresses(wrong: Any) -> None:
    """A wrong address is an error at once, and a password in it is not repeated."""
    with pytest.raises(InvalidArgument, match="http://HOST:PORT") as raised:
        RemoteCatalog("claude", wrong, TOKEN, BOX)
    assert "pa55word" not in str(raised.value)


@pytest.mark.parametrize("wrong", ["", "two words", "tökén", "line\nend"])
def test_wrong_tokens(wrong: str) -> None:
    """A token that cannot be sent is an error at once that does not repeat it."""
    with pytest.raises(InvalidArgument, match="printable ASCII") as raised:
        RemoteCatalog("claude", "https://box", wrong, BOX)
    assert not wrong or wrong not in str(raised.value)
