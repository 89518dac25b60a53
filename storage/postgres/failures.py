"""What the server's errors mean to the store. Pure."""

from __future__ import annotations

import asyncpg

from ..errors import StoreBusyError, StoreError, WriteRefusedError

_BUSY = (asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)
_COLLIDED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_REFUSALS = (
    asyncpg.DataError,  # also what asyncpg itself cannot encode
    asyncpg.PostgresSyntaxError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.CharacterNotInRepertoireError,
    asyncpg.UntranslatableCharacterError,
)
_LOST = (
    OSError,  # and so TimeoutError
    EOFError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InternalClientError,
)


def is_lost(error: BaseException) -> bool:
    """Whether the connection is gone or could not be made, and another one may do."""
    if isinstance(error, asyncpg.InterfaceError) and not isinstance(error, asyncpg.DataError):
        return True
    return isinstance(error, _LOST)


def is_collision(error: BaseException) -> bool:
    """Whether the server undid the transaction in favour of another one, so that it may be tried again."""
    return isinstance(error, _COLLIDED)


def store_error(error: Exception) -> StoreError:
    """The store's error for one of the server's, or of a value that does not even reach it."""
    if isinstance(error, StoreError):
        return error
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, _BUSY):
        return StoreBusyError(f"another gateway holds what is to be written: {text}")
    if is_lost(error):
        return StoreError(f"the database cannot be reached: {text}")
    if isinstance(error, _REFUSALS) or not isinstance(error, asyncpg.PostgresError):
        return WriteRefusedError(text)
    return StoreError(text)
