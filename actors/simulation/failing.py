"""How a fault shows itself: to a transaction, and in place of a host's callback."""

from __future__ import annotations

import asyncio

from ..errors import DispatchRefused
from ..sending import Dispatched
from .faults import CommitFails, CommitSlow, Counted, CrashAtCommit
from .inline import Fate


class InjectedError(Exception):
    """What a host's callback raises where a fault has it fail."""


def worse(fate: Fate, fault: Counted, busy_timeout_s: float) -> Fate:
    """What becomes of a transaction that the fault strikes, too."""
    match fault:
        case CrashAtCommit():
            return Fate(fate.before_s, fate.after_s, fate.fails, "after" if fault.committed else "before")
        case CommitSlow():
            return Fate(fault.before_s, fault.after_s, fate.fails, fate.crash)
        case CommitFails():
            waited_s = busy_timeout_s if fault.how == "locked" else fate.before_s
            return Fate(waited_s, fate.after_s, fault, fate.crash)
        case _:
            return fate


async def _hang() -> None:
    await asyncio.get_running_loop().create_future()


async def fail_wake(how: str) -> bool | None:
    """A wake callback that fails."""
    match how:
        case "hang":
            await _hang()
        case "raise":
            raise InjectedError("the wake callback fails")
        case "cancel":
            raise asyncio.CancelledError
    return False


async def fail_dispatch(how: str, session_key: str) -> Dispatched:
    """A dispatch that fails."""
    match how:
        case "hang":
            await _hang()
        case "raise":
            raise InjectedError("the dispatch fails")
        case "cancel":
            raise asyncio.CancelledError
        case "refuse":
            raise DispatchRefused("the dispatch refuses")
    return Dispatched(session_key, reply=_no_reply())


async def _no_reply() -> str | None:
    await _hang()
    return None
