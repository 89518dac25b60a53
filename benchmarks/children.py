"""Measurements that need a process of their own: its memory is its own, and so is its lock."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import Any


async def run_child(module: str, *arguments: object) -> Mapping[str, Any]:
    """Run `python -m kizuki.benchmarks.MODULE`, and give what it printed as JSON. Raises `RuntimeError` if it failed."""
    name = f"{__package__}.{module}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", name, *map(str, arguments), stdin=PIPE, stdout=PIPE)
    printed, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{name} ended with code {process.returncode}")
    said: Mapping[str, Any] = json.loads(printed)
    return said


def peak_mib() -> float:
    """The most memory that this process ever had resident. Linux knows it for the program alone, not for what forked it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
