"""The other process of the suite `replay`: one start of a gateway, or of a program that loads every cursor.

`python -m kizuki.benchmarks.starting gateway|naive DATABASE CURSORS` prints one JSON object; times in seconds since the start, memory as
what the process grew by at its highest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import sys
from contextlib import closing
from time import perf_counter
from typing import Any

import structlog

from kizuki.actors import Gateway, GatewayConfig, open_gateway

from .children import peak_mib
from .worlds import CURSORS_EACH, child_key, watcher_key

BETWEEN_S = 0.01
_EVERY_CURSOR = (
    "SELECT w.session_key, t.session_key, t.agent_id, c.last_seen, c.notified, t.latest_sequence FROM cursors c "
    "JOIN heads w ON w.head_id = c.watcher_id JOIN heads t ON t.head_id = c.target_id"
)


async def start_gateway(database: str, cursors: int) -> dict[str, Any]:
    """Open it, and have turns and record events until the replay is over."""
    first = asyncio.get_running_loop().create_future()
    before_mib = peak_mib()
    began = perf_counter()

    def wake(*_: object) -> None:
        if not first.done():
            first.set_result(perf_counter() - began)

    async with open_gateway(database, config=GatewayConfig(wake_coalesce_s=0), wake=wake) as gateway:
        ready_s = perf_counter() - began
        turns_ms = await _serve(gateway, cursors)
        all_s = perf_counter() - began
        mib = peak_mib() - before_mib
        return {"ready_s": ready_s, "first_s": await first, "all_s": all_s, "mib": mib, "turns_ms": turns_ms}


async def _serve(gateway: Gateway, cursors: int) -> list[float]:
    """Milliseconds of each turn, of watchers from all over the database, each with an event before it."""
    progress = gateway._system._replay  # noqa: SLF001, no host needs to know how far it is
    sessions = max(1, cursors // CURSORS_EACH)
    turns_ms: list[float] = []
    while not progress.finished:
        number = len(turns_ms) * 7_919 % sessions
        await gateway.human_message(child_key(number), channel="telegram")
        began = perf_counter()
        async with gateway.turn(watcher_key(number)):
            pass
        turns_ms.append((perf_counter() - began) * 1e3)
        await asyncio.sleep(BETWEEN_S)
    return turns_ms


def load_cursors(database: str) -> dict[str, Any]:
    """What a start costs that keeps every cursor in memory."""
    before_mib = peak_mib()
    began = perf_counter()
    with closing(sqlite3.connect(database)) as connection:
        cursors = {(row[0], row[1], row[2]): row[3:] for row in connection.execute(_EVERY_CURSOR)}
    pending = [pair for pair, (last_seen, _, material) in cursors.items() if material > last_seen]
    return {"ready_s": perf_counter() - began, "mib": peak_mib() - before_mib, "pending": len(pending)}


if __name__ == "__main__":
    # A start that is left in the midst of its wakes says so; that is no news here.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    how, path, count = sys.argv[1:4]
    print(json.dumps(load_cursors(path) if how == "naive" else asyncio.run(start_gateway(path, int(count)))))
