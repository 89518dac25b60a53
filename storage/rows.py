"""What a row of a database is, whatever the database."""

from __future__ import annotations

from typing import Any

Row = tuple[Any, ...]
