"""The formats that are kept as one file for each thread: where a tool keeps them, what their names say, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...identifiers import is_one_line
from ..files.compressed import SUFFIX as COMPRESSED
from ..files.walking import files_below, first_row
from . import claude, codex, gemini, pi
from .fields import identity_in, object_of, text_of
from .tables import Reader

Environment = Mapping[str, str]
"""Environment variables: an empty one counts as not set."""


class CannotFollow(Exception):
    """The thread is there, and cannot be followed."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a transcript says of its thread."""

    thread_id: str
    title: str | None = None
    parent_thread_id: str | None = None
    refused: str | None = None
    """Why it cannot be followed, if so."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format. All that takes paths may block on the file system, and raises its `OSError`."""

    name: str
    roots: Callable[[Environment, Path], tuple[Path, ...]]
    """The folders with all transcripts, by the environment and the person's home folder."""
    transcripts: Callable[[Path], Iterator[Path]]
    """Every transcript below a root."""
    thread_id: Callable[[Path], str | None]
    """Of the thread that a transcript belongs to, as cheaply as can be."""
    describe: Callable[[Path], Described | None]
    reader: Callable[[Path, int | None], Reader]
    """For a transcript and the time of its adoption, None where all of it is of interest."""
    children: Callable[[Path, str], Iterable[str]]
    """The ids of the threads of a transcript's sub-agents, as far as they are files beside it."""
    moves: bool = False
    """Whether the tool itself puts a copy of a transcript in its place, as it does when it compresses and expands it."""


def _folder(environment: Environment, name: str, default: Path) -> Path:
    value = environment.get(name, "")
    return Path(value).expanduser() if value else default


def _claude_roots(environment: Environment, home: Path) -> tuple[Path, ...]:
    return (_folder(environment, "CLAUDE_CONFIG_DIR", home / ".claude") / "projects",)


def _claude_transcripts(root: Path) -> Iterator[Path]:
    """A project's folder holds the sessions, and for each a folder with those of its sub-agents."""
    return (path for path in files_below(root, 6) if path.suffix == ".jsonl" and _is_claude_depth(path.relative_to(root)))


def _is_claude_depth(path: Path) -> bool:
    return len(path.parts) == 2 or claude.is_subagent_path(path)


def _claude_describe(path: Path) -> Described | None:
    parts = path.parts
    if not claude.is_subagent_path(path):
        return Described(path.stem, title=path.parent.name)
    at = parts.index("subagents", len(parts) - parts[::-1].index("subagents") - 1)
    return Described(path.stem, title=parts[at - 2], parent_thread_id=parts[at - 1])


def _claude_children(path: Path, _: str) -> Iterator[str]:
    below = files_below(path.with_suffix("") / "subagents", 4)
    return (file.stem for file in below if file.suffix == ".jsonl" and file.name.startswith("agent-") and is_one_line(file.stem))


def _claude_reader(path: Path, adopted_at_ms: int | None) -> Reader:
    return claude.TranscriptReader(adopted_at_ms=adopted_at_ms, subagent_file=claude.is_subagent_path(path))


_rollout = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?-(.+)\.jsonl(?:\.zst)?", re.DOTALL)


def _codex_roots(environment: Environment, home: Path) -> tuple[Path, ...]:
    folder = _folder(environment, "CODEX_HOME", home / ".codex")
    return (folder / "sessions", folder / "archived_sessions")


def _codex_transcripts(root: Path) -> Iterator[Path]:
    """A rollout that is just being compressed is there twice, and then the plain one is it."""
    found = [path for path in files_below(root, 4) if _rollout.fullmatch(path.name)]
    plain = {path for path in found if path.suffix != COMPRESSED}
    return (path for path in found if path in plain or path.with_suffix("") not in plain)


def _codex_thread_id(path: Path) -> str | None:
    match = _rollout.fullmatch(path.name)
    return match[1] if match else None


def _codex_describe(path: Path) -> Described | None:
    thread_id = _codex_thread_id(path)
    if thread_id is None or path.suffix == COMPRESSED:
        return Described(thread_id) if thread_id else None
    payload = object_of(first_row(path), "payload")
    spawn = object_of(object_of(object_of(payload, "source"), "subagent"), "thread_spawn")
    parent = identity_in(payload, "parent_thread_id") or identity_in(spawn, "parent_thread_id")
    return Described(thread_id, text_of(payload, "cwd") or None, parent)


def _codex_reader(_: Path, adopted_at_ms: int | None) -> Reader:
    return codex.TranscriptReader(adopted_at_ms=adopted_at_ms)


def _pi_roots(environment: Environment, home: Path) -> tuple[Path, ...]:
    folder = _folder(environment, "PI_CODING_AGENT_DIR", home / ".pi" / "agent")
    return (_folder(environment, "PI_CODING_AGENT_SESSION_DIR", folder / "sessions"),)


def _pi_transcripts(root: Path) -> Iterator[Path]:
    return (path for path in files_below(root, 2) if path.suffix == ".jsonl" and "_" in path.stem)


def _pi_thread_id(path: Path) -> str | None:
    return path.stem.rpartition("_")[2] or None


def _pi_describe(path: Path) -> Described | None:
    thread_id, header = _pi_thread_id(path), first_row(path)
    if thread_id is None:
        return None
    followed = header.get("version") == pi.VERSION
    refused = None if followed else "its file is of an older version, which is written anew when the session is continued"
    return Described(thread_id, text_of(header, "cwd") or None, refused=refused)


def _pi_reader(_: Path, adopted_at_ms: int | None) -> Reader:
    return pi.TranscriptReader(adopted_at_ms=adopted_at_ms)


def _gemini_roots(environment: Environment, home: Path) -> tuple[Path, ...]:
    return (_folder(environment, "GEMINI_CLI_HOME", home) / ".gemini" / "tmp",)


def _gemini_transcripts(root: Path) -> Iterator[Path]:
    """A project's folder holds `chats`, with the sessions and for each a folder with those of its sub-agents."""
    return (path for path in files_below(root, 4) if path.suffix == ".jsonl" and _is_gemini_place(path.relative_to(root)))


def _is_gemini_place(path: Path) -> bool:
    main = len(path.parts) == 3 and path.name.startswith("session-")
    return path.parts[1:2] == (gemini.CHATS_FOLDER,) and (main or len(path.parts) == 4)


def _gemini_thread_id(path: Path) -> str | None:
    """The name holds the beginning of the id only."""
    return identity_in(first_row(path), "sessionId")


def _gemini_describe(path: Path) -> Described | None:
    thread_id = _gemini_thread_id(path)
    if thread_id is None:
        return None
    if gemini.is_subagent_path(path):
        return Described(thread_id, path.parents[2].name, parent_thread_id=path.parent.name)
    return Described(thread_id, path.parents[1].name)


def _gemini_children(path: Path, thread_id: str) -> Iterator[str]:
    if gemini.is_subagent_path(path):
        return iter(())
    return (file.stem for file in files_below(path.parent / thread_id, 1) if file.suffix == ".jsonl" and is_one_line(file.stem))


def _gemini_reader(path: Path, adopted_at_ms: int | None) -> Reader:
    return gemini.TranscriptReader(adopted_at_ms=adopted_at_ms, subagent_file=gemini.is_subagent_path(path))


def _stem(path: Path) -> str | None:
    return path.stem


def _no_children(_path: Path, _thread_id: str) -> Iterable[str]:
    return ()


CLAUDE = Format(claude.CATALOG, _claude_roots, _claude_transcripts, _stem, _claude_describe, _claude_reader, _claude_children)
CODEX = Format(codex.CATALOG, _codex_roots, _codex_transcripts, _codex_thread_id, _codex_describe, _codex_reader, _no_children, moves=True)
PI = Format(pi.CATALOG, _pi_roots, _pi_transcripts, _pi_thread_id, _pi_describe, _pi_reader, _no_children)
GEMINI = Format(gemini.CATALOG, _gemini_roots, _gemini_transcripts, _gemini_thread_id, _gemini_describe, _gemini_reader, _gemini_children)
FORMATS: tuple[Format, ...] = (CLAUDE, CODEX, PI, GEMINI)
