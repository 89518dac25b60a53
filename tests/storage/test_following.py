"""How far somebody has followed the log, where sequences are not committed in their order."""

from __future__ import annotations

import random

import pytest

from kizuki.storage import Store, following, open_store
from kizuki.storage.following import advanced, cut_short
from kizuki.storage.records import LogPosition
from tests.postgres import PostgresServer
from tests.storage.writing import CHILD, SECOND, event, record

LATE = (
    "INSERT INTO {schema}.events (sequence, head_id, kind, notifies, actor_type, session_id, occurred_at, recorded_at, summary) "
    "SELECT nextval('{schema}.event_sequence'), head_id, 'goal_changed', true, 'human', 's', 1, 1, 'goal updated' "
    "FROM (SELECT head_id FROM {schema}.heads WHERE session_key = '{key}' FOR UPDATE) AS locked"
)


class World:
    """Transactions that take sequences and end in any order, and one who follows."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._running: dict[str, list[int]] = {}
        self._visible: list[int] = []
        self._next = 0
        self.given: list[int] = []
        self.position = LogPosition(0)

    def run(self, steps: int) -> None:
        """So many steps, then all transactions end, and the follower looks until all is settled."""
        for _ in range(steps):
            self._random.choice((self._take, self._end, self._look))()
        while self._running:
            self._end()
        for _ in range(len(self._visible) + 8):
            self._look(meanwhile=0)

    def _take(self) -> None:
        begins = not self._running or self._random.random() < 0.4
        name = str(self._random.randrange(10**9)) if begins else self._random.choice([*self._running])
        self._next += 1
        self._running.setdefault(name, []).append(self._next)

    def _end(self) -> None:
        if self._running:
            taken = self._running.pop(self._random.choice([*self._running]))
            self._visible += taken if self._random.random() < 0.8 else []

    def _look(self, meanwhile: int | None = None) -> None:
        """The snapshot is taken first; before the running transactions are looked for some may end, and others begin."""
        seen = sorted(set(self._visible).difference(self.position.given, range(self.position.settled + 1)))
        limit = self._random.choice((1, 3, 100))
        for _ in range(self._random.randrange(3) if meanwhile is None else meanwhile):
            self._random.choice((self._take, self._end))()
        self.given += seen[:limit]
        self.position = advanced(self.position, seen[:limit], frozenset(self._running), more=len(seen) > limit)

    @property
    def visible(self) -> list[int]:
        return sorted(self._visible)


def test_each_once() -> None:
    """Rule 8.1: in whatever order transactions take sequences and end, who follows is given every event, and each once."""
    for seed in range(300):
        world = World(seed)
        world.run(60)
        assert sorted(world.given) == world.visible, seed
        assert world.position.settled >= max(world.visible, default=0), seed
        assert world.position.given == frozenset(), seed


def test_too_much_to_remember(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered is bounded: where it becomes too much, that something may be missed is said."""
    monkeypatch.setattr(following, "GIVEN_MAX", 3)
    hung = frozenset({"7"})
    position = advanced(LogPosition(0, frozenset(), 0, hung), [2, 3, 4], hung, more=False)
    assert cut_short(position) == (position, False)
    assert cut_short(advanced(position, [5], hung, more=False)) == (LogPosition(5), True)


async def test_a_late_commit(postgres: PostgresServer, schema: str) -> None:
    """Rule 8.1: an event that is committed behind one with a higher sequence is given, to who began before it, and meanwhile."""
    asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is not installed")
    async with open_store(postgres.url(schema)) as store:
        await record(store, event(CHILD), event(SECOND))
        position = (await store.follow(None, events_max=10, opened_max=1)).position
        connection = await asyncpg.connect(postgres.dsn)
        try:
            async with connection.transaction():
                await connection.execute(LATE.format(schema=schema, key=CHILD.session_key))
                began_meanwhile = (await store.follow(None, events_max=10, opened_max=1)).position
                got, position = await _given(store, position, recorded=await record(store, event(SECOND)))
                assert got == [4]
        finally:
            await connection.close()
        got, position = await _given(store, position, recorded=[])
        assert got == [3]
        got, _ = await _given(store, began_meanwhile, recorded=[])
        assert got == [3, 4]
        assert (await _given(store, position, recorded=[]))[0] == []


async def _given(store: Store, position: LogPosition, *, recorded: list[int]) -> tuple[list[int], LogPosition]:
    """What is given in a few looks, after something was recorded."""
    got: list[int] = []
    for _ in range(4):
        read = await store.follow(position, events_max=10, opened_max=1)
        got, position = got + [found.sequence for found in read.events], read.position
    assert set(recorded) <= set(got)
    return got, position
