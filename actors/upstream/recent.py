"""The host's own latest texts of a session (rule 7.5), asked of the host: in time, or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ..callbacks import Callbacks, within
from ..clock import Clock
from .answers import OwnTexts, own_texts_of

ANSWER_TIMEOUT_S: Final = 5.0

AskTexts = Callable[[str], Sequence[tuple[str, str]] | Awaitable[Sequence[tuple[str, str]]]]


class TextsUnavailableError(Exception):
    """The host did not say what it wrote; so nobody can say what it did not."""


class RecentTexts:
    """Asks the host's `recent_texts`; without one there are no own texts."""

    def __init__(self, ask: AskTexts | None, callbacks: Callbacks, clock: Clock) -> None:
        self._ask = ask
        self._callbacks = callbacks
        self._clock = clock

    def deadline(self) -> float:
        """Until when texts that are asked for now are waited for, on the monotonic clock: one time for all of a batch."""
        return self._clock.monotonic() + ANSWER_TIMEOUT_S

    async def of(self, session_key: str, deadline: float) -> OwnTexts:
        """The newest ones, oldest first. Raises `TextsUnavailableError`."""
        if self._ask is None:
            return ()
        left_s = max(0.0, deadline - self._clock.monotonic())
        try:
            return own_texts_of(await within(self._clock, left_s, self._callbacks.start(self._ask, session_key)))
        except TimeoutError as error:
            raise TextsUnavailableError(f"recent_texts did not answer within {ANSWER_TIMEOUT_S:g} s") from error
        except Exception as error:  # the host's own code: whatever it raises concerns this session alone
            raise TextsUnavailableError(f"recent_texts failed: {error!r}") from error
