"""Turns of hosts that are elsewhere: taken, renewed, acknowledged, ended, and given back when their host has vanished."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kizuki.actors import Gateway, ManualClock
from kizuki.actors.hosting.http import leases
from kizuki.actors.hosting.http.endpoint import Refused
from kizuki.actors.hosting.http.leases import LeasedTurns
from tests.hosting.cast import CHILD, MAIN, OTHER
from tests.hosting.http.asking import Api, session


async def changed(api: Api, *targets: str) -> None:
    """The main session watches the targets, and a person changes each."""
    for target in targets:
        await api.tell(session(MAIN, "watch"), target=target)
        await api.tell(session(target, "human-message"), channel="telegram")


async def pending(api: Api) -> list[Any]:
    return list((await api.get(session(MAIN, "notices")))["notices"])


async def test_ended_well(api: Api) -> None:
    """Rule 4.8: what a turn has taken is pending no more, is in no other turn, and is acknowledged when it ends well."""
    await changed(api, CHILD, OTHER)
    shown = await pending(api)
    turn = await api.tell(session(MAIN, "turns"), noticesMax=1)
    assert (turn["notices"], turn["promptLines"], turn["remaining"]) == (shown[:1], [shown[0]["text"]], 1)
    assert await pending(api) == shown[1:]
    assert (await api.tell(session(MAIN, "turns")))["notices"] == shown[1:]
    await api.tell(f"/api/turns/{turn['turnId']}/end", outcome="ok")
    watches = (await api.get(session(MAIN, "watches")))["watches"]
    assert [(watch["target"], watch["pending"]) for watch in watches] == [(CHILD, False), (OTHER, True)]


async def test_failed(api: Api) -> None:
    """Rule 4.8: a turn that failed gives its notices back, byte for byte, and cannot be ended again."""
    await changed(api, CHILD)
    shown = await pending(api)
    turn = await api.tell(session(MAIN, "turns"))
    await api.tell(f"/api/turns/{turn['turnId']}/end", outcome="failed")
    assert await pending(api) == shown
    for what, content in (("end", {"outcome": "ok"}), ("renew", {}), ("acknowledge", {})):
        assert await api.refused(f"/api/turns/{turn['turnId']}/{what}", content=content) == (404, "unknown_turn")


async def test_acknowledged_early(api: Api) -> None:
    """Rule 4.8: what was acknowledged within a turn stays so, however the turn ends."""
    await changed(api, CHILD)
    turn = await api.tell(session(MAIN, "turns"))
    for _ in range(2):
        await api.tell(f"/api/turns/{turn['turnId']}/acknowledge")
    await api.tell(f"/api/turns/{turn['turnId']}/end", outcome="failed")
    assert await pending(api) == []


async def test_a_host_that_vanishes(api: Api, clock: ManualClock) -> None:
    """A turn whose host is not heard of for its lease is given back, and can be ended no more."""
    await changed(api, CHILD)
    shown = await pending(api)
    turn = await api.tell(session(MAIN, "turns"), leaseSeconds=60)
    await clock.advance(59)
    assert await pending(api) == []
    await clock.advance(1.1)
    assert await pending(api) == shown
    assert await api.refused(f"/api/turns/{turn['turnId']}/end", content={"outcome": "ok"}) == (404, "unknown_turn")
    assert (await api.get("/api/statistics"))["noticesReturned"] == 1


async def test_renewed(api: Api, clock: ManualClock) -> None:
    """A renewal begins the lease anew, with another length if one is given; so does an early acknowledgement."""
    await changed(api, CHILD)
    turn = await api.tell(session(MAIN, "turns"))
    assert turn["leaseSeconds"] == leases.LEASE_S
    for lease_s in (leases.LEASE_S, 1_000.0, 10.0):
        assert await api.tell(f"/api/turns/{turn['turnId']}/renew", leaseSeconds=lease_s) == {"leaseSeconds": lease_s}
        await clock.advance(lease_s - 1)
        assert await api.tell(f"/api/turns/{turn['turnId']}/renew") == {"leaseSeconds": lease_s}
        await clock.advance(lease_s - 1)
        await api.tell(f"/api/turns/{turn['turnId']}/acknowledge")
        await clock.advance(lease_s - 1)
    await api.tell(f"/api/turns/{turn['turnId']}/end", outcome="ok")


async def test_nobody_and_nothing(api: Api) -> None:
    """A turn needs a session; one without notices is a turn all the same."""
    for what in ("turns", "drain"):
        assert await api.refused(session(MAIN, what)) == (404, "unknown_session")
    assert await api.refused(session(MAIN, "notices"), "GET") == (404, "unknown_session")
    await api.tell(session(MAIN), "PUT")
    turn = await api.tell(session(MAIN, "turns"))
    assert (turn["notices"], turn["remaining"]) == ([], 0)
    await api.tell(f"/api/turns/{turn['turnId']}/end", outcome="ok")
    assert await api.tell(session("agent:main:nobody", "acknowledge"), notices=[]) == {"acknowledged": 0}


async def test_without_turns(api: Api) -> None:
    """Rule 4.5: a host without turns drains, or shows what is pending and acknowledges that very thing, which counts once."""
    await changed(api, CHILD, OTHER)
    shown = await pending(api)
    assert [await api.tell(session(MAIN, "acknowledge"), notices=shown[:1]) for _ in range(2)] == [{"acknowledged": 1}, {"acknowledged": 0}]
    assert (await api.tell(session(MAIN, "drain"), noticesMax=5))["notices"] == shown[1:]
    assert await pending(api) == []


async def test_too_many(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open turns are bounded."""
    monkeypatch.setattr(leases, "TURNS_MAX", 1)
    await api.tell(session(MAIN), "PUT")
    await api.tell(session(MAIN, "turns"))
    assert await api.refused(session(MAIN, "turns")) == (503, "too_many_turns")


async def test_closing(api: Api, gateway: Gateway) -> None:
    """When the application is closed, open turns are given back, and no other is opened."""
    await changed(api, CHILD)
    await api.tell(session(MAIN, "turns"))
    await api.app.close()
    assert [notice.target for notice in await gateway.pending(MAIN)] == [CHILD]
    assert await api.refused(session(MAIN, "turns")) == (503, "closing")
    assert "open turns" not in (await api.client.post(session(MAIN, "turns"), json={})).json()["error"]


@pytest.mark.parametrize("steps", range(4))
async def test_closing_while_one_is_opened(gateway: Gateway, clock: ManualClock, steps: int) -> None:
    """A turn that is being opened when the application is closed is refused, however far it has come, and takes nothing."""
    await gateway.open_session(MAIN)
    await gateway.watch(MAIN, CHILD)
    await gateway.human_message(CHILD, channel="telegram")
    turns = LeasedTurns(gateway, clock)
    opening = asyncio.create_task(turns.open(MAIN, None, 60.0))
    for _ in range(steps):
        await asyncio.sleep(0)
    await asyncio.wait_for(turns.close(), 5)
    with pytest.raises(Refused, match="closing"):
        await asyncio.wait_for(opening, 5)
    assert [notice.target for notice in await gateway.pending(MAIN)] == [CHILD]


async def test_a_gateway_that_is_gone(api: Api, gateway: Gateway) -> None:
    """What reaches a gateway that is closed is answered with 503."""
    gateway._system.fail("a test")
    assert await api.refused(session(MAIN), "PUT") == (503, "gateway_closed")
    assert await api.refused(session(MAIN, "turns")) == (503, "gateway_closed")
