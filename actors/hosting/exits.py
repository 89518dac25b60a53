"""How a command ends: its exit code, and the one error that carries one."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell gets. `INTERRUPTED` and `BROKEN_PIPE` are what it gets of any program that a signal ended."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOT_FOUND = 3
    HISTORY_GAP = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class CommandFailed(Exception):
    """A command cannot do what it was asked; the text is for the person who asked."""

    def __init__(self, message: str, code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(message)
        self.code = code
