"""Reading: a session's delta by the length of the log, and a page of sessions by their number."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from time import perf_counter

from kizuki.actors import Gateway, open_gateway

from .databases import RawDatabase, folder, raw_database
from .rows import Row, paired
from .scale import Scale
from .worlds import build_sessions, child_key

SUITE = "reading"
WHAT = "a delta of 200 by the length of the log, against bare SQL; a page of sessions by their number, against 1,000 of them"

SESSIONS = 16
DELTA = 200
LOG_ROWS = 50_000
PAGE = 100
MOST_DELTA = 3.0
MOST_PAGE = 1.5
READS_A_ROUND = 5


def measure(scale: Scale, progress: Callable[[str], None]) -> list[Row]:
    """Run the suite."""
    lengths = scale.pick((100, 400), (10_000, 20_000), (10_000, 20_000, 50_000), (10_000, 20_000, 50_000))
    sizes = scale.pick((20, 50), (1_000, 10_000), (1_000, 10_000, 100_000), (1_000, 10_000, 100_000, 1_000_000))
    rounds = scale.pick(1, 20, 60, 200)
    rows: list[Row] = []
    for length in lengths:
        progress(f"a log of {length:,} rows")
        with folder() as place, raw_database(place / "raw.db") as raw:
            rows += asyncio.run(_deltas(place, raw, length, rounds))
    with folder() as place:
        for size in sizes:
            progress(f"building {size:,} sessions")
            build_sessions(place / f"{size}.db", size)
        progress("reading their pages")
        return rows + asyncio.run(_pages(place, sizes, rounds))


async def _deltas(place: Path, raw: RawDatabase, length: int, rounds: int) -> list[Row]:
    """The 200 rows from the middle of one session's history: the log has others between them."""
    keys = [child_key(number) for number in range(SESSIONS)]
    async with open_gateway(place / "gateway.db") as gateway:
        await asyncio.gather(*(gateway.watch("agent:main:main", key) for key in keys))
        raw.text_table(keys, length // SESSIONS)
        for _ in range(length // SESSIONS // 32 + 1):
            await asyncio.gather(*(gateway.human_message(key, channel="telegram") for _ in range(32) for key in keys))
        since, limit = length // 2, min(DELTA, length // SESSIONS // 4 * 2)
        ours, bare = [], []
        for _ in range(rounds):
            ours.append(await _status_us(gateway, keys[0], since, limit))
            bare.append(_bare_us(raw, keys[0], since, limit))
    made = paired(SUITE, f"a delta of {limit} from a log of {length:,} rows, against bare SQL", "µs", ours, bare)
    row = made.at(f"session_status: a delta of {DELTA}", length, "rows in the log", beside="bare SQL, one indexed table")
    return [row.ratio_at_most(MOST_DELTA) if length == LOG_ROWS else row]


async def _status_us(gateway: Gateway, key: str, since: int, limit: int) -> float:
    began = perf_counter()
    for _ in range(READS_A_ROUND):
        status = await gateway.session_status(key, changes_since=since, limit=limit)
    elapsed_s = perf_counter() - began
    if len(status["stateChanges"]["events"]) != limit:
        raise RuntimeError("the delta is shorter than what is measured")
    return elapsed_s * 1e6 / READS_A_ROUND


def _bare_us(raw: RawDatabase, key: str, since: int, limit: int) -> float:
    began = perf_counter()
    for _ in range(READS_A_ROUND):
        raw.delta(key, since, limit)
    return (perf_counter() - began) * 1e6 / READS_A_ROUND


async def _pages(place: Path, sizes: Sequence[int], rounds: int) -> list[Row]:
    elapsed: dict[int, list[float]] = {size: [] for size in sizes}
    bare: dict[int, list[float]] = {size: [] for size in sizes}
    async with AsyncExitStack() as gateways:
        opened = {size: await gateways.enter_async_context(open_gateway(place / f"{size}.db")) for size in sizes}
        with ExitStack() as connections:
            raw = {size: connections.enter_context(closing(sqlite3.connect(place / f"{size}.db"))) for size in sizes}
            for _ in range(rounds):
                for size in sizes:
                    elapsed[size].append(await _page_us(opened[size], size))
                    bare[size].append(_bare_page_us(raw[size], size))
    return _page_rows(sizes, elapsed, bare)


def _page_rows(sizes: Sequence[int], elapsed: dict[int, list[float]], bare: dict[int, list[float]]) -> list[Row]:
    rows = []
    for size in sizes:
        row = paired(SUITE, f"a page of {PAGE} from the middle of {size:,} sessions, against bare SQL", "µs", elapsed[size], bare[size])
        rows.append(row.at(f"sessions_list: a page of {PAGE}", size, "sessions", beside="bare SQL"))
    for size in sizes[1:]:
        flat = paired(SUITE, f"the same of {size:,}, against {sizes[0]:,}", "µs", elapsed[size], elapsed[sizes[0]])
        rows.append(flat.ratio_at_most(MOST_PAGE))
    return rows


async def _page_us(gateway: Gateway, size: int) -> float:
    began = perf_counter()
    for _ in range(READS_A_ROUND):
        await gateway.sessions_list(limit=min(PAGE, size // 4), after=child_key(size // 2))
    return (perf_counter() - began) * 1e6 / READS_A_ROUND


def _bare_page_us(connection: sqlite3.Connection, size: int) -> float:
    sql = (
        "SELECT s.session_key, s.agent_id, s.session_id, s.kind, s.parent, s.label, s.updated_at, h.last_sequence FROM sessions s "
        "JOIN heads h ON h.head_id = s.head_id WHERE s.session_key > ? ORDER BY s.session_key, s.agent_id LIMIT ?"
    )
    began = perf_counter()
    for _ in range(READS_A_ROUND):
        connection.execute(sql, (child_key(size // 2), min(PAGE, size // 4))).fetchall()
    return (perf_counter() - began) * 1e6 / READS_A_ROUND
