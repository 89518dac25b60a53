from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors.hosting.demo.checks import Checks, DemoFailed
from tests.hosting.cast import MAIN
from tests.hosting.conftest import Ended, Kizuki, run_process

RESEARCH = "agent:main:subagent:research"
WRITER = "agent:main:subagent:writer"
STEPS = ["opened", "spawned", "changed", "noticed", "read", "given_back", "held", "killed", "replayed", "reconciled", "left"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Path]:
    """One run of the demo, with the database that it left."""
    database = tmp_path_factory.mktemp("demo") / "demo.db"
    return run_process("demo", "--json", "--db", database), database


def test_document(played: tuple[Ended, Path]) -> None:
    """Rule 4.11: the demo is killed with a notice taken, and a second process has exactly that notice, byte for byte."""
    ended, _ = played
    assert (ended.code, ended.err) == (0, "")
    assert [step["step"] for step in ended.document["steps"]] == STEPS
    steps = {step["step"]: step for step in ended.document["steps"]}
    assert steps["killed"]["signal"] == "SIGKILL"
    assert steps["replayed"]["pid"] != steps["held"]["pid"]
    assert len(steps["reconciled"]["delta"]["events"]) == 21
    (text,) = steps["held"]["promptLines"]
    assert [notice["text"] for notice in steps["replayed"]["notices"]] == [text]


def test_what_it_leaves(played: tuple[Ended, Path], kizuki: Kizuki) -> None:
    """The commands that the demo names work on the database that it leaves."""
    ended, database = played
    for line in ended.document["try"]:
        assert kizuki(*line.split()[1:]).code == 0
    assert f'"{WRITER}"' in kizuki("notices", MAIN, "--db", database).out
    assert kizuki("doctor", "--db", database).code == 0


def lose_an_event(step: dict[str, Any]) -> None:
    step["events"][3] = None


def lose_a_change(step: dict[str, Any]) -> None:
    del step["delta"]["events"][5]


def change_the_text(step: dict[str, Any]) -> None:
    step["notices"][0]["text"] += " "


def double_the_notice(step: dict[str, Any]) -> None:
    step["notices"] *= 2


def wake_twice(step: dict[str, Any]) -> None:
    step["wakes"] *= 2


def move_the_cursor(step: dict[str, Any]) -> None:
    step["watches"][0]["lastSeen"] += 1


def show_nothing(step: dict[str, Any]) -> None:
    step["promptLines"] = []


def survive(step: dict[str, Any]) -> None:
    step["signal"] = None


def check_all(steps: list[dict[str, Any]]) -> None:
    checks = Checks("en")
    for step in steps:
        checks.check(step)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("spawned", move_the_cursor),
        ("changed", lose_an_event),
        ("noticed", change_the_text),
        ("noticed", double_the_notice),
        ("noticed", wake_twice),
        ("read", lose_a_change),
        ("read", show_nothing),
        ("given_back", change_the_text),
        ("given_back", move_the_cursor),
        ("held", show_nothing),
        ("killed", survive),
        ("killed", move_the_cursor),
        ("replayed", double_the_notice),
        ("replayed", change_the_text),
        ("replayed", move_the_cursor),
        ("reconciled", lose_a_change),
        ("reconciled", move_the_cursor),
        ("left", double_the_notice),
    ],
)
def test_wrong_outcomes(played: tuple[Ended, Path], name: str, spoil: Callable[[dict[str, Any]], None]) -> None:
    """An outcome that is not what it must be fails the demo at that step, and says what was found."""
    steps = copy.deepcopy(played[0].document["steps"])
    spoil(steps[STEPS.index(name)])
    with pytest.raises(DemoFailed) as failed:
        check_all(steps)
    assert failed.value.step == name
    assert json.dumps(failed.value.row())


def test_timeline(tmp_path: Path) -> None:
    """The timeline shows the exact notice, the delta, the crash and the figures; a second run takes the place of the first."""
    for _ in range(2):
        ended = run_process("demo", "--fast", "--language", "ja", "--db", tmp_path / "d.db")
        assert (ended.code, ended.err) == (0, "")
    notice = f'session_status sessionKey "{RESEARCH}" changesSince 1.'
    assert ended.out.count(notice) == 3
    assert ended.out.count("human ada") == 21
    for shown in ("SIGKILL", "byte for byte", "21 changes, 1 line of prompt", "kizuki notices", "が変更されました"):
        assert shown in ended.out


def test_other_files_are_left_alone(kizuki: Kizuki, database: Path, tmp_path: Path) -> None:
    """A file that no demo made is not overwritten, whether it is a database of kizuki's or not."""
    other = tmp_path / "notes.txt"
    other.write_text("mine", "utf-8")
    for file in (other, database, tmp_path):
        ended = kizuki("demo", "--fast", "--db", file)
        assert (ended.code, ended.out) == (1, "")
        assert "no demo made it" in ended.err
    assert other.read_text("utf-8") == "mine"
    assert kizuki("list", "--json", "--db", database).document["sessions"]


def test_folder_that_is_not_there(tmp_path: Path) -> None:
    """Where the database cannot be made, the demo ends with an error and no traceback."""
    ended = run_process("demo", "--fast", "--db", tmp_path / "none" / "d.db")
    assert ended.code == 1
    assert "Traceback" not in ended.err
