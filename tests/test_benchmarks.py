"""The benchmarks' front door; how fast something is is no matter of passing or failing here."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from kizuki.actors import Actor, Gateway, open_gateway
from kizuki.benchmarks import SUITES, Row, draw, run
from kizuki.benchmarks.naive import Naive, open_naive
from kizuki.benchmarks.servers import missing

WATCHERS = ("agent:main:main", "agent:main:other")
TARGETS = ("agent:main:subagent:a", "agent:main:subagent:b", WATCHERS[0])


@pytest.mark.parametrize("name", SUITES)
def test_suite(name: str) -> None:
    """A suite runs alone, says what it does, and gives rows that are complete."""
    if name == "postgres" and (lacking := missing()) is not None:
        pytest.skip(lacking)
    said: list[str] = []
    rows = run([name], scale="tiny", progress=said.append)
    assert said[0] == f"{name}: {SUITES[name]}"
    assert rows
    for row in rows:
        assert (row.suite, bool(row.name)) == (name, True)
        assert row.value >= 0
        # How the two relate is the machine's affair: a ratio may be the median of interleaved pairs, not the ratio of two medians.
        assert (row.ratio is None) == (row.baseline is None)
        assert row.ok or row.target is not None
    counted = [row for row in rows if row.unit == ""]
    assert all(row.ok for row in counted), "what is counted, not timed, holds at any speed"


@pytest.mark.parametrize(("suites", "scale", "error"), [(["no such suite"], "tiny", KeyError), (None, "no such scale", ValueError)])
def test_an_unknown_name_is_an_error(suites: list[str] | None, scale: str, error: type[Exception]) -> None:
    """A name that no suite or scale has is refused before anything is measured."""
    said: list[str] = []
    with pytest.raises(error):
        run(suites, scale=scale, progress=said.append)
    assert said == []


def test_plots(tmp_path: Path) -> None:
    """Rows that have a place in a plot are drawn, one file for each plot with more than one point."""
    pytest.importorskip("matplotlib", reason="kizuki[plot] is not installed")
    row = Row("fanout", "an event", 100.0, "µs", 90.0, 1.1)
    rows = [row.at("Cost & crowd", 1, "watchers"), replace(row, value=5_000.0).at("Cost & crowd", 1_000, "watchers")]
    paths = draw([row, *rows, row.at("One point", 1, "watchers")], tmp_path / "new")
    assert paths == [tmp_path / "new" / "cost-crowd.png"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")


def test_promises() -> None:
    """A target is met by what reaches it, and missed by what does not; a row without a ratio meets no promise of one."""
    row = Row("suite", "name", 2.0, "s", 1.0, 2.0)
    assert (row.at_most(2).ok, row.at_most(1.9).ok, row.at_least(2).ok, row.at_least(2.1).ok) == (True, False, True, False)
    assert (row.ratio_at_most(2).ok, row.ratio_at_most(1.9).ok, row.ratio_at_least(2).ok, row.ratio_at_least(2.1).ok) == (
        True,
        False,
        True,
        False,
    )
    bare = replace(row, ratio=None)
    assert not bare.ratio_at_most(2).ok
    assert not bare.ratio_at_least(2).ok
    assert row.at_most(2).target == "<= 2 s"


@pytest.mark.parametrize("seed", range(3))
async def test_the_naive_design_is_correct(tmp_path: Path, seed: int) -> None:
    """Over random histories the naive design shows the notices that the gateway shows, and gives the same deltas."""
    chance = random.Random(seed)
    with open_naive(tmp_path / "naive.db") as naive:
        async with open_gateway(tmp_path / "gateway.db") as gateway:
            for watcher in WATCHERS:
                await gateway.open_session(watcher)
            for _ in range(60):
                await _step(gateway, naive, chance)
            for target in TARGETS:
                assert await _delta(gateway, target) == naive.changes(target, 0)


async def _step(gateway: Gateway, naive: Naive, chance: random.Random) -> None:
    watcher, target = chance.choice(WATCHERS), chance.choice(TARGETS)
    match chance.randrange(6):
        case 0 if watcher != target:
            await gateway.watch(watcher, target)
            naive.watch([watcher], target)
        case 1 | 2:
            event = await gateway.human_message(target, channel="telegram")
            assert naive.human_message(target, "telegram") == (event and event.sequence)
        case 3:
            agent = chance.choice([None, *WATCHERS])
            actor = Actor.human() if agent is None else Actor.agent(agent)
            changed = await gateway.goal_changed(target, "updated", actor=actor)
            assert naive.goal_changed(target, "updated", agent) == (changed and changed.sequence)
        case _:
            await _turn(gateway, naive, watcher, chance)


async def _turn(gateway: Gateway, naive: Naive, watcher: str, chance: random.Random) -> None:
    """Something may happen between the showing and the acknowledgement."""
    limit = chance.choice([1, 20])
    async with gateway.turn(watcher, notices_max=limit) as turn:
        shown = naive.take(watcher, limit)
        assert [(each.target, each.changes_since) for each in turn.notices] == [(each.target, each.changes_since) for each in shown]
        if chance.random() < 0.5:
            await gateway.human_message(TARGETS[0], channel="cli")
            naive.human_message(TARGETS[0], "cli")
    naive.acknowledge(shown)


async def _delta(gateway: Gateway, target: str) -> list[tuple[int, str]]:
    try:
        status = await gateway.session_status(target, changes_since=0)
    except LookupError:
        return []
    return [(event["sequence"], event["summary"]) for event in status["stateChanges"]["events"]]
