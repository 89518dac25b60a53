"""How agents learn what others did to the sessions that they watch: kizuki's way, and three that are compared with it."""

from __future__ import annotations

from typing import Final, Literal

Mode = Literal["kizuki", "off", "polling", "every"]
MODES: Final[tuple[Mode, ...]] = ("kizuki", "off", "polling", "every")
TITLES: Final[dict[Mode, str]] = {
    "kizuki": "kizuki",
    "off": "notices off",
    "polling": "naive polling",
    "every": "notify on every event",
}
ABOUT: Final[dict[Mode, str]] = {
    "kizuki": "One notice a changed session, at the start of the next turn; the agent then asks session_status what changed.",
    "off": "The same gateway, whose notices nobody is shown.",
    "polling": "No notices: the agent asks for each target's status now and then, a prompt line each.",
    "every": "No notices: each event on a target is a prompt line of its own for each watcher, and wakes it; lines wait in memory.",
}
