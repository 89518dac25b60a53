"""The seam for observers: what a gateway tells, and that no observer harms it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kizuki.actors import GatewayConfig, ManualClock, open_gateway
from kizuki.actors.errors import InvalidArgument
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.integrations.staging import spoken_to

NOW = 1_767_225_600_000


class Noting:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[tuple[str, str | None]] = []
        self.writes: list[int] = []
        self.latencies_s: list[float] = []

    def operation(self, name: str, /) -> Callable[[BaseException | None], None]:
        self.began.append(name)
        return lambda error: self.ended.append((name, type(error).__name__ if error else None))

    def commit(self, writes: int, /) -> Callable[[BaseException | None], None]:
        self.writes.append(writes)
        return lambda error: self.ended.append(("commit", type(error).__name__ if error else None))

    def woken(self, latency_s: float, /) -> None:
        self.latencies_s.append(latency_s)


class Raising:
    """Fails whatever it is told."""

    def operation(self, name: str, /) -> Callable[[BaseException | None], None]:
        raise RuntimeError

    def commit(self, writes: int, /) -> Callable[[BaseException | None], None]:
        def ended(_error: BaseException | None) -> None:
            raise RuntimeError

        return ended

    def woken(self, latency_s: float, /) -> None:
        raise RuntimeError


class BodyError(Exception):
    """What a turn of the host raises."""


async def test_an_observer_is_told_of_operations_commits_and_wakes(tmp_path: Path) -> None:
    """Each method, turn, transaction and wake is told with its end, and a wake with its latency; when it stops, nothing more is."""
    clock, noting = ManualClock(NOW), Noting()
    config = GatewayConfig(wake_coalesce_s=0.25)
    async with open_gateway(tmp_path / "state.db", clock=clock, wake=lambda _key, _reasons: None, config=config) as gateway:
        stop = gateway.observe(noting)
        await spoken_to(gateway)
        await clock.advance(0.25)
        with pytest.raises(BodyError):
            async with gateway.turn(MAIN):
                raise BodyError
        with pytest.raises(InvalidArgument):
            await gateway.session_status(CHILD, changes_since=-1)
        stop()
        told = len(noting.began)
        await gateway.open_session(MAIN)
    assert noting.began == ["open_session", "spawn", "human_message", "wake", "turn", "session_status"]
    assert len(noting.began) == told
    ended = [(name, error) for name, error in noting.ended if name != "commit"]
    assert ended == [*((name, None) for name in noting.began[:4]), ("turn", "BodyError"), ("session_status", "InvalidArgument")]
    assert noting.ended.count(("commit", None)) == len(noting.writes) >= 3
    assert noting.latencies_s == [0.25]


async def test_an_observer_that_fails_harms_nobody(tmp_path: Path) -> None:
    """What an observer raises is logged; the gateway, the host and the other observers go on."""
    noting = Noting()
    async with open_gateway(tmp_path / "state.db") as gateway:
        gateway.observe(Raising())
        gateway.observe(noting)
        await spoken_to(gateway)
        async with gateway.turn(MAIN) as turn:
            assert len(turn.notices) == 1
        assert (await gateway.statistics()).events_recorded == 2
    assert "turn" in noting.began


async def test_counts_need_no_database_and_no_open_gateway(tmp_path: Path) -> None:
    """What the gateway knows of itself it tells at once, the same as in its statistics, and after it was closed, too."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        counts, statistics = gateway.counts(), await gateway.statistics()
        assert (counts.events_recorded, counts.notices_opened) == (statistics.events_recorded, statistics.notices_opened) == (2, 1)
    assert gateway.counts().events_recorded == 2


@pytest.fixture
def threads_in_a_hurry() -> Iterator[None]:
    """Threads change over as often as they can, so that a race is met in a test's time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_in_a_hurry")
async def test_counts_are_told_to_other_threads_while_the_loop_is_busy(tmp_path: Path) -> None:
    """A scrape in another thread, as Prometheus' own server makes it, meets a gateway at work and is answered each time."""
    async with open_gateway(tmp_path / "state.db") as gateway:
        await spoken_to(gateway)
        over = threading.Event()

        def scrape() -> int:
            asked = 0
            while not over.is_set():
                assert gateway.counts().mail_waiting >= 0
                asked += 1
            return asked

        scraping = asyncio.create_task(asyncio.to_thread(scrape))
        for _ in range(5):
            await asyncio.gather(*(gateway.human_message(f"{CHILD}-{number}", channel="telegram") for number in range(200)))
        over.set()
        assert await scraping > 0


def test_the_core_imports_neither_library(tmp_path: Path) -> None:
    """A gateway runs, and is observed, without OpenTelemetry's or Prometheus' library being imported."""
    code = """
import asyncio, sys
from kizuki.actors import open_gateway
async def main():
    async with open_gateway(sys.argv[1]) as gateway:
        await gateway.open_session("agent:main:main")
asyncio.run(main())
print(sorted({name.partition(".")[0] for name in sys.modules} & {"opentelemetry", "prometheus_client"}))
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "state.db")], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "[]\n"
