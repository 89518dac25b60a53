"""Following the log over all sessions: how far somebody has come, where sequences are not committed in their order. Pure.

On PostgreSQL an event may become visible behind one with a higher sequence, for a sequence is taken before the commit. So nobody
can say "all up to 17 are known" from having seen 17. But a transaction has its id before it takes a sequence. So: whatever transactions
run once 17 has been seen, as soon as each of them has ended, what they had taken below 17 is visible, or will never be. Until then the
sequences that were seen above the last such point are remembered one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .records import LogPosition

GIVEN_MAX = 100_000
"""How many sequences are remembered one by one: what comes while one transaction hangs."""


def advanced(position: LogPosition, seen: Sequence[int], running: frozenset[str] | None, *, more: bool) -> LogPosition:
    """The position once the events `seen` have been given: ascending, all that was visible or, if there are `more`, the lowest of it.

    `running` are the transactions found to run after the look for events began; None: sequences become visible in their order.
    """
    given = position.given.union(seen)
    if running is None:
        return LogPosition(max(seen, default=position.settled))
    settled = position.settled
    if not position.waiting:
        settled = max(settled, min(position.up_to, seen[-1]) if more else position.up_to)
    kept = frozenset(sequence for sequence in given if sequence > settled)
    if settled >= position.up_to:
        return LogPosition(settled, kept, max(kept, default=settled), running)
    return LogPosition(settled, kept, position.up_to, position.waiting & running)


def cut_short(position: LogPosition) -> tuple[LogPosition, bool]:
    """The position with what it remembers within bounds, and whether something may be missed by that."""
    if len(position.given) <= GIVEN_MAX:
        return position, False
    return LogPosition(max(position.given)), True
