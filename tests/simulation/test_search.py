"""Random histories under faults: nothing is broken, what is broken is found, and a failing history is made small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from kizuki.actors.hosting.exits import CommandFailed
from kizuki.actors.hosting.simulate_faults import parse_kinds, parse_seeds
from kizuki.actors.simulation.disk import Disk
from kizuki.actors.simulation.faults import CommitSlow, CrashAtCommit
from kizuki.actors.simulation.plan import FAULT_KINDS
from kizuki.actors.simulation.search.campaign import play_seeds
from kizuki.actors.simulation.search.histories import History, long_history, short_history
from kizuki.actors.simulation.search.shrinking import shrink
from kizuki.actors.simulation.search.trial import play
from tests.simulation.mutants import hunt
from tests.simulation.mutations import MUTATIONS

SAMPLE = range(1, 61)
"""What a run of the suite plays; `kizuki simulate --faults all --seeds 1..100000` plays more."""
CAUGHT_SOON = ("acknowledge_to_the_head", "gap_mark_forgotten", "hint_dropped", "limit_ignored", "opening_forgotten", "text_not_pinned")


def test_no_rule_is_broken_under_faults() -> None:
    """Whatever hosts ask and whatever fails, each rule of sections 1, 3 to 6 and 8 holds all the time."""
    figures = play_seeds(SAMPLE, FAULT_KINDS, long=False)
    assert figures.failures == []
    assert figures.counts["crashes"] > len(SAMPLE)
    assert figures.counts["notices shown"] > 2 * len(SAMPLE)
    assert figures.counts["openings owed"] > 0
    assert len(figures.struck) >= 12


def test_a_gateway_dies_while_another_starts() -> None:
    """Rule 8.2: what becomes free after a starting gateway has looked who is dead is taken over as it is pinned, not replayed."""
    history = short_history(1888)
    died_before = history.faults[0]
    at_once = CommitSlow("b", number=21, before_s=2.4, after_s=2.6), CrashAtCommit("a", number=26, committed=False)
    with Disk() as disk:
        outcome = play(replace(history, faults=(died_before, *at_once)), disk, traced=True)
    assert outcome.problem is None
    assert "crash before its commit" in outcome.trace.split("fault CommitSlow")[1].split("open as gateway 3")[0]


@pytest.mark.parametrize("seed", [6261, 7081, 7150, 13972, 17068, 29266, 35660, 36731, 38743, 46970, 49344])
def test_histories_that_broke_something_once(seed: int) -> None:
    """Nothing any more. In 17068 a wake was lost, in 35660 and 36731 a replay came too early, in 46970 a watcher did not wait for what was
    owed; of the others only the oracle thought so."""
    with Disk() as disk:
        assert play(short_history(seed), disk).problem is None


def test_most_kills_land_between_commit_and_reply() -> None:
    """At least half of all kills do, and callers tell what they know nothing of again."""
    counts = play_seeds(range(1001, 1016), ("crash",), long=False).counts
    assert counts["crashes between commit and reply"] >= counts["crashes"] / 2
    assert counts["told again"] > 0
    assert counts["repeats"] > 0


def test_a_long_history() -> None:
    """Hundreds of operations on thirty sessions, with crashes all along, break nothing either."""
    history = long_history(1)
    with Disk() as disk:
        outcome = play(replace(history, operations=history.operations[:200]), disk)
    assert outcome.problem is None
    assert outcome.counts["crashes"] > 2


@pytest.mark.parametrize("name", CAUGHT_SOON)
def test_a_broken_variant_is_found(name: str) -> None:
    """What `python -m tests.simulation.mutants` does for all of them."""
    verdict = hunt(name, seeds_max=20)
    assert verdict.seed is not None


def test_there_are_enough_broken_variants() -> None:
    """Each says what it breaks, and finds what it changes."""
    for variant in MUTATIONS.values():
        with variant.applied():
            pass
    assert len(MUTATIONS) >= 15
    assert all(mutation.what.endswith(".") for mutation in MUTATIONS.values())


def test_a_failing_history_is_made_small() -> None:
    """What is left still breaks the same rule, and is the same every time."""

    def made_small() -> History:
        with MUTATIONS["opening_forgotten"].applied(), Disk() as disk:
            outcome = play(short_history(1), disk)
            assert outcome.rule is not None
            shrunk = shrink(short_history(1), outcome.rule, disk)
            assert shrunk.outcome.rule == outcome.rule
            assert "Append" in shrunk.outcome.trace
            return shrunk.history

    small = made_small()
    assert len(small.operations) <= 4
    assert small.faults == ()
    assert small == made_small()


def traces(hash_seed: str, first: int, last: int) -> str:
    """The traces of these seeds, played in a process of its own."""
    code = (
        "from kizuki.actors.simulation.disk import Disk\n"
        "from kizuki.actors.simulation.search.histories import short_history\n"
        "from kizuki.actors.simulation.search.trial import play\n"
        "with Disk() as disk:\n"
        f"    for seed in range({first}, {last} + 1):\n"
        "        history = short_history(seed)\n"
        "        print(history.operations, history.faults, play(history, disk, traced=True))\n"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


def test_a_seed_is_the_same_history_in_every_process() -> None:
    """Operations, faults, traces and figures are the same bytes, with different hash seeds."""
    one = traces("0", 1, 6)
    assert one == traces("4711", 1, 6)
    assert one.count("fault ") > 6


def found(hash_seed: str) -> tuple[str, str]:
    """What the command prints as JSON in a process of its own, and what it says beside it."""
    command = [sys.executable, "-m", "kizuki.actors.hosting.cli", "simulate", "--faults", "all", "--seeds", "1..4", "--json"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return done.stdout, done.stderr


def test_the_same_seeds_print_the_same_bytes() -> None:
    """The command's JSON is the same in two processes with different hash seeds; how long it took is told on standard error."""
    (one, beside), (another, _) = found("0"), found("4711")
    assert one == another
    assert json.loads(one)["histories"] == 4
    assert "seeds a second" in beside


def test_a_seed_does_not_depend_on_what_was_played_before() -> None:
    """So that a failing seed can be played alone."""
    with Disk() as used, Disk() as new:
        for seed in (1, 2, 3):
            play(short_history(seed), used)
        assert play(short_history(7), used, traced=True) == play(short_history(7), new, traced=True)


def test_the_command_says_how_to_play_a_failing_seed_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The seed, the rule, the way to play it, and the small history are printed."""
    from kizuki.actors.hosting.simulate_faults import run_search

    with MUTATIONS["head_stays_behind"].applied():
        assert run_search("none", "1..2", long=False, as_json=False, processes=1) == 1
    printed = capsys.readouterr().out
    assert "kizuki simulate --faults none --seeds 1..1" in printed
    assert "rule 1.11" in printed
    assert "operations and 0 faults are enough" in printed


def test_the_way_to_play_it_again_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """However the kinds of faults were written; among JSON, too."""
    from kizuki.actors.hosting.simulate_faults import run_search

    with MUTATIONS["head_stays_behind"].applied():
        assert run_search("wake, crash", "1", long=False, as_json=True, processes=1) == 1
    assert json.loads(capsys.readouterr().out)["again"] == ["kizuki simulate --faults crash,wake --seeds 1..1"]


def test_what_to_search_is_checked() -> None:
    """Kinds of faults and seeds that are none are refused, and the message says what is allowed."""
    assert parse_kinds("all") == FAULT_KINDS
    assert parse_kinds("none") == ()
    assert parse_kinds("wake, crash") == ("crash", "wake")
    assert parse_seeds("3..5") == range(3, 6)
    assert parse_seeds("7") == range(7, 8)
    with pytest.raises(CommandFailed, match="all, none, or some of crash"):
        parse_kinds("crash,fire")
    for wrong in ("", "a", "5..3", "1..", "-1"):
        with pytest.raises(CommandFailed, match=r"1\.\.1000"):
            parse_seeds(wrong)
