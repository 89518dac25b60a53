"""Following a file while it grows, is cut short, is replaced: every row once, in order."""

from __future__ import annotations

import json
import os
import random
import re
import tempfile
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from kizuki.actors.upstream.files.follower import Follower, Marker, Restart, Scan
from kizuki.actors.upstream.files.lines import ROW_MAX_BYTES, LineAssembler
from kizuki.actors.upstream.files.parsing import values_on
from kizuki.actors.upstream.formats.rows import Unreadable

BROKEN = Unreadable("not JSON")
OVERSIZED = Unreadable("oversized")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.jsonl"


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def values(scan: Scan) -> list[object]:
    return [row.value for row in scan.rows]


def scans(follower: Follower, marker: Marker, max_bytes: int) -> Iterator[Scan]:
    """Scan until there is no more."""
    while True:
        scan = follower.scan(marker, max_bytes)
        yield scan
        if not scan.more:
            return
        marker = scan.marker


def read_whole(path: Path, row_max_bytes: int = ROW_MAX_BYTES) -> list[object]:
    """What one scan of the whole file finds."""
    follower = Follower(path, row_max_bytes=row_max_bytes)
    return values(follower.scan(follower.start(at_end=False), 1 << 40))


def read_bytes(path: Path, content: bytes) -> list[object]:
    path.write_bytes(content)
    return read_whole(path)


def test_starts_at_the_end(path: Path) -> None:
    """Rule 7.1: what is there at the start is passed over, what is appended is found, once."""
    path.write_bytes(b'{"n":1}\n')
    follower = Follower(path)
    marker = follower.start()
    append(path, b'{"n":2}\n{"n":3}\n')
    scan = follower.scan(marker)
    assert [(row.position, row.value) for row in scan.rows] == [(8, {"n": 2}), (16, {"n": 3})]
    assert (scan.restarted, scan.more, scan.unreadable, scan.bytes_read) == (False, False, 0, 16)
    assert follower.scan(scan.marker).rows == ()


def test_starts_before_a_half_written_row(path: Path) -> None:
    """Rule 7.1: a row that is half written at the start is found when it is whole."""
    path.write_bytes(b'{"n":1}\n{"n":')
    follower = Follower(path)
    marker = follower.start()
    assert marker.position == 8
    append(path, b"2}\n")
    assert values(follower.scan(marker)) == [{"n": 2}]


def test_start_searches_far_back(path: Path) -> None:
    """The last complete row is found behind a torn row of any length; a file of one torn row starts at 0."""
    path.write_bytes(b'{"n":1}\n"' + b"x" * 700_000)
    assert Follower(path).start().position == 8
    path.write_bytes(b"x" * 700_000)
    assert Follower(path).start().position == 0


def test_file_that_appears_later(path: Path) -> None:
    """A file that is not there is `FileNotFoundError`; one that appears between two checks is read from its beginning."""
    follower = Follower(path)
    with pytest.raises(FileNotFoundError):
        follower.start()
    path.write_bytes(b'{"n":1}\n')
    assert values(follower.scan(follower.start(at_end=False))) == [{"n": 1}]


def test_file_that_goes(path: Path) -> None:
    """Rule 7.6: a file that is gone is a definite `FileNotFoundError`, also right after a quiet scan."""
    path.write_bytes(b'{"n":1}\n')
    follower = Follower(path)
    marker = follower.scan(follower.start()).marker
    path.unlink()
    with pytest.raises(FileNotFoundError):
        follower.scan(marker)


def test_torn_row_waits(path: Path) -> None:
    """Rule 7.7: a torn last row waits, is not counted as broken, and is given when its end has come."""
    path.write_bytes(b'{"n":1}\n{"te')
    follower = Follower(path)
    first = follower.scan(follower.start(at_end=False))
    assert (values(first), first.marker.position, first.unreadable) == ([{"n": 1}], 8, 0)
    append(path, b'xt":"x"}')
    second = follower.scan(first.marker)
    assert (second.rows, second.marker, second.bytes_read) == ((), first.marker, 8)
    append(path, b"\n")
    assert values(follower.scan(second.marker)) == [{"text": "x"}]


def test_torn_row_survives_a_restart(path: Path) -> None:
    """What was read of a torn row is read again by another follower that has the marker."""
    path.write_bytes(b'{"n":')
    first = Follower(path)
    marker = first.scan(first.start(at_end=False)).marker
    append(path, b"1}\n")
    assert values(Follower(path).scan(marker)) == [{"n": 1}]


def test_torn_row_that_is_cut_off(path: Path) -> None:
    """A torn row that its writer cuts off and writes anew does not spoil the new one."""
    path.write_bytes(b'{"n":1}\n{"torn')
    follower = Follower(path)
    marker = follower.scan(follower.start(at_end=False)).marker
    os.truncate(path, 8)
    append(path, b'{"n":2,"longer":true}\n')
    scan = follower.scan(marker)
    assert (values(scan), scan.restart) == ([{"n": 2, "longer": True}], None)


def test_remainder(path: Path) -> None:
    """Of a file that will not grow, a last row without line end counts if it is whole, and not if it is torn."""
    for tail, expected in ((b'{"n":2}', [{"n": 2}]), (b'{"n":', []), (b"", [])):
        path.write_bytes(b'{"n":1}\n' + tail)
        follower = Follower(path)
        follower.scan(follower.start(at_end=False))
        assert [row.value for row in follower.remainder()] == expected


def test_marker_moves_only_with_its_owner(path: Path) -> None:
    """Rule 7.4: scanning again with the old marker, as after a failed write, gives the same rows again."""
    path.write_bytes(b'{"n":1}\n{"n":2}\n{"n":')
    follower = Follower(path)
    marker = follower.start(at_end=False)
    assert follower.scan(marker) == follower.scan(marker)
    append(path, b"3}\n")
    assert values(follower.scan(marker)) == [{"n": 1}, {"n": 2}, {"n": 3}]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\n \n"])
def test_line_ends(path: Path, end: bytes) -> None:
    """LF, CRLF and a lone CR end a row; blank lines are no rows."""
    assert read_bytes(path, b'{"n":1}' + end + b'{"n":2}' + end) == [{"n": 1}, {"n": 2}]


def test_crlf_divided_between_scans(path: Path) -> None:
    """A CRLF whose LF comes later gives its row once, and no broken one."""
    path.write_bytes(b'{"n":1}\r')
    follower = Follower(path)
    first = follower.scan(follower.start(at_end=False))
    append(path, b'\n{"n":2}\r\n')
    second = follower.scan(first.marker)
    assert (values(first), values(second)) == ([{"n": 1}], [{"n": 2}])


def test_byte_order_mark(path: Path) -> None:
    """A UTF-8 byte-order mark before a row belongs to no row."""
    assert read_bytes(path, b'\xef\xbb\xbf{"n":1}\n\xef\xbb\xbf{"n":2}\n') == [{"n": 1}, {"n": 2}]


def test_bad_utf8_inside_a_string(path: Path) -> None:
    """Bytes that are not UTF-8 inside a string do not lose the row, and positions count bytes, not characters."""
    path.write_bytes('{"s":"é'.encode() + b'\xff\xfe"}\n{"n":2}\n')
    follower = Follower(path)
    scan = follower.scan(follower.start(at_end=False))
    assert [(row.position, row.value) for row in scan.rows] == [(0, {"s": "é\ufffd\ufffd"}), (13, {"n": 2})]
    assert scan.marker.position == path.stat().st_size


def test_broken_line_hides_nothing(path: Path) -> None:
    """Rule 7.7: a broken line is counted and passed over; what follows is found."""
    path.write_bytes(b'{"n":1}\n{"n":,}\nnonsense\n{"n":2}\n')
    follower = Follower(path)
    scan = follower.scan(follower.start(at_end=False))
    assert values(scan) == [{"n": 1}, BROKEN, BROKEN, {"n": 2}]
    assert scan.unreadable == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"n":1}{"n":2}', [{"n": 1}, {"n": 2}]),
        (b' {"n":1} \t {"n":2} ', [{"n": 1}, {"n": 2}]),
        (b"null", [None]),
        (b"[1]", [[1]]),
        (b'"text"', ["text"]),
        (b"true 7", [True, 7]),
        (b'{"n":1} rest', [{"n": 1}, BROKEN]),
        (b'{"n":1}}', [{"n": 1}, BROKEN]),
        (b'{"k":{"a":1},"torn{"type":"user","m":{"b":2}}', [BROKEN, {"type": "user", "m": {"b": 2}}]),
        (b'{"bad":nope,"m":{"role":"user"}}', [BROKEN]),
        (b"[" * 100_000, [BROKEN]),
        (b'{"a":' * 100_000, [BROKEN]),
        (b"1" * 5_000, [BROKEN]),
        (b"\xff\xfe\x00", [BROKEN]),
        (b'"' * 3, ["", BROKEN]),
    ],
)
def test_values_on_a_line(line: bytes, expected: list[object]) -> None:
    """All values of a line are found, also one glued to a torn row; what is none is one broken stretch, however odd."""
    assert values_on(line) == expected


def test_parts_name_rows_of_one_line(path: Path) -> None:
    """Rule 1.6: position and part together name a row, also where two share a line."""
    path.write_bytes(b'{"n":1}{"n":2}\n{"n":3}\n')
    follower = Follower(path)
    scan = follower.scan(follower.start(at_end=False))
    assert [(row.position, row.part) for row in scan.rows] == [(0, 0), (0, 1), (15, 0)]


def test_bounded_scans(path: Path) -> None:
    """A backlog is read a bounded number of bytes a scan, in order, and `more` says that there is more."""
    content = b"".join(b'{"n":%d}\n' % n for n in range(2000))
    path.write_bytes(content)
    follower = Follower(path)
    done = list(scans(follower, follower.start(at_end=False), 1000))
    assert max(scan.bytes_read for scan in done) == 1000
    assert [value for scan in done for value in values(scan)] == [{"n": n} for n in range(2000)]
    assert len(done) == -(-len(content) // 1000)


def test_backlog_beyond_the_default_bound(path: Path) -> None:
    """A backlog of more than 10 MiB takes two scans by default, and loses nothing."""
    row = json.dumps({"s": "x" * 1000}).encode() + b"\n"
    count = 10 * 1024 * 1024 // len(row) + 100
    path.write_bytes(row * count)
    follower = Follower(path)
    first = follower.scan(follower.start(at_end=False))
    second = follower.scan(first.marker)
    assert (first.more, second.more, len(first.rows) + len(second.rows)) == (True, False, count)


def test_quiet_file_is_not_read(path: Path) -> None:
    """A file of unchanged size and time is not read at all after a scan; one that has grown is read only from there on."""
    path.write_bytes(b'{"n":1}\n' * 1000)
    follower = Follower(path)
    marker = follower.scan(follower.start()).marker
    stat = path.stat()
    path.write_bytes(b'{"n":2}\n' * 1000)
    os.utime(path, ns=(0, stat.st_mtime_ns))
    assert (follower.scan(marker).restart, Follower(path).scan(marker).restart) == (None, Restart.REWRITTEN)
    path.write_bytes(b'{"n":1}\n' * 1000 + b'{"n":2}\n')
    assert follower.scan(marker).bytes_read == 8


def test_modification_time_is_whole(path: Path) -> None:
    """The file's time, which stands in for a row without one, is whole milliseconds rounded down."""
    path.write_bytes(b"{}\n")
    os.utime(path, ns=(0, 1_793_620_800_123_999_999))
    follower = Follower(path)
    marker = follower.start(at_end=False)
    assert follower.scan(marker).modified_at_ms == follower.scan(marker).modified_at_ms == 1_793_620_800_123


def replaced(path: Path, content: bytes) -> None:
    """Put another file in the place, keeping the old one so that its inode is not used again."""
    path.rename(path.with_name(f"old-{len(list(path.parent.iterdir()))}"))
    path.write_bytes(content)


ROWS = b"".join(b'{"n":%d,"pad":"%s"}\n' % (n, b"x" * 40) for n in range(60))


@pytest.mark.parametrize("content", [b'{"m":1}\n', ROWS.replace(b"n", b"m"), ROWS.replace(b"n", b"m") + b'{"m":9}\n{"to', ROWS, b""])
def test_replaced_file(path: Path, content: bytes) -> None:
    """Rule 7.7: a smaller, equal or larger file in the place is noticed; scanning starts anew at its end, a new generation."""
    path.write_bytes(ROWS)
    follower = Follower(path)
    marker = follower.start()
    replaced(path, content)
    scan = follower.scan(marker)
    assert (scan.rows, scan.restart, scan.restarted) == ((), Restart.REPLACED, True)
    assert (scan.marker.generation, scan.marker.position) == (2, content.rfind(b"\n") + 1)
    append(path, b'"}\n{"n":99}\n')
    assert values(follower.scan(scan.marker))[-1] == {"n": 99}


def test_truncated_file(path: Path) -> None:
    """Rule 7.7: a file that became smaller is noticed, and what is appended afterwards is found."""
    path.write_bytes(ROWS)
    follower = Follower(path)
    marker = follower.start()
    os.truncate(path, 100)
    scan = follower.scan(marker)
    assert (scan.restart, scan.marker.generation, scan.marker.position) == (Restart.TRUNCATED, 2, ROWS[:100].rfind(b"\n") + 1)


@pytest.mark.parametrize(
    "content",
    [
        ROWS.replace(b'"n":0', b'"n":7') + b'{"n":99}\n',
        ROWS.replace(b'"n":59', b'"n":77') + b'{"n":99}\n',
    ],
)
def test_rewritten_file(path: Path, content: bytes) -> None:
    """Rule 7.7: a file written anew in its place, as large or larger, is noticed by its first and by its last known bytes."""
    path.write_bytes(ROWS)
    marker = Follower(path).start()
    path.write_bytes(content)
    scan = Follower(path).scan(marker)
    assert (scan.rows, scan.restart, scan.marker.position) == ((), Restart.REWRITTEN, len(content))


def test_short_file_that_grows_is_the_same(path: Path) -> None:
    """The first bytes are remembered as far as they were there: a file that was empty or short stays the same file."""
    path.write_bytes(b"")
    follower = Follower(path)
    marker = follower.start()
    for n in range(100):
        append(path, b'{"n":%d,"pad":"xxxxxxxxxxxxxxx"}\n' % n)
        scan = follower.scan(marker)
        assert (len(scan.rows), scan.restart) == (1, None)
        marker = scan.marker


def test_rotation(path: Path) -> None:
    """A file rotated away and created anew is a new generation each time; rows appended after that was noticed are found."""
    path.write_bytes(ROWS)
    follower = Follower(path)
    marker = follower.start()
    for generation in (2, 3):
        replaced(path, b"")
        marker = follower.scan(marker).marker
        append(path, b'{"g":%d}\n' % generation)
        scan = follower.scan(marker)
        assert (values(scan), scan.marker.generation) == ([{"g": generation}], generation)
        marker = scan.marker


def test_marker_as_json(path: Path) -> None:
    """A marker passes through JSON unchanged, and what is no marker is refused."""
    path.write_bytes(ROWS)
    marker = Follower(path).start()
    stored = json.dumps(marker.to_json())
    assert Marker.from_json(json.loads(stored)) == marker
    fields = marker.to_json()
    wrong_values: list[object] = [None, [], {}, {**fields, "position": "1"}, {**fields, "position": True}, {**fields, "x": 1}]
    for wrong in wrong_values:
        with pytest.raises(ValueError, match="not a marker"):
            Marker.from_json(wrong)


def test_marker_of_another_file(path: Path) -> None:
    """A marker whose inode is another's begins anew rather than in the middle of a row."""
    path.write_bytes(ROWS)
    marker = Follower(path).start()
    assert Follower(path).scan(replace(marker, inode=marker.inode + 1)).restart is Restart.REPLACED


def oversized_row(size: int, text: str = "rename") -> bytes:
    """A row with a picture between what tells its class."""
    blocks = [{"type": "text", "text": text}, {"type": "image", "source": {"data": "A" * size}}]
    row = {"type": "user", "uuid": "big", "message": {"role": "user", "content": blocks}, "origin": {"kind": "human"}}
    return json.dumps(row).encode() + b"\n"


def test_oversized_row_is_still_classified(path: Path) -> None:
    """Rule 7.7: a row of 20 MiB is streamed in bounded memory over several scans, and all that tells its class is kept."""
    path.write_bytes(b'{"n":1}\n' + oversized_row(20 * 1024 * 1024) + b'{"n":2}\n')
    follower = Follower(path)
    marker = follower.start(at_end=False)
    tracemalloc.start()
    try:
        done = list(scans(follower, marker, 4 * 1024 * 1024))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    first, big, last = [value for scan in done for value in values(scan)]
    assert (first, last, len(done)) == ({"n": 1}, {"n": 2}, 6)
    assert isinstance(big, dict)
    assert (big["uuid"], big["origin"], big["message"]["content"][0]["text"]) == ("big", {"kind": "human"}, "rename")
    assert big["message"]["content"][1]["source"]["data"] == "A" * 64 * 1024
    assert peak < 5 * 1024 * 1024


def test_oversized_row_with_many_pictures(path: Path) -> None:
    """A row of many pictures still fits: later strings are cut shorter."""
    blocks = [{"type": "image", "data": "A" * 300_000} for _ in range(40)]
    (value,) = read_bytes(path, json.dumps({"content": blocks, "origin": {"kind": "human"}}).encode() + b"\n")
    assert isinstance(value, dict)
    assert (len(value["content"]), value["origin"]) == (40, {"kind": "human"})


@pytest.mark.parametrize("row", [b"[" + b"1," * 600_000 + b"1]", b'{"s":"' + b'a","b' * 300_000 + b'"}'])
def test_oversized_row_of_small_parts(path: Path, row: bytes) -> None:
    """Rule 7.7: a row too large even with its long strings cut is counted and passed over, and hides nothing."""
    assert read_bytes(path, b'{"n":1}\n' + row + b'\n{"n":2}\n') == [{"n": 1}, OVERSIZED, {"n": 2}]


@pytest.mark.parametrize("unit", ["\\u00e9", "\\\\", '\\"', "\\n", "é", "😀", "\\ud83d\\ude00"])
@pytest.mark.parametrize("shift", range(3))
def test_cut_between_characters(unit: str, shift: int) -> None:
    """A long string is cut so that the row stays valid JSON, whatever escape or character stands at the cut."""
    line = f'{{"s":"{"x" * shift}{unit * 40_000}","n":1}}\n'.encode()
    assembler = LineAssembler(0, row_max_bytes=70_000)
    (found,) = assembler.feed(line)
    (value,) = values_on(found.content or b"")
    assert isinstance(value, dict)
    assert value["n"] == 1
    kept = re.sub("[\ufffd\ud83d]*$", "", value["s"])
    assert json.loads(line)["s"].startswith(kept)
    assert 4 <= len(kept) < shift + 40_000


def pieces_of(content: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    return [content[start:end] for start, end in pairwise(edges)]


JSON_LINE = st.recursive(
    st.none() | st.integers() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
).flatmap(lambda value: st.booleans().map(lambda ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")))
LINES = st.lists(JSON_LINE | st.binary(max_size=60) | st.just(b'{"torn":'), max_size=12)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b""])


@settings(max_examples=200)
@given(lines=LINES, end=ENDS, cuts=st.lists(st.integers(0, 1 << 16), max_size=20), row_max_bytes=st.sampled_from([16, 64, 300]))
def test_pieces_do_not_matter(lines: list[bytes], end: bytes, cuts: list[int], row_max_bytes: int) -> None:
    """However the bytes are divided, the same lines come out, oversized ones too; no bytes raise anything."""
    content = b"".join(line + end for line in lines)
    whole = LineAssembler(0, row_max_bytes=row_max_bytes)
    expected = whole.feed(content)
    for pieces in (pieces_of(content, cuts), [content[n : n + 1] for n in range(len(content))]):
        divided = LineAssembler(0, row_max_bytes=row_max_bytes)
        assert [line for piece in pieces for line in divided.feed(piece)] == expected
        assert (divided.read_to, divided.position, divided.remainder()) == (whole.read_to, whole.position, whole.remainder())
    for line in expected:
        values_on(line.content or b"")


def test_random_appends_with_an_oversized_row(path: Path) -> None:
    """A file with a row of 3 MiB, appended in random pieces with bounded scans between, gives what one scan of it gives."""
    content = ROWS + oversized_row(3 * 1024 * 1024, "é\\\n" * 1000) + ROWS
    dice = random.Random(7)
    path.write_bytes(b"")
    follower = Follower(path)
    marker, found = follower.start(), list[object]()
    for piece in pieces_of(content, [dice.randrange(len(content)) for _ in range(60)]):
        append(path, piece)
        scan = follower.scan(marker, dice.choice([1, 100, 100_000]))
        found += values(scan)
        marker = scan.marker
    found += [value for scan in scans(follower, marker, 1_000_000) for value in values(scan)]
    assert found == read_whole(path)
    assert len(found) == 121


class FollowedFile(RuleBasedStateMachine):
    """A file that grows, is cut, replaced and re-created at random, against a plain model of what must be found."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "t.jsonl"
        self.path.write_bytes(b"")
        self.follower = Follower(self.path)
        self.marker = self.follower.start()
        self.content = b""
        self.position = 0
        self.generation = 1
        self.anew = False
        self.number = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    def row(self) -> bytes:
        self.number += 1
        return b'{"n":%d}\n' % self.number

    @rule(count=st.integers(1, 60), torn=st.integers(0, 8))
    def append_rows(self, count: int, torn: int) -> None:
        added = b"".join(self.row() for _ in range(count))
        self.write(self.content + added[: len(added) - torn])

    @rule()
    def end_line(self) -> None:
        self.write(self.content + b"\n")

    def write(self, content: bytes) -> None:
        append(self.path, content[len(self.content) :])
        self.content = content

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.content = self.content[: int(len(self.content) * share)]
        os.truncate(self.path, len(self.content))
        self.anew = self.anew or len(self.content) < self.position
        self.write(self.content + self.row())

    @rule(count=st.integers(0, 60))
    def replace(self, count: int) -> None:
        self.content = b"".join(self.row() for _ in range(count))
        replaced(self.path, self.content)
        self.anew = True

    @precondition(lambda self: self.position > 0)
    @rule(count=st.integers(1, 60))
    def rewrite(self, count: int) -> None:
        self.content = b"".join(self.row() for _ in range(count))
        self.path.write_bytes(self.content)
        self.anew = True

    @rule()
    def restart(self) -> None:
        self.follower = Follower(self.path)

    @rule()
    def read_again_without_moving(self) -> None:
        self.follower.scan(self.marker)

    @rule(max_bytes=st.sampled_from([1, 10, 100, 10_000]))
    def scan(self, max_bytes: int) -> None:
        scan = self.follower.scan(self.marker, max_bytes)
        assert scan.restarted == self.anew
        if self.anew:
            self.generation += 1
            self.position = self.content.rfind(b"\n") + 1
            expected: list[object] = []
        else:
            seen = self.content[self.position : scan.marker.position]
            expected = [value for line in seen.splitlines() for value in values_on(line)]
            assert seen.endswith(b"\n") or not seen
            assert scan.more or b"\n" not in self.content[scan.marker.position :]
            self.position = scan.marker.position
        assert values(scan) == expected
        assert (scan.marker.generation, scan.marker.position) == (self.generation, self.position)
        self.marker, self.anew = scan.marker, False


FollowedFile.TestCase.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
TestFollowedFile = FollowedFile.TestCase
TestFollowedFile.__doc__ = (
    """Rule 7.7: whatever happens to the file, each row of a generation is found once, in order, or a restart is told."""
)
