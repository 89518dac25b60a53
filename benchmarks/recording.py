"""One of the processes of the suite `neighbours`: producers that record for a while, beside others on the same file or alone.

`python -m kizuki.benchmarks.recording DATABASE PRODUCERS FAMILY SECONDS` prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import perf_counter

from kizuki.actors import Gateway, open_gateway


async def record(database: str, producers: int, family: int, seconds: float) -> float:
    """Durable events a second."""
    async with open_gateway(database) as gateway:
        keys = [f"agent:main:subagent:child-{family}-{number}" for number in range(producers)]
        await asyncio.gather(*(gateway.watch("agent:main:main", key) for key in keys))
        began = perf_counter()
        events = sum(await asyncio.gather(*(_produce(gateway, key, began + seconds) for key in keys)))
        return events / (perf_counter() - began)


async def _produce(gateway: Gateway, key: str, end_s: float) -> int:
    events = 0
    while perf_counter() < end_s:
        events += await gateway.human_message(key, channel="telegram") is not None
    return events


if __name__ == "__main__":
    file, count, which, duration = sys.argv[1:5]
    print(json.dumps({"rate": asyncio.run(record(file, int(count), int(which), float(duration)))}))
