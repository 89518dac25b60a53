"""Rules 1.1 to 1.11: the signal log, seen through a whole gateway."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import unicodedata
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kizuki.actors import Actor, Gateway, GatewayConfig, InvalidArgument, InvalidSessionKey, ManualClock, UnknownSession
from tests.system.cast import (
    CHILD,
    DAY_MS,
    DAY_S,
    GLOBAL,
    MAIN,
    NOW,
    OPS,
    OTHER,
    PERSON,
    changes,
    family,
    human,
    pair,
    positions,
    sequences,
    show,
    there,
    version,
)
from tests.system.conftest import Opening

# -- 1.1 kinds ---------------------------------------------------------------------------------------------------------------


async def test_human_message_notifies(gateway: Gateway) -> None:
    """Rule 1.1: a person's turn is recorded as `human_direct_message`, and the watcher is told."""
    await family(gateway)
    assert (await human(gateway)).kind == "human_direct_message"
    assert len(await gateway.pending(MAIN)) == 1


@pytest.mark.parametrize("change", ["created", "updated", "cleared"])
async def test_goal_change_notifies(gateway: Gateway, change: Any) -> None:
    """Rule 1.1: a goal that is created, updated or cleared is recorded as `goal_changed`, and the watcher is told."""
    await family(gateway)
    assert there(await gateway.goal_changed(CHILD, change, actor=PERSON)).kind == "goal_changed"
    assert len(await gateway.pending(MAIN)) == 1


async def test_spawn_seeds_and_is_silent(gateway: Gateway) -> None:
    """Rule 1.1: `child_spawned` seeds the parent's cursor, and tells nobody."""
    event = await family(gateway)
    assert event.kind == "child_spawned"
    assert await positions(gateway) == (event.sequence,) * 3
    assert await gateway.pending(MAIN) == []


async def test_spawn_does_not_tell_other_watchers(gateway: Gateway) -> None:
    """Rule 1.1: somebody else who watches the child is not told of its being spawned either."""
    await gateway.open_session(OPS)
    await gateway.watch(OPS, CHILD)
    await family(gateway)
    assert await gateway.pending(OPS) == []


@pytest.mark.parametrize(
    ("outcome", "kind"), [("ok", "run_completed"), ("error", "run_failed"), ("timeout", "run_failed"), ("cancelled", "run_failed")]
)
async def test_run_end_is_silent(gateway: Gateway, outcome: Any, kind: str) -> None:
    """Rule 1.1: the end of a run is recorded by how it ended, and tells nobody."""
    await family(gateway)
    assert there(await gateway.run_ended(CHILD, run_id="r1", outcome=outcome)).kind == kind
    assert await gateway.pending(MAIN) == []


async def test_compaction_is_silent(gateway: Gateway) -> None:
    """Rule 1.1: a compaction is recorded, and tells nobody."""
    await family(gateway)
    assert there(await gateway.compacted(CHILD, operation_id="c1")).kind == "compacted"
    assert await gateway.pending(MAIN) == []


@pytest.mark.parametrize("runtime", ["subagent", "acp"])
async def test_both_runtimes_spawn(gateway: Gateway, runtime: Any) -> None:
    """Rule 1.1: sub-agents and ACP children are spawned alike."""
    await gateway.open_session(MAIN)
    child = "agent:codex:acp:1" if runtime == "acp" else CHILD
    event = there(await gateway.spawn(MAIN, child, run_id="r", runtime=runtime))
    assert (event.kind, event.session_key) == ("child_spawned", child)
    assert await positions(gateway, MAIN, child) == (event.sequence,) * 3


async def test_unknown_runtime_is_refused(gateway: Gateway) -> None:
    """Rule 1.9: a runtime that there is not raises at once, and records nothing."""
    with pytest.raises(InvalidArgument, match="runtime"):
        await gateway.spawn(MAIN, CHILD, run_id="r", runtime="thread")  # type: ignore[arg-type]
    assert (await gateway.statistics()).events_recorded == 0


# -- 1.2 summaries -----------------------------------------------------------------------------------------------------------


async def one_of_each(gateway: Gateway) -> list[str]:
    """One event of each kind that a host reports; what the tool then shows as summaries."""
    await family(gateway)
    await human(gateway)
    for change in ("created", "updated", "cleared"):
        await gateway.goal_changed(CHILD, change, actor=PERSON)
    for outcome in ("ok", "error", "timeout", "cancelled"):
        await gateway.run_ended(CHILD, run_id=outcome, outcome=outcome)
    await gateway.compacted(CHILD, operation_id="c")
    return [event["summary"] for event in (await changes(gateway))["events"]]


async def test_english_summaries(gateway: Gateway) -> None:
    """Rule 1.2: every summary reads as the rule spells it."""
    assert await one_of_each(gateway) == [
        "child session spawned",
        "human message via telegram",
        "goal created",
        "goal updated",
        "goal cleared",
        "child run completed",
        "child run failed",
        "child run timed out",
        "child run cancelled",
        "session compacted",
    ]


async def test_japanese_summaries(opening: Opening) -> None:
    """Rule 1.2: with language "ja" every summary is Japanese when it is read, two of them as the rule spells them."""
    async with opening(config=GatewayConfig(language="ja")) as gateway:
        summaries = await one_of_each(gateway)
    assert summaries[1] == "telegram 経由の人間のメッセージ"
    assert summaries[3] == "ゴールが更新されました"
    assert len(set(summaries)) == 10
    assert all(any(unicodedata.name(c).startswith(("CJK", "HIRAGANA", "KATAKANA")) for c in summary) for summary in summaries)


async def test_recorded_event_speaks_the_reader_s_language(opening: Opening) -> None:
    """Rule 1.2: the event that a recording call returns is rendered too."""
    async with opening(config=GatewayConfig(language="ja")) as gateway:
        await family(gateway)
        assert (await human(gateway)).summary == "telegram 経由の人間のメッセージ"


async def test_language_is_of_the_reading(opening: Opening) -> None:
    """Rule 1.2: what was recorded under one language is read in another after a restart, and back."""
    async with opening() as gateway:
        english = await one_of_each(gateway)
    async with opening(config=GatewayConfig(language="ja")) as gateway:
        japanese = [event["summary"] for event in (await changes(gateway))["events"]]
    async with opening() as gateway:
        assert [event["summary"] for event in (await changes(gateway))["events"]] == english
    assert not set(english) & set(japanese)


NASTY = [
    "tele\ngram",
    "a\r\nb\tc",
    "x" * 10_000,
    "\u202egnirts\u202c",
    "\u2066a\u2069",
    "zero\u200bwidth",
    "bell\x07\x00\x1b[31m",
    "line\u2028sep\u2029",
    "\ud800lone",
    "",
    "   ",
    "日本語" * 200,
    'quote"\\',
    "\U000e0001tag",
]


@pytest.mark.parametrize("channel", NASTY, ids=ascii)
@pytest.mark.parametrize("language", ["en", "ja"])
async def test_summary_is_one_clean_line(opening: Opening, channel: str, language: Any) -> None:
    """Rule 1.2: whatever the channel, the summary is one line of at most 200 characters without control or bidi characters."""
    async with opening(config=GatewayConfig(language=language)) as gateway:
        await family(gateway)
        recorded = there(await gateway.human_message(CHILD, channel=channel)).summary
        read = (await changes(gateway))["events"][-1]["summary"]
    assert recorded == read
    assert 0 < len(read) <= 200
    assert len(read.splitlines()) == 1
    assert not [c for c in read if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


async def test_no_content_is_stored(opening: Opening, database: Path) -> None:
    """Rule 1.2: what was sent between sessions is nowhere in the database."""
    from kizuki.actors import Dispatched

    async with opening(dispatch=lambda sender, key, message: Dispatched(key, "r", reply="the-secret-answer")) as gateway:
        await family(gateway)
        await gateway.sessions_send(MAIN, CHILD, "the-secret-question", watch=True)
        await human(gateway)
    stored = b"".join(path.read_bytes() for path in database.parent.iterdir() if path.is_file())
    assert b"human message via telegram" in stored
    assert b"the-secret" not in stored


# -- 1.3 actors --------------------------------------------------------------------------------------------------------------


async def test_human_actor(gateway: Gateway) -> None:
    """Rule 1.3: a person's message names a human, with the id where one is known."""
    await family(gateway)
    nameless = await human(gateway)
    named = there(await gateway.human_message(CHILD, channel="cli", actor_id="ada"))
    assert (nameless.actor_type, nameless.actor_id) == ("human", None)
    assert (named.actor_type, named.actor_id) == ("human", "ada")


async def test_spawn_s_actor_is_the_parent(gateway: Gateway) -> None:
    """Rule 1.3: a spawn's actor is the agent whose id is the parent's canonical session key."""
    event = there(await gateway.spawn(" AGENT:Main:MAIN ", CHILD, run_id="r"))
    assert (event.actor_type, event.actor_id) == ("agent", MAIN)


async def test_system_actors(gateway: Gateway) -> None:
    """Rule 1.3: run ends and compactions are the system's."""
    await family(gateway)
    ended = there(await gateway.run_ended(CHILD, run_id="r1", outcome="ok"))
    compacted = there(await gateway.compacted(CHILD, operation_id="c"))
    assert [(event.actor_type, event.actor_id) for event in (ended, compacted)] == [("system", None)] * 2


async def test_agent_actor_is_canonical(gateway: Gateway) -> None:
    """Rule 1.3: an agent's id is its session key, in canonical form."""
    await family(gateway)
    event = there(await gateway.goal_changed(CHILD, "updated", actor=Actor.agent("Agent:OPS:Main")))
    assert (event.actor_type, event.actor_id) == ("agent", OPS)


async def test_goal_needs_an_actor(gateway: Gateway) -> None:
    """Rule 1.3: every event names its actor; a goal change without a real one raises."""
    with pytest.raises(InvalidArgument, match="actor"):
        await gateway.goal_changed(CHILD, "updated", actor="human")  # type: ignore[arg-type]


# -- 1.4 outcomes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [CHILD, "agent:codex:acp:1"])
@pytest.mark.parametrize("outcome", ["cancelled", "timeout", "error"])
async def test_failed_run_keeps_its_outcome(gateway: Gateway, key: str, outcome: Any) -> None:
    """Rule 1.4: a failed run's payload keeps the precise outcome, for ACP and native children alike."""
    event = there(await gateway.run_ended(key, run_id="r1", outcome=outcome))
    assert (event.kind, event.payload) == ("run_failed", {"outcome": outcome})
    assert (await changes(gateway, key))["events"][-1]["payload"] == {"outcome": outcome}


async def test_good_run_has_no_payload(gateway: Gateway) -> None:
    """Rule 1.4: a run that ended well is a `run_completed`, and has nothing to keep."""
    await gateway.run_ended(CHILD, run_id="r1", outcome="ok")
    row = (await changes(gateway))["events"][-1]
    assert row["kind"] == "run_completed"
    assert "payload" not in row


async def test_unknown_outcome_raises(gateway: Gateway) -> None:
    """Rule 1.9: an outcome that there is not raises at once."""
    with pytest.raises(InvalidArgument, match="outcome"):
        await gateway.run_ended(CHILD, run_id="r1", outcome="failed")  # type: ignore[arg-type]


# -- 1.6 dedupe keys ---------------------------------------------------------------------------------------------------------


async def test_repeated_dedupe_key(gateway: Gateway) -> None:
    """Rule 1.6: a repeat records nothing, moves nothing, and returns the first event."""
    await family(gateway)
    first = await gateway.human_message(CHILD, channel="telegram", dedupe_key="k")
    await show(gateway)
    before = await positions(gateway)
    again = await gateway.human_message(CHILD, channel="signal", actor_id="somebody else", dedupe_key="k")
    assert again == first
    assert await positions(gateway) == before
    assert await version(gateway) == there(first).sequence
    assert await gateway.pending(MAIN) == []


async def test_concurrent_repeats(gateway: Gateway) -> None:
    """Rule 1.6: of many repeats at the same moment one is recorded, and all are answered with it."""
    await family(gateway)
    answers = await asyncio.gather(*(gateway.human_message(CHILD, channel="telegram", dedupe_key="k") for _ in range(50)))
    assert len({there(answer).sequence for answer in answers}) == 1
    assert len((await changes(gateway))["events"]) == 2


async def test_dedupe_across_a_restart(opening: Opening) -> None:
    """Rule 1.6: a repeat is one after a restart, too."""
    async with opening() as gateway:
        await family(gateway)
        first = await gateway.human_message(CHILD, channel="telegram", dedupe_key="k")
    async with opening() as gateway:
        assert await gateway.human_message(CHILD, channel="telegram", dedupe_key="k") == first
        assert (await gateway.statistics()).events_recorded == 0


@pytest.mark.parametrize("blank", [None, "", "   ", "\t"])
async def test_blank_dedupe_key_means_none(gateway: Gateway, blank: str | None) -> None:
    """Rule 1.6: blank means none: nothing is a repeat of anything."""
    await family(gateway)
    first = await gateway.human_message(CHILD, channel="telegram", dedupe_key=blank)
    second = await gateway.human_message(CHILD, channel="telegram", dedupe_key=blank)
    assert there(second).sequence > there(first).sequence


async def test_dedupe_key_is_of_one_session(gateway: Gateway) -> None:
    """Rule 1.6: the same key on another session is another event."""
    await family(gateway)
    await gateway.spawn(MAIN, OTHER, run_id="r1")
    one = there(await gateway.human_message(CHILD, channel="telegram", dedupe_key="k"))
    two = there(await gateway.human_message(OTHER, channel="telegram", dedupe_key="k"))
    assert one.sequence != two.sequence


async def test_dedupe_key_is_of_one_agent(gateway: Gateway) -> None:
    """Rule 1.6: the same key under another agent is another event, for it is another session."""
    one = there(await gateway.compacted(GLOBAL, operation_id="c", agent_id="main"))
    two = there(await gateway.compacted(GLOBAL, operation_id="c", agent_id="ops"))
    assert one.sequence != two.sequence


async def test_dedupe_key_is_of_one_kind(gateway: Gateway) -> None:
    """Rule 1.6: one id may name a spawn, a run's end and a compaction of one session."""
    await gateway.spawn(MAIN, CHILD, run_id="x")
    await gateway.run_ended(CHILD, run_id="x", outcome="ok")
    await gateway.compacted(CHILD, operation_id="x")
    await gateway.human_message(CHILD, channel="telegram", dedupe_key="x")
    assert len((await changes(gateway))["events"]) == 4


async def test_spawn_once_per_run(gateway: Gateway) -> None:
    """Rule 1.6: a child spawn is deduplicated by its run id, and the repeat does not seed the cursor anew."""
    first = await family(gateway)
    await gateway.unwatch(MAIN, CHILD)
    assert await gateway.spawn(MAIN, CHILD, run_id="r1") == first
    assert await pair(gateway) is None


async def test_run_end_once_per_run(gateway: Gateway) -> None:
    """Rule 1.6: a run's end is deduplicated by its run id; another run's end is another event."""
    first = await gateway.run_ended(CHILD, run_id="r1", outcome="error")
    assert await gateway.run_ended(CHILD, run_id="r1", outcome="timeout") == first
    assert there(await gateway.run_ended(CHILD, run_id="r2", outcome="error")).sequence > there(first).sequence


async def test_compaction_once_per_operation(gateway: Gateway) -> None:
    """Rule 1.6: a compaction is deduplicated by its operation id."""
    first = await gateway.compacted(CHILD, operation_id="c")
    assert await gateway.compacted(CHILD, operation_id="c") == first
    assert there(await gateway.compacted(CHILD, operation_id="d")).sequence > there(first).sequence


async def test_goal_changes_are_never_repeats(gateway: Gateway) -> None:
    """Rule 1.6: goal changes have no dedupe key: the same change twice is two events."""
    await gateway.goal_changed(CHILD, "updated", actor=PERSON)
    await gateway.goal_changed(CHILD, "updated", actor=PERSON)
    assert len((await changes(gateway))["events"]) == 2


async def test_dedupe_key_is_free_after_pruning(opening: Opening, clock: ManualClock) -> None:
    """Rule 1.6: once the first event is pruned the key records again."""
    async with opening() as gateway:
        await gateway.compacted(CHILD, operation_id="c")
        await clock.advance(31 * DAY_S)
        assert there(await gateway.compacted(CHILD, operation_id="c")).sequence == 2


async def test_dedupe_key_is_free_after_deletion(gateway: Gateway) -> None:
    """Rule 1.6: once the session is deleted, and with it the first event, the key records again."""
    first = there(await gateway.compacted(CHILD, operation_id="c"))
    await gateway.delete_session(CHILD)
    assert there(await gateway.compacted(CHILD, operation_id="c")).sequence > first.sequence


async def test_repeat_on_a_session_nobody_watches_any_more(gateway: Gateway) -> None:
    """Rule 1.6: a repeat returns the first event even if a first one would not be recorded now."""
    await gateway.watch(MAIN, OPS)
    first = await gateway.human_message(OPS, channel="telegram", dedupe_key="k")
    await gateway.unwatch(MAIN, OPS)
    assert await gateway.human_message(OPS, channel="telegram", dedupe_key="k") == first


# -- 1.7 occurred_at ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, NOW),
        (math.nan, NOW),
        (math.inf, NOW),
        (-math.inf, NOW),
        ("1767225500000", NOW),
        (b"1", NOW),
        ([1], NOW),
        (True, NOW),
        (NOW, NOW),
        (NOW - 5, NOW - 5),
        (NOW - 4.5, NOW - 5),
        (NOW - DAY_MS, NOW - DAY_MS),
        (NOW - DAY_MS - 1, NOW - DAY_MS),
        (NOW - DAY_MS + 0.5, NOW - DAY_MS),
        (0, NOW - DAY_MS),
        (-1, NOW - DAY_MS),
        (NOW + 1, NOW),
        (NOW + 0.5, NOW),
        (10**400, NOW),
        (-(10**400), NOW - DAY_MS),
        (1e308, NOW),
        (-1e308, NOW - DAY_MS),
    ],
    ids=lambda given: ascii(given)[:24],
)
async def test_occurred_at(gateway: Gateway, given: Any, kept: int) -> None:
    """Rule 1.7: what is no finite number is now, everything else is clamped into the last 24 hours and rounded down."""
    await family(gateway)
    event = there(await gateway.human_message(CHILD, channel="telegram", occurred_at_ms=given))
    assert event.occurred_at_ms == kept
    assert isinstance(event.occurred_at_ms, int)
    assert (await changes(gateway))["events"][-1]["occurredAt"] == kept


async def test_retention_is_by_recording(opening: Opening, clock: ManualClock) -> None:
    """Rule 1.7: retention counts from the recording: an event that occurred a day before it still stays 30 days."""
    async with opening() as gateway:
        await family(gateway)
        late = there(await gateway.human_message(CHILD, channel="telegram", occurred_at_ms=NOW - DAY_MS))
        await clock.advance(29.5 * DAY_S)
        await gateway.prune()
        assert late.sequence in sequences(await changes(gateway))


async def test_recording_time_never_goes_back(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rule 1.7: the wall clock may jump back, a session's recording times do not."""
    async with opening() as gateway:
        await family(gateway)
        clock.set_wall_clock(NOW - 10 * DAY_MS)
        assert (await human(gateway)).occurred_at_ms == NOW - 10 * DAY_MS
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT recorded_at FROM session_state_events ORDER BY sequence").fetchall()
    assert rows == [(NOW,), (NOW,)]


# -- 1.8 who is recorded -----------------------------------------------------------------------------------------------------


async def test_unwatched_turn_is_not_recorded(gateway: Gateway) -> None:
    """Rule 1.8: a person's turn in a session without parent and watcher is not recorded."""
    await gateway.open_session(OPS)
    assert await gateway.human_message(OPS, channel="telegram") is None
    assert await version(gateway, OPS) == 0
    assert (await gateway.statistics()).recordings_lost == 0


async def test_parent_is_enough(gateway: Gateway) -> None:
    """Rule 1.8: a session that has a parent is recorded, though nobody watches it."""
    await gateway.open_session(OPS, parent=MAIN)
    assert (await human(gateway, OPS)).sequence == 1
    assert await gateway.watches(MAIN) == []


async def test_cursor_is_enough(gateway: Gateway) -> None:
    """Rule 1.8: a session that one cursor points at is recorded, and no longer once it is gone."""
    await gateway.watch(MAIN, OPS)
    await human(gateway, OPS)
    await gateway.unwatch(MAIN, OPS)
    assert await gateway.human_message(OPS, channel="telegram") is None


@pytest.mark.parametrize("how", ["unwatch", "reset", "delete", "expire"])
async def test_cursor_that_went(gateway: Gateway, clock: ManualClock, how: str) -> None:
    """Rules 1.8, 3.5: a session whose only cursor went, by whichever way, is not recorded any more, however busy it was before."""
    await gateway.watch(MAIN, OPS)
    for _ in range(3):
        await human(gateway, OPS)
    if how == "unwatch":
        await gateway.unwatch(MAIN, OPS)
    elif how == "reset":
        await gateway.reset_session(MAIN)
    elif how == "delete":
        await gateway.delete_session(MAIN)
    else:
        await clock.advance(31 * DAY_S)
        await gateway.prune()
    assert await gateway.human_message(OPS, channel="telegram") is None
    await gateway.watch(MAIN, OPS)
    assert await gateway.human_message(OPS, channel="telegram") is not None


async def test_watching_another_does_not_count(gateway: Gateway) -> None:
    """Rule 1.8: a session that watches others is not itself watched."""
    await gateway.watch(MAIN, OPS)
    assert await gateway.human_message(MAIN, channel="telegram") is None


async def test_the_other_agent_s_watcher_does_not_count(gateway: Gateway) -> None:
    """Rules 1.8, 2.4: a cursor on a key under one agent does not make the key watched under another."""
    await gateway.watch(MAIN, GLOBAL, target_agent_id="ops")
    assert await gateway.human_message(GLOBAL, channel="telegram", agent_id="main") is None
    assert await gateway.human_message(GLOBAL, channel="telegram", agent_id="ops") is not None


async def test_record_unwatched(opening: Opening) -> None:
    """Rule 1.8: `record_unwatched=True` lifts the condition."""
    async with opening(config=GatewayConfig(record_unwatched=True)) as gateway:
        assert (await human(gateway, OPS)).sequence == 1


async def test_other_kinds_are_always_recorded(gateway: Gateway) -> None:
    """Rule 1.8: only human turns ask for a watcher; goals, run ends and compactions are recorded of any session."""
    assert await gateway.goal_changed(OPS, "created", actor=PERSON) is not None
    assert await gateway.run_ended(OPS, run_id="r", outcome="ok") is not None
    assert await gateway.compacted(OPS, operation_id="c") is not None
    assert await version(gateway, OPS) == 3


# -- 1.9 wrong arguments (failures of the store: test_rule_1_9_store.py) --------------------------------------------------------

BAD_KEY = "agent:main"


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.spawn(BAD_KEY, CHILD, run_id="r"),
        lambda g: g.spawn(MAIN, BAD_KEY, run_id="r"),
        lambda g: g.human_message(BAD_KEY, channel="c"),
        lambda g: g.goal_changed(BAD_KEY, "created", actor=PERSON),
        lambda g: g.run_ended(BAD_KEY, run_id="r", outcome="ok"),
        lambda g: g.compacted(BAD_KEY, operation_id="c"),
        lambda g: g.run_started(BAD_KEY, "r"),
        lambda g: g.run_finished(BAD_KEY, "r"),
        lambda g: g.human_message(GLOBAL, channel="c"),
        lambda g: g.human_message(None, channel="c"),
    ],
)
async def test_bad_key_raises(gateway: Gateway, call: Any) -> None:
    """Rule 1.9: a bad key in a recording call is a programming error, and raises at once."""
    with pytest.raises(InvalidSessionKey):
        await call(gateway)
    assert (await gateway.statistics()).recordings_lost == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.goal_changed(CHILD, "deleted", actor=PERSON),
        lambda g: g.goal_changed(CHILD, "", actor=PERSON),
        lambda g: g.goal_changed(CHILD, None, actor=PERSON),
        lambda g: g.goal_changed(CHILD, ["created"], actor=PERSON),
        lambda g: g.goal_changed(CHILD, "created", actor=None),
        lambda g: g.human_message(CHILD, channel=None),
        lambda g: g.human_message(CHILD, channel=5),
        lambda g: g.human_message(CHILD, channel="c", agent_id="ops"),
        lambda g: g.human_message(CHILD, channel="c", agent_id=7),
        lambda g: g.run_ended(CHILD, run_id=None, outcome="ok"),
        lambda g: g.run_ended(CHILD, run_id=5, outcome="ok"),
        lambda g: g.spawn(MAIN, CHILD, run_id=""),
        lambda g: g.compacted(CHILD, operation_id="a\nb"),
    ],
)
async def test_wrong_argument_raises(gateway: Gateway, call: Any) -> None:
    """Rule 1.9: an unknown change, or a value of the wrong kind, raises at once and records nothing."""
    await family(gateway)
    with pytest.raises(InvalidArgument):
        await call(gateway)
    assert await version(gateway) == 1


# -- 1.10 committed ----------------------------------------------------------------------------------------------------------


async def test_returned_event_is_committed(gateway: Gateway, database: Path) -> None:
    """Rule 1.10: when the call returns, another connection reads the event."""
    await family(gateway)
    event = await human(gateway)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as other:
        assert other.execute("SELECT max(sequence) FROM session_state_events").fetchone() == (event.sequence,)


async def watched_by_many(gateway: Gateway, count: int) -> list[str]:
    """More watchers on the child than one transaction opens notices for."""
    watchers = [f"agent:w{number}:main" for number in range(count)]
    await asyncio.gather(*(gateway.watch(watcher, CHILD) for watcher in watchers))
    return watchers


async def test_watcher_waits_for_the_openings_owed_to_it(gateway: Gateway) -> None:
    """Rule 1.10: with more watchers than one transaction can serve, each of them is told at its very next call."""
    watchers = await watched_by_many(gateway, 600)
    event = await human(gateway)
    reads = await asyncio.gather(*(gateway.pending(watcher) for watcher in reversed(watchers)))
    assert all(len(notices) == 1 for notices in reads)
    assert await positions(gateway, watchers[-1]) == (0, event.sequence, event.sequence)


@pytest.mark.parametrize("how", ["turn", "drain", "watches"])
async def test_every_way_of_looking_waits(gateway: Gateway, how: str) -> None:
    """Rule 1.10: `turn`, `drain` and `watches` wait for the openings that are owed, as `pending` does."""
    watchers = await watched_by_many(gateway, 600)
    event = await human(gateway)
    last = watchers[-1]
    if how == "turn":
        async with gateway.turn(last) as turn:
            assert len(turn.notices) == 1
    elif how == "drain":
        assert len(await gateway.drain(last)) == 1
    else:
        assert [watch.notified for watch in await gateway.watches(last)] == [event.sequence]


async def test_owed_openings_keep_their_pins(gateway: Gateway) -> None:
    """Rules 1.10, 4.3: a notice that is opened late is still pinned at the first material event."""
    watchers = await watched_by_many(gateway, 600)
    first, second = await asyncio.gather(human(gateway), human(gateway))
    for watcher in (watchers[0], watchers[-1]):
        assert await positions(gateway, watcher) == (0, first.sequence, second.sequence)


# -- 1.11 the state version --------------------------------------------------------------------------------------------------


async def test_version_is_zero_at_first(gateway: Gateway) -> None:
    """Rule 1.11: before the first event the state version is 0."""
    await gateway.open_session(CHILD)
    assert await version(gateway) == 0


async def test_version_is_the_last_sequence(gateway: Gateway) -> None:
    """Rule 1.11: the state version is the session's last sequence, whatever its kind, and other sessions do not move it."""
    await family(gateway)
    last = there(await gateway.compacted(CHILD, operation_id="c"))
    await gateway.compacted(OTHER, operation_id="c")
    assert await version(gateway) == last.sequence == 2
    assert await version(gateway, OTHER) == 3


async def test_version_survives_pruning(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 1.11: pruning every event leaves the state version where it was."""
    await family(gateway)
    last = await human(gateway)
    await clock.advance(31 * DAY_S)
    delta = await changes(gateway)
    assert delta["events"] == []
    assert await version(gateway) == last.sequence


async def test_deleting_removes_row_and_events(gateway: Gateway, database: Path) -> None:
    """Rule 1.11: deleting a session removes its row and its events."""
    await family(gateway)
    await human(gateway)
    assert await gateway.delete_session(CHILD) is True
    with pytest.raises(UnknownSession):
        await gateway.session_status(CHILD)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as other:
        assert other.execute("SELECT count(*) FROM session_state_events").fetchone() == (0,)
        assert other.execute("SELECT count(*) FROM sessions WHERE session_key = ?", (CHILD,)).fetchone() == (0,)


async def test_deleted_head_stays(gateway: Gateway, database: Path) -> None:
    """Rule 1.11: the deleted session's head stays, its pruned mark raised to its last sequence."""
    await family(gateway)
    last = await human(gateway)
    await gateway.delete_session(CHILD)
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as other:
        sql = "SELECT last_sequence, pruned_max_sequence FROM session_state_heads WHERE session_key = ?"
        assert other.execute(sql, (CHILD,)).fetchall() == [(last.sequence, last.sequence)]


async def test_recreated_session_continues(gateway: Gateway) -> None:
    """Rule 1.11: a session created again under the key continues from its head, and an older `changesSince` reports a gap."""
    await family(gateway)
    last = await human(gateway)
    await gateway.delete_session(CHILD)
    await gateway.open_session(CHILD)
    assert await version(gateway) == last.sequence
    assert (await changes(gateway, since=last.sequence - 1))["historyGap"] is True
    assert (await changes(gateway, since=last.sequence))["historyGap"] is False
    fresh = there(await gateway.compacted(CHILD, operation_id="c"))
    assert fresh.sequence > last.sequence
    assert sequences(await changes(gateway, since=last.sequence)) == [fresh.sequence]


async def test_recreated_session_has_another_id(gateway: Gateway) -> None:
    """Rule 1.11: a session created again is another session, with another id and no parent."""
    await family(gateway)
    before = await gateway.open_session(CHILD)
    await gateway.delete_session(CHILD)
    after = await gateway.open_session(CHILD)
    assert after.session_id != before.session_id
    assert (before.parent, after.parent) == (MAIN, None)


async def test_head_goes_after_the_retention_time(opening: Opening, clock: ManualClock, database: Path) -> None:
    """Rule 1.11: a deleted session's head stays for the retention time, and then goes."""

    def heads() -> int:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as other:
            count: int = other.execute("SELECT count(*) FROM session_state_heads").fetchone()[0]
            return count

    async with opening() as gateway:
        await gateway.compacted(OTHER, operation_id="c")
        await gateway.delete_session(OTHER)
        await clock.advance(29 * DAY_S)
        await gateway.prune()
        assert heads() == 1
        await clock.advance(2 * DAY_S)
        assert heads() == 0
        assert there(await gateway.compacted(OTHER, operation_id="c")).sequence == 2


async def test_recreated_head_is_not_removed(gateway: Gateway, clock: ManualClock) -> None:
    """Rule 1.11: a session that was created again in time keeps its head."""
    await gateway.compacted(OTHER, operation_id="c")
    await gateway.delete_session(OTHER)
    await gateway.open_session(OTHER)
    await clock.advance(31 * DAY_S)
    assert await version(gateway, OTHER) == 1


async def test_deleting_nothing(gateway: Gateway) -> None:
    """Rule 1.11: deleting a session that is not there answers False, also the second time."""
    assert await gateway.delete_session(CHILD) is False
    await gateway.open_session(CHILD)
    assert await gateway.delete_session(CHILD) is True
    assert await gateway.delete_session(CHILD) is False


async def test_an_unwatched_turn_creates_the_row(gateway: Gateway) -> None:
    """Rule 1.8: a turn that nobody is told of records no event, and creates the session's row like every recording call."""
    assert await gateway.human_message(CHILD, channel="telegram") is None
    assert (await gateway.session_status(CHILD))["stateVersion"] == 0


async def test_sequences_have_gaps_per_session(gateway: Gateway) -> None:
    """Words: a sequence is a number of the whole log, so a session's own have gaps, and increase."""
    await family(gateway)
    await gateway.spawn(MAIN, OTHER, run_id="r2")
    for _ in range(3):
        await human(gateway, CHILD)
        await human(gateway, OTHER)
    assert sequences(await changes(gateway, CHILD)) == [1, 3, 5, 7]
    assert sequences(await changes(gateway, OTHER)) == [2, 4, 6, 8]


async def test_decimals_are_not_a_way_around(gateway: Gateway) -> None:
    """Rule 1.7: a number of another kind is either taken or now, and never raises."""
    await family(gateway)
    given: Any = Decimal(NOW - 1)
    assert there(await gateway.human_message(CHILD, channel="c", occurred_at_ms=given)).occurred_at_ms in (NOW, NOW - 1)
