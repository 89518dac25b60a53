"""The two packages' front doors, behind which everything is imported when it is first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kizuki.actors
import kizuki.storage


@pytest.mark.parametrize("package", [kizuki.actors, kizuki.storage])
def test_every_name_is_there(package: object) -> None:
    """Each name in `__all__` can be had and is listed; any other is an `AttributeError` that names it."""
    names: list[str] = package.__all__  # type: ignore[attr-defined]
    assert names == sorted(names)
    assert all(getattr(package, name).__name__ == name for name in names)
    assert set(names) <= set(dir(package))
    with pytest.raises(AttributeError, match="Nothing"):
        package.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_little_is_imported() -> None:
    """Importing the packages imports neither a loop nor actors."""
    code = "import sys, kizuki.actors, kizuki.storage; print([name for name in ('asyncio', 'pykka', 'sqlite3') if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "[]"


def test_everything_at_once() -> None:
    """`from ... import *` gives every name."""
    code = "from kizuki.actors import *; from kizuki.storage import *; print(open_gateway.__name__, open_store.__name__, Watch.__name__)"
    ended = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ended.stdout.split() == ["open_gateway", "open_store", "Watch"]
