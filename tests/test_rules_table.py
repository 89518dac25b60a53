"""Every rule has a test, every test says what it shows, and the table in README.md is the present one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules_table import BEGIN, END, README, RULES, TESTS, Case, collect, proofs, table, with_table


@pytest.fixture(scope="module")
def tests() -> list[Case]:
    return collect(TESTS)


def test_every_rule_has_a_test(tests: list[Case]) -> None:
    """Each numbered rule of sections 1 to 7 is named by the docstring of at least one test."""
    assert sorted(RULES.keys() - proofs(tests).keys()) == []


def test_every_test_says_what_is_true(tests: list[Case]) -> None:
    """Each test function has a docstring."""
    assert [f"{test.file}::{test.name}" for test in tests if test.is_function and not test.docstring] == []


def test_no_test_names_a_rule_that_does_not_exist(tests: list[Case]) -> None:
    """A docstring that names a rule names one of the numbered rules."""
    assert [(test.file, test.name, rule) for test in tests for rule in test.rules() if rule not in RULES] == []


def test_the_table_is_the_present_one(tests: list[Case]) -> None:
    """The table in README.md is what `python tests/rules_table.py --write` would write now."""
    readme = README.read_text(encoding="utf-8")
    assert with_table(readme, table(proofs(tests))) == readme


@pytest.mark.parametrize(
    ("docstring", "rules"),
    [
        ("Rule 4.3: it opens.", {"4.3"}),
        ("It opens (rule 4.3).", {"4.3"}),
        ("Rules 4.3, 4.4 and 4.10: it opens.", {"4.3", "4.4", "4.10"}),
        ("Rule 4.3 and rule 1.11 hold.", {"4.3", "1.11"}),
        ("It takes 4.3 seconds by the rule.", set()),
        (None, set()),
    ],
)
def test_how_a_docstring_names_rules(docstring: str | None, rules: set[str]) -> None:
    """A docstring names rules by their numbers, one or several."""
    assert Case("test_x.py", "test_x", docstring, is_function=True).rules() == rules


def test_what_is_collected(tmp_path: Path) -> None:
    """Sync and async test functions, methods and classes are collected, from any depth, and nothing else."""
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "test_a.py").write_text(
        'def test_one():\n    """Rule 1.1: one."""\n\nasync def test_two():\n    pass\n\ndef helper():\n    """Rule 1.2: no test."""\n\n'
        'class Machine:\n    """Rule 1.3: all."""\n    def test_three(self):\n        """Three."""\n'
    )
    (folder / "helper.py").write_text('def test_not_here():\n    """Rule 1.4: no test file."""\n')
    found = collect(tmp_path)
    assert {(test.file, test.name) for test in found} == {
        ("deep/test_a.py", name) for name in ("test_one", "test_two", "Machine", "test_three")
    }
    assert proofs(found).keys() == {"1.1", "1.3"}
    assert [test.name for test in found if test.is_function and not test.docstring] == ["test_two"]


def test_how_the_table_is_put_in() -> None:
    """Only what stands between the two marks is replaced, and doing it twice changes nothing."""
    once = with_table(f"before {BEGIN}\nold\n{END} after", "new")
    assert once == f"before {BEGIN}\nnew\n{END} after"
    assert with_table(once, "new") == once


def test_a_rule_without_a_test_is_told_in_the_table() -> None:
    """A missing proof is visible in the table itself."""
    rows = table({"1.1": [Case("test_x.py", "test_x", None, is_function=True)]}).splitlines()
    assert rows[2] == "| 1.1 | the kinds of events, and which notify | test_x.py: `test_x` |"
    assert rows[3].endswith("| **none** |")
    assert len(rows) == 2 + len(RULES)
