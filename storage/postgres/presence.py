"""Whether this process's gateway is there, and which of the others are.

A registered gateway holds an advisory lock, shared with itself, on two connections: the one that writes, and one of its own, which also
listens for word from other gateways. The server takes the locks away with the connections, and so with the process; one connection that is
cut does not make the gateway dead, and is made anew at once. Where both are gone the others wait a moment before they believe it, and
longer after a start of the server, which cuts all connections.

The connection opens no transaction, and is asked for a sign of life every few seconds. Word from others is only a hint: whenever it may
have been missed, `changed` says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from ..errors import StoreError
from ..records import Neighbours
from .failures import is_lost
from .line import BACKOFF_FIRST_S, BACKOFF_MAX_S, Database

NOT_REGISTERED: Final = 0
"""The number of a store that is no gateway; none is ever given it."""
SIGN_OF_LIFE_S: Final = 2.0
"""How often the connection is asked for a sign of life, and how often `changed` says True in any case."""
RECONNECT_S: Final = 1.0
"""How long a gateway whose locks are gone may take to come back."""
SERVER_START_S: Final = 3.0
"""How long after its start the server is given until all gateways are back."""
LOOK_AGAIN_S: Final = 0.1

_HOLD = "SELECT pg_advisory_lock_shared((SELECT lock_class FROM kizuki_schema), $1)"
_LET_GO = "SELECT pg_advisory_unlock_all()"


def channel(lock_class: int, gateway_id: int) -> str:
    """Where word for a gateway goes. Channels are the whole database's, and several schemas may be in one."""
    return f"kizuki_{lock_class}_{gateway_id}"


async def lock_class(connection: Database) -> int:
    """What tells this schema's locks and channels from others'."""
    found: int = await connection.fetchval("SELECT lock_class FROM kizuki_schema")
    return found


class Presence:
    """The number under which this store is registered, and the connection that says so."""

    def __init__(self, connect: Callable[[], Awaitable[Database]]) -> None:
        self._connect = connect
        self.gateway_id = NOT_REGISTERED
        self._changed = True
        self._said_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None
        self._connection: Database | None = None
        self._cut = asyncio.Event()

    async def appear(self, writer: Database, gateway_id: int) -> None:
        """Be alive under this number from now on, instead of the one before."""
        await writer.execute(_LET_GO)
        await writer.execute(_HOLD, gateway_id)
        await self._stop()
        self.gateway_id = gateway_id
        self._connection = await self._present()
        self._task = asyncio.create_task(self._stay())

    async def hold(self, writer: Database) -> None:
        """Hold the lock on a connection that writes, too."""
        if self.gateway_id:
            await writer.execute(_HOLD, self.gateway_id)

    async def disappear(self) -> None:
        """Be dead to the others."""
        await self._stop()
        self.gateway_id = NOT_REGISTERED

    def changed(self) -> bool:
        """Whether word has come since this was last asked, or may have been missed."""
        now = time.monotonic()
        changed = self._changed or now - self._said_at >= SIGN_OF_LIFE_S
        if changed:
            self._changed, self._said_at = False, now
        return changed

    async def _present(self) -> Database:
        connection = await self._connect()
        try:
            await connection.execute(_HOLD, self.gateway_id)
            connection.add_termination_listener(self._on_cut)
            await connection.add_listener(channel(await lock_class(connection), self.gateway_id), self._on_word)
        except BaseException:
            connection.terminate()
            raise
        self._cut.clear()
        self._changed = True
        return connection

    async def _stay(self) -> None:
        """Keep the connection, for as long as the store is open."""
        while True:
            try:
                async with asyncio.timeout(SIGN_OF_LIFE_S):
                    await self._cut.wait()
            except TimeoutError:
                if await self._is_well():
                    continue
            self._connection = await self._again()

    async def _is_well(self) -> bool:
        try:
            await self._there.fetchval("SELECT 1", timeout=SIGN_OF_LIFE_S)
        except Exception:  # noqa: BLE001 - whatever it is, another connection is better
            self._there.terminate()
            return False
        return True

    @property
    def _there(self) -> Database:
        if self._connection is None:
            raise StoreError("the store is not registered")
        return self._connection

    async def _again(self) -> Database:
        pause_s = BACKOFF_FIRST_S
        while True:
            try:
                return await self._present()
            except Exception as error:
                if not is_lost(error):
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, BACKOFF_MAX_S)

    def _on_cut(self, _connection: object) -> None:
        self._cut.set()

    def _on_word(self, *_notification: object) -> None:
        self._changed = True

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._on_cut)
            connection.terminate()


class Look(NamedTuple):
    """One look at the gateways."""

    registered: bool
    living: tuple[int, ...]
    closed: tuple[int, ...]
    missing: tuple[int, ...]
    """Neither alive nor closed."""
    hinted: bool
    server_is_new: bool


_GATEWAYS = (
    "SELECT g.gateway_id, g.closed, EXISTS (SELECT 1 FROM pg_locks l, kizuki_schema s WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.classid::bigint = s.lock_class "
    "AND l.objid::bigint = g.gateway_id AND l.objsubid = 2) FROM gateways g ORDER BY g.gateway_id"
)
_BESIDE = (
    "SELECT EXISTS (SELECT 1 FROM hints WHERE gateway_id = $1), clock_timestamp() - pg_postmaster_start_time() < make_interval(secs => $2)"
)


async def look(connection: Database, gateway_id: int) -> Look:
    """Look who is there."""
    rows = await connection.fetch(_GATEWAYS)
    hinted, server_is_new = await connection.fetchrow(_BESIDE, gateway_id, SERVER_START_S) or (False, False)
    others = [(number, closed, alive) for number, closed, alive in rows if number != gateway_id]
    return Look(
        registered=len(others) < len(rows),
        living=tuple(number for number, closed, alive in others if alive and not closed),
        closed=tuple(number for number, closed, _ in others if closed),
        missing=tuple(number for number, closed, alive in others if not alive and not closed),
        hinted=hinted,
        server_is_new=server_is_new,
    )


async def neighbours(look_again: Callable[[], Awaitable[Look]]) -> Neighbours:
    """As `Store.neighbours` says. A gateway is dead if it said so, or if it was missing for as long as it may take to come back."""
    seen = await look_again()
    until_s = time.monotonic() + RECONNECT_S
    while seen.missing and not seen.server_is_new and time.monotonic() < until_s:
        await asyncio.sleep(LOOK_AGAIN_S)
        seen = await look_again()
    living, dead = (*seen.living, *seen.missing), seen.closed
    if not seen.server_is_new:
        living, dead = seen.living, (*seen.closed, *seen.missing)
    return Neighbours(seen.registered, tuple(sorted(living)), tuple(sorted(dead)), seen.hinted)
