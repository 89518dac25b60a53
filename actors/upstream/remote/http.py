"""Asking a node over HTTP. The one file of the gateway's side that needs httpx, which comes with `kizuki[http]`."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

import httpcore  # noqa: F401 - httpx imports it when the first client is made, which would hold up the loop
import httpx

from ...errors import InvalidArgument
from ..catalog import JsonObject, ThreadNotFound
from .wire import ANSWER_BYTES_MAX, NO_THREAD, Fields

CONNECT_TIMEOUT_S: Final = 5.0
SILENCE_TIMEOUT_S: Final = 30.0
"""How long nothing may come of an answer."""

Ask = Callable[[str, JsonObject], Awaitable[Fields]]
"""Ask a question with its JSON object, and get the answer. Raises `NodeUnavailable`, `ThreadNotFound`."""


class NodeUnavailable(Exception):
    """A node could not be asked, or did not answer as a node does: nothing is known of its threads."""


class HttpNode:
    """How to reach one catalog of one host. Redirects, proxies of the environment and cookies are not for it: a token goes nowhere else."""

    def __init__(self, url: str, token: str | None, host_id: str, catalog: str) -> None:
        self._url = _checked(url)
        self._base = f"{self._url}/v1/hosts/{quote(host_id, safe='')}/catalogs/{quote(catalog, safe='')}"
        self._headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {_ascii(token)}"} if token is not None else {})
        # Made here, once: it reads files. Without TLS there is nothing to verify.
        self._verify: ssl.SSLContext | bool = ssl.create_default_context() if self._url.startswith("https:") else False

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Ask]:
        """A connection for a few questions in a row."""
        timeout = httpx.Timeout(SILENCE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        async with httpx.AsyncClient(verify=self._verify, timeout=timeout, trust_env=False, headers=self._headers) as client:

            async def ask(question: str, body: JsonObject) -> Fields:
                status, content = await self._exchange(client, question, body)
                return self._answer(status, content)

            yield ask

    async def _exchange(self, client: httpx.AsyncClient, question: str, body: JsonObject) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        try:
            async with client.stream("POST", f"{self._base}/{question}", content=json.dumps(body), headers=headers) as response:
                content = bytearray()
                async for piece in response.aiter_raw():
                    content += piece
                    if len(content) > ANSWER_BYTES_MAX:
                        raise NodeUnavailable(f"{self._url}: its answer has more than {ANSWER_BYTES_MAX} bytes")
                return response.status_code, bytes(content)
        except httpx.HTTPError as error:
            raise NodeUnavailable(f"{self._url}: {type(error).__name__}: {error}") from error

    def _answer(self, status: int, content: bytes) -> Fields:
        try:
            told = Fields.in_(json.loads(content))
        except (ValueError, RecursionError):
            raise NodeUnavailable(f"{self._url}: status {status}, and no answer of a node") from None
        if status == httpx.codes.OK:
            return told
        reason = told.of.get("reason")
        if status == httpx.codes.NOT_FOUND and reason == NO_THREAD:
            raise ThreadNotFound(str(told.of.get("error"))[:1_000])
        raise NodeUnavailable(f"{self._url}: status {status}: {str(told.of.get('error'))[:1_000]}")

    def garbage(self, error: Exception) -> NodeUnavailable:
        """The error for an answer that is not of the agreed form."""
        return NodeUnavailable(f"{self._url}: it answered what no node may: {error}")


def _checked(url: str) -> str:
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parts = httpx.URL()
    plain = not parts.userinfo and not parts.query and not parts.fragment
    if parts.scheme not in ("http", "https") or not parts.host or not plain:
        # A name and password in the address would end up in error messages.
        allowed = "it must be http://HOST:PORT or https://HOST:PORT, without a password in it"
        raise InvalidArgument("url", parts.scheme or "nothing", allowed)
    return str(parts).rstrip("/")


def _ascii(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidArgument("token", "***", "it must be printable ASCII without blanks")
    return token
