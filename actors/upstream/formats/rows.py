"""What a row of any transcript can be: values shared by all formats, without files, clocks or databases."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ..catalog import Happening


class RowClass(StrEnum):
    """What one row is. Only `HUMAN` is a person's turn; everything that is not understood is `UNKNOWN`, never `HUMAN`."""

    HUMAN = "human"
    AGENT = "agent"
    """Sent into the session by another agent, a peer."""
    SUBAGENT = "subagent"
    """Part of a sub-agent's or team member's own conversation: its prompts were written by an agent."""
    EXTERNAL = "external"
    """Brought in from outside by a channel that does not say who wrote it."""
    MACHINE = "machine"
    """Injected by the tool: reminders, hook texts, notifications, echoes of local commands."""
    PROGRAMMATIC = "programmatic"
    """A prompt sent by a program rather than typed."""
    TOOL_RESULT = "tool_result"
    COMPACTED = "compacted"
    """The history was compacted here."""
    LIFECYCLE = "lifecycle"
    """The tool's own account of a run, a child or a goal."""
    COMPACTION = "compaction"
    """Text that a compaction left behind."""
    COPIED = "copied"
    """History copied from another session by a fork."""
    REPLAY = "replay"
    """Seen before, or older than the adoption."""
    NOT_A_TURN = "not_a_turn"
    """A row of a known kind that can hold no turn, or a turn in which nothing was said."""
    UNREADABLE = "unreadable"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """What a human turn was recognised by."""

    PROVENANCE = "provenance"
    """The row says itself who wrote it."""
    UNATTRIBUTED = "unattributed"
    """The format marks it as a user's, and does not say whether a person or a program sent it."""
    LEGACY = "legacy"
    """An older row without such fields, told by its text and shape."""
    LOW = "low"
    """An older row told by what followed it."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands in a stream of rows for a stretch of bytes that is no row."""

    reason: str


@dataclass(frozen=True, slots=True)
class Classified:
    """The verdict on one row."""

    row_class: RowClass
    rule: int
    """The number of the rule of its format's table that matched; 0 where none did."""
    occurred_at_ms: int | None = None
    """The row's own time; None where it has none, the file's time of modification is then the best guess."""
    id: str | None = None
    """The row's own id, the key by which it is recognised when it comes again."""
    shape: str | None = None
    """For an unknown row a short description that is the same for all rows like it, and holds nothing that a person wrote."""
    confidence: Confidence | None = None
    """For a human turn only."""
    text: str | None = field(default=None, repr=False)
    """What was said, for a human turn without provenance only: there the host's own texts must be told from a person's."""
    happening: Happening | None = None
    """What else the row tells reliably. Its id is empty where the row has none of its own: its place in the file then names it."""
