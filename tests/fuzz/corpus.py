"""Inputs to begin with, and changes to them that depend on a seed alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.fuzz.files import EXAMPLES
from tests.fuzz.inputs import ACTIVITY, HOOK_EVENTS, PROBE

INPUT_MAX = 2_000


def beginnings(name: str, chance: random.Random) -> Iterator[bytes]:
    """Whole examples for targets that read text, random bytes for those that make their input of them."""
    form = name.removeprefix("file_")
    if form in EXAMPLES:
        yield "".join(f"{json.dumps(row)}\n" for row in EXAMPLES[form]).encode()
    if name in ("line_values", "lines"):
        yield from (json.dumps(value).encode() for value in (*HOOK_EVENTS, ACTIVITY, PROBE))
    yield b""
    while True:
        yield chance.randbytes(chance.choice((8, 60, 400)))


def inputs(name: str, count: int, seed: int = 0) -> Iterator[bytes]:
    """So many inputs for a target."""
    chance = random.Random(f"{name} {seed}")
    pool = [begun for begun, _ in zip(beginnings(name, chance), range(12), strict=False)]
    yield from pool[:count]
    for _ in range(count - len(pool)):
        changed = _changed(bytearray(chance.choice(pool)), chance)
        pool[chance.randrange(len(pool))] = changed
        yield changed


def _changed(content: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(content) + 1)
        match chance.randrange(4):
            case 0:
                content[at : at + chance.randrange(8)] = b""
            case 1:
                content[at:at] = chance.randbytes(chance.randrange(16))
            case 2:
                content[at : at + 1] = chance.choice((b"\n", b"\r", b'"', b"\\", b"{", b"}", b"\xff", b"\x00", b"\xed\xa0\x80", b"1e999"))
            case _:
                content[at:at] = content[at : at + chance.randrange(64)]
    return bytes(content[:INPUT_MAX])
