"""The cursor machine: what happens to one (watcher, target) pair's three positions. Pure.

last seen <= notified <= material at every moment at which the pair is not owed an opening. A notice is open while notified is
above last seen; its text depends on last seen alone, so it stays the same while only material moves.
"""

from __future__ import annotations

from .records import Positions


def seed(version: int) -> Positions:
    """A clean pair that has seen everything up to `version` (rules 3.1, 3.2)."""
    return Positions(version, version, version)


def is_open(positions: Positions) -> bool:
    """Whether a notice is open."""
    return positions.notified > positions.last_seen


def is_pending(positions: Positions) -> bool:
    """Whether there is a change that the watcher has not seen, opened or still owed (rule 4.11)."""
    return positions.material > positions.last_seen


def open_at(positions: Positions, pin: int) -> Positions:
    """Open the notice of a clean pair, pinned at the first material event (rule 4.3); an open one keeps its pin (rule 4.4)."""
    if is_open(positions) or pin <= positions.last_seen:
        return positions
    return positions._replace(notified=pin)


def acknowledge(positions: Positions, shown_last_seen: int, shown_notified: int) -> Positions | None:
    """Acknowledge the notice that was shown; open one for the rest, if there is a rest (rule 4.5).

    None: the pair no longer has that notice, so nothing is to change.
    """
    if not is_open(positions) or (positions.last_seen, positions.notified) != (shown_last_seen, shown_notified):
        return None
    return positions._replace(last_seen=positions.notified, notified=max(positions.notified, positions.material))


def replay(positions: Positions) -> Positions:
    """Pin what is pending at its material position (rule 4.11)."""
    return positions._replace(notified=positions.material) if is_pending(positions) else positions
