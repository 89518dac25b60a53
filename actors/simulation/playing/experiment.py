"""The front door: a scenario, played from several seeds, in each mode over the same life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..disk import Disk
from ..life import draw_life
from ..scenario import Scenario
from ..world import World
from .figures import Figures, figures
from .modes import MODES, Mode
from .record import Record
from .stage import Stage
from .truth import Truth


@dataclass(frozen=True, slots=True)
class Run:
    """One seed's life in all modes."""

    seed: int
    figures: dict[Mode, Figures]
    records: dict[Mode, Record]
    """What was seen; empty but for the first run."""


def play(scenario: Scenario, seed: int, mode: Mode, disk: Disk | None = None) -> Record:
    """Play the life that the seed gives in one mode. The same for the same scenario and seed, on any machine."""
    record = Record(mode, seed, scenario.lasts_s)
    truth = Truth(record, {agent.key: agent.name for agent in scenario.agents})
    life = draw_life(scenario, seed)

    async def story(world: World) -> None:
        await Stage(world, scenario, life, record, truth).play()

    with World(seed, disk=disk, traced=False, observers=[truth]) as world:
        world.run(story)
    record.learned.sort(key=attrgetter("at_s"))
    return record


def experiment(
    scenario: Scenario, seeds: Sequence[int], *, modes: Sequence[Mode] = MODES, progress: Callable[[], None] = lambda: None
) -> list[Run]:
    """Play each seed's life in each mode. `progress` is called after each play."""
    runs: list[Run] = []
    with Disk() as disk:
        for seed in seeds:
            records: dict[Mode, Record] = {}
            judged: dict[Mode, Figures] = {}
            for mode in modes:
                record = play(scenario, seed, mode, disk)
                judged[mode] = figures(scenario, record)
                records |= {} if runs else {mode: record}
                progress()
            runs.append(Run(seed, judged, records))
    return runs
