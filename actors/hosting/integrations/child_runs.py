"""Runs of child agents that a model starts by a tool call: which tools those are is declared, and so is each child's session key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from ...gateway import Gateway
from ...logs import logger
from .failing_open import fail_open

ChildKey = Callable[[Mapping[str, Any]], str]
"""Gives a child's session key for the arguments of the tool call that runs it."""
Outcome = Literal["ok", "error", "timeout", "cancelled"]


def outcome_of(error: BaseException) -> Outcome:
    """How a run ended that ended with this."""
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return "timeout" if isinstance(error, TimeoutError) else "error"


class ChildRun:
    """Records one child's run. No method raises."""

    def __init__(self, gateway: Gateway, parent: str, run_id: str, timeout_s: float) -> None:
        self._gateway = gateway
        self._parent = parent
        self._run_id = run_id
        self._timeout_s = timeout_s
        self._child: str | None = None

    async def started(self, child_key: ChildKey, arguments: Mapping[str, Any]) -> None:
        """The parent created it; from here on the parent watches it."""
        try:
            self._child = child_key(arguments)
        except Exception as error:  # noqa: BLE001 - the host's own function: the tool call that it is asked for goes on
            logger(session_key=self._parent).error("the child's session key was not given", error=repr(error))
            return
        await self._record("recording a child", self._gateway.spawn(self._parent, self._child, run_id=self._run_id))
        await self._record("noting a run", self._gateway.run_started(self._child, self._run_id))

    async def ended(self, outcome: Outcome) -> None:
        """The run is over."""
        if self._child is not None:
            await self._record("recording a run's end", self._gateway.run_ended(self._child, run_id=self._run_id, outcome=outcome))

    async def paused(self) -> None:
        """The run waits for a person; it goes on under the same run id."""
        if self._child is not None:
            await self._record("noting a pause", self._gateway.run_finished(self._child, self._run_id))

    async def _record(self, what: str, recorded: Awaitable[Any]) -> None:
        await fail_open(what, recorded, self._timeout_s, parent=self._parent, child=self._child)
