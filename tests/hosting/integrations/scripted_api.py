"""A model behind the Messages API on a loopback port, which answers as scripted: for tools that can be told where their model is."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast


class ScriptedApi(ThreadingHTTPServer):
    """Answers the requests that offer tools with one step each: a text, a call (tool, arguments), or None for a refusal."""

    daemon_threads = False  # so that closing waits for the threads of requests

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.steps: list[str | tuple[str, dict[str, Any]] | None] = []
        self.requests: list[dict[str, Any]] = []
        """Those that were answered with a step."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


class _Request(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._answer(200, "text/plain", "")

    def do_POST(self) -> None:
        api = cast(ScriptedApi, self.server)
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        step: str | tuple[str, dict[str, Any]] | None = "-"
        if asked.get("tools"):
            api.requests.append(asked)
            step = api.steps.pop(0)
        if step is None:
            refusal = {"type": "error", "error": {"type": "permission_error", "message": "no model today"}}
            self._answer(403, "application/json", json.dumps(refusal))
        else:
            self._answer(200, "text/event-stream", _stream(step, len(api.requests)))

    def _answer(self, status: int, kind: str, body: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body.encode())


def _stream(step: str | tuple[str, dict[str, Any]], number: int) -> str:
    block: dict[str, Any]
    if isinstance(step, str):
        block, delta, stop = {"type": "text", "text": ""}, {"type": "text_delta", "text": step}, "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step[0], "input": {}}
        delta, stop = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}, "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
