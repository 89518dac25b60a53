"""The timeline of staleness: for each watcher and target a strip a mode, over one run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..durations import duration_text
from ..playing.modes import MODES, TITLES, Mode
from ..playing.record import Record
from ..scenario import Scenario
from .bands import Pair, bands, pairs_of
from .svg import Markup, Scale, circle, clock, cross, cut, line, rect, svg, text, time_ticks

PAIRS_MAX: Final = 10
WIDTH: Final = 1040
LEFT: Final = 168
STRIP: Final = 13
GAP: Final = 5
HEAD: Final = 30
TOP: Final = 26
_STATES: Final = {
    "fresh": "knows the latest",
    "waiting": "word of a change waits for its next turn",
    "stale": "does not know, and nothing will tell",
}


def staleness_plot(scenario: Scenario, records: Mapping[Mode, Record]) -> Markup:
    """The pairs with most to see."""
    pairs, others = pairs_of(scenario, records["off"], PAIRS_MAX)
    block = HEAD + len(MODES) * (STRIP + GAP) + 12
    height = TOP + block * len(pairs) + (20 if others else 6)
    scale = Scale(0, scenario.lasts_s, LEFT, WIDTH - 26)
    drawn: list[Markup] = [*_axis(scenario, scale, TOP + block * len(pairs))]
    for index, pair in enumerate(pairs):
        drawn += _block(pair, records, scale, TOP + index * block)
    if others:
        drawn.append(text(LEFT, height - 4, f"and {others:,} further pairs, of which there is less to see", "small muted"))
    return svg(WIDTH, height, drawn, label="When each watcher knew the latest of each target, by mode")


def _axis(scenario: Scenario, scale: Scale, bottom: float) -> list[Markup]:
    drawn = []
    for at_s in time_ticks(scenario.lasts_s):
        drawn += [line(scale(at_s), 18, scale(at_s), bottom, "grid"), text(scale(at_s), 12, clock(at_s), "small muted", "middle")]
    return drawn


def _block(pair: Pair, records: Mapping[Mode, Record], scale: Scale, top: float) -> list[Markup]:
    watcher, target = pair
    drawn = [text(0, top + 19, [cut(watcher, 24), Markup(' <tspan class="muted">watches</tspan> '), cut(target, 24)], "pair")]
    for event in records["kizuki"].events:
        if event.target == target and event.notifies and event.actor != watcher:
            title = f"{clock(event.at_s)} {event.summary} ({event.actor})"
            drawn.append(circle(scale(event.at_s), top + 24, 2.6, "change", title=title))
    for index, mode in enumerate(MODES):
        drawn += _strip(pair, records[mode], scale, top + HEAD + index * (STRIP + GAP))
    return drawn


def _strip(pair: Pair, record: Record, scale: Scale, top: float) -> list[Markup]:
    watcher, target = pair
    drawn = [text(LEFT - 10, top + 10, TITLES[record.mode], f"small mode-{record.mode}", "end")]
    for band in bands(record, pair):
        stretch = f"{clock(band.begins_s)} to {clock(band.ends_s)} ({duration_text(band.ends_s - band.begins_s)})"
        title = f"{stretch}: {watcher} {_STATES[band.state]}"
        x = scale(band.begins_s)
        drawn.append(rect(x, top, max(1.0, scale(band.ends_s) - x), STRIP, f"band {band.state}", title=title))
    for turn in record.turns:
        if turn.agent == watcher and turn.kind == "plan":
            x = scale(turn.begins_s)
            drawn.append(rect(x, top + STRIP - 2, scale(turn.ends_s or record.lasts_s) - x, 2, "turn"))
    middle = top + STRIP / 2
    for act in record.acts:
        if act.agent != watcher or target not in act.assumes:
            continue
        title = f"{clock(act.at_s)} {watcher} {act.does}"
        if target in act.stale:
            drawn.append(cross(scale(act.at_s), middle, 3.6, "stale-act", title=f"{title}, on a stale assumption"))
        else:
            drawn.append(circle(scale(act.at_s), middle, 2.3, "good-act", title=title))
    return drawn
