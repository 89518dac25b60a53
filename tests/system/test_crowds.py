"""More calls at once than an inbox takes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kizuki.actors import open_gateway
from kizuki.actors.runtime import AsyncioActor

CROWD = AsyncioActor.inbox_size + 500


async def test_a_crowd_of_recordings(tmp_path: Path) -> None:
    """Rule 1.9: a call waits for room where an inbox is full; none of a crowd larger than the inbox is refused or lost."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await gateway.watch("agent:main:main", "agent:main:subagent:child")
        events = await asyncio.gather(*(gateway.human_message("agent:main:subagent:child", channel="telegram") for _ in range(CROWD)))
        assert None not in events
        assert (await gateway.statistics()).recordings_lost == 0


async def test_a_crowd_of_sessions(tmp_path: Path) -> None:
    """The same where each call is on a session of its own, so that the crowd meets at the log."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await asyncio.gather(*(gateway.open_session(f"agent:main:subagent:child-{number}") for number in range(CROWD)))
        assert (await gateway.sessions_list(limit=1, with_total=True))["total"] == CROWD
