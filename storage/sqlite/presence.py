"""Whether this process's gateway is there, and which of the others are.

A registered gateway holds a lock on a file of its own beside the database. It is `flock`, not one of `fcntl`'s record locks: those are
per process, so that two gateways in one process would not see each other. The operating system takes the lock away with the
process, however that ends, so a dead gateway is known at once; a file that nobody has locked, or that is gone, says the same. A child
that the process forked without executing anything shares the lock, and keeps the gateway alive to others for as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
from functools import cached_property
from pathlib import Path

NOT_REGISTERED = 0
"""The number of a store that is no gateway; none is ever given it."""


class Presence:
    """The number under which this store is registered, and the look at the others' locks."""

    def __init__(self, database: Path) -> None:
        self._path = database.absolute()
        self._lock: int | None = None
        self.gateway_id = NOT_REGISTERED

    def appear(self, gateway_id: int) -> None:
        """Be alive under this number from now on, instead of the one before."""
        self.give_up()
        lock = os.open(self._file(gateway_id), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            os.close(lock)
            raise
        self._lock, self.gateway_id = lock, gateway_id

    def give_up(self) -> None:
        """Be dead to the others."""
        if self._lock is None:
            return
        self._file(self.gateway_id).unlink(missing_ok=True)
        os.close(self._lock)
        self._lock, self.gateway_id = None, NOT_REGISTERED

    def clear_away(self, gateway_id: int) -> None:
        """Remove what a dead gateway left in the folder."""
        self._file(gateway_id).unlink(missing_ok=True)

    def is_alive(self, gateway_id: int) -> bool:
        """Whether somebody holds that gateway's lock. One that may not be looked at counts as held."""
        try:
            lock = os.open(self._file(gateway_id), os.O_RDONLY)
        except FileNotFoundError:
            return False
        except PermissionError:
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    @cached_property
    def _database(self) -> Path:
        """The same for every path that leads there. Blocks, like all that is done with files here."""
        return self._path.resolve()

    def _file(self, gateway_id: int) -> Path:
        return self._database.with_name(f"{self._database.name}-gateway-{gateway_id}")
