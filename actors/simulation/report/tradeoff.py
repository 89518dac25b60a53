"""What awareness costs against what it buys: prompt lines against stale acts, a dot a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..playing.experiment import Run
from ..playing.figures import Figures, median
from ..playing.modes import MODES, TITLES, Mode
from .svg import Markup, Scale, circle, line, svg, text, ticks

WIDTH: Final = 1040
HEIGHT: Final = 330
LEFT: Final = 64
BOTTOM: Final = 280


def tradeoff_plot(runs: Sequence[Run]) -> Markup:
    """Lower is better, and so is further left."""
    most_lines = max(run.figures[mode].prompt_lines for run in runs for mode in MODES)
    most_share = max(_share(run.figures[mode]) for run in runs for mode in MODES)
    across = Scale(0, max(1, most_lines) * 1.04, LEFT, WIDTH - 220)
    up = Scale(0, max(0.1, most_share) * 1.08, BOTTOM, 34)
    drawn = _axes(across, up, max(1, most_lines), max(0.1, most_share))
    for mode in MODES:
        for run in runs:
            drawn.append(_dot(run, mode, across, up))
    return svg(WIDTH, HEIGHT, [*drawn, *_labels(runs, across, up)], label="Prompt lines spent against acts on stale assumptions, by mode")


def _axes(across: Scale, up: Scale, most_lines: float, most_share: float) -> list[Markup]:
    drawn = [
        text(LEFT, 16, "acts on a stale assumption", "small muted"),
        text(across.at_high, BOTTOM + 40, "prompt lines spent", "small muted", "end"),
    ]
    for value in ticks(most_share * 100, 5):
        y = up(value / 100)
        drawn += [line(LEFT, y, across.at_high, y, "grid"), text(LEFT - 8, y + 4, f"{value:g} %", "small muted", "end")]
    for value in ticks(most_lines, 8):
        drawn += [
            line(across(value), BOTTOM, across(value), BOTTOM + 4, "axis"),
            text(across(value), BOTTOM + 19, f"{value:,g}", "small muted", "middle"),
        ]
    return [*drawn, line(LEFT, BOTTOM, across.at_high, BOTTOM, "axis")]


def _dot(run: Run, mode: Mode, across: Scale, up: Scale) -> Markup:
    figures = run.figures[mode]
    title = f"{TITLES[mode]}, seed {run.seed}: {figures.stale_acts} of {figures.acts} acts, {figures.prompt_lines} lines"
    return circle(across(figures.prompt_lines), up(_share(figures)), 4.5, f"dot fill-{mode}", title=title)


def _labels(runs: Sequence[Run], across: Scale, up: Scale) -> list[Markup]:
    """A ring at each median, and its name in a column beside the plot; rings that meet lie in one another."""
    drawn, free_y = [], 0.0
    for number, mode in enumerate(sorted(MODES, key=lambda mode: -_middle(runs, mode)[1])):
        lines, share = _middle(runs, mode)
        y = max(free_y, min(up(share), BOTTOM - 44 * (len(MODES) - 1 - number)))
        free_y = y + 44
        drawn += [circle(across(lines), up(share), 7 + 3 * MODES.index(mode), f"ring stroke-{mode}")]
        drawn += [circle(WIDTH - 178, y, 6, f"ring stroke-{mode}"), text(WIDTH - 164, y + 4, TITLES[mode], f"label strong mode-{mode}")]
        drawn += [text(WIDTH - 164, y + 19, f"{share * 100:.0f} % stale, {lines:,g} lines", "small muted")]
    return drawn


def _middle(runs: Sequence[Run], mode: Mode) -> tuple[float, float]:
    lines = median([run.figures[mode].prompt_lines for run in runs])
    share = median([_share(run.figures[mode]) for run in runs])
    return lines or 0.0, share or 0.0


def _share(figures: Figures) -> float:
    return figures.stale_acts / figures.acts if figures.acts else 0.0
