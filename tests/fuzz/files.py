"""Bytes in files: lines, followed files, whole catalogs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

from kizuki.actors.upstream.answers import outcomes_of
from kizuki.actors.upstream.catalog import Failed, Outcome, Probe
from kizuki.actors.upstream.files.catalog import FileCatalog
from kizuki.actors.upstream.files.follower import Follower, Marker, Row
from kizuki.actors.upstream.files.lines import ROW_MAX_BYTES, Line, LineAssembler
from kizuki.actors.upstream.files.parsing import values_on
from kizuki.actors.upstream.formats.formats import FORMATS
from kizuki.actors.upstream.formats.rows import Unreadable
from kizuki.storage.records import Address
from tests.fuzz.draws import Draws
from tests.fuzz.places import scratch
from tests.fuzz.transcripts import CLAUDE_ROWS, CODEX_ROWS, FORMS, GEMINI_ROWS, NOON_MS, PI_ROWS

EXAMPLES = {"claude": CLAUDE_ROWS, "codex": CODEX_ROWS, "pi": PI_ROWS, "gemini": GEMINI_ROWS}
NAMES = {
    "claude": "projects/-w/0b9b27f0.jsonl",
    "codex": "2026/11/02/rollout-2026-11-02T12-00-00-s_1.jsonl",
    "pi": "--w--/2026_s1.jsonl",
    "gemini": "p/chats/session-1.jsonl",
}


def line_values(data: bytes) -> None:
    """Any bytes as a line: values, with at most one stretch that is none; a whole JSON value is given as it is."""
    values = values_on(data)
    assert sum(isinstance(value, Unreadable) for value in values) <= 1
    try:
        whole = json.loads(data.decode())
    except (ValueError, RecursionError):
        return
    assert repr(values) == repr([whole])


def lines(data: bytes) -> None:
    """However the bytes are divided, they give the same lines at the same places: what is short is unchanged, what is long is cut to
    what is still JSON if it was, and nothing more than the bound is ever kept."""
    draws = Draws(data)
    bound = draws.pick((48, 200, 1000))
    content = draws.take(max(0, draws.left() - 8))
    whole = LineAssembler(0, row_max_bytes=bound)
    expected = whole.feed(content)
    pieces = LineAssembler(0, row_max_bytes=bound)
    found: list[Line] = []
    for piece in _divided(content, draws):
        found += pieces.feed(piece)
        assert len(pieces.remainder() or b"") <= bound + len(piece)
    assert found == expected
    assert (pieces.position, pieces.read_to, pieces.remainder()) == (whole.position, whole.read_to, whole.remainder())
    _check_lines(content, expected, bound)


def _divided(content: bytes, draws: Draws) -> Iterator[bytes]:
    sizes = [1 + draws.below(64) for _ in range(4)]
    at = 0
    while at < len(content):
        size = sizes[at % 4]
        yield content[at : at + size]
        at += size


def _check_lines(content: bytes, found: list[Line], bound: int) -> None:
    ended = [part for part in content.splitlines(keepends=True) if part.endswith((b"\n", b"\r"))]
    texts = [part.rstrip(b"\r\n") for part in ended if part.strip(b"\r\n")]
    assert len(found) == len(texts)
    for line, text in zip(found, texts, strict=True):
        assert line.content is None or len(line.content) <= bound + 1
        assert len(text) > bound or line.content == text
        if line.content is not None and _is_json(text):
            assert _is_json(line.content), (text, line.content)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def followed(data: bytes) -> None:
    """A file that grows, is cut, rewritten and replaced while it is followed, by one who forgets and one who remembers: no exception, and
    as long as it only grows each row once and in order."""
    draws = Draws(data)
    path = scratch() / "followed.jsonl"
    path.unlink(missing_ok=True)
    path.touch()
    follower, grown, rows = Follower(path), True, list[Row]()
    marker = follower.start(at_end=False)
    for _ in range(12):
        grown = _step(draws, path) and grown
        if draws.chance(3):
            follower, marker = Follower(path), Marker.from_json(json.loads(json.dumps(marker.to_json())))
        scan = follower.scan(marker, 1 + draws.below(ROW_MAX_BYTES) if draws.chance(2) else ROW_MAX_BYTES)
        assert not (grown and scan.restarted)
        assert not (scan.restarted and scan.rows)
        rows, marker = [*rows, *scan.rows], scan.marker
    if grown:
        rows += _rest(follower, marker)
        complete = [part for part in path.read_bytes().splitlines(keepends=True) if part.endswith((b"\n", b"\r"))]
        assert repr([row.value for row in rows]) == repr([value for part in complete for value in values_on(part.rstrip(b"\r\n"))])


def _step(draws: Draws, path: Path) -> bool:
    """Change the file; whether it has only grown."""
    content = path.read_bytes()
    match draws.below(16):
        case 13:
            path.write_bytes(content[: draws.below(len(content) + 1)])
        case 14:
            path.write_bytes(draws.take(40))
        case 15:
            path.unlink()
            path.write_bytes(draws.take(40))
        case _:
            with path.open("ab") as file:
                file.write(draws.take(draws.below(48)))
            return True
    return False


def _rest(follower: Follower, marker: Marker) -> list[Row]:
    rows: list[Row] = []
    more = True
    while more:
        scan = follower.scan(marker)
        rows, marker, more = [*rows, *scan.rows], scan.marker, scan.more
    return rows


def catalogs(data: bytes) -> None:
    """Transcripts of any content in a tool's folder, checked from any marker: an outcome for each probe that the monitor takes as it is."""
    draws = Draws(data)
    form = draws.pick(FORMATS)
    folder = scratch() / "tool"
    path = folder / NAMES[form.name]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_transcript(draws, form.name))
    catalog = FileCatalog(form, [folder / "projects" if form.name == "claude" else folder])
    found = catalog._library.discovered("local")
    for thread in found:
        start = catalog._link(thread.thread_id)
        with path.open("ab") as file:
            file.write(_transcript(draws, form.name))
        marker = draws.like((dict(start.marker),))
        probe = Probe(Address("agent:main:main", "main"), thread.thread_id, "local", start.source, marker, NOON_MS)
        for _ in range(2):
            (outcome,) = catalog._check((probe,), threading.Event())
            check_outcome(outcome)
    path.unlink()


def check_outcome(outcome: Outcome) -> None:
    """The monitor believes it as it is."""
    (checked,) = outcomes_of([outcome], 1)
    assert isinstance(outcome, Failed) or not isinstance(checked, Failed), (outcome, checked)


def _transcript(draws: Draws, name: str) -> bytes:
    rows = [json.dumps(draws.like(EXAMPLES[name])).encode() if not draws.chance(6) else draws.take(30) for _ in range(draws.below(5))]
    return b"".join(row + draws.pick((b"\n", b"\n", b"\r\n", b"", b"\r")) for row in rows)


assert FORMS.keys() == EXAMPLES.keys()
