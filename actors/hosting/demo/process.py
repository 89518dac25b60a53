"""The process that hosts the sessions of `kizuki demo`: run by it as `python -m kizuki.actors.hosting.demo.process DATABASE LIFE LANGUAGE`.

It goes one step each time that it reads a line, and reports each step as a line of JSON: what the gateway said, nothing made up. What
must have happened is checked by the process that reads it. LIFE is `first`, which ends in a turn that never ends, or `second`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from ....storage.records import StateEvent
from ...config import GatewayConfig
from ...errors import KizukiError
from ...gateway import Gateway, open_gateway
from ...identity import Actor
from ...notices import Notice
from ..logs import configure_logs
from ..rows import event_row, notice_row, watch_row

MANAGER: Final = "agent:main:main"
STEPPED_INTO: Final = "agent:main:subagent:research"
OTHER_CHILD: Final = "agent:main:subagent:writer"
LABEL: Final = "kizuki demo"
CHANNEL: Final = "telegram"
CONCURRENT: Final = 10
SEQUENTIAL: Final = 10
WAKE_TIMEOUT_S: Final = 5.0
SETTLE_S: Final = 0.3
"""Longer than wakes are merged for: a second wake would have come by then."""


class ModelFailed(Exception):
    """What the demo's failing turn raises."""


class Wakes:
    """The host's wake callback: it counts."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self._first = asyncio.Event()

    def __call__(self, session_key: str, _reasons: tuple[str, ...]) -> None:
        self.keys.append(session_key)
        self._first.set()

    async def settled(self) -> None:
        """Wait for a wake, and then for as long as another would take."""
        async with asyncio.timeout(WAKE_TIMEOUT_S):
            await self._first.wait()
        await asyncio.sleep(SETTLE_S)


class Report:
    """The line to the process that started this one: a line in for each step, a line out for what happened."""

    async def next(self) -> None:
        """Wait until the next step is wanted; a process whose parent is gone ends."""
        if not await asyncio.to_thread(sys.stdin.readline):
            raise SystemExit(1)

    def step(self, name: str, **found: Any) -> None:
        """Say what happened."""
        sys.stdout.write(json.dumps({"step": name, "pid": os.getpid()} | found, ensure_ascii=True) + "\n")
        sys.stdout.flush()


async def first_life(database: str, config: GatewayConfig) -> None:
    """From an empty database to a turn that holds a notice and does not end."""
    report, wakes = Report(), Wakes()
    async with open_gateway(database, config=config, wake=wakes) as gateway:
        await report.next()
        await gateway.open_session(MANAGER, label=LABEL)
        report.step("opened", session=MANAGER)
        await report.next()
        spawned = [await gateway.spawn(MANAGER, child, run_id=f"run:{child}") for child in (STEPPED_INTO, OTHER_CHILD)]
        report.step("spawned", events=_events(spawned), watches=await _watches(gateway))
        await report.next()
        report.step("changed", events=_events(await _change_everything(gateway)), watches=await _watches(gateway))
        await report.next()
        await wakes.settled()
        report.step("noticed", wakes=wakes.keys, notices=_notices(await gateway.pending(MANAGER)))
        await report.next()
        await _fail_a_turn(gateway, report)
        await report.next()
        async with gateway.turn(MANAGER) as turn:
            report.step("held", promptLines=turn.prompt_lines(), pendingElsewhere=_notices(await gateway.pending(MANAGER)))
            await asyncio.Event().wait()


async def second_life(database: str, config: GatewayConfig) -> None:
    """What a process finds that opens the database after the first was killed."""
    report, wakes = Report(), Wakes()
    async with open_gateway(database, config=config, wake=wakes) as gateway:
        await report.next()
        await wakes.settled()
        report.step("replayed", wakes=wakes.keys, notices=_notices(await gateway.pending(MANAGER)), watches=await _watches(gateway))
        await report.next()
        async with gateway.turn(MANAGER) as turn:
            shown, delta = turn.prompt_lines(), await _delta(gateway, turn.notices[0])
        left = _notices(await gateway.pending(MANAGER))
        report.step("reconciled", promptLines=shown, delta=delta, notices=left, watches=await _watches(gateway))
        await report.next()
        event = await gateway.goal_changed(OTHER_CHILD, "updated", actor=Actor.human("ada"))
        report.step("left", events=_events([event]), notices=_notices(await gateway.pending(MANAGER)))


async def _change_everything(gateway: Gateway) -> list[StateEvent | None]:
    """A person steps in, and twenty more changes follow: half of them at once, the other half one by one."""
    first = await gateway.human_message(STEPPED_INTO, channel=CHANNEL, actor_id="ada")
    at_once = await asyncio.gather(
        *(gateway.human_message(STEPPED_INTO, channel=CHANNEL, actor_id="ada", dedupe_key=f"at-once-{n}") for n in range(CONCURRENT))
    )
    one_by_one = [await gateway.goal_changed(STEPPED_INTO, "updated", actor=Actor.human("ada")) for _ in range(SEQUENTIAL)]
    return [first, *at_once, *one_by_one]


async def _fail_a_turn(gateway: Gateway, report: Report) -> None:
    try:
        async with gateway.turn(MANAGER) as turn:
            delta = await _delta(gateway, turn.notices[0])
            report.step("read", promptLines=turn.prompt_lines(), remaining=turn.remaining, delta=delta)
            await report.next()
            raise ModelFailed  # noqa: TRY301, the turn is to see it
    except ModelFailed:
        report.step("given_back", notices=_notices(await gateway.pending(MANAGER)), watches=await _watches(gateway))


async def _delta(gateway: Gateway, notice: Notice) -> Mapping[str, Any]:
    status = await gateway.session_status(notice.target, changes_since=notice.changes_since)
    changes: Mapping[str, Any] = status["stateChanges"]
    return changes


async def _watches(gateway: Gateway) -> list[dict[str, Any]]:
    return [watch_row(watch) for watch in await gateway.watches(MANAGER)]


def _events(events: list[StateEvent | None]) -> list[dict[str, Any] | None]:
    return [None if event is None else event_row(event, "en") for event in events]


def _notices(notices: list[Notice]) -> list[dict[str, Any]]:
    return [notice_row(notice) for notice in notices]


LIVES: Final = {"first": first_life, "second": second_life}


def main() -> None:
    """Run one life."""
    configure_logs()
    database, life, language = sys.argv[1:]
    config = GatewayConfig(language="ja" if language == "ja" else "en")
    try:
        asyncio.run(LIVES[life](database, config))
    except KizukiError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
