"""Nodes that run: in a thread, where a test has its hands on what they serve, and as the process that people start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tests.hosting.conftest import command

BOX = "box"
TOKEN = "b2c3d4e5f6a7b8c9d0"
NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000


@contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """Serve the application on a real port of loopback; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


class NodeProcess:
    """`kizuki serve-node` on the sessions of a home folder."""

    def __init__(self, home: Path, *arguments: object, token: str | None = TOKEN) -> None:
        self._home = home
        self._arguments = arguments
        self._token = token
        self.port = 0
        self._start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as the out-of-memory killer would."""
        self._process.kill()
        self._process.communicate()

    def restart(self) -> None:
        """Start it again at the same port."""
        self.kill()
        self._start()

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end; its exit code, and what it has said on both streams since it served."""
        self._process.send_signal(how)
        out, err = self._process.communicate(timeout=30)
        return self._process.returncode, out + err

    def _start(self) -> None:
        strange = ("KIZUKI_", "CLAUDE_", "CODEX_", "PI_", "GEMINI_", "XDG_", "OPENCODE_")
        env = {name: value for name, value in os.environ.items() if not name.startswith(strange)} | {"HOME": str(self._home)}
        if self._token is not None:
            env["KIZUKI_NODE_TOKEN"] = self._token
        arguments = command("serve-node", "--port", self.port, "--host-id", BOX, "--json", *self._arguments)
        self._process = subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        self.told: dict[str, Any] = json.loads(line)
        self.port = int(self.told["url"].rpartition(":")[2])


@contextmanager
def node_process(home: Path, *arguments: object, token: str | None = TOKEN) -> Iterator[NodeProcess]:
    """A node that is gone afterwards."""
    node = NodeProcess(home, *arguments, token=token)
    try:
        yield node
    finally:
        node.kill()


def row(identity: str, text: str = "rename the flag", **fields: object) -> bytes:
    """A row of Claude Code that a person typed."""
    typed = {"type": "user", "uuid": identity, "timestamp": NOON, "origin": {"kind": "human"}}
    return json.dumps(typed | {"message": {"role": "user", "content": text}} | fields).encode() + b"\n"


def moved(path: Path, target: Path) -> Path:
    """Move a file or a folder, over what is there."""
    return path.replace(target)


def append(path: Path, *rows: bytes) -> Path:
    """Append to a transcript, which is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"".join(rows))
    return path
