"""The sequence diagram of a run with kizuki."""

from __future__ import annotations

from typing import Final

from ..playing.record import Record
from ..scenario import Scenario
from .happenings import ROWS_MAX, WORLD, Diagram, Row, sequence_of
from .svg import Markup, arrow, circle, clock, cross, cut, line, rect, svg, text

WIDTH: Final = 1040
LEFT: Final = 70
ROW: Final = 27
HEAD: Final = 58
MARGIN: Final = 92


def sequence_plot(scenario: Scenario, record: Record) -> Markup:
    """Rows in the order of time, not to its scale."""
    shown = sequence_of(scenario, record)
    lifelines = _lifelines(shown)
    height = HEAD + ROW * (len(shown.rows) + 1) + 26
    drawn: list[Markup] = []
    box = min(132.0, (WIDTH - LEFT - 2 * MARGIN) / max(1, len(lifelines) - 1) - 8)
    for name, x in lifelines.items():
        drawn += _lifeline(name, x, height - 24, box, is_person=name in shown.people, role=_role(scenario, name))
    for index, row in enumerate(shown.rows):
        earlier = shown.rows[index - 1].at_s if index else -1.0
        drawn += _row(row, lifelines, HEAD + ROW * (index + 1), timed=int(row.at_s) != int(earlier))
    return svg(WIDTH, height, [*drawn, *_rest(shown, height)], label="Who did what to whom, in the order of time, in the run with kizuki")


def _lifelines(shown: Diagram) -> dict[str, float]:
    names = [*shown.people, *shown.agents]
    room = WIDTH - LEFT - 2 * MARGIN
    return {name: LEFT + MARGIN + (room * index / (len(names) - 1) if len(names) > 1 else room / 2) for index, name in enumerate(names)}


def _role(scenario: Scenario, name: str) -> str:
    agent = scenario.by_name.get(name)
    return "a person" if agent is None else agent.role


def _lifeline(name: str, x: float, bottom: float, box: float, *, is_person: bool, role: str) -> list[Markup]:
    kind = "head person" if is_person else "head agent"
    return [
        line(x, HEAD - 12, x, bottom, "lifeline"),
        rect(x - box / 2, 4, box, 40, kind, rx=20 if is_person else 6),
        text(x, 22, cut(name, int(box / 7.6)), "label strong", "middle"),
        text(x, 36, cut(role, int(box / 6.4)), "small muted", "middle"),
    ]


def _row(row: Row, lifelines: dict[str, float], y: float, *, timed: bool) -> list[Markup]:
    drawn = [text(LEFT - 20, y + 4, clock(row.at_s), "small muted", "end")] if timed else []
    what = row.what if row.times == 1 else f"{row.what} ×{row.times}"
    if row.source == WORLD:
        return [*drawn, line(LEFT, y, WIDTH, y, "gateway-line"), rect(LEFT + 6, y - 9, 12 + 7 * len(what), 18, "gateway-label", rx=9),
                text(LEFT + 11, y + 4, what, "small strong")]  # fmt: skip
    if row.source == row.target:
        return [*drawn, *_alone(row, lifelines[row.source], y, what)]
    begin, end = lifelines[row.source], lifelines[row.target]
    label = text((begin + end) / 2, y - 5, cut(what, max(10, int(abs(end - begin) / 6.2))), f"small onpaper {row.look}", "middle")
    return [*drawn, arrow(begin, end, y, f"look-{row.look}"), label]


def _alone(row: Row, x: float, y: float, what: str) -> list[Markup]:
    mark = cross(x, y, 5, "stale-act", title=what) if row.look == "stale" else circle(x, y, 5, f"mark look-{row.look}", title=what)
    is_right = x > WIDTH * 0.7
    room = int(((x - LEFT) if is_right else (WIDTH - x)) / 6.9)
    label = text(x + (-12 if is_right else 12), y + 4, cut(what, room), f"small onpaper {row.look}", "end" if is_right else None)
    return [mark, label]


def _rest(shown: Diagram, height: float) -> list[Markup]:
    parts = []
    if shown.rows_left_out:
        parts.append(f"the first {ROWS_MAX} lines, up to {clock(shown.seen_until_s)}; {shown.rows_left_out:,} more follow")
    if shown.agents_left_out:
        parts.append(f"{shown.agents_left_out:,} agents with less to tell are left out")
    return [text(LEFT, height - 5, "; ".join(parts), "small muted")] if parts else []
