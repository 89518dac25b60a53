"""Which rows are the host's own: what a host sent into a session comes back as a row that looks like a person's (rule 7.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

OWN_TEXTS_MAX = 10
"""How many of the latest own texts count."""


@dataclass(frozen=True, slots=True)
class Matched:
    """Which rows are whose."""

    ours: tuple[bool, ...]
    """For each row, whether the host sent it."""
    accounted_ids: tuple[str, ...]
    """The own texts that these rows account for."""


def matched(texts: Iterable[str | None], own_texts: Sequence[tuple[str, str]], accounted_ids: Collection[str]) -> Matched:
    """Tell the host's own rows from a person's.

    `texts` are those of the rows, in order, None for a row that says itself who wrote it: that decides instead. `own_texts` are
    (id, text), oldest first, each of which accounts for one row only; those in `accounted_ids` did so already.
    """
    left = [(identity, _plain(text)) for identity, text in own_texts[-OWN_TEXTS_MAX:] if identity not in accounted_ids]
    ours: list[bool] = []
    found: list[str] = []
    for text in texts:
        match = next((own for own in left if text is not None and own[1] and own[1] == _plain(text)), None)
        ours.append(match is not None)
        if match is not None:
            left.remove(match)
            found.append(match[0])
    return Matched(tuple(ours), tuple(found))


def _plain(text: str) -> str:
    return " ".join(text.split())
