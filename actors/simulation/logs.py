"""What the library logs in a simulated world, as lines of its trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from .loop import running_loop


@contextmanager
def captured_logs(sink: Callable[[str, str], None]) -> Iterator[None]:
    """Have structlog give its events to `sink(process, line)` and to nobody else; as it was afterwards."""
    before = structlog.get_config() if structlog.is_configured() else None

    def capture(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        sink(_process(), _line(method, event))
        raise structlog.DropEvent

    structlog.reset_defaults()
    structlog.configure(processors=[capture], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)


def _process() -> str:
    loop = running_loop()
    return "" if loop is None else loop.name


def _line(method: str, event: MutableMapping[str, Any]) -> str:
    """An exception is told by its `repr`: a stack trace has paths and line numbers in it."""
    bound = " ".join(f"{name}={value!r}" for name, value in event.items() if name != "event")
    return f"{method} {event['event']} {bound}".rstrip()
