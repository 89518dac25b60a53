"""The session key under which a catalog's thread is adopted where its adopter names no other. Pure."""

from __future__ import annotations

from hashlib import blake2b

_HASH_BYTES = 10


def thread_key(agent_id: str, catalog: str, host_id: str, thread_id: str) -> str:
    """`agent:<agent>:catalog:<catalog>:<hash>`: the same for the same thread, whoever computes it and whenever."""
    name = f"{catalog}\0{host_id}\0{thread_id}".encode("utf-8", "surrogatepass")
    return f"agent:{agent_id}:catalog:{catalog}:{blake2b(name, digest_size=_HASH_BYTES).hexdigest()}"
