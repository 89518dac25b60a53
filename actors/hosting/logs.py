"""Where the command line's log lines go: to standard error, whatever standard output is used for."""

from __future__ import annotations

import logging
import os
import sys

import structlog


def configure_logs() -> None:
    """Configure structlog for a command: readable lines on standard error, coloured on a terminal alone."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty() and not os.environ.get("NO_COLOR")),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        # Looked up at each use: a progress display puts itself in the place of standard error while it runs.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
