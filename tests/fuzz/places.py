"""Where a target keeps the files that it makes of its input."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

MEMORY = Path("/dev/shm")
"""Faster than a disk, where there is such a place."""


@cache
def scratch() -> Path:
    """A folder of this process, which goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="kizuki-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
