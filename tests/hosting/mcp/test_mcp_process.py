"""`kizuki mcp` as the process that an agent's own tool starts, on pipes: what it says, and that no end of it loses a notice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

from kizuki.actors import Gateway
from kizuki.actors.hosting.serving import listening as serving_listening
from tests.hosting.cast import CHILD, GLOBAL, MAIN
from tests.hosting.conftest import Kizuki, run_process
from tests.hosting.mcp.mcp_clients import LINE, connected, lines, stdio, wire

MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def last_seen(recorder: Gateway) -> int:
    (watch,) = await recorder.watches(MAIN)
    return watch.last_seen


@MODES
async def test_whole_story(state: Path, recorder: Gateway, mode: Any) -> None:
    """A manager's tool starts the server, is told one line of what another process recorded, reconciles, and is told no more."""
    async with connected(stdio(state), mode=mode) as client:
        assert lines(await client.call_tool("sessions_list", {})) == []
        await recorder.human_message(CHILD, channel="telegram", actor_id="ada")
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        assert await last_seen(recorder) == 1
        status = await client.call_tool("session_status", {"sessionKey": CHILD, "changesSince": 1})
        assert lines(status) == []
        assert status.structured_content is not None
        assert [event["actorId"] for event in status.structured_content["stateChanges"]["events"]] == ["ada"]
        assert await last_seen(recorder) == 2


async def test_restart_between_shown_and_acknowledged(state: Path, recorder: Gateway) -> None:
    """Rule 4.8: the server is restarted after it has shown a notice: it is shown again, byte for byte, and then acknowledged once."""
    await recorder.human_message(CHILD, channel="telegram")
    async with connected(stdio(state)) as client:
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
    assert await last_seen(recorder) == 1
    async with connected(stdio(state)) as client:
        assert lines(await client.call_tool("sessions_list", {})) == [LINE]
        assert lines(await client.call_tool("sessions_list", {})) == []
    assert await last_seen(recorder) == 2


async def test_killed_between_shown_and_acknowledged(state: Path, recorder: Gateway) -> None:
    """Rule 8.3: a server that is killed after it has shown a notice takes its claim with it: the next one shows it again."""
    await recorder.human_message(CHILD, channel="telegram")
    for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        with wire(state) as client:
            assert client.call("sessions_list") == [LINE]
            client.process.send_signal(how)
            assert client.process.wait(10) == -how
        assert await last_seen(recorder) == 1
    assert [notice.text for notice in await recorder.drain(MAIN)] == [LINE]
    assert await last_seen(recorder) == 2


async def test_standard_output_is_the_protocol(state: Path, recorder: Gateway) -> None:
    """On standard output there are messages of the protocol alone, errors, too; at the end of its input it ends well."""
    with wire(state) as client:
        assert client.told["serverInfo"]["name"] == "kizuki"
        assert MAIN in client.told["instructions"]
        wrong = client.ask("tools/call", {"name": "session_status", "arguments": {"sessionKey": "two words"}})
        assert wrong["isError"]
        assert "structuredContent" not in wrong
        assert client.process.stdin is not None
        client.process.stdin.write("this is no JSON\n")
        assert client.call("sessions_list") == []
        code, logged = client.end()
    assert code == 0
    assert "Traceback" not in logged


def test_settings(state: Path, kizuki: Kizuki, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from flags, then the environment, as with every command; the database is made if need be."""
    initialize = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}) + "\n"
    ended = run_process("mcp", environ={"KIZUKI_DB": str(state), "KIZUKI_SESSION": MAIN}, stdin=asked)
    assert (ended.code, json.loads(ended.out)["id"], state.exists()) == (0, 1, True)
    monkeypatch.setenv("KIZUKI_LANGUAGE", "xx")
    ended = kizuki("mcp", "--session", MAIN)
    assert (ended.code, ended.out, "KIZUKI_LANGUAGE" in ended.err) == (2, "", True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--session", "two words"], "white space"),
        (["--session", GLOBAL], "--session"),
        ([], "--session"),
        (["--session", MAIN, "--http", "7434"], "HOST:PORT"),
        (["--session", MAIN, "--http", "127.0.0.1:x"], "HOST:PORT"),
        (["--session", MAIN, "--http", "127.0.0.1:65536"], "HOST:PORT"),
        (["--session", MAIN, "--http", "0.0.0.0:0"], "KIZUKI_MCP_TOKEN"),
        (["--session", MAIN, "--token-file", "token"], "--http"),
    ],
)
def test_wrong_usage(kizuki: Kizuki, tmp_path: Path, arguments: list[str], told: str) -> None:
    """What it cannot be started with is said on standard error, before a database is made."""
    ended = kizuki("mcp", *arguments)
    assert (ended.code, ended.out, told in ended.err) == (2, "", True)
    assert list(tmp_path.glob("*.db")) == []


def test_no_mcp_extra(kizuki: Kizuki, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK the command says how to get it."""
    monkeypatch.setattr(serving_listening, "find_spec", lambda name: None)
    ended = kizuki("mcp", "--session", MAIN)
    assert (ended.code, "kizuki[mcp]" in ended.err) == (1, True)


def test_an_older_sdk(state: Path, tmp_path: Path) -> None:
    """With an SDK of another version, which other programs bring along, the command says which one it needs, and makes no database."""
    (tmp_path / "older" / "mcp").mkdir(parents=True)
    (tmp_path / "older" / "mcp" / "__init__.py").touch()
    path = os.pathsep.join(filter(None, [str(tmp_path / "older"), os.environ.get("PYTHONPATH")]))
    ended = run_process("mcp", "--db", state, "--session", MAIN, environ={"PYTHONPATH": path})
    assert (ended.code, ended.out, "Traceback" in ended.err) == (1, "", False)
    assert "mcp 2.3 or newer: pip install 'kizuki[mcp]'" in ended.err
    assert not state.exists()


@pytest.mark.parametrize(("module", "package", "extra"), [("mcp.server", "mcp", "mcp"), ("http.app", "starlette", "http")])
def test_a_hosts_import_without_the_extra(module: str, package: str, extra: str) -> None:
    """A host that serves its gateway itself is told which extra it lacks."""
    code = f"import sys; sys.modules[{package!r}] = None; import kizuki.actors.hosting.{module}"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stderr.splitlines()[-1].endswith(f"pip install 'kizuki[{extra}]'")
