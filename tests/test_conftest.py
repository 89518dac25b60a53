"""The guards of `conftest.py` catch what they are there for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

# Its last lines stand in for the library: to the guard that is whatever code lies in the library's folders.
IMPORTS = """
import asyncio, threading, time, warnings, pytest, kizuki.storage
code = compile("def hold_up():\\n    time.sleep(0.0001)\\n", kizuki.storage.__path__[0] + "/hold_up.py", "exec")
exec(code, globals())
"""
CAUGHT = """
async def test_leaves_a_task():
    global kept
    kept = asyncio.create_task(asyncio.sleep(100))

def test_leaves_a_thread():
    threading.Thread(target=threading.Event().wait, args=(30,), daemon=True).start()

async def test_blocks_the_loop():
    hold_up()

def test_warns():
    warnings.warn("this is old")

def test_is_skipped():
    pytest.skip("no server")

@pytest.mark.skip(reason="no other server")
def test_is_marked_as_skipped():
    pass
"""
HARMLESS = """
async def test_a_task_that_ended():
    await asyncio.create_task(asyncio.sleep(0))

async def test_a_thread_that_ended():
    await asyncio.to_thread(int)

def test_missing_fixtures():
    pytest.skip("fixtures: not here")

@pytest.mark.xfail(reason="known")
def test_an_expected_failure():
    assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with this one's guards and settings, as in CI."""
    here = Path(__file__).parent
    shutil.copy(here.parent / "pyproject.toml", pytester.path)
    shutil.copy(here / "conftest.py", pytester.path)
    shutil.copy(here / "postgres.py", pytester.mkdir("tests"))
    monkeypatch.setenv("KIZUKI_CI", "1")
    return pytester


def run(project: pytest.Pytester, **bodies: str) -> pytest.RunResult:
    for name, body in bodies.items():
        (project.path / "tests" / f"test_{name}.py").write_text(IMPORTS + body)
    return project.runpytest_subprocess("-p", "no:cacheprovider")


def test_what_is_caught(project: pytest.Pytester) -> None:
    """A task or a thread left behind, a blocked loop, a warning, and in CI any skip, fails its test."""
    result = run(project, it=CAUGHT)
    result.assert_outcomes(passed=2, errors=3, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "E *tasks left after the test: *",
            "E *threads left after the test: *",
            "E *BlockingError: *",
            "E *UserWarning: this is old",
            "skipped in CI, where nothing may be missing: no server",
            "skipped in CI, where nothing may be missing: no other server",
        ]
    )


def test_what_is_caught_in_collecting(project: pytest.Pytester) -> None:
    """A mark that nobody declared, and in CI a skipped test file, fail the run."""
    result = run(project, file="pytest.skip('no server', allow_module_level=True)", mark="@pytest.mark.slwo\ndef test_it(): pass")
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines_random(["skipped in CI, where nothing may be missing: no server", "*'slwo' not found in `markers`*"])


def test_what_is_allowed(project: pytest.Pytester) -> None:
    """What has ended, a skip for missing fixtures, and an expected failure pass in CI."""
    run(project, it=HARMLESS).assert_outcomes(passed=2, skipped=1, xfailed=1)


def test_skips_are_skips_at_home(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside CI a missing server skips its tests."""
    monkeypatch.delenv("KIZUKI_CI")
    run(project, it="def test_it():\n    pytest.skip('no server')\n").assert_outcomes(skipped=1)
