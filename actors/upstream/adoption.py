"""Adopting a catalog's thread: where the link begins, and the write that makes it (rule 7.1)."""

from __future__ import annotations

import asyncio

from pykka import ActorDeadError

from ...storage.records import Address, SessionDraft
from ...storage.writes import LinkSource, PutLink
from ..callbacks import raise_own_cancellation
from ..drafts import adopted
from ..errors import CatalogUnavailable, UnknownThread
from ..identifiers import one_line
from ..keys import canonical_agent_id, canonical_key, is_qualified, parse_address, session_kind
from .answers import GarbageError, start_of
from .catalog import Catalog, Start, ThreadNotFound
from .catalogs import Catalogs
from .thread_key import thread_key

DEFAULT_AGENT = "main"


def adopted_address(catalog: str, host_id: str, thread_id: str, agent_id: str, key: str | None) -> Address:
    """The session that a thread is adopted as. A qualified key names its agent itself: the default agent does not contradict it."""
    if key is None:
        return parse_address(thread_key(canonical_agent_id(agent_id), catalog, host_id, thread_id))
    named = agent_id == DEFAULT_AGENT and is_qualified(canonical_key(key))
    return parse_address(key, None if named else agent_id)


async def adoption(
    catalogs: Catalogs, catalog: Catalog, thread_id: str, host_id: str, agent_id: str, key: str | None, now_ms: int
) -> PutLink:
    """The write that adopts the thread. Raises `InvalidArgument`, `InvalidSessionKey`, `UnknownThread`, `CatalogUnavailable`."""
    one_line(thread_id, "thread_id")
    one_line(host_id, "host_id")
    address = adopted_address(catalog.name, host_id, thread_id, agent_id, key)
    start = await _start(catalogs, catalog, thread_id, host_id)
    source = LinkSource(catalog.name, host_id, thread_id, start.source)
    draft = SessionDraft(session_kind(address.session_key))
    return PutLink(address, draft, source, start.marker, adopted(address, catalog.name, now_ms), now_ms)


async def _start(catalogs: Catalogs, catalog: Catalog, thread_id: str, host_id: str) -> Start:
    try:
        return start_of(await catalogs.ask(catalog.link, thread_id, host_id))
    except ThreadNotFound as error:
        raise UnknownThread(catalog.name, thread_id, host_id) from error
    except asyncio.CancelledError as error:
        raise_own_cancellation()
        raise ActorDeadError("the gateway is being left") from error
    except GarbageError as error:
        raise CatalogUnavailable(catalog.name, error) from error
    except TimeoutError as error:
        raise CatalogUnavailable(catalog.name, "it did not answer in time") from error
    except Exception as error:  # a catalog is other people's code
        raise CatalogUnavailable(catalog.name, repr(error)) from error
