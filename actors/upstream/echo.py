"""Which rows are the host's own: what a host sent into a session comes back as a row that looks like a person's (rule 7.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

OWN_TEXTS_MAX = 10
"""How many of the latest own texts count."""


class TextDigest(str):
    """Stands for an own text that is not to leave the host's machine: it matches what the text would match."""

    __slots__ = ()


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
    left = [(identity, digest) for identity, digest in digested(own_texts) if identity not in accounted_ids]
    ours: list[bool] = []
    found: list[str] = []
    for text in texts:
        digest = None if text is None or not left else _digest(text)
        match = next((own for own in left if own[1] == digest), None)
        ours.append(match is not None)
        if match is not None:
            left.remove(match)
            found.append(match[0])
    return Matched(tuple(ours), tuple(found))


def digested(own_texts: Sequence[tuple[str, str]]) -> list[tuple[str, TextDigest]]:
    """The own texts that count, oldest first, each by its digest; a blank one accounts for nothing."""
    latest = own_texts[-OWN_TEXTS_MAX:]
    return [(identity, text if isinstance(text, TextDigest) else _digest(text)) for identity, text in latest if text.strip()]


def _digest(text: str) -> TextDigest:
    plain = " ".join(text.split())
    return TextDigest(blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest())
