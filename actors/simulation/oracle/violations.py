"""What the oracle says when a rule was broken."""

from __future__ import annotations


class Violation(Exception):
    """A rule was broken; `rule` is its number in the specification, or the name of what must hold of every history."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"rule {rule}: {text}")
        self.rule = rule
        self.text = text
