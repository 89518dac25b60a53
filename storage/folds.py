"""A session's head and row while a transaction works on them: read once, changed in Python, written once. Pure, and the same for
every database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from .heads import Latest, Notifying, Owed
from .records import Address, SessionDraft, SessionRecord


class NewIds(Protocol):
    """Where the ids of what is created come from."""

    @property
    def new_session_id(self) -> Callable[[], str]:
        """Makes a session id."""
        ...

    def next_head_id(self) -> int:
        """A head id that no row has; it is written with the head's row."""
        ...


class SessionRow(NamedTuple):
    """What a session's row says beside its address."""

    session_id: str
    kind: str
    parent: str | None
    label: str | None
    created_at: int
    updated_at: int


@dataclass(slots=True, eq=False)
class Fold:
    """One session's head and row. The columns follow the table `heads`."""

    address: Address
    head_id: int = 0
    """0: not in the database."""
    last_sequence: int = 0
    pruned_max_sequence: int = 0
    recorded_at: int = 0
    event_count: int = 0
    latest: Latest = field(default_factory=Latest)
    owed: Owed | None = None
    deleted_at: int | None = None
    session: SessionRow | None = None
    head_moved: bool = False
    """Whether events have moved it, and nothing more."""
    head_changed: bool = False
    session_changed: bool = False
    watched: bool = False
    """Whether a cursor on the session is known of; asked only where it matters."""
    all_open: bool = False
    """Whether every cursor on the session is known to have its notice open, so that no event opens one."""
    fresh: list[Notifying] = field(default_factory=list)
    """The notifying events of this run of appends, ascending."""


def intern(ids: NewIds, fold: Fold) -> int:
    """The head's id, given to it now if it has none."""
    if not fold.head_id:
        fold.head_id = ids.next_head_id()
        fold.head_changed = True
    return fold.head_id


def put_session(ids: NewIds, fold: Fold, draft: SessionDraft, now_ms: int) -> SessionRow:
    """Create the session's row, or change what the draft gives and differs."""
    present = fold.session
    if present is None:
        return _create_session(ids, fold, draft, now_ms)
    if draft.session_id is None and draft.parent is None and draft.label is None:
        return present
    given = {"session_id": draft.session_id, "parent": draft.parent, "label": draft.label}
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None and value != getattr(present, name)}
    return set_session(fold, present._replace(updated_at=now_ms, **changed)) if changed else present


def _create_session(ids: NewIds, fold: Fold, draft: SessionDraft, now_ms: int) -> SessionRow:
    intern(ids, fold)
    if fold.deleted_at is not None:
        fold.deleted_at = None
        fold.head_changed = True
    session_id = ids.new_session_id() if draft.session_id is None else draft.session_id
    return set_session(fold, SessionRow(session_id, draft.kind, draft.parent, draft.label, now_ms, now_ms))


def set_session(fold: Fold, row: SessionRow) -> SessionRow:
    """Give the fold another row, to be written."""
    fold.session = row
    fold.session_changed = True
    return row


def to_record(fold: Fold, row: SessionRow) -> SessionRecord:
    """The session as it is told to the outside."""
    return record_of(fold.address, row, fold.recorded_at, fold.last_sequence)


def record_of(address: Address, row: SessionRow, recorded_at: int, version: int) -> SessionRecord:
    """The session as it is told to the outside."""
    updated_at = max(row.updated_at, recorded_at)
    return SessionRecord(address, row.session_id, row.kind, row.parent, row.label, row.created_at, updated_at, version)
