"""The token that whoever asks a server must show."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..exits import CommandFailed, ExitCode

TOKEN_CHARACTERS_MIN: Final = 16


def read_token(file: Path | None, environ: Mapping[str, str], variable: str) -> str | None:
    """The token in the file, else in the environment variable; None where there is neither.

    It is never given on the command line, where every user of the machine could read it. Raises `CommandFailed`.
    """
    token = environ.get(variable) or None if file is None else _token_in(file)
    if token is None:
        return None
    if len(token) < TOKEN_CHARACTERS_MIN or not token.isascii() or not token.isprintable() or " " in token:
        raise _usage(f"a token must have at least {TOKEN_CHARACTERS_MIN} printable ASCII characters and no blanks")
    return token


def _token_in(file: Path) -> str:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            readable_by_others = stat.S_IMODE(os.fstat(opened.fileno()).st_mode) & 0o077
            token = opened.read(4_096).strip()
    except (OSError, ValueError) as error:
        raise _usage(f"--token-file: {error}") from error
    if readable_by_others:
        raise _usage(f"--token-file: {file} can be read by others: chmod 600 {file}")
    return token


def _usage(message: str) -> CommandFailed:
    return CommandFailed(message, ExitCode.USAGE)
