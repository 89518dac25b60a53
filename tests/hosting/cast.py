"""Who plays in the tests of the command line."""

from __future__ import annotations

MAIN = "agent:main:main"
CHILD = "agent:main:subagent:child"
OTHER = "agent:main:subagent:other"
GLOBAL = "global"
