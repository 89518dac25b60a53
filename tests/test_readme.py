"""The README's example runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_example_prints_what_the_readme_says() -> None:
    """The Python example prints exactly the text block that follows it."""
    (example,), (expected,) = blocks("python"), blocks("text")
    ran = subprocess.run([sys.executable, "-W", "error", "-c", example], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", expected)


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
