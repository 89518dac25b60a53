"""The library's logger: structlog, never configured by us.

structlog's own default prints to standard output, where a command's results belong; so unless the host configured structlog, lines go to
standard error. Calls are synchronous and carry what is bound: actor, session key, sequence.
"""

from __future__ import annotations

import sys
from typing import Any

import structlog


def logger(**bound: object) -> Any:
    """A logger with these values bound, through the host's structlog configuration if there is one."""
    if structlog.is_configured():
        return structlog.get_logger("kizuki", **bound)
    return structlog.wrap_logger(structlog.PrintLogger(sys.stderr)).bind(**bound)
