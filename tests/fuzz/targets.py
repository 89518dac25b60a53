"""Everything that takes bytes from outside, by name: a function that is given any bytes, and raises where something is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.fuzz import databases, files, inputs, transcripts

TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"rows_{name}": partial(transcripts.rows, name) for name in transcripts.KINDS},
    **{f"file_{name}": partial(transcripts.file, name) for name in transcripts.FORMS},
    "line_values": files.line_values,
    "lines": files.lines,
    "followed": files.followed,
    "catalogs": files.catalogs,
    "opencode_values": databases.values,
    "opencode_damaged": databases.damaged,
    "session_keys": inputs.session_keys,
    "thread_keys": inputs.thread_keys,
    "settings": inputs.settings_file,
    "hook_event": inputs.hook_event,
    "remote_answers": inputs.remote_answers,
    "markers": inputs.markers,
}
