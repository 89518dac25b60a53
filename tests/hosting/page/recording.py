"""Recording by another process: a gateway of its own on the database, which does what it is told and is gone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from kizuki.actors import Actor, Gateway, open_gateway

HERE = Path(__file__).resolve()
TOGETHER = 50

Call = tuple[str, list[Any], dict[str, Any]]


def call(method: str, *args: Any, **kwargs: Any) -> Call:
    """A call of a gateway's method; an actor is given as a list of its type and its id."""
    return method, list(args), kwargs


def record(database: Path, *calls: Call) -> None:
    """Make the calls in a process of their own, one after the other."""
    command = [sys.executable, "-P", str(HERE), str(database)]
    ended = subprocess.run(command, check=False, input=json.dumps(calls), capture_output=True, encoding="utf-8", timeout=120)
    assert ended.returncode == 0, ended.stderr


def crowd(managers: int, workers: int, events: int) -> list[Call]:
    """So many managers with so many workers each, which they watch, and so many messages of persons to the workers in turn."""
    heads = [f"agent:team{number:03}:main" for number in range(managers)]
    keys = [f"agent:team{manager:03}:subagent:worker-{worker}" for manager in range(managers) for worker in range(workers)]
    opened = [call("open_session", head, label=f"Lead of team {number}") for number, head in enumerate(heads)]
    spawned = [call("spawn", heads[number // workers], key, run_id=f"r{number}") for number, key in enumerate(keys)]
    told = [call("human_message", keys[number % len(keys)], channel="telegram", actor_id="ada") for number in range(events)]
    return [*opened, *spawned, *told]


async def _make(gateway: Gateway, method: str, args: list[Any], kwargs: dict[str, Any]) -> None:
    given = {name: Actor(*value) if name == "actor" else value for name, value in kwargs.items()}
    await getattr(gateway, method)(*args, **given)


async def _main(database: str, calls: list[Call]) -> None:
    async with open_gateway(database) as gateway:
        together = TOGETHER if len(calls) > TOGETHER else 1
        for first in range(0, len(calls), together):
            await asyncio.gather(*(_make(gateway, *each) for each in calls[first : first + together]))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], json.load(sys.stdin)))
