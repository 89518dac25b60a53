"""Answers as JSON that needs no particular encoding: ids can hold what UTF-8 cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response


def answer(document: Mapping[str, object]) -> Response:
    return Response(json.dumps(document), media_type="application/json")


def refusal(status: int, error: str, headers: Mapping[str, str] | None = None, *, reason: str | None = None) -> Response:
    """An answer that says what was wrong; `reason` is a word that programs go by."""
    document = {"error": error} if reason is None else {"error": error, "reason": reason}
    return Response(json.dumps(document), status, headers, media_type="application/json")
