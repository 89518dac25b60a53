"""Scenarios as they are played: what kizuki promises to agents, and that the four ways are compared over one life."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kizuki.actors.simulation.disk import Disk
from kizuki.actors.simulation.playing.experiment import play
from kizuki.actors.simulation.playing.figures import figures, waits_of
from kizuki.actors.simulation.playing.modes import MODES, Mode
from kizuki.actors.simulation.report.bands import bands
from kizuki.actors.simulation.scenario_file import parse_scenario
from kizuki.actors.simulation.shipped import load_scenario, shipped


@pytest.fixture(scope="module")
def disk() -> Iterator[Disk]:
    """One database for all worlds."""
    with Disk() as opened:
        yield opened


@pytest.mark.parametrize("name", shipped())
def test_no_act_that_a_turn_boundary_could_have_saved(name: str, disk: Disk) -> None:
    """Rules 4.3 and 4.8: with kizuki no act rests on an assumption that a material event committed before the act's turn began has made
    stale; and each such event is known to every watcher that began a turn after it."""
    scenario = load_scenario(name)
    record = play(scenario, 1, "kizuki", disk)
    assert [act for act in record.acts if act.preventable] == []
    assert any(act.assumes for act in record.acts)
    turns_of = {
        agent.name: [turn for turn in record.turns if turn.agent == agent.name and turn.kind == "plan"] for agent in scenario.agents
    }
    for wait in waits_of(scenario, record):
        later = [turn for turn in turns_of[wait.watcher] if turn.ended == "well" and turn.begins_s > wait.event.at_s]
        assert not later or wait.knew_at_s <= (later[0].ends_s or 0.0)


def test_without_notices_it_goes_wrong(disk: Disk) -> None:
    """The measure has teeth: the same life with notices off has acts that one line would have prevented."""
    scenario = load_scenario("takeover")
    assert figures(scenario, play(scenario, 1, "off", disk)).preventable_acts > 5


@pytest.mark.parametrize("name", ["takeover", "nested", "external"])
def test_one_life_in_four_ways(name: str, disk: Disk) -> None:
    """People, acts and events are the same in every mode, to the millisecond where the agents plan them; only what is known differs."""
    scenario = load_scenario(name)
    records = [play(scenario, 2, mode, disk) for mode in MODES]
    assert len({tuple(record.visits) for record in records}) == 1
    assert len({tuple((round(act.at_s), act.agent, act.does, act.assumes) for act in record.acts) for record in records}) == 1
    assert len({tuple((event.target, event.kind, event.actor) for event in record.events) for record in records}) == 1
    assert len({tuple(act.stale for act in record.acts) for record in records}) > 1


def test_lines_of_a_dead_process(disk: Disk) -> None:
    """Rule 4.8 and 4.11: a notice that was shown in a turn which died is shown again; a line in memory is gone with its process."""
    scenario = load_scenario("gateway-dies")
    kizuki, every = play(scenario, 1, "kizuki", disk), play(scenario, 1, "every", disk)
    assert sum(turn.ended == "died" for turn in kizuki.turns) == 2
    assert len(kizuki.notices) > len(every.notices)
    assert figures(scenario, kizuki).unaware == 0
    assert figures(scenario, every).unaware > 0
    assert {band.state for band in bands(kizuki, ("manager", "worker"))} == {"fresh", "waiting"}
    assert {band.state for band in bands(every, ("manager", "worker"))} == {"fresh", "waiting", "stale"}


def test_a_watcher_that_never_runs(disk: Disk) -> None:
    """Rule 4.4: however much happens, one notice a target waits for it, and it has no turn."""
    scenario = load_scenario("never-runs")
    record = play(scenario, 1, "kizuki", disk)
    assert not [turn for turn in record.turns if turn.agent == "archivist"]
    pending = disk.look.execute(
        "SELECT count(*) FROM session_watch_positions WHERE watcher_session_key = ? AND notified_sequence > last_seen_sequence",
        ("agent:archivist:main",),
    ).fetchone()
    assert pending == (3,)
    assert sum(event.notifies for event in record.events) > 12


def test_bursts_become_few_lines(disk: Disk) -> None:
    """Rule 4.4: eighty edits are a fraction of the lines that a line an event takes, with no more acts on stale assumptions."""
    scenario = load_scenario("burst")
    few, many = (figures(scenario, play(scenario, 1, mode, disk)) for mode in ("kizuki", "every"))
    assert few.prompt_lines * 4 < many.prompt_lines
    assert few.preventable_acts <= many.preventable_acts
    assert few.stale_acts == many.stale_acts


TIGHT = """
title = "More changes than one prompt has room for"
lasts = "10m"
[[agents]]
name = "manager"
rounds = 1
[[agents.steps]]
does = "acts"
takes = "1m"
after = "5m"
assumes = ["worker"]
[[agents]]
name = "worker"
parent = "manager"
count = 30
[[people]]
name = "Ana"
into = ["worker"]
at = [{times}]
""".replace("{times}", ", ".join(f'"4m 59s {500 + number}ms"' for number in range(100)))


def test_it_catches_up_before_it_acts(disk: Disk) -> None:
    """Rule 4.7: what has no room in one turn is in the next, and who reads on until nothing is left acts on nothing stale."""
    scenario = parse_scenario("tight", TIGHT)
    record = play(scenario, 1, "kizuki", disk)
    assert [(turn.kind, turn.lines) for turn in record.turns if turn.agent == "manager"][:1] == [("catch-up", 20)]
    assert {notice.target for notice in record.notices} == {visit.target for visit in record.visits}
    assert sum(turn.kind == "catch-up" for turn in record.turns) >= 1
    assert max(turn.lines for turn in record.turns) == 20
    assert [act.stale for act in record.acts] == [()]


@pytest.mark.parametrize("mode", MODES)
def test_a_run_is_a_function_of_its_seed(mode: Mode, disk: Disk) -> None:
    """Played again, on a database that others have used meanwhile, a run is the same in all that was seen of it."""
    scenario = load_scenario("coordinators")
    one = play(scenario, 5, mode, disk)
    play(load_scenario("takeover"), 1, mode, disk)
    assert play(scenario, 5, mode, disk) == one
