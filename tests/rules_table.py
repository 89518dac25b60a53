"""The table of which test proves which rule, made from the docstrings of the tests.

`python tests/rules_table.py` prints it, with `--write` it goes into tests/README.md, between the two marks there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

TESTS = Path(__file__).parent
README = TESTS / "README.md"
BEGIN, END = "<!-- rules: begin -->", "<!-- rules: end -->"

RULES = {
    "1.1": "the kinds of events, and which notify",
    "1.2": "summaries: one clean line, in both languages",
    "1.3": "every event names its actor",
    "1.4": "cancelled and timed-out runs keep their outcome",
    "1.5": "several human turns of one scan are one event",
    "1.6": "dedupe keys",
    "1.7": "when an event occurred, and when it was recorded",
    "1.8": "a human turn is recorded only where somebody may care",
    "1.9": "recording is best effort",
    "1.10": "what a call returned is committed",
    "1.11": "the state version, and deleting a session",
    "2.1": "agent-qualified keys",
    "2.2": "the canonical form",
    "2.3": "what is refused in keys and ids",
    "2.4": "keys without prefix",
    "3.1": "a spawn seeds the parent's cursor",
    "3.2": "watching",
    "3.3": "sending with watch",
    "3.4": "unwatching",
    "3.5": "how long cursors live",
    "4.1": "one pending notice, its text unchanged",
    "4.2": "a notice's text",
    "4.3": "opening",
    "4.4": "what comes while a notice is pending",
    "4.5": "acknowledging and giving back",
    "4.6": "nobody is told of what they did themselves",
    "4.7": "what a turn takes",
    "4.8": "when a turn acknowledges",
    "4.9": "wakes",
    "4.10": "no bound on targets loses a notice",
    "4.11": "restarts and crashes",
    "5.1": "the state version and the changes since one",
    "5.2": "truncated answers",
    "5.3": "history gaps",
    "5.4": "what changesSince may be",
    "5.5": "lists show a state version only where there is one",
    "6.1": "pruning",
    "7.1": "links to catalog sessions",
    "7.2": "when links are checked",
    "7.3": "what is looked at again before recording",
    "7.4": "one event and its marker, together",
    "7.5": "our own echo",
    "7.6": "missing sources",
    "7.7": "files that shrink, rotate or break",
    "7.8": "ambiguous links",
    "8.1": "several gateways share the log",
    "8.2": "who hosts a session",
    "8.3": "taking a notice is a claim",
    "8.4": "reading commands only read",
}
"""The rules of which each must have a test, with what they are about."""

_NAMED = re.compile(r"\b[Rr]ules? (\d+\.\d+(?:(?:,| and|, and) \d+\.\d+)*)")
_NUMBER = re.compile(r"\d+\.\d+")


class Case(NamedTuple):
    """A test function, or a class of tests such as a state machine."""

    file: str
    name: str
    docstring: str | None
    is_function: bool

    def rules(self) -> set[str]:
        """The rules that the docstring names, as `Rule 4.3` or `Rules 4.3, 4.4 and 4.5`."""
        return {number for numbers in _NAMED.findall(self.docstring or "") for number in _NUMBER.findall(numbers)}


def collect(folder: Path) -> list[Case]:
    """Every test below the folder, in the order of files and lines."""
    return [test for path in sorted(folder.rglob("test_*.py")) for test in _tests_of(path, folder)]


def proofs(tests: list[Case]) -> dict[str, list[Case]]:
    """The tests of each rule that any test names."""
    by_rule: dict[str, list[Case]] = defaultdict(list)
    for test in tests:
        for rule in test.rules():
            by_rule[rule].append(test)
    return dict(by_rule)


def table(by_rule: Mapping[str, list[Case]]) -> str:
    """The table in Markdown: a row for each rule."""
    lines = [f"| {rule} | {about} | {_cell(by_rule.get(rule, []))} |" for rule, about in RULES.items()]
    return "\n".join(["| rule | about | tests |", "| --- | --- | --- |", *lines])


def with_table(readme: str, new_table: str) -> str:
    """The text with the table between its two marks replaced."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{new_table}\n{END}{after}"


def _tests_of(path: Path, folder: Path) -> Iterator[Case]:
    file = path.relative_to(folder).as_posix()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Case(file, node.name, ast.get_docstring(node), is_function=True)
        elif isinstance(node, ast.ClassDef):
            yield Case(file, node.name, ast.get_docstring(node), is_function=False)


def _cell(tests: list[Case]) -> str:
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.file].append(f"`{test.name}`")
    return "<br>".join(f"{file}: {', '.join(names)}" for file, names in sorted(by_file.items())) or "**none**"


def main(arguments: list[str]) -> int:
    new_table = table(proofs(collect(TESTS)))
    if arguments == ["--write"]:
        README.write_text(with_table(README.read_text(encoding="utf-8"), new_table), encoding="utf-8")
        return 0
    print(new_table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
