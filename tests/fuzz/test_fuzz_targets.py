"""A short form of `python -m tests.fuzz`: the same targets on inputs that depend on a seed alone; and what longer runs have found."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from kizuki.actors.keys import is_subagent, session_kind
from kizuki.actors.upstream.formats import opencode
from kizuki.actors.upstream.formats.rows import RowClass
from kizuki.actors.upstream.opencode.database import opened
from tests.fuzz.corpus import inputs
from tests.fuzz.databases import an_empty_one
from tests.fuzz.targets import TARGETS

INPUTS = 100


@pytest.mark.parametrize("name", TARGETS)
def test_any_input(name: str) -> None:
    """No input makes a parser raise what it does not declare, or give what it must not."""
    for content in inputs(name, INPUTS):
        TARGETS[name](content)


def test_a_target_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that takes a text that the tool made for a person's turn is noticed within some hundred inputs."""
    rules = tuple(rule for rule in opencode.TABLE if rule.name != "made by the tool")
    monkeypatch.setattr(opencode, "_TABLE", replace(opencode._TABLE, rules=rules))
    with pytest.raises(AssertionError):
        for content in inputs("rows_opencode", 1_000):
            TARGETS["rows_opencode"](content)


def test_a_bare_first_word() -> None:
    """A key whose rest is the word `subagent` alone is no sub-agent's, by its kind as little as by its form."""
    assert session_kind("agent:main:subagent") == "other"
    assert not is_subagent("agent:main:subagent")


def test_a_type_that_is_no_text() -> None:
    """A message of OpenCode whose type in the table is no text is unknown, whatever type its data name."""
    reader = opencode.SessionReader()
    (verdict,) = reader.feed({"table": "session_message", "id": "s", "type": {"U": None}, "data": {"type": "user", "text": "rename"}})
    assert verdict.row_class is RowClass.UNKNOWN


def test_a_schema_that_is_no_text(tmp_path: Path) -> None:
    """A damaged database whose schema is no UTF-8 is an error of the database, and no other."""
    path = tmp_path / "opencode.db"
    path.write_bytes(an_empty_one().replace(b"TABLE session (id", b"TABL\x9a session (id"))
    with pytest.raises(sqlite3.Error, match="damaged"), opened(path) as database:
        database.sessions()
