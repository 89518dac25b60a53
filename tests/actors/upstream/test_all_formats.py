"""What holds for every format: whatever the rows are, and however a transcript grows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from itertools import chain, pairwise, repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kizuki.actors.upstream.files.follower import Follower
from kizuki.actors.upstream.formats.formats import CODEX, FORMATS, GEMINI, PI, Format
from kizuki.actors.upstream.formats.opencode import SessionReader
from kizuki.actors.upstream.formats.rows import Classified, RowClass
from kizuki.actors.upstream.formats.scanning import reader_at, scan_whole_file
from kizuki.actors.upstream.formats.tables import Reader

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
IDS = st.sampled_from(["a", "b", "c"]) | JSON
TIMES = st.sampled_from([NOON, "2026-11-02T11:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999-14:00"]) | JSON


def named(*names: str) -> st.SearchStrategy[object]:
    return st.sampled_from(names) | JSON


def objects(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return JSON | st.fixed_dictionaries({}, optional=fields)


BLOCKS = JSON | st.lists(JSON | objects(type=named("text", "input_text", "input_image", "image"), text=JSON | st.text()), max_size=3)
CODEX_ROWS = objects(
    type=named("session_meta", "event_msg", "response_item", "compacted", "inter_agent_communication"),
    timestamp=TIMES,
    metadata=objects(inherited_user_message=JSON),
    payload=objects(
        type=named("user_message", "item_completed", "message", "context_compacted", "task_complete", "thread_goal_updated"),
        role=named("user", "assistant", "developer"),
        message=JSON | st.text(),
        content=BLOCKS,
        item=objects(type=named("UserMessage", "ContextCompaction", "AgentMessage"), id=IDS, content=BLOCKS),
        internal_chat_message_metadata_passthrough=objects(
            content_item_kinds=JSON | st.lists(named("user.text", "goal.x"), max_size=3), turn_id=IDS
        ),
        turn_id=IDS,
        images=JSON,
        goal=objects(objective=JSON, status=JSON, createdAt=JSON, updatedAt=JSON),
        source=objects(subagent=JSON),
        thread_source=named("user", "subagent"),
        forked_from_id=JSON,
        agent_thread_id=IDS,
        kind=named("started", "plain"),
    ),
)
PI_ROWS = objects(
    type=named("session", "message", "compaction", "custom_message"),
    version=named("3") | st.just(3),
    id=IDS,
    timestamp=TIMES,
    parentSession=JSON,
    message=objects(role=named("user", "assistant", "toolResult", "custom"), content=BLOCKS, timestamp=JSON),
)
PARTS = JSON | st.lists(JSON | objects(text=JSON | st.text(), inlineData=JSON, functionResponse=JSON), max_size=3)
GEMINI_ROWS = objects(
    type=named("user", "gemini", "info"),
    id=IDS,
    timestamp=TIMES,
    content=PARTS,
    displayContent=PARTS,
    sessionId=IDS,
    kind=named("main", "subagent"),
) | objects(**{"$set": JSON, "$rewindTo": JSON})
OPENCODE_ROWS = objects(
    table=named("message", "part", "session_message"),
    id=IDS,
    message_id=IDS,
    type=named("user", "synthetic", "compaction"),
    time_created=JSON | st.just(NOON_MS),
    data=objects(
        role=named("user", "assistant"),
        type=named("text", "compaction"),
        text=JSON | st.text(),
        synthetic=JSON,
        time=objects(created=JSON),
    ),
)


def reader_of(form: Format) -> Callable[[int | None], Reader]:
    return lambda adopted_at_ms: form.reader(Path("s.jsonl"), adopted_at_ms)


FUZZED: list[tuple[Callable[[int | None], Reader], st.SearchStrategy[object]]] = [
    (reader_of(CODEX), CODEX_ROWS),
    (reader_of(PI), PI_ROWS),
    (reader_of(GEMINI), GEMINI_ROWS),
    (lambda adopted_at_ms: SessionReader(adopted_at_ms=adopted_at_ms), OPENCODE_ROWS),
]


@pytest.mark.parametrize(("make", "rows"), FUZZED, ids=["codex", "pi", "gemini", "opencode"])
@settings(max_examples=60, deadline=None)
@given(data=st.data(), adopted_at_ms=st.none() | st.just(NOON_MS))
def test_any_rows(
    make: Callable[[int | None], Reader], rows: st.SearchStrategy[object], data: st.DataObject, adopted_at_ms: int | None
) -> None:
    """Whatever the rows are, each gets one verdict and no exception; exactly the unknown ones have a shape, of plain characters."""
    reader = make(adopted_at_ms)
    given_rows = data.draw(st.lists(rows, max_size=8))
    verdicts = [verdict for row in given_rows for verdict in reader.feed(row)] + reader.finish()
    assert len(verdicts) == len(given_rows)
    for classified in verdicts:
        assert (classified.shape is not None) == (classified.row_class is RowClass.UNKNOWN)
        assert (classified.confidence is not None) == (classified.row_class is RowClass.HUMAN)
        assert classified.shape is None or (classified.shape.isascii() and len(classified.shape) < 600)
        assert classified.happening is None or classified.row_class in (RowClass.COMPACTED, RowClass.LIFECYCLE)


def codex_row(kind: str, minute: int, **payload: object) -> bytes:
    return json.dumps({"timestamp": f"2026-11-02T12:{minute:02}:00.000Z", "type": kind, "payload": payload}, ensure_ascii=False).encode()


def codex_transcript() -> bytes:
    kinds = {"turn_id": "r-1", "content_item_kinds": ["user.text"]}
    content = [{"type": "input_text", "text": "rename – é😀"}]
    rows = [
        b"\xef\xbb\xbf" + codex_row("session_meta", 0, id="t-1", source="cli", base_instructions="x" * 3_000) + b"\r",
        codex_row("event_msg", 1, type="task_started", turn_id="r-1")
        + codex_row("response_item", 1, type="message", role="user", content=content, internal_chat_message_metadata_passthrough=kinds),
        codex_row("event_msg", 1, type="user_message", message="rename – é😀"),
        b'{"timestamp":"2026',
        codex_row("response_item", 2, type="function_call_output", output="y" * 4_000),
        b"null",
        codex_row("response_item", 2, type="message", role="assistant", content=[]),
        codex_row("event_msg", 3, type="user_message", message="bad ÿ").replace("ÿ".encode(), b"\xff"),
        codex_row("compacted", 4, message="", replacement_history=[{"type": "message", "role": "user", "content": content}]),
        codex_row("event_msg", 4, type="context_compacted"),
        codex_row("event_msg", 5, type="user_message", message="", local_images=["/w/x.png"]),
        codex_row("hologram", 6),
    ]
    return b"\n".join(rows) + b"\n"


def pi_row(kind: str, identity: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, "id": identity, "timestamp": NOON, **fields}, ensure_ascii=False).encode()


def pi_transcript() -> bytes:
    rows = [
        pi_row("session", "p-1", version=3) + b"\r",
        pi_row("message", "1", message={"role": "user", "content": "rename – é😀"}) + pi_row("message", "2", message={"role": "assistant"}),
        b'{"type":"mess',
        pi_row("message", "3", message={"role": "toolResult", "content": [{"type": "text", "text": "y" * 4_000}]}),
        pi_row("message", "1", message={"role": "user", "content": "again"}),
        b"[]",
        pi_row("compaction", "4", summary="x"),
        pi_row("message", "5", message={"role": "user", "content": [{"type": "image", "data": "A" * 4_000}]}),
        pi_row("hologram", "6"),
    ]
    return b"\n".join(rows) + b"\n"


def gemini_row(identity: str, kind: str, content: object) -> bytes:
    return json.dumps({"id": identity, "timestamp": NOON, "type": kind, "content": content}, ensure_ascii=False).encode()


def gemini_transcript() -> bytes:
    rows = [
        json.dumps({"sessionId": "g-1", "projectHash": "h", "kind": "main"}).encode() + b"\r",
        gemini_row("1", "user", [{"text": "<session_context>"}]) + gemini_row("2", "user", [{"text": "rename – é😀"}]),
        gemini_row("3", "gemini", "y" * 4_000),
        b'{"id":"4',
        gemini_row("2", "user", [{"text": "rename – é😀"}]),
        b'"text"',
        b'{"$rewindTo":"2"}',
        gemini_row("5", "user", [{"inlineData": {"data": "A" * 4_000}}]),
        json.dumps({"$set": {"messages": [json.loads(gemini_row("6", "user", "never typed"))]}}).encode(),
        gemini_row("7", "hologram", "x"),
    ]
    return b"\n".join(rows) + b"\n"


TRANSCRIPTS = [(CODEX, codex_transcript(), 3, 1), (PI, pi_transcript(), 2, 1), (GEMINI, gemini_transcript(), 2, 0)]
"""Each with its number of human turns and of compactions; each has a torn row, a value that is no object, and an unknown type."""
each_transcript = pytest.mark.parametrize(("form", "content", "human_turns", "compactions"), TRANSCRIPTS, ids=["codex", "pi", "gemini"])


def follow(form: Format, path: Path, pieces: Iterable[bytes], max_bytes: int = 1 << 30) -> list[Classified]:
    """Append the pieces, with a scan after each, and give all verdicts."""
    path.write_bytes(b"")
    follower, reader = Follower(path, row_max_bytes=2_500), form.reader(path, None)
    marker, verdicts = follower.start(), list[Classified]()
    with path.open("ab", buffering=0) as file:
        for piece in chain(pieces, repeat(b"")):
            file.write(piece)
            scan = follower.scan(marker, max_bytes)
            verdicts += [verdict for row in scan.rows for verdict in reader.feed(row.value)]
            marker = scan.marker
            if not piece and not scan.more:
                break
    return verdicts + reader.finish()


@each_transcript
def test_whole_file(tmp_path: Path, form: Format, content: bytes, human_turns: int, compactions: int) -> None:
    """A whole file gives its human turns and its compactions, and counts what was declined."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    report = scan_whole_file(path, form)
    assert (report.catalog, report.human_turns, report.unknown_rows) == (form.name, human_turns, 3)
    assert (report.classes.get(RowClass.COMPACTED, 0), report.classes[RowClass.UNREADABLE]) == (compactions, 1)
    assert sum(report.unknown_shapes.values()) == 2


@each_transcript
def test_byte_by_byte(tmp_path: Path, form: Format, content: bytes, human_turns: int, compactions: int) -> None:
    """A transcript appended byte by byte, with a scan after each, gives exactly the verdicts of one scan."""
    whole = follow(form, tmp_path / "a.jsonl", [content])
    assert sum(verdict.row_class is RowClass.HUMAN for verdict in whole) == human_turns
    assert follow(form, tmp_path / "b.jsonl", [content[at : at + 1] for at in range(len(content))]) == whole


@pytest.mark.parametrize("seed", range(4))
@each_transcript
def test_random_pieces(tmp_path: Path, form: Format, content: bytes, human_turns: int, compactions: int, seed: int) -> None:
    """A transcript appended in random pieces, with bounded scans between, gives exactly the verdicts of one scan."""
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(len(content)) for _ in range(dice.choice([5, 50, 300])))
    pieces = [content[start:end] for start, end in pairwise([0, *cuts, len(content)]) if start < end]
    whole = follow(form, tmp_path / "a.jsonl", [content])
    assert follow(form, tmp_path / "b.jsonl", pieces, dice.choice([10, 100, 1_000, 10_000])) == whole


@each_transcript
def test_reader_in_the_middle(tmp_path: Path, form: Format, content: bytes, human_turns: int, compactions: int) -> None:
    """A reader made for a marker goes on as one would that has read the file from its beginning."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(content)
    follower, reader = Follower(path), form.reader(path, 0)
    marker = follower.start(at_end=False)
    while True:
        scan = follower.scan(marker, 100)
        resumed = reader_at(path, marker, adopted_at_ms=0, form=form)
        for row in scan.rows:
            assert resumed.feed(row.value) == reader.feed(row.value)
        marker = scan.marker
        if not scan.more:
            break


def test_each_format_once() -> None:
    """Every format has a name of its own."""
    assert len({form.name for form in FORMATS}) == len(FORMATS) == 4
