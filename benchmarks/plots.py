"""Plots of the rows. The only file that needs matplotlib, which comes with `pip install 'kizuki[plot]'`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from .rows import Point, Row

PAPER, INK, GRID = "#fbfbfd", "#1d2330", "#d5d9e2"
"""Ink on a paper of its own is as readable on a dark page as on a light one."""
COLOURS = ("#0b62c4", "#c2410c", "#0f766e", "#7c3aed", "#a16207")
BASELINE = "#6b7280"
LOG_FROM = 10.0
"""An axis is logarithmic where its largest value is this many times its smallest."""

Line = list[tuple[float, float]]


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """One file for each chart that has at least two points on a line."""
    folder.mkdir(parents=True, exist_ok=True)
    charts: defaultdict[str, list[tuple[Row, Point]]] = defaultdict(list)
    for row in rows:
        if row.point is not None:
            charts[row.point.chart].append((row, row.point))
    return [_draw(title, placed, folder) for title, placed in charts.items() if len({point.x for _, point in placed}) > 1]


def _draw(title: str, placed: Sequence[tuple[Row, Point]], folder: Path) -> Path:
    figure = Figure(figsize=(7.2, 4.4), dpi=144, facecolor=PAPER, layout="constrained")
    axes = figure.add_subplot(facecolor=PAPER)
    ours, baselines = _lines(placed)
    for colour, (label, points) in zip(COLOURS * 2, ours.items(), strict=False):
        axes.plot(*zip(*sorted(points), strict=True), "o-", color=colour, label=label, linewidth=2, markersize=5)
    for style, (label, points) in zip(("--", ":", "-.") * 3, baselines.items(), strict=False):
        axes.plot(*zip(*sorted(points), strict=True), "s" + style, color=BASELINE, label=label, linewidth=1.6, markersize=4)
    axes.set_title(title, color=INK, loc="left", fontsize=12, fontweight="bold")
    axes.set_xlabel(placed[0][1].x_label, color=INK)
    axes.set_ylabel(placed[0][0].unit, color=INK)
    _dress(axes, [*ours.values(), *baselines.values()])
    path = folder / f"{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}.png"
    figure.savefig(path)
    return path


def _lines(placed: Iterable[tuple[Row, Point]]) -> tuple[dict[str, Line], dict[str, Line]]:
    """What was measured and its baselines, by label. Rows that share a line and a place differ in their baselines alone."""
    ours: defaultdict[str, dict[float, float]] = defaultdict(dict)
    baselines: defaultdict[str, dict[float, float]] = defaultdict(dict)
    for row, point in placed:
        ours[point.line].setdefault(point.x, row.value)
        if row.baseline is not None:
            baselines[point.beside].setdefault(point.x, row.baseline)
    return {label: list(line.items()) for label, line in ours.items()}, {label: list(line.items()) for label, line in baselines.items()}


def _dress(axes: Any, lines: Sequence[Line]) -> None:
    xs = [x for line in lines for x, _ in line]
    ys = [y for line in lines for _, y in line]
    if _is_wide(xs):
        axes.set_xscale("log")
        axes.set_xticks(sorted(set(xs)))
        axes.xaxis.set_minor_locator(NullLocator())
    if _is_wide(ys):
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, max(ys) * 1.15)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(facecolor=PAPER, edgecolor=GRID, labelcolor=INK, framealpha=0.9)


def _is_wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) >= LOG_FROM
