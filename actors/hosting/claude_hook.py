"""What a hook event of Claude Code says, and how it is answered: decided purely.

The session is the one that adopting its transcript gives, `agent:<agent>:catalog:claude:<hash>`, so that an adopted session and a hooked
one are one; its sub-agents are those that the check of an adopted session finds.

Claude Code saves what a hook adds to the context, and shows it again whenever the session is resumed. So it is told as a fact that stays
true: which session changed, and from which state version to which.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from ...storage.records import Address, Cursor
from ..drafts import Report
from ..identifiers import one_line
from ..keys import canonical_agent_id, is_qualified, parse_address
from ..messages import Compacted, HumanTurn, RunEnded, Spawned
from ..summaries import Language
from ..upstream.thread_key import thread_key

CATALOG: Final = "claude"
HOST: Final = "local"
SHOWING: Final = frozenset({"SessionStart", "UserPromptSubmit", "PostToolUse"})
"""Events whose additional context goes to the session's own model. That of `SubagentStart` goes to the sub-agent."""
CONTEXT_MAX: Final = 8_000
"""Characters in an answer. Claude Code puts more than 10,000 into a file, of which the model sees the beginning."""
PROGRAMS: Final = "sdk-"
"""How the entrypoint begins where a program gives the prompts."""
MACHINE_TEXTS: Final = ("<task-notification>", "<local-command-", "<bash-", "<system-reminder>")
"""How prompts begin that the tool itself submits; newer versions say so in `source`."""

_EN: Final = (
    "kizuki: session {target} was changed by another actor. This session last knew its state version {since}; the change is version "
    "{version}. What changed after version {since} is told by: {teller}."
)
_JA: Final = (
    "kizuki: セッション {target} は別のアクターによって変更されました。このセッションが最後に把握していた状態バージョンは {since}、"
    "変更後のバージョンは {version} です。バージョン {since} 以降の変更の確認: {teller}。"
)


class Heard(NamedTuple):
    """What an event says."""

    event: str
    session: Address
    reports: tuple[tuple[Address, Report], ...]
    """What is to be recorded, and of which session."""
    shows: bool
    """Whether the session's model is told what the answer says."""


def heard(event: object, agent: str, entrypoint: str, now_ms: int) -> Heard | None:
    """What the event says; None for one of no concern. Raises `ValueError` for what is no event, `InvalidArgument`.

    `entrypoint` is how Claude Code says that it was started: `cli`, `sdk-py`, ...
    """
    name, thread_id = (_text(event, "hook_event_name"), _text(event, "session_id")) if isinstance(event, dict) else ("", "")
    if not isinstance(event, dict) or not name or not thread_id:
        raise ValueError("a hook event is a JSON object with hook_event_name and session_id")
    session = _address(canonical_agent_id(agent), thread_id)
    reports = reports_of(event, session, entrypoint, now_ms)
    shows = name in SHOWING and not is_of_subagent(event)
    return Heard(name, session, reports, shows) if reports or shows else None


def answer(said: Heard, pending: Sequence[Cursor], database: str, language: Language) -> tuple[str, list[Cursor]]:
    """The answer to an event, and which of the pending notices it tells: as many as fit."""
    lines = fitting([_line(cursor, database, language) for cursor in pending])
    context = {"hookEventName": said.event, "additionalContext": "\n".join(lines)}
    return json.dumps({"hookSpecificOutput": context}), list(pending[: len(lines)])


def fitting(lines: Sequence[str]) -> list[str]:
    """As many of the first lines as an answer holds."""
    lengths = itertools.accumulate(map(len, lines))
    return [line for line, length in zip(lines, lengths, strict=True) if length <= CONTEXT_MAX]


def fact(target: Address, since: int, version: int, language: Language, command: str | None = None) -> str:
    """What a notice tells, as a fact; how to learn more is the session's tool, and the shell's `command` if it has one."""
    key, agent = target
    call = f'session_status sessionKey "{key}"' + ("" if is_qualified(key) else f' agentId "{agent}"') + f" changesSince {since}"
    beside = f"{command} （ツール: {call}）" if language == "ja" else f"{command} (as a tool: {call})"
    form = _JA if language == "ja" else _EN
    return form.format(target=f'"{key}"', since=since, version=version, teller=call if command is None else beside)


def _line(cursor: Cursor, database: str, language: Language) -> str:
    key, agent = cursor.target
    since, version, _ = cursor.positions
    command = ["kizuki", "status", key, *([] if is_qualified(key) else ["--agent", agent]), "--since", str(since), "--db", database]
    return fact(cursor.target, since, version, language, shlex.join(command))


def is_of_subagent(event: Mapping[str, object]) -> bool:
    """Whether the event comes from within a sub-agent; those of its start and its end do, too."""
    return bool(_text(event, "agent_id"))


def reports_of(event: Mapping[str, object], session: Address, entrypoint: str, now_ms: int) -> tuple[tuple[Address, Report], ...]:
    """What is to be recorded of an event in `session`, and of which session: itself, or one of its sub-agents."""
    match _text(event, "hook_event_name"):
        case "UserPromptSubmit" if _is_typed(event, entrypoint):
            return ((session, HumanTurn(CATALOG, None, None, now_ms, None, 1)),)
        case "PreCompact" if not is_of_subagent(event):
            return ((session, Compacted(f"hook:{now_ms}")),)
        case "SubagentStart" if child := _child_thread(event):
            return ((_address(session.agent_id, child), Spawned(*session, child, None)),)
        case "SubagentStop" if child := _child_thread(event):
            return ((_address(session.agent_id, child), RunEnded(child, "ok")),)
        case _:
            return ()


def _is_typed(event: Mapping[str, object], entrypoint: str) -> bool:
    """Whether a person wrote the prompt, as far as that can be told."""
    prompt = _text(event, "prompt").lstrip()
    by_a_person = event.get("source") in (None, "user") and not entrypoint.startswith(PROGRAMS) and not is_of_subagent(event)
    return by_a_person and bool(prompt) and not prompt.startswith(MACHINE_TEXTS)


def _child_thread(event: Mapping[str, object]) -> str:
    """The thread id of a sub-agent: the name of its transcript."""
    transcript, agent_id = _text(event, "agent_transcript_path"), _text(event, "agent_id")
    name = PurePath(transcript).stem if transcript else agent_id and f"agent-{agent_id.removeprefix('agent-')}"
    return one_line(name, "agent_id") if name else ""


def _address(agent: str, thread_id: str) -> Address:
    return parse_address(thread_key(agent, CATALOG, HOST, thread_id))


def _text(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
