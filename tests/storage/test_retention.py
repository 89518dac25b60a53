"""The size of the next slice, pure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kizuki.storage.retention import SLICE_ROWS_FIRST, SLICE_ROWS_MAX, SLICE_ROWS_MIN, SLICE_TARGET_S, next_slice_rows


@pytest.mark.parametrize("us_per_row", [5.0, 20.0, 200.0])
def test_slices_settle_at_fifty_milliseconds(us_per_row: float) -> None:
    """Rule 6.1: on a machine of steady speed the slices come to take 50 ms, as far as the bounds allow."""
    rows = SLICE_ROWS_FIRST
    for _ in range(20):
        rows = next_slice_rows(rows, rows * us_per_row / 1e6)
    assert rows * us_per_row / 1e6 == pytest.approx(min(SLICE_TARGET_S, SLICE_ROWS_MAX * us_per_row / 1e6), rel=0.01)


@given(st.integers(SLICE_ROWS_MIN, SLICE_ROWS_MAX), st.floats(0, 1e6))
def test_slices_have_bounds(rows: int, elapsed_s: float) -> None:
    """Rule 6.1: whatever was measured, a slice is within its bounds, and at most twice the last one."""
    assert SLICE_ROWS_MIN <= next_slice_rows(rows, elapsed_s) <= min(SLICE_ROWS_MAX, rows * 2)
