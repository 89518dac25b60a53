"""Session keys: their canonical form, what is refused, and what a key tells about its session (rules 2.1 to 2.4).

A key is either agent-qualified, `agent:<agentId>:<rest>`, or has no prefix (`global`) and belongs to an agent that is given with it.
A colon at the end of a key is refused as an empty part, like one at the start of the rest; colons between are part of the rest.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from ..storage.records import Address
from .errors import InvalidArgument, InvalidSessionKey
from .identifiers import IDENTIFIER_MAX

_PREFIX = "agent:"
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_CACHED_KEYS = 16_384
# A longer text is kept out of the caches, which would hold on to it; trimming is the one thing that could still make it short enough.
_CACHEABLE = 2 * IDENTIFIER_MAX
_FIRST_WORDS = frozenset({"subagent", "acp", "cron", "catalog"})
_PEER_WORDS = frozenset({"group", "channel", "direct"})


def parse_address(key: object, agent_id: object = None) -> Address:
    """The canonical (key, agent id) of a session.

    Raises `InvalidSessionKey` for what is no key, and for a key without prefix that comes without an agent id; `InvalidArgument` for
    an agent id that is none, or that differs from the one in the key.
    """
    if agent_id is None and isinstance(key, str) and len(key) <= _CACHEABLE:
        return _address(key)
    return _address_for(key, agent_id)


@lru_cache(_CACHED_KEYS)
def _address(key: str) -> Address:
    return _address_for(key, None)


def _address_for(key: object, agent_id: object) -> Address:
    canonical = canonical_key(key)
    own = agent_of(canonical)
    given = None if agent_id is None else canonical_agent_id(agent_id)
    if own is None and given is None:
        raise InvalidSessionKey(key, f"a key without the prefix {_PREFIX!r} needs an agent id beside it")
    if own is not None and given is not None and own != given:
        raise InvalidArgument("agent_id", agent_id, f"the key names the agent {own!r}: leave it out, or give the same")
    return Address(canonical, own or given or "")


def canonical_key(key: object) -> str:
    """The key's canonical form; canonicalising that again changes nothing. Raises `InvalidSessionKey`."""
    if not isinstance(key, str):
        raise InvalidSessionKey(key, "it must be a text")
    if len(key) > _CACHEABLE:
        return _canonicalise(key.strip(), key)
    return _canonical_key(key)


def canonical_agent_id(agent_id: object) -> str:
    """An agent id's canonical form. Raises `InvalidArgument`."""
    if not isinstance(agent_id, str):
        raise InvalidArgument("agent_id", agent_id, "it must be a text")
    canonical = agent_id.strip().lower()
    wrong = _what_is_wrong(canonical) or (":" in canonical and "it must not contain a colon")
    if wrong:
        raise InvalidArgument("agent_id", agent_id, wrong)
    return canonical


def is_qualified(key: str) -> bool:
    """Whether a canonical key has the prefix, and so names its agent."""
    return key.startswith(_PREFIX)


def watcher_address(key: object) -> Address | None:
    """The watcher's address; None for a key that can never be a watcher, as only agent-qualified ones can (rule 2.4).

    Raises `InvalidSessionKey`.
    """
    canonical = canonical_key(key)
    agent_id = agent_of(canonical)
    return None if agent_id is None else Address(canonical, agent_id)


def agent_of(key: str) -> str | None:
    """The agent id in a canonical key; None where it has no prefix."""
    return key.split(":", 2)[1] if is_qualified(key) else None


def is_subagent(key: str) -> bool:
    """Whether a canonical key is that of a sub-agent."""
    return _rest(key).startswith("subagent:") if is_qualified(key) else False


@lru_cache(_CACHED_KEYS)
def session_kind(key: str) -> str:
    """What a canonical key says about its session: `main`, `subagent`, `acp`, `cron`, `catalog`, `thread`, `group`, `channel`,
    `direct`, `other`, or `global` for a key without prefix."""
    if not is_qualified(key):
        return "global"
    words = _rest(key).split(":")
    if words[0] == "main" or (words[0] in _FIRST_WORDS and len(words) > 1):
        return words[0]
    if "thread" in words[1:-1]:
        return "thread"
    return words[1] if len(words) > 2 and words[1] in _PEER_WORDS else "other"


@lru_cache(_CACHED_KEYS)
def _canonical_key(key: str) -> str:
    return _canonicalise(key.strip(), key)


def _canonicalise(trimmed: str, key: str) -> str:
    canonical = _lowered(trimmed) if len(trimmed) <= IDENTIFIER_MAX else trimmed
    # The check follows the lower-casing, which can make a text longer: so what is accepted once is accepted again.
    wrong = _what_is_wrong(canonical) or _empty_part(canonical)
    if wrong:
        raise InvalidSessionKey(key, wrong)
    return canonical


def _lowered(key: str) -> str:
    if key[: len(_PREFIX)].lower() != _PREFIX:
        return key
    parts = key.split(":", 3)
    return ":".join([part.lower() for part in parts[:3]] + parts[3:])


def _empty_part(key: str) -> str | None:
    parts = key.split(":", 3)[: 3 if is_qualified(key) else 1]
    if all(parts) and not key.endswith(":") and (len(parts) == 3 or not is_qualified(key)):
        return None
    return "it must be agent:<agentId>:<rest>, or have no such prefix, with no part empty"


def _what_is_wrong(text: str) -> str | None:
    if not text:
        return "it must not be empty"
    if len(text) > IDENTIFIER_MAX:
        return f"it must have at most {IDENTIFIER_MAX} characters"
    if text.isascii() and text.isprintable() and " " not in text and '"' not in text:
        return None  # Nearly every key, and much faster than a look at each character.
    if any(c.isspace() for c in text):
        return "it must have no white space inside"
    if '"' in text or any(unicodedata.category(c) in _REFUSED_CATEGORIES for c in text):
        return "it must have no double quotes, control, formatting or surrogate characters"
    return None


def _rest(key: str) -> str:
    return key.split(":", 2)[2]
