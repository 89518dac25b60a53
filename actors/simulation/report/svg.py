"""Drawing SVG as text. Everything that comes from outside is escaped here, and only here. Pure."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Sequence["Content"]


def escaped(content: Content) -> str:
    """Content as markup: what is no `Markup` is escaped, and what a document may not hold at all is replaced."""
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return html.escape("".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in content))
    return "".join(escaped(each) for each in content)


def tag(name: str, content: Content = "", **attributes: object) -> Markup:
    """One element. `class_` is the attribute `class`, and underscores stand for hyphens; None leaves an attribute out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(_value(value))}"' for key, value in attributes.items() if value is not None
    )
    return Markup(f"<{name}{given}>{escaped(content)}</{name}>")


def svg(width: float, height: float, content: Content, *, label: str, least: float = 760) -> Markup:
    """A picture that is as wide as its place, but for `least` pixels, and has a name for who does not see it."""
    picture = tag("svg", content, viewBox=f"0 0 {_number(width)} {_number(height)}", role="img", aria_label=label, class_="plot")
    return tag("div", picture, class_="scroll", style=f"--least:{_number(least)}px")


def text(x: float, y: float, content: Content, class_: str = "", anchor: str | None = None) -> Markup:
    """A line of text; `anchor` is `middle` or `end`."""
    return tag("text", content, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    return tag("line", "", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def rect(x: float, y: float, width: float, height: float, class_: str, *, rx: float = 0, title: str | None = None) -> Markup:
    content = "" if title is None else tag("title", title)
    return tag("rect", content, x=x, y=y, width=max(0.0, width), height=height, rx=rx or None, class_=class_)


def circle(x: float, y: float, r: float, class_: str, *, title: str | None = None) -> Markup:
    return tag("circle", "" if title is None else tag("title", title), cx=x, cy=y, r=r, class_=class_)


def cross(x: float, y: float, r: float, class_: str, *, title: str) -> Markup:
    left, right, top, bottom = (_number(each) for each in (x - r, x + r, y - r, y + r))
    path = f"M{left} {top}L{right} {bottom}M{left} {bottom}L{right} {top}"
    return tag("path", tag("title", title), d=path, class_=class_)


def arrow(x1: float, x2: float, y: float, class_: str) -> Markup:
    """A level arrow to `x2`."""
    back = 7 if x2 < x1 else -7
    tip = f"{_number(x2)},{_number(y)} {_number(x2 + back)},{_number(y - 4)} {_number(x2 + back)},{_number(y + 4)}"
    return Markup(line(x1, y, x2 + back * 0.6, y, f"arrow {class_}") + tag("polygon", "", points=tip, class_=f"tip {class_}"))


def cut(content: str, characters: int) -> str:
    """The text, or its beginning where there is no room for it."""
    return content if len(content) <= characters else content[: characters - 1].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    at_low: float
    at_high: float
    log: bool = False
    """By powers of ten, down to `low`."""

    def __call__(self, value: float) -> float:
        low, high, value = (
            (math.log10(each) for each in (self.low, self.high, max(value, self.low))) if self.log else (self.low, self.high, value)
        )
        share = (value - low) / (high - low) if high > low else 0.0
        return self.at_low + share * (self.at_high - self.at_low)


def ticks(most: float, about: int = 5) -> list[float]:
    """Round numbers from 0 to `most`, about so many."""
    if most <= 0:
        return [0.0]
    rough = most / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [index * step for index in range(math.floor(most / step + 1e-9) + 1)]


_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800, 604_800)


def time_ticks(lasts_s: float, about: int = 9) -> list[float]:
    """Round moments from 0 to the end."""
    step = next((step for step in _TIME_STEPS if lasts_s / step <= about), _TIME_STEPS[-1])
    return [float(index * step) for index in range(math.floor(lasts_s / step) + 1)]


def clock(at_s: float) -> str:
    """A moment since the beginning: 12:05, or 1:12:05."""
    whole = math.floor(at_s + 1e-6)
    hours, minutes, seconds = whole // 3_600, whole % 3_600 // 60, whole % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _value(value: object) -> str:
    return _number(value) if isinstance(value, int | float) else str(value)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
