"""Who plays in the system tests, and short ways of saying what they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kizuki.actors import Actor, Gateway, Notice, StateEvent, Watch

NOW = 1_767_225_600_000
"""Where the manual clock starts: 2026-01-01T00:00:00Z."""
HOUR_S = 3_600.0
DAY_S = 86_400.0
DAY_MS = 86_400_000

MAIN = "agent:main:main"
OPS = "agent:ops:main"
CHILD = "agent:main:subagent:child"
OTHER = "agent:main:subagent:other"
GLOBAL = "global"
"""A key without prefix: a target for whoever names an agent with it, never a watcher."""
CLOCK_BACK_MS = 600_000

PERSON = Actor.human("ada")


def there(event: StateEvent | None) -> StateEvent:
    """The event, which must have been recorded."""
    assert event is not None
    return event


async def human(gateway: Gateway, key: str = CHILD, *, agent_id: str | None = None) -> StateEvent:
    """A person writes to the session."""
    return there(await gateway.human_message(key, channel="telegram", agent_id=agent_id))


async def family(gateway: Gateway) -> StateEvent:
    """The main session spawns a child, and so watches it."""
    await gateway.open_session(MAIN)
    return there(await gateway.spawn(MAIN, CHILD, run_id="r1"))


async def pair(gateway: Gateway, watcher: str = MAIN, target: str = CHILD) -> Watch | None:
    """The watcher's cursor on the target."""
    found = [watch for watch in await gateway.watches(watcher) if watch.target == target]
    assert len(found) <= 1
    return found[0] if found else None


async def positions(gateway: Gateway, watcher: str = MAIN, target: str = CHILD) -> tuple[int, int, int]:
    """The cursor's last seen, notified and material positions."""
    watch = await pair(gateway, watcher, target)
    assert watch is not None
    return watch.last_seen, watch.notified, watch.material


async def changes(gateway: Gateway, key: str = CHILD, since: int | str = 0, **options: Any) -> dict[str, Any]:
    """What `session_status` says under `stateChanges`."""
    result: dict[str, Any] = (await gateway.session_status(key, changes_since=since, **options))["stateChanges"]
    return result


async def version(gateway: Gateway, key: str = CHILD, *, agent_id: str | None = None) -> int:
    """The session's state version."""
    result: int = (await gateway.session_status(key, agent_id=agent_id))["stateVersion"]
    return result


def sequences(delta: dict[str, Any]) -> list[int]:
    """The sequences of the events in a delta, in their order."""
    return [event["sequence"] for event in delta["events"]]


def targets(notices: Sequence[Notice]) -> list[str]:
    """What the notices are about, in their order."""
    return [notice.target for notice in notices]


def text_of(target: str, since: int) -> str:
    """The English notice, as rule 4.2 spells it."""
    return (
        f'Session "{target}" was changed by another actor. Reconcile before acting: '
        f'session_status sessionKey "{target}" changesSince {since}.'
    )


async def show(gateway: Gateway, watcher: str = MAIN, **options: Any) -> list[str]:
    """One whole turn that ends well; the texts that it showed."""
    async with gateway.turn(watcher, **options) as turn:
        return turn.prompt_lines()
