"""The figures over all runs: for each a panel, in it a row a mode with its runs as dots and a box around the middle half of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..durations import duration_text
from ..playing.experiment import Run
from ..playing.figures import NEVER, percentile
from ..playing.modes import MODES, TITLES, Mode
from .svg import Markup, Scale, circle, line, rect, svg, tag, text, ticks

WIDTH: Final = 540
LEFT: Final = 150
RIGHT: Final = 440
ROW: Final = 30
TOP: Final = 34
LEAST_S: Final = 0.1
"""Below it a time is as good as none."""
_TIMES_S: Final = (0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 360_000.0, 3_600_000.0)


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure."""

    title: str
    figure: str
    is_time: bool = False


PANELS: Final = (
    Panel("Acts on a stale assumption", "stale_acts"),
    Panel("Prompt lines spent", "prompt_lines"),
    Panel("Time to awareness, median", "awareness_median_s", is_time=True),
    Panel("Time to awareness, 99th percentile", "awareness_p99_s", is_time=True),
    Panel("Calls of session_status", "status_calls"),
    Panel("Wakes", "wakes"),
)


def spread_plots(runs: Sequence[Run]) -> Markup:
    """All panels."""
    return tag("div", [tag("figure", _panel(panel, runs)) for panel in PANELS], class_="panels")


def _panel(panel: Panel, runs: Sequence[Run]) -> Markup:
    values = {mode: _values(panel, runs, mode) for mode in MODES}
    known = [value for each in values.values() for value in each if value != NEVER]
    most = max(known, default=0.0)
    scale = _time_scale(most) if panel.is_time else Scale(0, max(most, 1.0) * 1.02, LEFT, RIGHT)
    has_never = any(value == NEVER for each in values.values() for value in each)
    height = TOP + ROW * len(MODES) + 24
    bottom = TOP + ROW * len(MODES)
    drawn = [text(0, 14, panel.title, "heading"), *_axis(panel, scale, most, bottom)]
    if has_never:
        drawn += [
            line(RIGHT + 14, TOP - 4, RIGHT + 14, bottom, "grid dashed"),
            text(RIGHT + 14, bottom + 15, "never", "small muted", "middle"),
        ]
    for index, mode in enumerate(MODES):
        drawn += _row(panel, mode, values[mode], scale, TOP + index * ROW + ROW / 2)
    return svg(WIDTH, height, drawn, label=f"{panel.title}, by mode", least=330)


def _values(panel: Panel, runs: Sequence[Run], mode: Mode) -> list[float]:
    found = (getattr(run.figures[mode], panel.figure) for run in runs)
    return [NEVER if value is None else float(value) for value in found]


def _time_scale(most_s: float) -> Scale:
    return Scale(LEAST_S, max(most_s, 1.0) * 1.3, LEFT, RIGHT, log=True)


def _axis(panel: Panel, scale: Scale, most: float, bottom: float) -> list[Markup]:
    places = [each for each in _TIMES_S if each <= scale.high] if panel.is_time else ticks(max(most, 1.0), 4)
    label: Callable[[float], str] = duration_text if panel.is_time else "{:,g}".format
    drawn = []
    for place in places:
        drawn.append(line(scale(place), TOP - 4, scale(place), bottom, "grid"))
        drawn.append(text(scale(place), bottom + 15, label(place), "small muted", "middle"))
    return drawn


def _row(panel: Panel, mode: Mode, values: Sequence[float], scale: Scale, middle: float) -> list[Markup]:
    ascending = sorted(values)
    known = [value for value in ascending if value != NEVER]
    drawn = [text(LEFT - 12, middle + 4, TITLES[mode], f"label mode-{mode}", "end")]
    low, high = _at(scale, percentile(ascending, 0.25)), _at(scale, percentile(ascending, 0.75))
    if not panel.is_time:
        drawn.append(rect(LEFT, middle - 7, _at(scale, percentile(ascending, 0.5)) - LEFT, 14, f"bar fill-{mode}", rx=2))
    if len(values) > 2:
        drawn.append(rect(low - 2, middle - 9, high - low + 4, 18, f"box stroke-{mode}", rx=3))
    for index, value in enumerate(values):
        spread = 0.0 if len(values) == 1 else 5.0 * math.sin(index * 2.4)
        drawn.append(circle(_at(scale, value), middle + spread, 2.4, f"dot fill-{mode}", title=_shown(panel, value)))
    half = percentile(ascending, 0.5)
    at = _at(scale, half)
    drawn.append(line(at, middle - 10, at, middle + 10, f"median stroke-{mode}"))
    drawn.append(text(WIDTH, middle + 4, _shown(panel, NEVER if half is None else half), "value", "end"))
    return drawn if known or ascending else drawn[:1]


def _at(scale: Scale, value: float | None) -> float:
    return RIGHT + 14 if value is None or value == NEVER else scale(value)


def _shown(panel: Panel, value: float) -> str:
    if value == NEVER:
        return "never"
    return duration_text(value) if panel.is_time else f"{value:,g}"
