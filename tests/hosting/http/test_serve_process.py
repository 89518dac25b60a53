"""`kizuki serve` as a process: how it starts, refuses, streams what other processes record, and ends."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kizuki.actors import open_gateway
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.conftest import Kizuki, run_process
from tests.hosting.http.asking import TOKEN, session
from tests.hosting.http.serve_process import serve_process

pytest.importorskip("uvicorn", reason="uvicorn is not installed")


def told(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """The events of a stream."""
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_ending(database: Path, how: signal.Signals) -> None:
    """It says where it serves what, ends well when it is told to, though a client listens, and gives open turns back."""
    with serve_process(database) as server, server.client() as client:
        assert server.told == {"type": "serving", "url": server.url, "database": str(database), "token": False}
        client.post(session(MAIN, "watch"), json={"target": "agent:main:x"})
        client.post(session("agent:main:x", "human-message"), json={"channel": "telegram"})
        turn = client.post(session(MAIN, "turns"), json={}).json()
        assert turn["notices"]
        with client.stream("GET", "/api/stream") as stream:
            lines = stream.iter_lines()
            assert next(told(lines))[0] == "ready"
            started = time.monotonic()
            code, said = server.end(how)
        assert (code, said) == (0, "")
        assert time.monotonic() - started < 4
    shown = run_process("notices", MAIN, "--db", database, "--json")
    assert [notice["target"] for notice in shown.document["notices"]] == [notice["target"] for notice in turn["notices"]]


async def test_what_another_process_records(database: Path) -> None:
    """A client of the stream is told within a second of what another process records."""
    with serve_process(database) as server:
        async with httpx.AsyncClient(base_url=server.url) as client, client.stream("GET", "/api/stream") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            assert await _event(lines) == ("ready", {"resumed": False})
            async with open_gateway(database) as elsewhere:
                event = await elsewhere.human_message(CHILD, channel="telegram")
                recorded_at = time.monotonic()
                assert event is not None
                kind, data = await _event(lines)
                assert time.monotonic() - recorded_at < 1
        assert (kind, data["sequence"], data["sessionKey"]) == ("recorded", event.sequence, CHILD)


async def _event(lines: Any) -> tuple[str, Any]:
    kind = ""
    async for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return kind, json.loads(line.removeprefix("data: "))
    raise EOFError


def test_the_guards(database: Path) -> None:
    """Over a real socket: a DNS-rebinding request, a cross-site form post and a missing token are refused, the token opens."""
    with serve_process(database, "--allow-host", "box.example", token=TOKEN) as server, server.client() as client:
        bearer = {"authorization": f"Bearer {TOKEN}"}
        assert client.get("/api/events", headers=bearer).status_code == 200
        assert client.get("/api/events", headers=bearer | {"host": "box.example"}).status_code == 200
        assert client.get("/api/events", headers=bearer | {"host": "evil.example"}).status_code == 421
        assert client.get("/api/events").status_code == 401
        form = bearer | {"origin": "https://evil.example"}
        assert client.post(session(MAIN, "watch"), data={"target": "agent:main:x"}, headers=form).status_code == 403
        assert client.post(session(MAIN, "watch"), data={"target": "agent:main:x"}, headers=bearer).status_code == 415
        assert client.get("/").status_code == 200
        code, said = server.end()
    assert (code, TOKEN in said) == (0, False)


def test_for_people(database: Path, tmp_path: Path) -> None:
    """Without --json it says in words where the page is; a failure to start is one line."""
    ended = run_process("serve", "--db", database, "--host", "0.0.0.0")
    assert ended.code == 2
    assert "KIZUKI_SERVE_TOKEN" in ended.err
    assert "Traceback" not in ended.err
    ended = run_process("serve", "--db", tmp_path / "no" / "state.db", "--port", 0)
    assert (ended.code, "Traceback" in ended.err) == (1, False)


def test_a_token_file(kizuki: Kizuki, database: Path, tmp_path: Path) -> None:
    """A token that others can read, or that is too short, is refused; a byte order mark before it is no part of it."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    assert "can be read by others" in kizuki("serve", "--db", database, "--token-file", file).err
    file.chmod(0o600)
    file.write_text("short")
    assert kizuki("serve", "--db", database, "--token-file", file).code == 2
    file.write_text(TOKEN, "utf-8-sig")
    with serve_process(database, "--token-file", file) as server, server.client(authorization=f"Bearer {TOKEN}") as client:
        assert client.get("/api/statistics").status_code == 200


def test_a_port_that_is_taken(database: Path) -> None:
    """A port that another server has is an error of one line."""
    with serve_process(database) as server:
        ended = run_process("serve", "--db", database, "--port", server.url.rpartition(":")[2])
    assert (ended.code, ended.err.count("\n")) == (1, 1)
