"""LangGraph: a checkpointer that tells of hand edits. Needs `pip install 'kizuki[langchain]'`.

Whoever calls `update_state` on a thread steps into its session: LangGraph saves a checkpoint whose metadata says `source: update`. It is
recorded as a human message and not as a changed goal, since an edit of a thread's messages or values is what a person does to a session
directly, what is edited is seldom a goal, and a goal's change could not name which. Nor does it say who edited; the host's function
answers with None for the edits that were a program's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Final

from ...gateway import Gateway
from ...logs import logger
from .failing_open import TIMEOUT_S, fail_open

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
    )
except ImportError as error:
    raise ImportError("the LangGraph checkpointer needs langgraph: pip install 'kizuki[langchain]'") from error

CHANNEL: Final = "langgraph"

SessionOf = Callable[[RunnableConfig], str | None]
"""Gives the session key of the thread that a config names, by `config["configurable"]["thread_id"]`; None for no session of ours, or
for an edit that no person made."""


class NoticingCheckpointer(BaseCheckpointSaver[Any]):
    """Saves through another checkpointer, and records each hand edit as a human message of the thread's session.

    Made inside the gateway's block, on its loop. Saving raises what the other checkpointer raises, and nothing of ours: a session key
    that cannot be given, or a gateway that cannot record, is logged. An edit through the synchronous interface is recorded in the
    background, for its caller may be the loop itself; `await recorded()` waits for those.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any], gateway: Gateway, session_of: SessionOf, *, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._gateway = gateway
        self._session_of = session_of
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._recording: set[asyncio.Task[None]] = set()

    async def recorded(self) -> None:
        """Return when the edits so far are recorded."""
        await asyncio.sleep(0)  # lets those in that another thread has just handed over
        await asyncio.gather(*self._recording)

    # -- saving, where the edits pass ----------------------------------------------------------------------------------------

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        saved = self._saver.put(config, checkpoint, metadata, new_versions)
        if metadata.get("source") == "update":
            self._record_later(config, checkpoint["id"])
        return saved

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        saved = await self._saver.aput(config, checkpoint, metadata, new_versions)
        if metadata.get("source") == "update":
            if asyncio.get_running_loop() is self._loop:
                await self._record(config, checkpoint["id"])
            else:
                self._record_later(config, checkpoint["id"])
        return saved

    def _record_later(self, config: RunnableConfig, checkpoint_id: str) -> None:
        try:
            self._loop.call_soon_threadsafe(self._start_recording, config, checkpoint_id)
        except RuntimeError as error:  # the gateway's loop is closed, and the gateway with it
            logger().warning("recording a hand edit failed", error=str(error))

    def _start_recording(self, config: RunnableConfig, checkpoint_id: str) -> None:
        task = self._loop.create_task(self._record(config, checkpoint_id), name="kizuki hand edit")
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def _record(self, config: RunnableConfig, checkpoint_id: str) -> None:
        """Once for each checkpoint, however often it is saved."""
        try:
            key = self._session_of(config)
        except Exception as error:  # noqa: BLE001 - the host's own function: its edit is saved all the same
            logger().error("the session of a hand edit was not given", error=repr(error))
            return
        if key is not None:
            recorded = self._gateway.human_message(key, channel=CHANNEL, dedupe_key=f"langgraph:{checkpoint_id}")
            await fail_open("recording a hand edit", recorded, self._timeout_s, session_key=key)

    # -- everything else is the other checkpointer's -------------------------------------------------------------------------

    @property
    def config_specs(self) -> list[Any]:
        return self._saver.config_specs

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._saver.get_tuple(config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._saver.aget_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the SDK's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self._saver.list(config, filter=filter, before=before, limit=limit)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the SDK's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for found in self._saver.alist(config, filter=filter, before=before, limit=limit):
            yield found

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        self._saver.put_writes(config, writes, task_id, task_path)

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        await self._saver.aput_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._saver.delete_thread(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._saver.adelete_thread(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._saver.delete_for_runs(run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._saver.adelete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._saver.copy_thread(source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._saver.acopy_thread(source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._saver.prune(thread_ids, strategy=strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._saver.aprune(thread_ids, strategy=strategy)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        return self._saver.get_delta_channel_history(config=config, channels=channels)

    async def aget_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory]:
        return await self._saver.aget_delta_channel_history(config=config, channels=channels)

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """The same wrapper around the other checkpointer with the allowlist: that is the one that reads."""
        saver = self._saver.with_allowlist(extra_allowlist)
        if saver is self._saver:
            return self
        clone = copy(self)
        clone._saver, clone.serde = saver, saver.serde  # noqa: SLF001 - a copy of this very object
        return clone
