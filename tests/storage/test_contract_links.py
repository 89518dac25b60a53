"""Links to catalog sessions: adopting, recording what a check found, and reading them, whatever the backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kizuki.storage import Store, WriteRefusedError
from kizuki.storage.records import Address, LinkRecord, SessionDraft, StateEvent
from kizuki.storage.writes import (
    Append,
    DeleteSession,
    LinkPut,
    LinkSource,
    PutLink,
    RecordUpstream,
    ResetSession,
    Unwatch,
    UpstreamRecorded,
)
from tests.storage.conftest import Backend
from tests.storage.writing import CHILD, MAIN, NOW, OTHER, SECOND, commit, event, positions, sequences, watch

SOURCE = LinkSource("claude", "local", "t1", "/a/t1.jsonl")
START = {"position": 10}
GLOBAL_MAIN = Address("global", "main")
GLOBAL_OPS = Address("global", "ops")


def adopted(address: Address) -> Append:
    """The event of an adoption."""
    return event(address, kind="adopted", notifies=False, summary="session adopted via claude")


async def adopt(
    store: Store, address: Address = CHILD, source: LinkSource = SOURCE, marker: Mapping[str, object] = START, now_ms: int = NOW
) -> LinkPut:
    """Adopt and commit."""
    (result,) = (await commit(store, PutLink(address, SessionDraft("catalog"), source, marker, adopted(address), now_ms))).results
    assert isinstance(result, LinkPut)
    return result


async def link_of(store: Store, address: Address = CHILD) -> LinkRecord:
    """A link that is there."""
    (found,) = [link for link in await store.links(watched_only=False) if link.address == address]
    return found


def found(link: LinkRecord, *events: Append, **changes: object) -> RecordUpstream:
    """What a check of the link found: the marker moved by one, unless told otherwise."""
    write = RecordUpstream(link, {"position": 11}, missing_count=0, own_ids=link.own_ids, events=events)
    return replace(write, **changes)  # type: ignore[arg-type]


async def put_down(store: Store, write: RecordUpstream) -> UpstreamRecorded:
    """Commit what was found."""
    (result,) = (await commit(store, write)).results
    assert isinstance(result, UpstreamRecorded)
    return result


# -- adopting ----------------------------------------------------------------------------------------------------------------


async def test_adopting_creates_session_link_and_event(store: Store) -> None:
    """Rule 7.1: one transaction creates the session's row, the link with all that was given, and the event."""
    result = await adopt(store)
    assert result.event is not None
    assert (result.event.kind, result.session.version, result.session.kind) == ("adopted", result.event.sequence, "catalog")
    link = await link_of(store)
    assert (link.address, link.session_id, link.marker) == (CHILD, result.session.session_id, START)
    assert LinkSource(link.catalog, link.host_id, link.thread_id, link.source) == SOURCE
    assert (link.missing_count, link.own_ids, link.adopted_at_ms, link.ambiguous) == (0, (), NOW, False)


async def test_adopting_the_same_source_keeps_the_link(store: Store) -> None:
    """Rule 7.1: marker, generation, accounted texts and adoption time stay, nothing is recorded, and the missing count begins anew."""
    await adopt(store)
    await put_down(store, found(await link_of(store), missing_count=2, own_ids=("m1",)))
    before = await link_of(store)
    again = await adopt(store, marker={"position": 99}, now_ms=NOW + 5)
    assert again.event is None
    assert await link_of(store) == replace(before, missing_count=0, revision=before.revision + 1)
    assert await sequences(store) == [1]


@pytest.mark.parametrize("field", ["catalog", "host_id", "thread_id", "source"])
async def test_a_changed_source_is_a_new_generation(store: Store, field: str) -> None:
    """Rule 7.1: whatever differs of the source, the link starts anew with the given marker, as a higher generation, and is told of."""
    await adopt(store)
    await put_down(store, found(await link_of(store), missing_count=2, own_ids=("m1",)))
    before = await link_of(store)
    again = await adopt(store, source=replace(SOURCE, **{field: "another"}), marker={"position": 3}, now_ms=NOW + 5)
    assert again.event is not None
    link = await link_of(store)
    assert link.generation > before.generation
    assert (link.marker, link.own_ids, link.missing_count, link.adopted_at_ms) == ({"position": 3}, (), 0, NOW + 5)


async def test_adopting_a_known_session_keeps_it(store: Store) -> None:
    """Rule 7.1: a session that is there already keeps its id, its events and its watchers."""
    await commit(store, watch(MAIN, CHILD), event(CHILD))
    before = await store.status(CHILD, changes_since=None, limit=1)
    result = await adopt(store)
    assert before is not None
    assert result.session.session_id == before.session.session_id
    assert await sequences(store) == [1, 2]
    assert await positions(store) is not None


# -- recording ---------------------------------------------------------------------------------------------------------------


async def test_events_and_marker_in_one_transaction(store: Store) -> None:
    """Rule 7.4: the events are recorded and the marker, the accounted texts and the missing count move, and notices open."""
    await commit(store, watch(MAIN, CHILD))
    await adopt(store)
    link = await link_of(store)
    commit_ = await commit(
        store, found(link, event(CHILD), event(CHILD, kind="compacted", notifies=False), missing_count=2, own_ids=("m1", "m2"))
    )
    (result,) = commit_.results
    assert isinstance(result, UpstreamRecorded)
    assert result.applied
    assert [recorded.kind for recorded in result.events if recorded] == ["goal_changed", "compacted"]
    assert (commit_.recorded, [opened.target for opened in commit_.opened]) == (2, [CHILD])
    assert await link_of(store) == replace(link, marker={"position": 11}, revision=link.revision + 1, missing_count=2, own_ids=("m1", "m2"))


async def test_a_refused_event_moves_no_marker(store: Store) -> None:
    """Rule 7.4: where one event cannot be written nothing of it is, and the link is what it was."""
    await adopt(store)
    link = await link_of(store)
    with pytest.raises(WriteRefusedError):
        await commit(store, found(link, event(CHILD), event(CHILD, dedupe_key="\ud800")))
    assert await link_of(store) == link
    assert await sequences(store) == [1]


async def test_a_repeated_dedupe_key_moves_the_marker_alone(store: Store) -> None:
    """Rule 1.6: what was recorded under the key before is given back, and nothing is recorded again."""
    await adopt(store)
    first = await put_down(store, found(await link_of(store), event(CHILD, dedupe_key="k")))
    again = await put_down(store, found(await link_of(store), event(CHILD, dedupe_key="k"), marker={"position": 12}))
    assert again == first
    assert (await link_of(store)).marker == {"position": 12}


async def test_a_human_turn_of_an_unwatched_session_moves_the_marker_alone(store: Store) -> None:
    """Rule 1.8: the event is None, and what it was found in is not scanned again."""
    await adopt(store)
    result = await put_down(store, found(await link_of(store), event(CHILD, only_if_watched=True)))
    assert result == UpstreamRecorded(applied=True, events=(None,))
    assert (await link_of(store)).marker == {"position": 11}


async def test_what_was_scanned_before_a_record_is_too_late(store: Store) -> None:
    """Rule 7.3: of two checks of one link the second to be recorded does not apply, and changes nothing."""
    await adopt(store)
    link = await link_of(store)
    assert (await put_down(store, found(link, event(CHILD)))).applied
    after = await link_of(store)
    assert await put_down(store, found(link, event(CHILD), marker={"position": 99})) == UpstreamRecorded(applied=False)
    assert await link_of(store) == after
    assert await sequences(store) == [1, 2]


async def test_what_was_scanned_before_an_adoption_is_too_late(store: Store) -> None:
    """Rule 7.3: adopting, the same source or another one, makes what is being scanned worthless."""
    await adopt(store)
    link = await link_of(store)
    await adopt(store)
    assert not (await put_down(store, found(link, event(CHILD)))).applied
    link = await link_of(store)
    await adopt(store, source=replace(SOURCE, source="/b"))
    assert not (await put_down(store, found(link, event(CHILD)))).applied


async def test_what_was_scanned_before_a_reset_or_a_deletion_is_too_late(store: Store) -> None:
    """Rule 7.3: a session with another id, or none, gets no event of a check that began before."""
    await adopt(store)
    link = await link_of(store)
    await commit(store, ResetSession(CHILD, NOW))
    assert not (await put_down(store, found(link, event(CHILD)))).applied
    link = await link_of(store)
    await commit(store, DeleteSession(CHILD, NOW))
    assert not (await put_down(store, found(link, event(CHILD)))).applied
    assert await store.links(watched_only=False) == ()


async def test_one_batch_may_hold_a_check_that_is_too_late(store: Store) -> None:
    """A record that does not apply harms nothing that is committed with it."""
    await adopt(store)
    link = await link_of(store)
    committed = await commit(store, found(link, event(CHILD)), event(SECOND), found(link, event(CHILD)))
    assert [result.applied for result in committed.results if isinstance(result, UpstreamRecorded)] == [True, False]
    assert committed.recorded == 2


async def test_a_renewed_link_is_a_new_generation(store: Store) -> None:
    """Rule 7.7: a renewed link has a higher generation, the new marker, and is the same in everything else."""
    await adopt(store)
    link = await link_of(store)
    assert (await put_down(store, found(link, renews=True, marker={"position": 0}, own_ids=("m1",)))).applied
    renewed = await link_of(store)
    assert renewed.generation > link.generation
    assert renewed == replace(link, generation=renewed.generation, revision=1, marker={"position": 0}, own_ids=("m1",))
    assert not (await put_down(store, found(link, event(CHILD)))).applied


async def test_a_removed_link_goes_with_its_event(store: Store) -> None:
    """Rule 7.6: the event and the removal are one transaction; the session stays."""
    await adopt(store)
    result = await put_down(store, found(await link_of(store), event(CHILD, kind="upstream_missing"), removes=True))
    assert [recorded.kind for recorded in result.events if recorded] == ["upstream_missing"]
    assert await store.links(watched_only=False) == ()
    assert await sequences(store) == [1, 2]


async def test_a_generation_never_comes_again(store: Store) -> None:
    """Rule 7.6: adopting again after a removal, or after the session was deleted, gives a link with a generation of its own."""
    await adopt(store)
    first = await link_of(store)
    await put_down(store, found(first, removes=True))
    again = await adopt(store)
    second = await link_of(store)
    await commit(store, DeleteSession(CHILD, NOW))
    await adopt(store)
    assert isinstance(again.event, StateEvent)
    assert first.generation < second.generation < (await link_of(store)).generation


async def test_a_reopened_database_has_its_links(backend: Backend) -> None:
    """Rule 7.1: links are durable, whatever characters source and marker hold."""
    async with backend.open() as store:
        await adopt(store, source=replace(SOURCE, source="/ü\n日本.jsonl"), marker={"tail": "\ud800", "deep": [1, None, {"a": 1.5}]})
        link = await link_of(store)
    async with backend.open(read_only=True) as store:
        assert await link_of(store) == link
        assert link.marker == {"tail": "\ud800", "deep": [1, None, {"a": 1.5}]}


# -- reading -----------------------------------------------------------------------------------------------------------------


async def test_watched_links(store: Store) -> None:
    """Rule 7.2: watched are the links on whose session somebody holds a cursor; a parent alone watches nothing."""
    for address in (SECOND, CHILD, OTHER):
        await adopt(store, address)
    await commit(store, watch(MAIN, CHILD), watch(OTHER, SECOND), event(OTHER, session=SessionDraft("main", parent=MAIN.session_key)))
    assert [link.address for link in await store.links(watched_only=True)] == [CHILD, SECOND]
    assert [link.address for link in await store.links(watched_only=False)] == [OTHER, CHILD, SECOND]
    await commit(store, Unwatch(MAIN.session_key, CHILD))
    assert [link.address for link in await store.links(watched_only=True)] == [SECOND]


async def test_one_key_of_two_agents_is_ambiguous(store: Store) -> None:
    """Rule 7.8: both links say so, watched or not, until one of them goes; nothing that is scanned meanwhile applies."""
    await adopt(store, GLOBAL_MAIN)
    await adopt(store)
    before = await link_of(store, GLOBAL_MAIN)
    await adopt(store, GLOBAL_OPS)
    await commit(store, watch(MAIN, GLOBAL_MAIN))
    assert [link.ambiguous for link in await store.links(watched_only=False)] == [False, True, True]
    assert [(link.address, link.ambiguous) for link in await store.links(watched_only=True)] == [(GLOBAL_MAIN, True)]
    assert not (await put_down(store, found(before, event(GLOBAL_MAIN)))).applied
    await commit(store, DeleteSession(GLOBAL_OPS, NOW))
    assert await link_of(store, GLOBAL_MAIN) == before


async def test_one_key_of_two_agents_with_one_link(store: Store) -> None:
    """Rule 7.8: another agent's session under the key does no harm as long as it is not adopted."""
    await adopt(store, GLOBAL_MAIN)
    await commit(store, event(GLOBAL_OPS))
    assert not (await link_of(store, GLOBAL_MAIN)).ambiguous


async def test_one_thread_under_several_keys(store: Store) -> None:
    """Rule 7.8: each key has a link of its own, with a marker of its own."""
    await adopt(store)
    await adopt(store, SECOND, marker={"position": 20})
    await put_down(store, found(await link_of(store)))
    assert [(link.marker, link.ambiguous) for link in await store.links(watched_only=False)] == [
        ({"position": 11}, False),
        ({"position": 20}, False),
    ]


async def test_a_reset_keeps_the_link(store: Store) -> None:
    """Rule 3.5: a session that is reset is still adopted, under its new id."""
    await adopt(store)
    before = await link_of(store)
    await commit(store, ResetSession(CHILD, NOW))
    after = await link_of(store)
    assert after == replace(before, session_id=after.session_id)
    assert after.session_id != before.session_id
