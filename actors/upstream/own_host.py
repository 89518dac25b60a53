"""A catalog of one host answers for that host alone: of a thread elsewhere it cannot know that it is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from .catalog import Failed, Outcome, Probe


async def check_own(
    host_id: str, probes: Sequence[Probe], check: Callable[[Sequence[Probe]], Awaitable[Sequence[Outcome]]]
) -> list[Outcome]:
    """One outcome for each probe, in their order: those of this host are checked, any other has failed."""
    outcomes: list[Outcome] = [Failed(f"there is no host {probe.host_id!r} here but {host_id!r}") for probe in probes]
    own = [index for index, probe in enumerate(probes) if probe.host_id == host_id]
    if own:
        for index, outcome in zip(own, await check([probes[index] for index in own]), strict=True):
            outcomes[index] = outcome
    return outcomes
