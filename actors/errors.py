"""What the library raises to its callers: every class is a child of `KizukiError`.

`str()` of each says what was wrong with which value, and what is allowed. Values are shown by `repr`, cut and escaped, so that an
error message is one short line whatever was passed.
"""

from __future__ import annotations

_SHOWN_MAX = 80
_REASON_MAX = 400


def shown(value: object) -> str:
    """The value's `repr` in at most 80 characters, with everything unprintable escaped."""
    # A long text is cut before its repr is made, so that a megabyte costs no more than a line.
    text = _repr(value[: _SHOWN_MAX + 1] if isinstance(value, str) else value)
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[: _SHOWN_MAX + 1])
    return escaped if len(escaped) <= _SHOWN_MAX else escaped[: _SHOWN_MAX - 1] + "…"


def _one_line(text: str) -> str:
    """A reason of our own making, whole within reason, with everything unprintable escaped."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:_REASON_MAX])
    return line if len(text) <= _REASON_MAX else f"{line}…"


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a number of thousands of digits, or other people's object: the error must be told all the same
        return f"<{type(value).__name__}>"


class KizukiError(Exception):
    """The parent of every error that the library raises on purpose."""


class InvalidSessionKey(KizukiError):
    """A text is not a session key."""

    def __init__(self, value: object, allowed: str) -> None:
        super().__init__(value, allowed)
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{shown(self.value)} is not a session key: {self.allowed}"


class InvalidArgument(KizukiError):
    """An argument has a wrong type or value."""

    def __init__(self, what: str, value: object, allowed: str) -> None:
        super().__init__(what, value, allowed)
        self.what = what
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.what} is {shown(self.value)}: {self.allowed}"


class UnknownSession(KizukiError):
    """The key is well formed, and no session is known under it."""

    def __init__(self, session_key: str, agent_id: str | None = None) -> None:
        super().__init__(session_key, agent_id)
        self.session_key = session_key
        self.agent_id = agent_id

    def __str__(self) -> str:
        whose = "" if self.agent_id is None else f" of agent {shown(self.agent_id)}"
        return f"no session {shown(self.session_key)}{whose}: it must have been opened, spawned, watched or recorded before"


class UnknownThread(UnknownSession):
    """A catalog has looked, and has no such session. Kind to who handles `UnknownSession`: what was asked for is not there."""

    def __init__(self, catalog: str, thread_id: str, host_id: str) -> None:
        super().__init__(thread_id)
        self.args = (catalog, thread_id, host_id)
        self.catalog = catalog
        self.thread_id = thread_id
        self.host_id = host_id

    def __str__(self) -> str:
        where = f"no thread {shown(self.thread_id)} on host {shown(self.host_id)}"
        return f"{where}: it must be one that the catalog {shown(self.catalog)} lists"


class CatalogUnavailable(KizukiError):
    """A catalog did not answer in time, failed, or answered what no catalog may. Nothing has changed; the call may be tried again."""

    def __init__(self, catalog: str, reason: object) -> None:
        super().__init__(catalog, reason)
        self.catalog = catalog
        self.reason = reason

    def __str__(self) -> str:
        return f"the catalog {shown(self.catalog)} failed: {shown(str(self.reason))}; the call may be tried again"


class GatewayClosed(KizukiError):
    """A call reached a gateway that is closing, closed, or not open yet."""

    def __init__(self, operation: str, reason: str = "it was left") -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def __str__(self) -> str:
        call = f"{shown(self.operation)} was called on a gateway that is closed, since {self.reason}"
        return f"{call}: calls are possible inside `async with open_gateway(...)` only"


class StoreUnavailable(KizukiError):
    """The database could not do what the call needed. Nothing is known to have changed; unless the reason says that it is for
    good, the call may be tried again."""

    def __init__(self, operation: str, reason: object) -> None:
        super().__init__(operation, reason)
        self.operation = operation
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.operation}: the database failed: {_one_line(str(self.reason))}"


class DispatchRefused(KizukiError):
    """Raised by the host's `dispatch` to refuse a message; `sessions_send` then answers `refused` with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"the message was refused: {shown(self.reason)}"
