"""How large the next slice of housekeeping may be. Pure."""

from __future__ import annotations

SLICE_TARGET_S = 0.05
SLICE_ROWS_FIRST = 500
SLICE_ROWS_MIN = 50
SLICE_ROWS_MAX = 10_000


def next_slice_rows(rows: int, elapsed_s: float) -> int:
    """The size of the slice after one of `rows` rows that took `elapsed_s` seconds.

    It aims at `SLICE_TARGET_S`. One measurement may at most double the size, for a slice that found little to do says little
    about one that finds much; it may shrink it at once, for a slice too long is what others feel.
    """
    fitting = rows * SLICE_TARGET_S / elapsed_s if elapsed_s > 0 else SLICE_ROWS_MAX
    return max(SLICE_ROWS_MIN, int(min(fitting, rows * 2, SLICE_ROWS_MAX)))
