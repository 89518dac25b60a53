"""Whole transcripts: a scan of a file, real ones, and the same turns however a file grows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from itertools import chain, pairwise, repeat
from pathlib import Path

import pytest

from kizuki.actors.upstream.files.follower import Follower
from kizuki.actors.upstream.files.lines import ROW_MAX_BYTES
from kizuki.actors.upstream.formats.claude import TranscriptReader
from kizuki.actors.upstream.formats.formats import CODEX
from kizuki.actors.upstream.formats.rows import Classified, RowClass
from kizuki.actors.upstream.formats.scanning import PRIME_HEAD_BYTES, reader_at, scan_whole_file
from kizuki.actors.upstream.formats.tally import OTHER_SHAPES, SHAPES_MAX, Tally

FIXTURES = Path(__file__).resolve().parents[4] / "shared" / "fixtures" / "claude"
COMMAND = "<command-message>review runs</command-message>\n<command-name>/review</command-name>"


def line(kind: str = "user", content: object = "text", **fields: object) -> bytes:
    row = {"type": kind, "timestamp": "2026-11-02T12:00:00.000Z", "message": {"role": kind, "content": content}, **fields}
    return json.dumps(row, ensure_ascii=False).encode()


def generated_transcript() -> bytes:
    """An old file that a new version goes on with, with five human turns and what surrounds them, at its worst."""
    tool_result = [{"type": "tool_result", "tool_use_id": "t", "content": "x" * 300}]
    rows = [
        b"\xef\xbb\xbf" + line(content=COMMAND, uuid="1") + b"\r",
        line(content="Review the code", uuid="2", parentUuid="1", isMeta=True) + b"\r",
        line("assistant", uuid="3", parentUuid="2") + line(content=tool_result, uuid="4", toolUseResult={}),
        line(content="typed in an old version – é😀", uuid="5"),
        line(content="typed in an old version – é😀", uuid="5"),
        line(content=COMMAND, uuid="6"),
        b'{"type":"user","mess',
        line(content="<local-command-stdout>x", uuid="7", parentUuid="6"),
        b"null",
        line(content="bad ÿ", uuid="8", promptSource="typed").replace("ÿ".encode(), b"\xff"),
        line(content="echo of the tool", uuid="9"),
        line("hologram", uuid="10"),
        json.dumps({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "and", "origin": {"kind": "human"}}}).encode(),
        line(content=[{"type": "image", "data": "A" * 2_000}], uuid="11", origin={"kind": "human"}),
        line(content=COMMAND, uuid="12", origin={"kind": "task-notification"}),
    ]
    return b"\n".join(rows) + b"\n"


HUMAN_IDS = ["1", "5", "8", None, "11"]


def follow(path: Path, pieces: Iterable[bytes], *, row_max_bytes: int, max_bytes: int = 10_000) -> list[Classified]:
    """Append the pieces, with a scan after each, and give all verdicts."""
    path.write_bytes(b"")
    follower, reader = Follower(path, row_max_bytes=row_max_bytes), TranscriptReader()
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


def bytewise(content: bytes) -> list[bytes]:
    return [content[at : at + 1] for at in range(len(content))]


def at_random(content: bytes, seed: int) -> list[bytes]:
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(len(content)) for _ in range(dice.choice([5, 50, 300])))
    return [content[start:end] for start, end in pairwise([0, *cuts, len(content)]) if start < end]


def human_ids(verdicts: list[Classified]) -> list[str | None]:
    return [verdict.id for verdict in verdicts if verdict.row_class is RowClass.HUMAN]


def real_transcripts() -> list[bytes]:
    return [path.read_bytes() for path in sorted(FIXTURES.glob("*.jsonl"))] if FIXTURES.is_dir() else []


needs_fixtures = pytest.mark.skipif(not FIXTURES.is_dir(), reason="fixtures: the folder of real transcripts is not there")


def test_generated_transcript(tmp_path: Path) -> None:
    """A whole file gives its rows, its human turns and what was declined, by class and by shape."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(generated_transcript())
    report = scan_whole_file(path)
    assert (report.path, report.catalog, report.rows, report.human_turns, report.unknown_rows) == (str(path), "claude", 15, 5, 3)
    assert report.classes[RowClass.UNREADABLE] == 1
    assert report.unknown_shapes == {"null": 1, "type=hologram": 1}


def test_last_row_without_line_end(tmp_path: Path) -> None:
    """A whole last row counts without its line end, a torn one is not written yet; an unexpanded command at the end is no turn."""
    path = tmp_path / "s.jsonl"
    for tail, rows, human_turns in ((line(), 2, 2), (line()[:-1], 1, 1), (line(content=COMMAND, uuid="c"), 2, 1), (b"", 1, 1)):
        path.write_bytes(line() + b"\n" + tail)
        report = scan_whole_file(path)
        assert (report.rows, report.human_turns, report.unknown_rows) == (rows, human_turns, 0)


def test_files_of_subagents(tmp_path: Path) -> None:
    """A sub-agent's own file holds no human turn."""
    path = tmp_path / "s-1" / "subagents" / "agent-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(line(origin={"kind": "human"}) + b"\n")
    assert scan_whole_file(path).human_turns == 0


def test_oversized_human_turn(tmp_path: Path) -> None:
    """Rule 7.7: a turn with a picture of 20 MiB is a turn."""
    path = tmp_path / "s.jsonl"
    blocks = [{"type": "image", "source": {"data": "A" * 20 * 1024 * 1024}}, {"type": "text", "text": "what is this?"}]
    path.write_bytes(line(content=blocks, uuid="1") + b"\n" + line(content=blocks, isMeta=True) + b"\n" + line(uuid="2") + b"\n")
    report = scan_whole_file(path)
    assert (report.rows, report.human_turns, report.unknown_rows) == (3, 2, 0)


def test_byte_by_byte(tmp_path: Path) -> None:
    """A transcript appended byte by byte, with a scan after each, gives exactly the verdicts of one scan."""
    content = generated_transcript()
    whole = follow(tmp_path / "a", [content], row_max_bytes=1_500)
    assert human_ids(whole) == HUMAN_IDS
    assert follow(tmp_path / "b", bytewise(content), row_max_bytes=1_500) == whole


@pytest.mark.parametrize("seed", range(20))
def test_random_pieces(tmp_path: Path, seed: int) -> None:
    """A transcript appended in random pieces, with bounded scans between, gives exactly the verdicts of one scan."""
    content = generated_transcript() * 2
    whole = follow(tmp_path / "a", [content], row_max_bytes=1_500)
    max_bytes = random.Random(seed).choice([10, 100, 1_000, 10_000])
    assert follow(tmp_path / "b", at_random(content, seed), row_max_bytes=1_500, max_bytes=max_bytes) == whole


@needs_fixtures
def test_real_transcripts() -> None:
    """Each real transcript holds exactly one human turn, its first row, and nothing unknown."""
    reports = [scan_whole_file(path) for path in sorted(FIXTURES.glob("*.jsonl"))]
    assert [(report.rows, report.human_turns, report.unknown_rows) for report in reports] == [(53, 1, 0), (29, 1, 0)]


@needs_fixtures
def test_real_transcripts_piece_by_piece(tmp_path: Path) -> None:
    """Real transcripts that are appended byte by byte or in random pieces give exactly the verdicts of one scan."""
    for seed, content in enumerate(real_transcripts()):
        whole = follow(tmp_path / "a", [content], row_max_bytes=ROW_MAX_BYTES)
        assert len(human_ids(whole)) == 1
        assert follow(tmp_path / "b", at_random(content, seed), row_max_bytes=ROW_MAX_BYTES) == whole
    shortest = min(real_transcripts(), key=len)
    whole = follow(tmp_path / "a", [shortest], row_max_bytes=ROW_MAX_BYTES)
    assert follow(tmp_path / "c", bytewise(shortest), row_max_bytes=ROW_MAX_BYTES) == whole


def test_reader_in_the_middle(tmp_path: Path) -> None:
    """A reader made for a marker goes on as one would that has read the file from its beginning."""
    path = tmp_path / "s.jsonl"
    content = generated_transcript()
    path.write_bytes(content)
    follower, reader = Follower(path), TranscriptReader(adopted_at_ms=0)
    marker = follower.start(at_end=False)
    while True:
        scan = follower.scan(marker, 100)
        resumed = reader_at(path, marker, adopted_at_ms=0)
        for row in scan.rows:
            assert resumed.feed(row.value) == reader.feed(row.value)
        marker = scan.marker
        if not scan.more:
            break
    assert reader_at(path, marker, adopted_at_ms=0).finish() == reader.finish()


def test_reader_in_the_middle_of_a_large_file(tmp_path: Path) -> None:
    """What is before a marker is read to a bound: the beginning of the file, and what is just before the marker."""
    path = tmp_path / "s.jsonl"
    filler = line("assistant", content="x" * 1_000) + b"\n"
    head, tail = line(uuid="1", promptSource="typed") + b"\n", line(uuid="2", promptSource="typed") + b"\n"
    path.write_bytes(head + filler * 3_000 + tail)
    reader = reader_at(path, Follower(path).start(), adopted_at_ms=0)
    verdicts = [reader.feed(json.loads(row))[0].rule for row in (head, tail, line(uuid="3"))]
    assert verdicts == [3, 3, 16]


@pytest.mark.parametrize("header_bytes", [1_000, PRIME_HEAD_BYTES, 2 * ROW_MAX_BYTES])
def test_reader_behind_a_long_header(tmp_path: Path, header_bytes: int) -> None:
    """A Codex thread that its header gives to an agent holds no turn of a person (rule 1 of its table), however long the header is."""
    path = tmp_path / "rollout.jsonl"
    header = {"type": "session_meta", "payload": {"base_instructions": "x" * header_bytes, "thread_source": "subagent"}}
    filler = json.dumps({"type": "turn_context", "payload": {"x": "x" * 1_000}}).encode() + b"\n"
    path.write_bytes(json.dumps(header).encode() + b"\n" + filler * 2_000)
    reader = reader_at(path, Follower(path).start(), adopted_at_ms=0, form=CODEX)
    typed = {"type": "event_msg", "payload": {"type": "user_message", "message": "rename"}}
    assert [verdict.row_class for verdict in reader.feed(typed)] == [RowClass.SUBAGENT]


def test_what_came_before_the_adoption(tmp_path: Path) -> None:
    """Rule 7.1: a command from before the adoption is none of a later scan's turns, even if its expansion comes after it."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(content=COMMAND, uuid="c") + b"\n")
    reader = reader_at(path, Follower(path).start(), adopted_at_ms=1 << 43)
    expansion = json.loads(line(isMeta=True, parentUuid="c", timestamp=None))
    assert [verdict.row_class for verdict in reader.feed(expansion)] == [RowClass.MACHINE]


def test_shapes_are_bounded() -> None:
    """The histogram names a bounded number of shapes and counts the others together."""
    tally = Tally()
    for n in [*range(SHAPES_MAX + 10), 0]:
        tally.add(Classified(RowClass.UNKNOWN, 4, shape=f"type={n}"))
    assert (tally.shapes["type=0"], tally.shapes[OTHER_SHAPES], len(tally.shapes)) == (2, 10, SHAPES_MAX + 1)


def test_reader_behind_a_row_that_fills_the_tail(tmp_path: Path) -> None:
    """What rows before a huge last one tell is known behind it: that rows say who wrote them, and which ids came already."""
    path = tmp_path / "session.jsonl"
    quiet = [line("assistant", content="x" * 1_000) for _ in range(2 * PRIME_HEAD_BYTES // 1_000)]
    typed = line(content="typed", uuid="1", origin={"kind": "human"}, promptSource="typed")
    path.write_bytes(b"\n".join([*quiet, typed, line("assistant", content="y" * 1_500_000)]) + b"\n")
    reader = reader_at(path, Follower(path).start(), adopted_at_ms=0)
    echo, again = json.loads(line(content="echo", uuid="2")), json.loads(typed)
    assert [verdict.row_class for row in (echo, again) for verdict in reader.feed(row)] == [RowClass.MACHINE, RowClass.REPLAY]
