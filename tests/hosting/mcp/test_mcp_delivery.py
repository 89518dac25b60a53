"""What becomes of the notices that a client was shown: the cases that no client of the SDK can be brought to on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the MCP SDK: pip install 'kizuki[mcp]'")

from starlette.types import Message, Receive, Scope, Send

from kizuki.actors import Gateway
from kizuki.actors.hosting.mcp.delivery import Delivery
from kizuki.actors.hosting.mcp.exchange import Exchange, Exchanges, exchange_of
from tests.hosting.cast import CHILD, MAIN
from tests.hosting.mcp.mcp_clients import LINE

New = Callable[..., Delivery]


@pytest.fixture
def new(gateway: Gateway) -> New:
    def make(**options: Any) -> Delivery:
        return Delivery(gateway, MAIN, **options)

    return make


async def is_pending(gateway: Gateway) -> bool:
    return [notice.text for notice in await gateway.pending(MAIN)] == [LINE]


async def test_answer_that_did_not_get_out(new: New, recorder: Gateway, gateway: Gateway) -> None:
    """Rule 4.8: a notice in an answer that was not sent to its end goes back, and can be shown by the next one."""
    delivery = new()
    await recorder.human_message(CHILD, channel="telegram")
    exchange = Exchange()
    assert len(await delivery.take(1, exchange)) == 1
    await delivery.acknowledge()  # a request that came before the answer was out is no sign that it arrived
    assert not await gateway.pending(MAIN)
    await exchange.end()
    assert await is_pending(gateway)
    assert len(await delivery.take(2)) == 1
    await delivery.leave()


async def test_client_that_had_gone_already(new: New, recorder: Gateway, gateway: Gateway) -> None:
    """A call that goes on after its client has gone takes no notice with it, be the exchange over or the connection."""
    await recorder.human_message(CHILD, channel="telegram")
    exchange = Exchange()
    await exchange.end()
    delivery = new()
    assert await delivery.take(1, exchange) == ()
    assert await is_pending(gateway)
    taking = asyncio.ensure_future(delivery.take(2))
    await asyncio.sleep(0)
    await delivery.leave()
    assert await taking == ()
    assert await delivery.take(3) == ()
    assert await is_pending(gateway)


async def test_client_that_does_not_come_again(new: New, recorder: Gateway, gateway: Gateway) -> None:
    """Over HTTP nobody says that a client has gone for good: what it does not acknowledge in time goes back."""
    await recorder.human_message(CHILD, channel="telegram")
    delivery, exchange = new(lease_s=0.01), Exchange()
    assert len(await delivery.take(1, exchange)) == 1
    exchange.completed = True
    await exchange.end()
    async with asyncio.timeout(5):
        while not await is_pending(gateway):  # noqa: ASYNC110 - a timer of the loop, which tells nobody
            await asyncio.sleep(0.01)
    await delivery.acknowledge()
    assert await is_pending(gateway)
    await delivery.leave()


async def test_two_requests_at_once(new: New, recorder: Gateway, gateway: Gateway) -> None:
    """Two requests that come together acknowledge once, and what an earlier request carried is not given back by a later one's end."""
    await recorder.human_message(CHILD, channel="telegram")
    delivery = new()
    assert len(await delivery.take(1)) == 1
    await delivery.give_back_from(2)
    await asyncio.gather(delivery.acknowledge(), delivery.acknowledge(), delivery.give_back_from(1))
    counted = await gateway.statistics()
    assert (counted.notices_acknowledged, counted.notices_returned) == (1, 0)
    await delivery.leave()


async def test_gateway_that_was_left(new: New, recorder: Gateway, gateway: Gateway) -> None:
    """A server that outlives its gateway has no notices, and nothing of it raises."""
    await recorder.human_message(CHILD, channel="telegram")
    shown, late = new(), new()
    assert len(await shown.take(1)) == 1
    gateway._system.fail("the test has closed it")
    assert await late.take(1) == ()
    await shown.acknowledge()
    await late.leave()


@pytest.mark.parametrize("pieces", [1, 3])
async def test_exchanges(pieces: int) -> None:
    """An exchange is complete once the last piece of its answer was sent; one whose application ends before that has failed."""
    failed: list[Exchange] = []

    async def note(exchange: Exchange) -> None:
        failed.append(exchange)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        exchange = exchange_of(scope)
        assert exchange is not None
        exchange.on_failure(note)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(scope["pieces"]):
            await send({"type": "http.response.body", "body": b"x", "more_body": number < pieces - 1})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        pass

    await Exchanges(app)({"type": "http", "pieces": pieces}, receive, send)
    assert failed == []
    await Exchanges(app)({"type": "http", "pieces": pieces - 1}, receive, send)
    assert [(exchange.completed, exchange.over) for exchange in failed] == [(False, True)]
