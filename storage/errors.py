"""What a store raises."""

from __future__ import annotations


class StoreError(Exception):
    """The store could not do what was asked. Nothing of the transaction is applied, unless it is a `CommitUnknownError`."""


class StoreBusyError(StoreError):
    """Another process held the database for longer than the time allowed."""


class CommitUnknownError(StoreError):
    """The transaction may have been committed: look before you act on it."""


class WriteRefusedError(StoreError):
    """The database refused one of the values: the other writes of the transaction may succeed without it."""
