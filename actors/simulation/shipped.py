"""The scenarios that come with the package, and those in files."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from .scenario import BYTES_MAX, Scenario, parse_scenario


class ScenarioNotFound(Exception):
    """There is neither a shipped scenario of this name nor such a file."""


@lru_cache(1)
def shipped() -> tuple[str, ...]:
    """Their names, in alphabetical order."""
    folder = files(__package__) / "scenarios"
    return tuple(sorted(each.name.removesuffix(".toml") for each in folder.iterdir() if each.name.endswith(".toml")))


def load_scenario(name: str) -> Scenario:
    """A shipped scenario by its name, or one by the path of its file. Raises `ScenarioNotFound`, `ScenarioError`, `OSError`."""
    if name in shipped():
        return parse_scenario(name, (files(__package__) / "scenarios" / f"{name}.toml").read_text("utf-8"))
    path = Path(name)
    if not path.is_file():
        raise ScenarioNotFound(name)
    with path.open("rb") as file:
        return parse_scenario(path.stem, file.read(BYTES_MAX + 1).decode("utf-8", "replace"))
