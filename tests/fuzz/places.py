"""Where a target keeps the files that it makes of its input."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

MEMORY = Path("/dev/shm")
"""Faster than a disk, where there is such a place."""


@contextmanager
def memory() -> Iterator[str]:
    """A folder in memory, where there is such a place."""
    with tempfile.TemporaryDirectory(prefix="kizuki-fuzz-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield folder


@cache
def scratch() -> Path:
    """A folder of this process, which goes with it if it ends as processes should; a fuzzer's does not, and has its temporary files in
    `memory`."""
    folder = Path(tempfile.mkdtemp(prefix="kizuki-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
