"""The other process of the suite `neighbours`: records an event for each line that it reads, and says when it was durable.

`python -m kizuki.benchmarks.recorder DATABASE TARGET`; the time is the machine's monotonic one, in nanoseconds.
"""

from __future__ import annotations

import asyncio
import sys
import time

from kizuki.actors import open_gateway


async def record(database: str, target: str) -> None:
    """Until there are no more lines."""
    async with open_gateway(database) as gateway:
        print("ready", flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            await gateway.human_message(target, channel="telegram")
            print(time.monotonic_ns(), flush=True)


if __name__ == "__main__":
    asyncio.run(record(*sys.argv[1:3]))
