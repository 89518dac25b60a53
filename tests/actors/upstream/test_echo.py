"""Telling the host's own rows from a person's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kizuki.actors.upstream.echo import OWN_TEXTS_MAX, Matched, digested, matched

OWN = (("1", "rename the flag"), ("2", "and the docs"))


def test_own_rows() -> None:
    """Rule 7.5: a row that matches an own text is ours, and the text is accounted for; another is a person's."""
    assert matched(["and the docs", "and the tests"], OWN, ()) == Matched((True, False), ("2",))


def test_white_space() -> None:
    """Rule 7.5: texts are compared trimmed and with their white space collapsed, and by nothing else."""
    assert matched(["  rename\n\tthe  flag "], OWN, ()).ours == (True,)
    assert matched([" and\u3000the docs"], OWN, ()).ours == (True,)
    assert matched(["Rename the flag", "rename theflag"], OWN, ()).ours == (False, False)


def test_each_text_accounts_for_one_row() -> None:
    """Rule 7.5: who repeats what the host said is a person, unless the host repeated it too; the older text goes first."""
    assert matched(["and the docs"] * 2, OWN, ()) == Matched((True, False), ("2",))
    twice = (*OWN, ("3", "and the docs"))
    assert matched(["and the docs"] * 3, twice, ()) == Matched((True, True, False), ("2", "3"))
    assert matched(["and the docs"], twice, {"2"}) == Matched((True,), ("3",))
    assert matched(["and the docs"], twice, {"2", "3"}) == Matched((False,), ())


def test_provenance_decides() -> None:
    """Rule 7.5: a row that says itself who wrote it carries no text, and is a person's whatever the host said."""
    assert matched([None, "and the docs"], OWN, ()) == Matched((False, True), ("2",))


def test_digests() -> None:
    """Rule 7.5: a digest accounts for what its text would, and tells nothing of it; the digest of a digest is that digest."""
    own = (*OWN, ("3", " \n "), ("4", " rename  the flag"))
    digests = digested(own)
    assert [identity for identity, _ in digests] == ["1", "2", "4"]
    assert digested(digests) == digests
    rows = ["and the docs", "rename\tthe flag", "rename the flag", "rename the flag", None, " ", digests[0][1]]
    assert (
        matched(rows, digests, {"2"}) == matched(rows, own, {"2"}) == Matched((False, True, True, False, False, False, False), ("1", "4"))
    )


def test_blank_texts() -> None:
    """A blank own text accounts for nothing, not even for a picture without words."""
    assert matched(["", " "], (("1", ""), ("2", " ")), ()) == Matched((False, False), ())


def test_newest_texts_count() -> None:
    """Rule 7.5: of the own texts the newest ten count."""
    own = tuple((str(n), f"text {n}") for n in range(OWN_TEXTS_MAX + 1))
    assert matched(["text 0", "text 1"], own, ()) == Matched((False, True), ("1",))


TEXTS = st.sampled_from(["a", "b", " a", "a  b", "", " "])


@given(texts=st.lists(st.none() | TEXTS, max_size=12), own=st.lists(TEXTS, max_size=12), accounted=st.sets(st.sampled_from("0123")))
def test_any_texts(texts: list[str | None], own: list[str], accounted: set[str]) -> None:
    """Rule 7.5: as many rows are ours as texts are accounted for, each at most once and none that was before."""
    found = matched(texts, [(str(n), text) for n, text in enumerate(own)], accounted)
    assert len(found.ours) == len(texts)
    assert sum(found.ours) == len(found.accounted_ids) == len(set(found.accounted_ids))
    assert not accounted & set(found.accounted_ids)
