"""The examples of the README, and of the pages on adapters and observability, run as they stand there."""

import importlib.resources
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
HOSTING = importlib.resources.files("kizuki.actors.hosting")
ADAPTERS = (HOSTING / "integrations" / "README.md").read_text(encoding="utf-8")
OBSERVABILITY = (HOSTING / "observability" / "README.md").read_text(encoding="utf-8")
SDKS = ("claude_agent_sdk", "agents", "langchain", "pydantic_ai")
"""The SDKs in the order of their examples."""


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def printed(example: str) -> str:
    ran = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_example_prints_what_the_readme_says() -> None:
    """The Python example prints exactly the text block that follows it."""
    (example,), (expected,) = blocks("python"), blocks("text")
    assert printed(example) == expected


@pytest.mark.parametrize(("number", "sdk"), list(enumerate(SDKS)), ids=SDKS)
def test_the_example_of_an_adapter_prints_what_its_page_says(number: int, sdk: str) -> None:
    """Each adapter's example, against the real SDK, prints exactly the text block that follows it."""
    if importlib.util.find_spec(sdk) is None:
        pytest.skip(f"{sdk} is not installed")
    assert printed(blocks("python", ADAPTERS)[number]) == blocks("text", ADAPTERS)[number]


def test_the_example_of_metrics_prints_what_its_page_says() -> None:
    """The example of traces and metrics prints exactly the text block that follows it."""
    for package in ("opentelemetry", "prometheus_client"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    (example,), (expected,) = blocks("python", OBSERVABILITY), blocks("text", OBSERVABILITY)
    assert printed(example) == expected


def test_every_adapter_has_an_example() -> None:
    """There are as many examples, and as many outputs, as SDKs."""
    assert len(blocks("python", ADAPTERS)) == len(blocks("text", ADAPTERS)) == len(SDKS)


def test_the_example_has_about_twenty_lines() -> None:
    """The example stays small enough to be read at a glance."""
    assert len([line for line in blocks("python")[0].splitlines() if line.strip()]) <= 22


def test_every_command_shown_exists() -> None:
    """Each `kizuki` command in the README is one that the command line knows."""
    shown = set(re.findall(r"^kizuki (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    ran = subprocess.run(
        [sys.executable, "-m", "kizuki.actors.hosting.cli", "--help"], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0
    assert shown
    assert all(re.search(rf"\b{command}\b", ran.stdout) for command in shown)
