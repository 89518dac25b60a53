"""The report as one HTML file: no scripts, nothing from outside, in light and in dark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ..durations import duration_text
from ..playing.experiment import Run
from ..playing.modes import ABOUT, MODES, TITLES, Mode
from ..playing.summary import summary
from ..scenario import Scenario
from .sequence import sequence_plot
from .spreads import spread_plots
from .staleness import staleness_plot
from .svg import Content, Markup, escaped, tag
from .tradeoff import tradeoff_plot

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_ROWS: tuple[tuple[str, str, bool], ...] = (
    ("acts that assume something about another session", "acts", False),
    ("acts on a stale assumption", "staleActs", False),
    ("of these, preventable at the start of the turn", "preventableActs", False),
    ("prompt lines spent", "promptLines", False),
    ("calls of session_status", "statusCalls", False),
    ("events read by them", "rowsRead", False),
    ("time to awareness, median", "awarenessMedianS", True),
    ("time to awareness, 99th percentile", "awarenessP99S", True),
    ("changes × watchers", "changes", False),
    ("of these, unaware at the end", "unaware", False),
    ("notices, or lines by themselves", "notices", False),
    ("wakes", "wakes", False),
    ("turns", "turns", False),
    ("events", "events", False),
)


def report_page(scenario: Scenario, runs: Sequence[Run]) -> str:
    """The whole file. The plots of one life show the first run."""
    first = runs[0]
    body = [
        _head(scenario, runs),
        _cards(runs),
        _section("What awareness costs, and what it buys", _TRADEOFF, tradeoff_plot(runs)),
        _section(f"Over {len(runs)} lives" if len(runs) > 1 else "The figures", _SPREADS, spread_plots(runs)),
        _section("Who knew, and when", _staleness_text(first.seed), [_LEGEND, staleness_plot(scenario, first.records)]),
        _section("How it went, with kizuki", _sequence_text(first.seed), sequence_plot(scenario, first.records["kizuki"])),
        _section("All figures", "Over all lives the median, and where they differ the least and the greatest.", _table(runs)),
        _section("How the four ways differ", _WAYS, _ways()),
        _section("The scenario", "As it was written:", tag("pre", scenario.text)),
        _section(
            "How to see the same again",
            "The same scenario and seed give the same figures, on any machine.",
            tag("pre", _command(scenario, runs)),
        ),
    ]
    return "<!DOCTYPE html>\n" + tag("html", [_html_head(scenario), tag("body", tag("main", body))], lang="en") + "\n"


def _html_head(scenario: Scenario) -> Markup:
    return tag(
        "head",
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{escaped(POLICY)}">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", f"{scenario.title} - kizuki simulate"),
            tag("style", Markup(_style())),
        ],
    )


@lru_cache(1)
def _style() -> str:
    return (files(__package__) / "style.css").read_text("utf-8")


def _head(scenario: Scenario, runs: Sequence[Run]) -> Markup:
    seeds = f"seed {runs[0].seed}" if len(runs) == 1 else f"{len(runs)} lives, seeds {runs[0].seed} to {runs[-1].seed}"
    gateways = len(scenario.gateways)
    facts = (
        duration_text(scenario.lasts_s),
        f"{len(scenario.agents):,} agents",
        f"{len(scenario.people):,} {'person' if len(scenario.people) == 1 else 'people'}",
        f"{gateways} gateway{'s' if gateways > 1 else ''}",
        seeds,
    )
    return tag(
        "header",
        [
            tag("p", [tag("b", "気づき"), " kizuki simulate"], class_="over"),
            tag("h1", scenario.title),
            tag("p", scenario.about, class_="lead"),
            tag("ul", [tag("li", fact) for fact in facts], class_="facts"),
        ],
    )


def _cards(runs: Sequence[Run]) -> Markup:
    return tag("div", [_card(runs, mode) for mode in MODES], class_="cards")


def _card(runs: Sequence[Run], mode: Mode) -> Markup:
    figures = summary(runs, mode)
    acts, stale = _median(figures, "acts"), _median(figures, "staleActs")
    preventable = min(_median(figures, "preventableActs"), stale)
    aware = figures["awarenessMedianS"]["median"]
    of = max(acts, 1)
    bar = [
        tag("i", "", class_="stale", style=f"width:{100 * preventable / of:.1f}%"),
        tag("i", "", class_="waiting", style=f"width:{100 * (stale - preventable) / of:.1f}%"),
    ]
    return tag(
        "section",
        [
            tag("h2", TITLES[mode]),
            tag("p", [tag("b", f"{stale:,g}"), f" of {acts:,g} acts on a stale assumption"], class_="big"),
            tag("div", bar, class_="share", title=f"{preventable:g} preventable at the start of the turn, {stale - preventable:g} not"),
            tag("p", [tag("b", f"{preventable:,g}"), " of these preventable"]),
            tag("p", [tag("b", f"{_median(figures, 'promptLines'):,g}"), " prompt lines"]),
            tag("p", ["aware after ", tag("b", "never" if aware is None else duration_text(aware))]),
        ],
        class_=f"card card-{mode}",
    )


def _median(figures: dict[str, dict[str, Any]], name: str) -> float:
    return float(figures[name]["median"] or 0)


def _section(title: str, what: Content, content: Content) -> Markup:
    return tag("section", [tag("h2", title), tag("p", what, class_="what"), content], class_="part")


def _table(runs: Sequence[Run]) -> Markup:
    figures = {mode: summary(runs, mode) for mode in MODES}
    head = tag("tr", [tag("th", ""), *(tag("th", TITLES[mode], class_=f"mode-{mode}", scope="col") for mode in MODES)])
    rows = [
        tag("tr", [tag("th", name, scope="row"), *(tag("td", _cell(figures[mode][key], is_time=is_time)) for mode in MODES)])
        for name, key, is_time in _ROWS
    ]
    return tag("div", tag("table", [tag("thead", head), tag("tbody", rows)]), class_="scroll")


def _cell(figure: dict[str, Any], *, is_time: bool) -> Content:
    low, middle, high = (_shown(figure[name], is_time=is_time) for name in ("min", "median", "max"))
    return middle if low == high else [middle, tag("small", f" {low} to {high}")]


def _shown(value: float | None, *, is_time: bool) -> str:
    if value is None:
        return "never"
    return duration_text(value) if is_time else f"{value:,g}"


def _ways() -> Markup:
    return tag("dl", [part for mode in MODES for part in (tag("dt", TITLES[mode], class_=f"mode-{mode}"), tag("dd", ABOUT[mode]))])


def _command(scenario: Scenario, runs: Sequence[Run]) -> str:
    """A name that a shell could misread is not put into a command for one."""
    name = scenario.name if scenario.name.replace("-", "").isalnum() else "SCENARIO.toml"
    return f"kizuki simulate {name} --seed {runs[0].seed} --runs {len(runs)} --report report.html"


def _staleness_text(seed: int) -> str:
    return (
        f"The life of seed {seed}, four times. Dots above the strips are changes by others; each strip shows what the watcher knew, "
        "and what it did meanwhile."
    )


def _sequence_text(seed: int) -> str:
    return (
        f"The life of seed {seed}, in the order of time: repeats are counted, and acts that nothing had changed for are left out. "
        "At each notice the agent asks what changed."
    )


_TRADEOFF = "Each dot is one life, each ring the median. Down is safer, left is cheaper."
_SPREADS = "Each dot is one life; the box holds the middle half of them, the line is the median. Times are on a logarithmic scale."
_WAYS = (
    "Life is the same in all four: the same people at the same moments, the same plans, the same crashes. Only what the agents know "
    "differs. An act counts as taken on a stale assumption when others had changed the session that it assumes something about, after the "
    "state that the agent last reconciled with. It was preventable if such a change was committed before the turn began: no line at the "
    "start of a turn can tell of what happens later in it."
)
_LEGEND = tag(
    "p",
    [
        tag("span", [tag("i", "", class_="fresh"), "knows the latest"]),
        tag("span", [tag("i", "", class_="waiting"), "changed, and its next turn begins with word of it"]),
        tag("span", [tag("i", "", class_="stale"), "changed, does not know, and nothing will tell"]),
        tag("span", [tag("i", "", class_="turn"), "in a turn"]),
        tag("span", [tag("b", "●", class_="key-good"), "acts"]),
        tag("span", [tag("b", "✕", class_="key-stale"), "acts on a stale assumption"]),
    ],
    class_="legend",
)
