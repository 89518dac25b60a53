from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

from kizuki.actors import open_gateway
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.conftest import Kizuki, command


def test_by_rows(kizuki: Kizuki, database: Path) -> None:
    """Rule 6.1: `prune --rows` leaves the newest so many events, and says how many went."""
    ended = kizuki("prune", "--rows", 2, "--db", database)
    assert (ended.code, ended.out) == (0, "4 events removed\n")
    assert [row["sequence"] for row in kizuki("events", "--json", "--db", database).document["events"]] == [5, 6]
    assert kizuki("prune", "--rows", 2, "--json", "--db", database).document == {"removed": 0, "retentionDays": 30, "retentionRows": 2}


def test_by_days(kizuki: Kizuki, database: Path) -> None:
    """Rule 6.1: `prune --days` removes what was recorded before; a notice whose event went stays pending."""
    notices = kizuki("notices", MAIN, "--db", database).out
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE events SET recorded_at = recorded_at - 2 * 86400000 WHERE sequence <= 4")
        connection.commit()
    assert kizuki("prune", "--days", 3, "--db", database).out == "0 events removed\n"
    assert kizuki("prune", "--days", 1, "--db", database).out == "4 events removed\n"
    assert kizuki("notices", MAIN, "--db", database).out == notices != "no notices\n"


def test_in_slices(kizuki: Kizuki, tmp_path: Path) -> None:
    """More events than one slice takes go all the same."""
    path = tmp_path / "many.db"

    async def make() -> None:
        async with open_gateway(path) as gateway:
            await gateway.watch(MAIN, CHILD)
            await asyncio.gather(*(gateway.human_message(CHILD, channel="telegram") for _ in range(1_300)))

    asyncio.run(make())
    assert kizuki("prune", "--rows", 1, "--db", path).out == "1299 events removed\n"
    assert kizuki("doctor", "--db", path).code == 0


async def test_beside_a_gateway(database: Path) -> None:
    """A gateway goes on recording while another process prunes its database."""
    async with open_gateway(database) as gateway:
        process = await asyncio.create_subprocess_exec(*command("prune", "--rows", 1, "--db", database), stdout=asyncio.subprocess.PIPE)
        recorded = [await gateway.human_message(CHILD, channel="telegram") for _ in range(50)]
        out, _ = await process.communicate()
        assert None not in recorded
        assert out.endswith(b"events removed\n")
        assert (await gateway.statistics()).recordings_lost == 0


def test_missing(kizuki: Kizuki, tmp_path: Path) -> None:
    """A database that is not there is not found, and not created."""
    assert kizuki("prune", "--db", tmp_path / "none.db").code == 3
    assert list(tmp_path.iterdir()) == []
    assert kizuki("prune", "--days", 0, "--db", tmp_path / "none.db").code == 2
