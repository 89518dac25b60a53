"""The benchmarks' front door; what they measure is no matter of passing or failing here."""

from __future__ import annotations

import pytest

from kizuki.benchmarks import SUITES, Row, run


def test_one_suite_runs() -> None:
    """A suite that is asked for runs alone, says so, and gives rows that are complete."""
    said: list[str] = []
    rows = run(["runtime"], quick=True, progress=said.append)
    assert said == [f"runtime: {SUITES['runtime']}"]
    assert [row.suite for row in rows] == ["runtime"] * len(rows)
    assert all(isinstance(row, Row) and row.value > 0 for row in rows)
    # How the two relate is the machine's affair: a ratio is the median of interleaved pairs, not the ratio of two medians.
    assert all(row.ratio is not None and row.ratio > 0 for row in rows if row.baseline)


def test_an_unknown_suite_is_an_error() -> None:
    """A name that no suite has is refused before anything is measured."""
    with pytest.raises(KeyError):
        run(["no such suite"], quick=True, progress=lambda _: None)
