"""Small inboxes, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..runtime import AsyncioActor


@contextmanager
def small_inboxes(size: int | None) -> Iterator[None]:
    """Let every actor's inbox take so few mails, but where its class sets a size of its own, as the log's does; None: as they are."""
    before = AsyncioActor.inbox_size
    if size is not None:
        AsyncioActor.inbox_size = size
    try:
        yield
    finally:
        AsyncioActor.inbox_size = before
