"""Scenarios as they are written: what is read, and what an error says."""

from __future__ import annotations

from codecs import BOM_UTF8
from pathlib import Path

import pytest

from kizuki.actors.simulation.durations import Span, duration_text, parse_duration, parse_span
from kizuki.actors.simulation.life import draw_life
from kizuki.actors.simulation.places import ScenarioError
from kizuki.actors.simulation.scenario_file import parse_scenario
from kizuki.actors.simulation.shipped import ScenarioNotFound, load_scenario, shipped

TOP = 'title = "T"\nlasts = "10m"\n'
AGENT = '[[agents]]\nname = "a"\n'
STEP = '[[agents.steps]]\ndoes = "acts"\ntakes = "1m"\n'
CHILD = '[[agents]]\nname = "b"\nparent = "a"\n'
OTHER = '[[agents]]\nname = "b"\n'
GATEWAY = '[[gateways]]\nname = "a"\n'
PERSON = '[[people]]\nname = "Ana"\ninto = ["a"]\n'

WRONG = [
    ("lasts = ", "the file: it is no TOML: "),
    ('lasts = "10m"\n' + AGENT, "title: it is missing: write one line of text"),
    ('title = "T"\nlasts = "2 weeks"\n' + AGENT, "lasts: it is '2 weeks': write a duration such as 90s, 5m or 1h 30m"),
    ('title = "T"\nlasts = "0s"\n' + AGENT, "lasts: it is '0s': nothing happens in no time"),
    ('title = "T"\nlasts = 5\n' + AGENT, "lasts: it is 5: write a duration"),
    (TOP, "agents: it is missing: write at least one [[agents]]"),
    (TOP + "agents = 3\n", "agents: it is 3: write tables"),
    ("titel = 1\n" + TOP + AGENT, "the file: there is no key 'titel' here: did you mean title?"),
    (TOP + AGENT + "colour = 1\n", "agents[1] ('a'): there is no key 'colour' here: "),
    (TOP + AGENT + STEP + "take = 1\n", "agents[1] ('a').steps[1]: there is no key 'take' here: did you mean takes?"),
    (TOP + AGENT + STEP.replace("1m", "5m..2m"), "agents[1] ('a').steps[1].takes: it is '5m..2m': write a duration"),
    (TOP + AGENT + STEP.replace("1m", "0s"), "agents[1] ('a').steps[1].takes: it is '0s': acting takes some time"),
    (TOP + AGENT + STEP + 'assumes = ["x"]\n', "agents[1] ('a').steps[1].assumes: it is ['x']: there is no agent 'x': there are a"),
    (TOP + AGENT + STEP + 'assumes = ["b"]\n' + OTHER, "steps[1].assumes: it is ['b']: a does not watch b: be its parent"),
    (TOP + AGENT + STEP + 'sends_to = "a"\n', "agents[1] ('a').steps[1].sends_to: it is 'a': name one other agent"),
    (TOP + AGENT + STEP + "fails = 2\n", "agents[1] ('a').steps[1].fails: it is 2: write a number from 0 to 1"),
    (TOP + AGENT + 'ends = "well"\n', "agents[1] ('a').ends: it is 'well': write ok, error, timeout or cancelled"),
    (TOP + AGENT + "count = 0\n", "agents[1] ('a').count: it is 0: write a whole number from 1 to 2,000"),
    (TOP + AGENT + "runs = 1\n", "agents[1] ('a').runs: it is 1: write true or false"),
    (TOP + AGENT + AGENT, "agents[2] ('a').name: it is 'a': each agent needs a name of its own"),
    (TOP + AGENT + '[[agents]]\nname = "A"\n', "agents[2] ('A').name: it is 'A': there is another agent with the session agent:a:main"),
    (TOP + AGENT.replace('"a"', '"a b"'), "agents[1].name: it is 'a b': write a name of 1 to 64"),
    (TOP + CHILD, "agents[1] ('b').parent: it is 'a': name one agent that stands above it in the file"),
    (TOP + AGENT + 'vanishes = "1m"\n', "agents[1] ('a').vanishes: it is '1m': only an external session vanishes"),
    (TOP + AGENT + 'external = "claude"\n' + STEP, "agents[1] ('a').external: it is 'claude': an external session has neither steps"),
    (TOP + AGENT + 'gateway = "z"\n', "agents[1] ('a').gateway: it is 'z': write a"),
    (TOP + AGENT + PERSON, "people[1] ('Ana').at: it is missing: say when"),
    (TOP + AGENT + PERSON + 'at = ["9m", "11m"]\n', "people[1] ('Ana').at: it is ['9m', '11m']: each time must be before the end"),
    (TOP + AGENT + PERSON + 'at = "10m"\n', "Ana').at: it is '10m': each time must be before the end of the scenario, which lasts 10m"),
    (TOP + AGENT + 'compacts = "10m"\n', "agents[1] ('a').compacts: it is '10m': each time must be before the end"),
    (TOP + AGENT + 'starts = "1h"\n', "agents[1] ('a').starts: it is '1h': each time must be before the end"),
    (TOP + AGENT + 'external = "claude"\nvanishes = "11m"\n', "agents[1] ('a').vanishes: it is '11m': each time must be before the end"),
    (TOP + AGENT + GATEWAY + 'dies = "11m"\n', "gateways[1].dies: it is '11m': each time must be before the end"),
    (TOP + AGENT + PERSON + 'at = ["soon"]\n', "people[1] ('Ana').at: it is ['soon']: write a list of times"),
    (TOP + AGENT + PERSON.replace('["a"]', "[]") + "per_hour = 1\n", "people[1] ('Ana').into: it is []: say whose sessions"),
    (TOP + AGENT + (PERSON + "per_hour = 1\n") * 2, "people[2].name: it is 'Ana': each needs a name of its own"),
    (TOP + AGENT + '[polling]\nevery = "0s"\n', "polling.every: it is '0s': that would be all the time"),
    (TOP + AGENT + GATEWAY + 'dies = ["1m", "2m"]\n', "gateways[1].dies: it is ['1m', '2m']: a gateway that is not started again"),
    (TOP + "x = " + "9" * 5_000, "the file: it is no TOML that can be read: a number has too many digits"),
    ("x = " + "[" * 5_000 + "]" * 5_000, "the file: it is nested too deeply"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "says"), WRONG, ids=range(len(WRONG)))
def test_an_error_says_where_and_what(text: str, says: str) -> None:
    """An error names the place in the file, the value, and what is allowed; keys that nobody knows are refused."""
    with pytest.raises(ScenarioError) as error:
        parse_scenario("s", text)
    assert says in str(error.value)


def test_a_mark_before_the_text(tmp_path: Path) -> None:
    """A file that an editor saved with a byte order mark is read like any other; an error counts bytes as they are in the file."""
    marked = tmp_path / "marked.toml"
    marked.write_bytes(BOM_UTF8 + (TOP + AGENT).encode())
    assert load_scenario(str(marked)) == parse_scenario("marked", TOP + AGENT)
    marked.write_bytes(BOM_UTF8 + b"title = '\xe9'")
    with pytest.raises(ScenarioError, match="it is no UTF-8: byte 13 is 0xe9"):
        load_scenario(str(marked))


def test_groups_are_written_out() -> None:
    """A group's name stands for all of its members, each of which has a session of its own."""
    scenario = parse_scenario("s", TOP + AGENT + STEP + 'assumes = ["b"]\npicks = 2\n' + CHILD + "count = 12\n")
    parent = scenario.agent("a")
    assert parent.steps[0].assumes == scenario.targets_of(parent) == tuple(f"b-{number:02}" for number in range(1, 13))
    assert scenario.agent("b-07").key == "agent:a:subagent:b-07"
    assert all(len(act.assumes) == 2 for turn in draw_life(scenario, 1).turns["a"] for act in turn.acts)


def test_nested_children() -> None:
    """Rule 2.1: the key of a child's child holds its parent's."""
    scenario = parse_scenario("s", TOP + AGENT + CHILD + '[[agents]]\nname = "c"\nparent = "b"\n')
    assert scenario.agent("c").key == "agent:a:subagent:b:subagent:c"
    assert [agent.is_woken for agent in scenario.agents] == [True, False, False]


def test_steps_of_one_turn() -> None:
    """A step with same_turn goes on in the turn of the step before, and a plan is gone through as far as the scenario lasts."""
    scenario = parse_scenario("s", TOP + AGENT + "rounds = 9\n" + STEP + STEP + "same_turn = true\n")
    life = draw_life(scenario, 1)
    assert [(turn.begins_s, [act.at_s for act in turn.acts]) for turn in life.turns["a"]] == [
        (0, [60, 120]), (120, [180, 240]), (240, [300, 360]), (360, [420, 480]),
    ]  # fmt: skip
    assert life.finished == frozenset()


def test_one_more_changes_nobody_elses_life() -> None:
    """Each agent and person draws from a source of its own."""
    one = parse_scenario("s", TOP + AGENT + PERSON + "per_hour = 60\n")
    two = parse_scenario("s", TOP + AGENT + CHILD + PERSON + "per_hour = 60\n" + PERSON.replace("Ana", "Ben") + "per_hour = 60\n")
    assert draw_life(one, 3).visits == tuple(visit for visit in draw_life(two, 3).visits if visit.person == "Ana")
    assert draw_life(one, 3) != draw_life(one, 4)


@pytest.mark.parametrize(("text", "seconds"), [("250ms", 0.25), ("90s", 90), ("1h 30m", 5_400), ("1h30m", 5_400), ("1.5d", 129_600)])
def test_durations(text: str, seconds: float) -> None:
    """Durations have units, in any number."""
    assert parse_duration(text) == seconds
    assert parse_span(f"0s..{text}") == Span(0, seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "-1s", "1 h", "5x", "31d", "1s  2s", "٣s", "9" * 70 + "s"])
def test_no_durations(text: str) -> None:
    """What is no duration is refused."""
    with pytest.raises(ValueError) as error:  # noqa: PT011 - its text is the duration, which the reader of scenarios does not show
        parse_duration(text)
    assert str(error.value) == text.strip()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "250ms"), (4.52, "4.5s"), (59, "59s"), (90, "1m 30s"), (5_400, "1h 30m"), (86_400, "1d")]
)
def test_durations_for_people(seconds: float, text: str) -> None:
    """A duration is told in at most two units."""
    assert duration_text(seconds) == text


def test_what_is_shipped() -> None:
    """Every shipped scenario can be read, and says what it is about; another name is not found."""
    assert len(shipped()) >= 8
    for name in shipped():
        scenario = load_scenario(name)
        assert scenario.title
        assert scenario.about
        assert any(step.assumes for agent in scenario.agents for step in agent.steps)
    with pytest.raises(ScenarioNotFound):
        load_scenario("no-such")
