"""`sessions_send`: a message from one session to another, through the host (rule 3.3)."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pykka import ActorDeadError

from .callbacks import Callbacks, raise_own_cancellation, within
from .clock import Clock
from .errors import DispatchRefused, InvalidArgument
from .keys import canonical_key

Reply = str | None | Awaitable[str | None]


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What the host's `dispatch` returns once a message is delivered."""

    session_key: str
    """The session that really received it."""
    run_id: str | None = None
    reply: Reply = None
    """None, a text, or an awaitable of one."""


Dispatch = Callable[[str, str, str], Dispatched | Awaitable[Dispatched]]
Watch = Callable[[str], Awaitable[bool]]
"""Registers the sender on the session that received the message, by its key."""


def parse_timeout(value: object) -> float:
    """How long to wait for a reply, in seconds from 0 up."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86_400 * 365 and math.isfinite(value):
        return float(value)
    raise InvalidArgument("timeout_s", value, "it must be a number of seconds from 0 up")


class Sender:
    """Dispatches messages, waits for replies, and registers watches."""

    def __init__(self, dispatch: Dispatch | None, callbacks: Callbacks, clock: Clock) -> None:
        self._dispatch = dispatch
        self._callbacks = callbacks
        self._clock = clock

    @property
    def can_dispatch(self) -> bool:
        """Whether there is anything to deliver with."""
        return self._dispatch is not None

    async def send(self, sender: str, receiver: str, message: str, watch: Watch | None, timeout_s: float) -> dict[str, Any]:
        """The tool's result; the host's failures are in it, not raised. With `watch`, `watched` is in it if the message was dispatched.

        Raises `ActorDeadError` if the gateway is left meanwhile.
        """
        if self._dispatch is None:
            return _failed("error", receiver, "this gateway has no dispatch: sessions_send cannot deliver")
        try:
            return await self._send(self._dispatch, sender, receiver, message, watch, timeout_s)
        except asyncio.CancelledError as error:
            raise_own_cancellation()
            raise ActorDeadError("the gateway is being left") from error

    async def _send(
        self, dispatch: Dispatch, sender: str, receiver: str, message: str, watch: Watch | None, timeout_s: float
    ) -> dict[str, Any]:
        reply: Reply = None
        try:
            dispatched = _checked(await self._callbacks.start(dispatch, sender, receiver, message))
            reply = dispatched.reply
            received_by = canonical_key(dispatched.session_key)
        except DispatchRefused as refusal:
            return _failed("refused", receiver, refusal.reason)
        except Exception as error:  # noqa: BLE001 - the host's own code: the caller gets its failure as a result
            _discard(reply)
            return _failed("error", receiver, _what_failed(error))
        run = {} if dispatched.run_id is None else {"runId": _well_formed(dispatched.run_id)}
        try:
            watched = {} if watch is None else {"watched": await watch(received_by)}
        except BaseException:
            _discard(reply)
            raise
        return {"sessionKey": received_by} | run | await self._outcome(reply, timeout_s) | watched

    async def _outcome(self, reply: Reply, timeout_s: float) -> dict[str, Any]:
        if reply is None or timeout_s == 0:
            _discard(reply)
            return {"status": "accepted"}
        if isinstance(reply, str):
            return {"status": "ok", "reply": _well_formed(reply)}
        return await self._await_reply(reply, timeout_s)

    async def _await_reply(self, reply: Awaitable[str | None], timeout_s: float) -> dict[str, Any]:
        try:
            text = _checked_reply(await within(self._clock, timeout_s, self._callbacks.start(_awaited, reply)))
        except TimeoutError:
            return {"status": "timeout"}
        except Exception as error:  # noqa: BLE001 - the host's own code, as above
            return {"status": "error", "reason": _what_failed(error)}
        return {"status": "accepted"} if text is None else {"status": "ok", "reply": text}


def _checked(answer: object) -> Dispatched:
    if isinstance(answer, Dispatched):
        return answer
    raise TypeError(f"dispatch must return Dispatched(session_key=...) once it has delivered, and returned {type(answer).__name__}")


def _checked_reply(answer: object) -> str | None:
    if answer is None:
        return None
    if isinstance(answer, str):
        return _well_formed(answer)
    raise TypeError(f"a reply must be a text, and is {type(answer).__name__}")


def _failed(status: str, session_key: str, reason: str) -> dict[str, Any]:
    return {"status": status, "sessionKey": session_key, "reason": _well_formed(reason)}


def _what_failed(error: Exception) -> str:
    return _well_formed(f"{type(error).__name__}: {error}")


def _well_formed(given: object) -> str:
    """The text without the half characters that no encoding holds: a reply that was cut in the middle of one ends with such a half."""
    return str(given).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _discard(reply: Reply) -> None:
    """Nobody waits for this reply: a coroutine is closed, so that it does not warn that it never ran."""
    if inspect.iscoroutine(reply):
        reply.close()


async def _awaited(reply: Awaitable[str | None]) -> str | None:
    return await reply
