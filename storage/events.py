"""Events as rows: which columns are read, and how a payload is written. Pure, and the same for every database."""

from __future__ import annotations

import json
from collections.abc import Mapping

EVENT_COLUMNS = "e.sequence, e.session_id, e.kind, e.actor_type, e.actor_id, e.run_id, e.occurred_at, e.summary, e.payload_json"
"""An `EventRow`, of a table named e."""


def payload_json(payload: Mapping[str, object] | None) -> str | None:
    """The payload as it is stored."""
    return None if payload is None else json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"))
