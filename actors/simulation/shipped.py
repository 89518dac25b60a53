"""The scenarios that come with the package, and those in files."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from .places import ScenarioError
from .scenario import Scenario
from .scenario_file import BYTES_MAX, parse_scenario


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
        content = file.read(BYTES_MAX + 1)
    return parse_scenario(path.stem, _text(content))


def _text(content: bytes) -> str:
    """TOML is UTF-8, before which some editors put a mark; what was cut off is too long anyway, and said to be."""
    try:
        return content.decode("utf-8", "strict" if len(content) <= BYTES_MAX else "replace").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ScenarioError("the file", f"it is no UTF-8: byte {error.start + 1} is 0x{content[error.start]:02x}") from None
