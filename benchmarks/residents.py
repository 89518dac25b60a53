"""The other process of the suite `memory`: sessions that are all used once, while some are busy all the time.

`python -m kizuki.benchmarks.residents gateway|tasks DATABASE SESSIONS BUSY` prints one JSON object. Sessions are put away once they have
rested for `IDLE_S`, as any gateway does after five minutes, so that the run need not take hours.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from kizuki.actors import Gateway, GatewayConfig, open_gateway

from .children import peak_mib
from .using import use
from .worlds import child_key

IDLE_S = 2.0


async def use_sessions(database: str, sessions: int, busy: int) -> dict[str, Any]:
    """Use every session once, and record events of the busy ones until that is done."""
    async with open_gateway(database, config=GatewayConfig(idle_actor_s=IDLE_S)) as gateway:
        empty = peak_mib()
        done = asyncio.Event()
        recording = [asyncio.create_task(_record(gateway, range(first, busy, 64), done)) for first in range(min(64, busy))]
        await use(gateway, range(sessions))
        done.set()
        events = sum(await asyncio.gather(*recording))
        return {"mib": peak_mib(), "empty_mib": empty, "events": events}


async def _record(gateway: Gateway, numbers: range, done: asyncio.Event) -> int:
    """One event after another, each session in its turn."""
    events = 0
    while not done.is_set() or events < len(numbers):
        if await gateway.human_message(child_key(numbers[events % len(numbers)]), channel="telegram") is not None:
            events += 1
    return events


async def make_tasks(count: int) -> dict[str, Any]:
    """A task that waits on a queue of its own, for each session."""
    empty = peak_mib()
    tasks = [asyncio.create_task(asyncio.Queue[object]().get()) for _ in range(count)]
    await asyncio.sleep(0)
    mib = peak_mib()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return {"mib": mib, "empty_mib": empty}


if __name__ == "__main__":
    how, path, total, active = sys.argv[1:5]
    print(json.dumps(asyncio.run(make_tasks(int(total)) if how == "tasks" else use_sessions(path, int(total), int(active)))))
