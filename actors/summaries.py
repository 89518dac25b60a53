"""The one-line summaries of events (rule 1.2): made in English when an event is recorded, rendered in Japanese when it is read.

One table holds both languages. A template has at most one slot, so that a stored English summary can be taken apart again.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal, NamedTuple

from .kinds import EventKind

Language = Literal["en", "ja"]
SUMMARY_MAX = 200
"""Characters in a summary."""

# What is looked at of a slot's text: cleaning only drops characters, and nobody should wait while a megabyte is cleaned.
_LOOKED_AT = 20 * SUMMARY_MAX
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SLOT = "{}"
_NAMELESS = "unknown"
_CACHED_TEXTS = 256  # A host has few channels, and says the same of them over and over.
_ANY = ""


class _Template(NamedTuple):
    en: str
    ja: str


_TEMPLATES: dict[tuple[EventKind, str], _Template] = {
    (EventKind.HUMAN_DIRECT_MESSAGE, _ANY): _Template("human message via {}", "{} 経由の人間のメッセージ"),
    (EventKind.GOAL_CHANGED, "created"): _Template("goal created", "ゴールが作成されました"),
    (EventKind.GOAL_CHANGED, "updated"): _Template("goal updated", "ゴールが更新されました"),
    (EventKind.GOAL_CHANGED, "cleared"): _Template("goal cleared", "ゴールが解除されました"),
    (EventKind.CHILD_SPAWNED, _ANY): _Template("child session spawned", "子セッションが作成されました"),
    (EventKind.RUN_COMPLETED, "ok"): _Template("child run completed", "子セッションの実行が完了しました"),
    (EventKind.RUN_FAILED, "error"): _Template("child run failed", "子セッションの実行が失敗しました"),
    (EventKind.RUN_FAILED, "timeout"): _Template("child run timed out", "子セッションの実行がタイムアウトしました"),
    (EventKind.RUN_FAILED, "cancelled"): _Template("child run cancelled", "子セッションの実行がキャンセルされました"),
    (EventKind.COMPACTED, _ANY): _Template("session compacted", "セッションの履歴が圧縮されました"),
    (EventKind.UPSTREAM_MISSING, _ANY): _Template("upstream missing via {}", "{} 側の元セッションが見つかりません"),
    (EventKind.ADOPTED, _ANY): _Template("session adopted via {}", "{} 経由でセッションが取り込まれました"),
}


def summary(kind: EventKind, detail: str = "") -> str:
    """The English summary of an event.

    `detail` is, by kind, the channel, the catalog, the goal's change (`created`, `updated`, `cleared`) or the run's outcome (`ok`,
    `error`, `timeout`, `cancelled`). Whatever channel or catalog is passed, the result is one clean line of at most 200 characters;
    a change or an outcome that the kind does not have is a `KeyError`.
    """
    return _summary(kind, detail[:_LOOKED_AT])


@lru_cache(_CACHED_TEXTS)
def _summary(kind: EventKind, detail: str) -> str:
    template = _TEMPLATES.get((kind, _ANY)) or _TEMPLATES[kind, detail]
    return _filled(template.en, clean(detail) or _NAMELESS)


def render(kind: str, english: str, language: Language) -> str:
    """A stored summary in the reader's language. A text that no template of the kind fits is only cleaned."""
    return _rendered(kind, english[:_LOOKED_AT], language)


@lru_cache(_CACHED_TEXTS)
def _rendered(kind: str, english: str, language: Language) -> str:
    text = clean(english)
    if language == "en":
        return text
    return next((japanese for template in _of_kind(kind) if (japanese := _translated(template, text))), text)


def clean(text: str) -> str:
    """One line: white space collapsed, control, formatting and surrogate characters gone, at most 200 characters."""
    kept = (c for c in text[:_LOOKED_AT] if c.isspace() or unicodedata.category(c) not in _REFUSED_CATEGORIES)
    return _cut(" ".join("".join(kept).split()), SUMMARY_MAX)


def _of_kind(kind: str) -> list[_Template]:
    return [template for (of, _), template in _TEMPLATES.items() if of == kind]


def _translated(template: _Template, text: str) -> str | None:
    before, slot, _ = template.en.partition(_SLOT)
    if not slot:
        return template.ja if text == before else None
    return _filled(template.ja, text.removeprefix(before)) if text.startswith(before) else None


def _filled(template: str, slot: str) -> str:
    return template.replace(_SLOT, _cut(slot, SUMMARY_MAX - len(template) + len(_SLOT)))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
