"""A tick of the upstream monitor over adopted transcripts, against looking at each file by hand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from kizuki.actors import Gateway, open_gateway
from kizuki.actors.upstream.installed import installed_catalogs

from .databases import folder
from .rows import Row, paired
from .scale import Scale

SUITE = "upstream"
WHAT = "a check of adopted Claude Code transcripts, unchanged or changed, against stat and read by hand"

WATCHER = "agent:main:main"
ROWS_BEFORE = 20
X_LABEL = "adopted transcripts"


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    sizes = scale.pick((2, 4), (50, 200), (100, 1_000), (100, 1_000, 3_000))
    rounds = scale.pick(1, 3, 5, 9)
    rows: list[Row] = []
    for size in sizes:
        progress(f"{size:,} transcripts")
        with folder() as place:
            rows += asyncio.run(_measure(place, size, rounds))
    return rows


def _row(identity: str) -> bytes:
    row = {
        "type": "user",
        "uuid": identity,
        "timestamp": datetime.now(UTC).isoformat(),
        "origin": {"kind": "human"},
        "message": {"role": "user", "content": "a turn of a person, as long as most of them are"},
    }
    return json.dumps(row).encode() + b"\n"


def _make_transcripts(home: Path, size: int) -> list[Path]:
    project = home / ".claude" / "projects" / "-project"
    project.mkdir(parents=True)
    paths = [project / f"00000000-0000-4000-8000-{number:012d}.jsonl" for number in range(size)]
    for path in paths:
        path.write_bytes(b"".join(_row(f"{path.stem}-{number}") for number in range(ROWS_BEFORE)))
    return paths


async def _measure(place: Path, size: int, rounds: int) -> list[Row]:
    paths = _make_transcripts(place, size)
    async with open_gateway(place / "gateway.db", catalogs=installed_catalogs({}, place)) as gateway:
        for path in paths:
            session = await gateway.adopt("claude", path.stem)
            await gateway.watch(WATCHER, session.key)
        await gateway.check_upstream()
        return await _alternate(gateway, paths, rounds)


async def _alternate(gateway: Gateway, paths: Sequence[Path], rounds: int) -> list[Row]:
    unchanged, changed, looked, read = [], [], [], []
    found = 0
    for number in range(rounds):
        unchanged.append((await _tick_us(gateway))[0] / len(paths))
        looked.append(_by_hand_us(paths, {path: path.stat().st_size for path in paths}))
        sizes = {path: path.stat().st_size for path in paths}
        _append(paths, number)
        elapsed_us, turns = await _tick_us(gateway)
        changed.append(elapsed_us / len(paths))
        read.append(_by_hand_us(paths, sizes))
        found += turns
    exact = found == rounds * len(paths)
    quiet = paired(SUITE, f"a tick over {len(paths):,} unchanged, for each", "µs", unchanged, looked)
    active = paired(SUITE, f"a tick over {len(paths):,} with one more turn each, recorded, for each", "µs", changed, read)
    return [
        quiet.at("A tick over adopted transcripts, for each", len(paths), X_LABEL, line="unchanged", beside="stat by hand"),
        active.at(
            "A tick over adopted transcripts, for each",
            len(paths),
            X_LABEL,
            line="changed, and recorded",
            beside="stat, read, parse by hand",
        ),
        Row(SUITE, f"each turn in {len(paths):,} transcripts found exactly once", float(exact), "", target="1", ok=exact),
    ]


def _append(paths: Sequence[Path], number: int) -> None:
    for path in paths:
        with path.open("ab") as file:
            file.write(_row(f"{path.stem}-more-{number}"))


async def _tick_us(gateway: Gateway) -> tuple[float, int]:
    began = perf_counter()
    report = await gateway.check_upstream()
    return (perf_counter() - began) * 1e6, report.human_turns


def _by_hand_us(paths: Sequence[Path], sizes: dict[Path, int]) -> float:
    """Look at each file's size; read and parse what is behind the old one."""
    began = perf_counter()
    for path in paths:
        if path.stat().st_size > sizes[path]:
            with path.open("rb") as file:
                file.seek(sizes[path])
                for line in file:
                    json.loads(line)
    return (perf_counter() - began) * 1e6 / len(paths)
