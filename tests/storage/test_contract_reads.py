"""Reading the log: status, events, statistics, whatever the backend."""

from __future__ import annotations

import pytest

from kizuki.storage import Store
from kizuki.storage.sqlite.chain import SCANNED_PER_LINK
from kizuki.storage.writes import PruneEvents
from tests.storage.writing import CHILD, MAIN, NOW, SECOND, commit, event, record, sequences, watch

LONG = 700


async def record_long(store: Store) -> list[int]:
    """A session of many events, between which another one's lie."""
    got = await record(store, *(event(CHILD if number % 3 else SECOND) for number in range(LONG)))
    return [sequence for number, sequence in enumerate(got) if number % 3]


@pytest.mark.parametrize("scanned_per_link", [0, SCANNED_PER_LINK])
@pytest.mark.parametrize("limit", [1, 63, 64, 65, 200])
async def test_the_changes_after_any_version(store: Store, limit: int, scanned_per_link: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5.1: the events after a version, ascending, at most the limit; `more` says whether others follow; looked for either way."""
    monkeypatch.setattr("kizuki.storage.sqlite.chain.SCANNED_PER_LINK", scanned_per_link)
    kept = await record_long(store)
    for since in [*range(0, LONG, 37), kept[-2], kept[-1], kept[-1] + 1]:
        wanted = [sequence for sequence in kept if sequence > since]
        read = await store.status(CHILD, changes_since=since, limit=limit)
        assert read is not None
        assert ([found.sequence for found in read.events], read.more) == (wanted[:limit], len(wanted) > limit)


@pytest.mark.parametrize("version", [2**63, 10**40])
async def test_a_version_beyond_all_numbers(store: Store, version: int) -> None:
    """Rule 5.4: above the head the list is empty, however large the number is."""
    await record(store, event())
    read = await store.status(CHILD, changes_since=version, limit=200)
    assert read is not None
    assert (read.events, read.more) == ((), False)


@pytest.mark.parametrize("scanned_per_link", [0, SCANNED_PER_LINK])
@pytest.mark.parametrize("pruned", [1, 100, 191, 192, 193, 500, LONG - 1])
async def test_the_earliest_sequence_and_the_gap(store: Store, pruned: int, scanned_per_link: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 5.2: the earliest sequence is the smallest kept; rule 5.3: the pruned mark is the highest that went, in this session."""
    monkeypatch.setattr("kizuki.storage.sqlite.chain.SCANNED_PER_LINK", scanned_per_link)
    kept = await record_long(store)
    await commit(store, PruneEvents(0, LONG - pruned, LONG))
    read = await store.status(CHILD, changes_since=0, limit=LONG)
    assert read is not None
    left = [sequence for sequence in kept if sequence > pruned]
    assert [found.sequence for found in read.events] == left
    assert read.earliest_sequence == (left[0] if left else None)
    assert read.pruned_max_sequence == max([sequence for sequence in kept if sequence <= pruned], default=0)


async def test_nothing_is_kept(store: Store) -> None:
    """Rule 5.2: where no event is kept there is no earliest sequence, and the version stays."""
    kept = await record_long(store)
    await commit(store, PruneEvents(NOW + 1, LONG, LONG))
    read = await store.status(CHILD, changes_since=0, limit=5)
    assert read is not None
    assert (read.earliest_sequence, read.events, read.session.version) == (None, (), kept[-1])
    assert (await record(store, event()), await sequences(store)) == ([LONG + 1], [LONG + 1])


async def test_the_status_of_nobody(store: Store) -> None:
    """No such session: None."""
    assert await store.status(CHILD, changes_since=0, limit=5) is None


async def test_a_status_without_changes(store: Store) -> None:
    """Where no version is asked for no events are given."""
    await record(store, event())
    read = await store.status(CHILD, changes_since=None, limit=5)
    assert read is not None
    assert (read.events, read.more, read.earliest_sequence, read.session.version) == ((), False, 1, 1)


async def test_the_newest_events(store: Store) -> None:
    """The newest ones, ascending, of one session or of all."""
    kept = await record_long(store)
    assert [found.sequence for found in await store.events(address=CHILD, limit=100)] == kept[-100:]
    newest = await store.events(address=None, limit=100)
    assert [found.sequence for found in newest] == list(range(LONG - 99, LONG + 1))
    assert {found.session_key for found in newest} == {CHILD.session_key, SECOND.session_key}
    assert await store.events(address=MAIN, limit=5) == ()


async def test_reading_moves_no_cursor(store: Store) -> None:
    """Rule 5.1: a read of the changes leaves every cursor where it is."""
    await commit(store, watch(), event(), event())
    before = await store.cursors(None)
    await sequences(store)
    assert await store.cursors(None) == before


async def test_statistics(store: Store) -> None:
    """Counts over the whole database."""
    await commit(store, watch(), watch(MAIN, SECOND), event(), event(), event(), PruneEvents(0, 2, 10))
    counted = await store.statistics()
    assert (counted.sessions, counted.events, counted.cursors, counted.pending, counted.last_sequence) == (3, 2, 2, 1, 3)
    assert counted.schema_version >= 1
    assert counted.bytes > 0
