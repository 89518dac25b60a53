"""What the rows behind a marker come to: the part of a check that is decided, not read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..answers import HAPPENINGS_MAX
from ..catalog import Happening, Probe
from ..echo import matched
from .rows import Classified, RowClass


@dataclass(frozen=True, slots=True)
class Findings:
    """A person's turns, and what else the rows tell."""

    human_turns: int
    occurred_at_ms: int | None
    """When the last of the turns was."""
    accounted_ids: tuple[str, ...]
    happenings: tuple[Happening, ...]

    def __bool__(self) -> bool:
        return bool(self.human_turns or self.accounted_ids or self.happenings)


def findings(verdicts: Sequence[tuple[str, Classified]], probe: Probe, modified_at_ms: int | None) -> Findings:
    """Add up verdicts, each with the name of its place in the source.

    A turn without a time of its own was at the latest when the source was last modified.
    """
    turns = [verdict for _, verdict in verdicts if verdict.row_class is RowClass.HUMAN]
    echo = matched([turn.text for turn in turns], probe.own_texts, probe.accounted_ids)
    persons = [turn for turn, ours in zip(turns, echo.ours, strict=True) if not ours]
    last = persons[-1].occurred_at_ms if persons else None
    occurred_at_ms = modified_at_ms if persons and last is None else last
    happenings = tuple(_named(place, verdict.happening) for place, verdict in verdicts if verdict.happening is not None)
    return Findings(len(persons), occurred_at_ms, echo.accounted_ids, happenings[-HAPPENINGS_MAX:])


def _named(place: str, happening: Happening) -> Happening:
    return happening if happening.id else replace(happening, id=place)
