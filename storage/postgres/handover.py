"""What an opening and a change of host miss of each other when they are under way at once.

The opening tells the host that it knows, the change of host tells what it finds pending, and neither sees the other before it is committed.
So each looks once more when it is: whichever of the two is later finds what the other has done.
"""

from __future__ import annotations

from collections.abc import Collection

from ..records import Opened
from .gateways import hosts_of, pending_of
from .line import Database
from .transaction import Transaction


async def came_meanwhile(connection: Database, tx: Transaction) -> list[Opened]:
    """After the commit of a change of hosts: what was opened for those watchers while it was under way."""
    return [pair for pair in await pending_of(connection, tx.gateway_id, list(tx.moved)) if pair not in tx.pending_before]


async def moved_meanwhile(connection: Database, gateway_id: int, opened: Collection[Opened]) -> list[tuple[int, Opened]]:
    """After the commit of openings: those whose watcher is another gateway's by now, with its number."""
    hosts = await hosts_of(connection, {pair.watcher for pair in opened})
    return [(host, pair) for pair in opened if (host := hosts.get(pair.watcher)) is not None and host != gateway_id]
