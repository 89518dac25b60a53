"""`kizuki simulate`: its output, its exit codes, and its report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kizuki.actors.hosting import cli
from kizuki.actors.simulation.playing.experiment import experiment
from kizuki.actors.simulation.playing.modes import MODES
from kizuki.actors.simulation.report.page import report_page
from kizuki.actors.simulation.scenario_file import parse_scenario

EVIL = "<script>alert('1')</script>"
HOSTILE = f"""
title = "{EVIL}&amp;"
about = "</style><img src=x onerror=alert(1)>"
lasts = "20m"
# {EVIL}
[[agents]]
name = "m{EVIL}"
role = "{EVIL}"
rounds = 9
[[agents.steps]]
does = "</title>{EVIL}"
takes = "1m..2m"
assumes = ["w'>{EVIL}"]
[[agents]]
name = "w'>{EVIL}"
parent = "m{EVIL}"
[[people]]
name = "{EVIL}"
channel = "{EVIL}"
into = ["w'>{EVIL}"]
per_hour = 20
"""


EVENTFUL = """
title = "A little of everything"
lasts = "8m"
[polling]
every_turns = 2
every = "3m"
[[gateways]]
name = "east"
dies = ["4m 10s"]
down = "30s"
[[gateways]]
name = "west"
[[agents]]
name = "manager"
rounds = 20
watches = ["laptop"]
[[agents.steps]]
does = "plans"
takes = "20s..40s"
after = "0s..30s"
assumes = ["worker", "laptop"]
picks = 3
fails = 0.2
[[agents.steps]]
does = "asks the peer"
takes = "10s..20s"
likely = 0.5
sends_to = "peer"
changes_goal_of = "worker-1"
checks = ["worker"]
[[agents]]
name = "worker"
parent = "manager"
gateway = "west"
count = 3
rounds = 2
ends = "timeout"
compacts = ["3m"]
[[agents.steps]]
does = "writes"
takes = "30s..90s"
[[agents]]
name = "peer"
gateway = "west"
watches = ["worker"]
[[agents]]
name = "laptop"
external = "codex"
vanishes = "3m"
[[people]]
name = "Ana"
into = ["worker", "laptop"]
per_hour = 60
burst = 3
within = "20s"
"""


def ended(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> tuple[object, str, str]:
    """The command's exit code and output."""
    monkeypatch.setattr(sys, "argv", ["kizuki", "simulate", *map(str, arguments)])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    out, err = capsys.readouterr()
    return exit_.value.code, out, err


def printing(hash_seed: str, scenario: Path) -> subprocess.Popen[bytes]:
    """A process of its own that prints."""
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "kizuki.actors.hosting.entry", "simulate", str(scenario), "--runs", "2", "--json"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


def test_one_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """Two processes with different hash seeds print the same bytes for one seed; another seed is another life."""
    scenario = tmp_path / "eventful.toml"
    scenario.write_text(EVENTFUL)
    with printing("0", scenario) as first_process, printing("4711", scenario) as second_process:
        one, another = (process.communicate(timeout=120)[0] for process in (first_process, second_process))
    assert one == another
    first, second = json.loads(one)["runs"]
    assert first["modes"] != second["modes"]


def test_document(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The document has each run's figures in each mode, and their spread over the runs; nothing of it is on standard error."""
    code, out, err = ended(capsys, monkeypatch, "takeover", "--runs", 2, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["scenario"], document["seeds"]) == ("takeover", [1, 2])
    assert list(document["summary"]) == list(MODES)
    for mode in MODES:
        stale = [run["modes"][mode]["staleActs"] for run in document["runs"]]
        spread = document["summary"][mode]["staleActs"]
        assert (spread["min"], spread["max"]) == (min(stale), max(stale))
    assert document["summary"]["kizuki"]["preventableActs"]["max"] == 0


def test_table_and_report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without --json a table of the four ways is printed, and the report is a file."""
    report = tmp_path / "report.html"
    code, out, err = ended(capsys, monkeypatch, "takeover", "--runs", 1, "--report", report)
    assert (code, err) == (0, "")
    assert all(title in out for title in ("kizuki", "notices off", "naive polling", "notify on every event"))
    assert report.read_text("utf-8").startswith("<!DOCTYPE html>")


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """--list names what is shipped, with a line each."""
    code, out, _ = ended(capsys, monkeypatch, "--list", "--json")
    assert code == 0
    assert {each["name"] for each in json.loads(out)["scenarios"]} >= {"takeover", "fleet", "gateway-dies"}
    assert "A manager with 200 children" in ended(capsys, monkeypatch, "--list")[1]


def test_what_cannot_be_played(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Exit codes: 3 for what is not there, 2 for a scenario that is wrong, a missing name or a report that has no place."""
    (tmp_path / "wrong.toml").write_text('title = "T"\nlasts = "soon"\n')
    (tmp_path / "latin.toml").write_bytes('title = "é"\n'.encode("latin-1"))
    for code, says, arguments in (
        (3, "the shipped ones are afternoon", ["no-such"]),
        (2, "lasts: it is 'soon'", [tmp_path / "wrong.toml"]),
        (2, "it is no UTF-8: byte 10 is 0xe9", [tmp_path / "latin.toml"]),
        (2, "--list", []),
        (2, "histories of its own", ["takeover", "--faults", "all"]),
        (2, "histories of its own", ["--faults", "all", "--list"]),
        (2, "there is no folder", ["takeover", "--report", tmp_path / "nowhere" / "r.html"]),
        (2, "is a folder", ["takeover", "--report", tmp_path]),
    ):
        found, out, err = ended(capsys, monkeypatch, *arguments)
        assert (found, out) == (code, "")
        assert says in err


class Elements(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_report_of_hostile_names() -> None:
    """Whatever a scenario calls itself, its agents and its people, the report has no script, no handler, and nothing from outside."""
    scenario = parse_scenario(EVIL, HOSTILE)
    page = report_page(scenario, experiment(scenario, [1, 2]))
    elements = Elements()
    elements.feed(page)
    assert elements.open == []
    assert not {"script", "img", "link", "iframe", "object", "image", "use", "a"} & set(elements.tags)
    assert not [name for name, _ in elements.attributes if name.startswith("on") or name in {"src", "href", "xlink:href"}]
    assert "default-src 'none'" in str([value for name, value in elements.attributes if name == "content"])
    assert not any(outside in page for outside in ("http:", "https:", "url(", "@import"))
    assert EVIL not in page
    assert elements.tags.count("svg") == 9
    assert "prefers-color-scheme: dark" in page
