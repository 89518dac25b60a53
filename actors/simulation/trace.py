"""What happened in a run, line by line: the same lines for the same seed, on any machine."""

from __future__ import annotations

import hashlib
import re
from typing import Final

_URN: Final = re.compile(r"urn:kizuki:[0-9a-f]+:\d+")
"""An actor's unique name is random for the process."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


class Trace:
    """Lines of `milliseconds gateway what`; milliseconds are virtual, since the run began."""

    def __init__(self, *, kept: bool = True) -> None:
        self.lines: list[str] = []
        self.kept = kept
        """Whether lines are kept; a long search does without them, and replays what it finds."""

    def note(self, at_ms: int, gateway: str, what: str) -> None:
        """Add a line."""
        if self.kept:
            text = _ADDRESS.sub("", _URN.sub("urn", what)) if "urn:" in what or "0x" in what else what
            self.lines.append(f"{at_ms:>9} {gateway:<8} {text}")

    def text(self) -> str:
        """All lines, each ended."""
        return "".join(f"{line}\n" for line in self.lines)

    def digest(self) -> str:
        """What tells two traces apart."""
        return hashlib.sha256(self.text().encode()).hexdigest()
