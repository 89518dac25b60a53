"""What a message says: a text, or a list of blocks of which some are texts."""

from __future__ import annotations

from collections.abc import Iterator

from .fields import json_type, objects_in, word

TEXT_BLOCKS = ("text",)
SHAPE_KINDS_MAX = 5


def texts_in(content: object, kinds: tuple[str, ...] = TEXT_BLOCKS) -> Iterator[str]:
    """The texts of a content that are not blank."""
    blocks = [block.get("text") for block in objects_in(content) if block.get("type") in kinds]
    candidates = [content] if isinstance(content, str) else blocks
    return (text for text in candidates if isinstance(text, str) and text.strip())


def is_blank(content: object, kinds: tuple[str, ...] = TEXT_BLOCKS) -> bool:
    """Whether a content says nothing: no text but white space, and no block of another kind."""
    elements = content if isinstance(content, list) else []
    other = any(not isinstance(block, dict) or block.get("type") not in kinds for block in elements)
    return not other and not any(texts_in(content, kinds))


def shape_of_content(content: object) -> str:
    """The kinds of the blocks, or the type of what is no list."""
    if not isinstance(content, list):
        return json_type(content)
    kinds = sorted({word(block.get("type")) if isinstance(block, dict) else json_type(block) for block in content})
    return f"[{','.join(kinds[:SHAPE_KINDS_MAX])}]"
