"""`kizuki serve` as the process that people start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.hosting.conftest import command


class ServeProcess:
    """A server on a database, at a port that was free."""

    def __init__(self, database: Path, *arguments: object, token: str | None = None) -> None:
        env = os.environ | ({} if token is None else {"KIZUKI_SERVE_TOKEN": token})
        started = command("serve", "--db", database, "--port", 0, "--json", *arguments)
        self._process = subprocess.Popen(started, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.communicate()[1]
        self.told: dict[str, Any] = json.loads(line)
        self.url: str = self.told["url"]

    def client(self, **headers: str) -> httpx.Client:
        """A client of its own."""
        return httpx.Client(base_url=self.url, headers=headers, timeout=10)

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Ask it to end; its exit code, and what it has said since it served."""
        self._process.send_signal(how)
        out, err = self._process.communicate(timeout=30)
        return self._process.returncode, out + err

    def kill(self) -> None:
        """End it as the out-of-memory killer would."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def serve_process(database: Path, *arguments: object, token: str | None = None) -> Iterator[ServeProcess]:
    """A server that is gone afterwards."""
    server = ServeProcess(database, *arguments, token=token)
    try:
        yield server
    finally:
        server.kill()
