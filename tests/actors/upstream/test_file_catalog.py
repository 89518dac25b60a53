"""Catalogs of transcripts: discovering, linking, checking, on real folders."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from kizuki.actors.upstream.answers import outcomes_of
from kizuki.actors.upstream.catalog import (
    Activity,
    Catalog,
    Discovered,
    Failed,
    Happening,
    Missing,
    Nothing,
    Outcome,
    Probe,
    ThreadNotFound,
)
from kizuki.actors.upstream.files import compressed
from kizuki.actors.upstream.files.catalog import CatalogBusy, FileCatalog
from kizuki.actors.upstream.files.check import end_of
from kizuki.actors.upstream.files.follower import Follower, Marker, Scan
from kizuki.actors.upstream.files.marker import FileMarker
from kizuki.actors.upstream.formats.formats import CLAUDE, CODEX, GEMINI, PI, CannotFollow
from kizuki.actors.upstream.installed import installed_catalogs
from kizuki.storage.records import Address

NOON = "2026-11-02T12:00:00.000Z"
NOON_MS = 1_793_620_800_000


def claude_row(identity: str, text: str = "rename", **fields: object) -> bytes:
    row = {"type": "user", "uuid": identity, "timestamp": NOON, "message": {"role": "user", "content": text}, **fields}
    return json.dumps(row).encode() + b"\n"


def typed(identity: str) -> bytes:
    return claude_row(identity, origin={"kind": "human"})


def codex_row(text: str = "rename", kind: str = "user_message") -> bytes:
    return json.dumps({"timestamp": NOON, "type": "event_msg", "payload": {"type": kind, "message": text}}).encode() + b"\n"


CODEX_HEADER = json.dumps({"timestamp": NOON, "type": "session_meta", "payload": {"id": "t-1", "cwd": "/w"}}).encode() + b"\n"


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def placed(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def moved(path: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return path.rename(target)


@pytest.fixture
def claude(tmp_path: Path) -> FileCatalog:
    return FileCatalog(CLAUDE, [tmp_path / "projects"])


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return placed(tmp_path / "projects" / "-w" / "s-1.jsonl", typed("0"))


@pytest.fixture
def codex(tmp_path: Path) -> FileCatalog:
    return FileCatalog(CODEX, CODEX.roots({"CODEX_HOME": str(tmp_path)}, tmp_path))


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    return placed(tmp_path / "sessions" / "2026" / "11" / "02" / "rollout-2026-11-02T12-00-00-t-1.jsonl", CODEX_HEADER + codex_row())


async def adopted(catalog: Catalog, thread_id: str, key: str = "agent:main:a") -> Probe:
    start = await catalog.link(thread_id, "local")
    marker = json.loads(json.dumps(dict(start.marker)))
    return Probe(Address(key, "main"), thread_id, "local", start.source, marker, adopted_at_ms=NOON_MS)


async def checked(catalog: Catalog, probe: Probe) -> Outcome:
    (outcome,) = await catalog.check([probe])
    return outcome


async def active(catalog: Catalog, probe: Probe) -> tuple[Activity, Probe]:
    """What a check found, and the link with the marker that was stored for it."""
    outcome = await checked(catalog, probe)
    assert isinstance(outcome, Activity), outcome
    return outcome, after(probe, outcome)


def after(probe: Probe, outcome: Activity | Nothing) -> Probe:
    marker = probe.marker if outcome.marker is None else json.loads(json.dumps(dict(outcome.marker)))
    return replace(probe, marker=marker)


async def test_link_starts_at_the_end(claude: FileCatalog, session: Path) -> None:
    """Rule 7.1: a link starts behind the last complete row, before one that is half written."""
    half = typed("half")
    append(session, half[:20])
    probe = await adopted(claude, "s-1")
    assert probe.source == str(session)
    assert await checked(claude, probe) == Nothing()
    append(session, half[20:])
    assert (await active(claude, probe))[0].human_turns == 1


async def test_unknown_threads(claude: FileCatalog, session: Path) -> None:
    """A thread that is not there, or is on another host, is not found; the error says where was looked."""
    with pytest.raises(ThreadNotFound, match="projects"):
        await claude.link("s-2", "local")
    with pytest.raises(ThreadNotFound, match="elsewhere"):
        await claude.link("s-1", "elsewhere")


async def test_turns_are_found_once(claude: FileCatalog, session: Path) -> None:
    """Rule 7.4: turns count once the marker is stored, and again as long as it is not."""
    probe = await adopted(claude, "s-1")
    append(session, typed("1") + claude_row("2", isMeta=True) + typed("3"))
    first, second = await checked(claude, probe), await checked(claude, probe)
    assert first == second
    assert isinstance(first, Activity)
    assert (first.human_turns, first.occurred_at_ms, first.more, first.restarted) == (2, NOON_MS, False, None)
    assert await checked(claude, after(probe, first)) == Nothing()
    append(session, typed("4"))
    assert (await active(claude, after(probe, first)))[0].human_turns == 1


async def test_rows_that_do_not_count_move_the_marker(claude: FileCatalog, session: Path) -> None:
    """What holds no turn is not read again once the marker that was given back is stored."""
    probe = await adopted(claude, "s-1")
    append(session, claude_row("1", isMeta=True))
    outcome = await checked(claude, probe)
    assert isinstance(outcome, Nothing)
    assert outcome.marker is not None
    read = claude.bytes_read
    assert await checked(claude, after(probe, outcome)) == Nothing()
    assert claude.bytes_read == read


async def test_another_process_goes_on(claude: FileCatalog, session: Path, tmp_path: Path) -> None:
    """A catalog that has just been made goes on from the marker, with what the file said before it."""
    probe = await adopted(claude, "s-1")
    append(session, typed("1"))
    _, probe = await active(claude, probe)
    append(session, typed("1") + claude_row("2", "echo of a new file") + typed("3"))
    again = FileCatalog(CLAUDE, [tmp_path / "projects"])
    assert (await active(again, probe))[0].human_turns == 1


async def test_slash_command_over_a_restart(claude: FileCatalog, tmp_path: Path) -> None:
    """A command of an old file that waits for its expansion is found by a catalog that has just been made, once."""
    session = placed(tmp_path / "projects" / "-w" / "s-1.jsonl")
    probe = await adopted(claude, "s-1")
    append(session, claude_row("c", "<command-name>/review</command-name>"))
    outcome = await checked(claude, probe)
    assert isinstance(outcome, Nothing)
    append(session, claude_row("e", "Review the code", isMeta=True, parentUuid="c"))
    for catalog in (claude, FileCatalog(CLAUDE, [tmp_path / "projects"])):
        assert (await active(catalog, after(probe, outcome)))[0].human_turns == 1


async def test_time_of_the_file(claude: FileCatalog, session: Path) -> None:
    """A turn without a time of its own was when the file was modified, in whole milliseconds."""
    probe = await adopted(claude, "s-1")
    append(session, claude_row("1", origin={"kind": "human"}, timestamp=None))
    os.utime(session, ns=(0, (NOON_MS + 5) * 1_000_000 + 999_999))
    assert (await active(claude, probe))[0].occurred_at_ms == NOON_MS + 5


async def test_bounded_checks(session: Path, tmp_path: Path) -> None:
    """A backlog takes several checks of a bounded number of bytes, in order, and nothing is lost."""
    catalog = FileCatalog(CLAUDE, [tmp_path / "projects"], probe_max_bytes=1_000)
    probe, turns, more = await adopted(catalog, "s-1"), 0, True
    append(session, b"".join(typed(str(n)) for n in range(1, 101)))
    while more:
        before = catalog.bytes_read
        outcome, probe = await active(catalog, probe)
        assert catalog.bytes_read - before <= 1_000
        turns, more = turns + outcome.human_turns, outcome.more
    assert turns == 100


async def test_one_bound_for_all(tmp_path: Path) -> None:
    """What the bound of one check leaves out is first in the next: nobody starves."""
    catalog = FileCatalog(CLAUDE, [tmp_path / "projects"], check_max_bytes=500)
    paths = [placed(tmp_path / "projects" / "-w" / f"s-{n}.jsonl", typed("0")) for n in range(6)]
    probes = [await adopted(catalog, f"s-{n}", f"agent:main:{n}") for n in range(6)]
    seen = set()
    for round_number in range(6):
        for path in paths[:3]:
            append(path, typed(f"r{round_number}") * 2)
        append(paths[5], typed(f"r{round_number}"))
        for n, outcome in enumerate(await catalog.check(probes)):
            assert not isinstance(outcome, Failed)
            if isinstance(outcome, Activity):
                seen.add(n)
                probes[n] = after(probes[n], outcome)
    assert seen == {0, 1, 2, 5}


async def test_restarts(claude: FileCatalog, session: Path) -> None:
    """Rule 7.7: a replaced, shorter or rewritten file is told, and followed anew from its end, as a new generation."""
    probe = await adopted(claude, "s-1")
    moved(session, session.with_name("old"))
    placed(session, typed("a") + typed("b"))
    outcome, probe = await active(claude, probe)
    assert (outcome.restarted, outcome.human_turns) == ("replaced", 0)
    append(session, typed("c"))
    outcome, probe = await active(claude, probe)
    assert (outcome.restarted, outcome.human_turns) == (None, 1)
    placed(session, typed("d"))
    outcome, probe = await active(claude, probe)
    assert outcome.restarted == "truncated"
    placed(session, typed("e") * 5)
    assert (await active(claude, probe))[0].restarted == "rewritten"


async def test_missing(claude: FileCatalog, session: Path) -> None:
    """Rule 7.6: a transcript that is gone is missing, and is there again when it is there again."""
    probe = await adopted(claude, "s-1")
    moved(session, session.with_suffix(".gone"))
    assert await checked(claude, probe) == Missing()
    moved(session.parent, session.parent.with_name("aside"))
    assert await checked(claude, probe) == Missing()
    placed(session, typed("0"))
    outcome = await checked(claude, probe)
    assert isinstance(outcome, Activity)
    assert outcome.restarted == "replaced"


async def test_only_a_definite_not_found_is_missing(claude: FileCatalog, session: Path, tmp_path: Path) -> None:
    """Rule 7.6: where the tool's whole folder is not there, or cannot be looked into, nothing is known to be missing."""
    probe = await adopted(claude, "s-1")
    (tmp_path / "projects").rename(tmp_path / "unmounted")
    assert isinstance(await checked(claude, probe), Failed)
    placed(tmp_path / "projects", b"a file in the folder's place")
    assert isinstance(await checked(claude, probe), Failed)


async def test_moved_transcript(claude: FileCatalog, session: Path, tmp_path: Path) -> None:
    """A transcript whose project was renamed is followed where it is now, and loses nothing."""
    probe = await adopted(claude, "s-1")
    append(session, typed("1"))
    session.parent.rename(tmp_path / "projects" / "-renamed")
    outcome, probe = await active(claude, probe)
    assert (outcome.human_turns, outcome.restarted) == (1, None)
    append(tmp_path / "projects" / "-renamed" / "s-1.jsonl", typed("2"))
    for catalog in (claude, FileCatalog(CLAUDE, [tmp_path / "projects"])):
        assert (await active(catalog, probe))[0].human_turns == 1


async def test_failures_are_confined(claude: FileCatalog, session: Path, tmp_path: Path) -> None:
    """A probe that cannot be checked fails alone: a wrong marker, a folder in the file's place."""
    folder = placed(tmp_path / "projects" / "-w" / "s-2.jsonl", typed("0"))
    probe, other = await adopted(claude, "s-1"), await adopted(claude, "s-2")
    append(session, typed("1"))
    folder.unlink()
    folder.mkdir()
    file = probe.marker["file"]
    wrong: list[dict[str, object]] = [{}, {"file": {}, "children": []}, {"file": file, "children": 7}, {"file": file, "children": [1]}]
    outcomes = await claude.check([*(replace(probe, marker=marker) for marker in wrong), other, probe])
    assert [type(outcome) for outcome in outcomes] == [Failed] * 5 + [Activity]


async def test_one_thread_for_several_keys(claude: FileCatalog, session: Path) -> None:
    """Rule 7.8: a thread that is adopted under several keys is scanned for each, with its own marker."""
    one = await adopted(claude, "s-1", "agent:main:a")
    append(session, typed("1"))
    two = await adopted(claude, "s-1", "agent:main:b")
    append(session, typed("2"))
    outcomes = await claude.check([one, two])
    assert [outcome.human_turns for outcome in outcomes if isinstance(outcome, Activity)] == [2, 1]


async def test_own_echo(claude: FileCatalog, tmp_path: Path) -> None:
    """Rule 7.5: rows of the host's own texts count for nobody, and the ids accounted for are given back."""
    session = placed(tmp_path / "projects" / "-w" / "s-1.jsonl")
    probe = await adopted(claude, "s-1")
    append(session, claude_row("1", "rename") + claude_row("2", "mine") + claude_row("3", "rename "))
    outcome, _ = await active(claude, replace(probe, own_texts=(("t1", "other"), ("t2", "rename"))))
    assert (outcome.human_turns, outcome.accounted_ids) == (2, ("t2",))
    all_own = (("t1", "mine"), ("t2", "rename"), ("t3", "rename"))
    outcome, _ = await active(claude, replace(probe, own_texts=all_own))
    assert (outcome.human_turns, outcome.occurred_at_ms, outcome.accounted_ids) == (0, None, ("t2", "t1", "t3"))
    outcome, _ = await active(claude, replace(probe, own_texts=all_own, accounted_ids=frozenset({"t2"})))
    assert (outcome.human_turns, outcome.accounted_ids) == (1, ("t3", "t1"))


async def test_compactions_are_told(claude: FileCatalog, session: Path, codex: FileCatalog, rollout: Path) -> None:
    """A compaction is named by its row's id, or by the row's place in its file."""
    probe, other = await adopted(claude, "s-1"), await adopted(codex, "t-1")
    append(session, claude_row("c", type="system", subtype="compact_boundary"))
    append(rollout, codex_row(kind="context_compacted"))
    assert (await active(claude, probe))[0].happenings == (Happening("compacted", "c", NOON_MS),)
    outcome, _ = await active(codex, other)
    place = f"{other.marker['file']['inode']}:{len(CODEX_HEADER + codex_row())}:0"  # type: ignore[index]
    assert outcome.happenings == (Happening("compacted", place, NOON_MS),)


@pytest.mark.parametrize("odd", ["\ud800", "a\nb", " ", "\u202e", "x" * 513])
async def test_odd_ids_hide_nothing(claude: FileCatalog, session: Path, codex: FileCatalog, rollout: Path, odd: str) -> None:
    """Rule 7.7: a row with an id that can name nothing does not keep what follows it from being found."""
    probe, other = await adopted(claude, "s-1"), await adopted(codex, "t-1")
    append(session, claude_row(odd, type="system", subtype="compact_boundary") + typed("1"))
    spawned = {"type": "collab_agent_spawn_end", "new_thread_id": odd}
    append(rollout, json.dumps({"timestamp": NOON, "type": "event_msg", "payload": spawned}).encode() + b"\n" + codex_row("again"))
    for catalog, link, kinds in ((claude, probe, ["compacted"]), (codex, other, [])):
        (outcome,) = outcomes_of(await catalog.check([link]), 1)
        assert isinstance(outcome, Activity), outcome
        assert (outcome.human_turns, [happening.kind for happening in outcome.happenings]) == (1, kinds)


async def test_odd_names_of_children(claude: FileCatalog, session: Path) -> None:
    """Rule 7.7: a sub-agent's file that is named oddly does not keep the session from being followed."""
    probe = await adopted(claude, "s-1")
    placed(session.with_suffix("") / "subagents" / "agent-a\nb.jsonl")
    append(session, typed("1"))
    (outcome,) = outcomes_of(await claude.check([probe]), 1)
    assert isinstance(outcome, Activity), outcome
    assert (outcome.human_turns, outcome.happenings) == (1, ())


async def test_claude_children(claude: FileCatalog, session: Path) -> None:
    """The file of a sub-agent that was not there at the last check is a child, once; those from before the link are none."""
    folder = session.with_suffix("") / "subagents"
    placed(folder / "agent-0.jsonl")
    probe = await adopted(claude, "s-1")
    assert await checked(claude, probe) == Nothing()
    placed(folder / "deep" / "agent-1.jsonl")
    placed(folder / "agent-1.meta.json")
    outcome, probe = await active(claude, probe)
    assert (outcome.human_turns, outcome.happenings) == (0, (Happening("child_spawned", "agent-1", None),))
    assert await checked(claude, probe) == Nothing()
    listed = {thread.thread_id: thread.parent_thread_id for thread in await claude.list()}
    assert listed == {"s-1": None, "agent-0": "s-1", "agent-1": "s-1"}


async def test_claude_subagents_hold_no_turn(claude: FileCatalog, session: Path) -> None:
    """A sub-agent's transcript can be adopted, and holds no human turn."""
    path = placed(session.with_suffix("") / "subagents" / "agent-0.jsonl")
    probe = await adopted(claude, "agent-0")
    append(path, typed("1"))
    assert isinstance(await checked(claude, probe), Nothing)


async def test_gemini(tmp_path: Path) -> None:
    """Gemini's threads are named inside their files, and their sub-agents lie beside them."""
    catalog = FileCatalog(GEMINI, GEMINI.roots({"GEMINI_CLI_HOME": str(tmp_path)}, Path("/nowhere")))
    chats = tmp_path / ".gemini" / "tmp" / "project" / "chats"
    header = {"sessionId": "abcdefgh-1", "projectHash": "h", "kind": "main"}
    path = placed(chats / "session-2026-11-02T12-00-abcdefgh.jsonl", json.dumps(header).encode() + b"\n")
    placed(chats / "session-old.json", b"{}")
    placed(chats.parent / "logs.jsonl", b'{"sessionId":"no"}\n')
    probe = await adopted(catalog, "abcdefgh-1")
    append(path, json.dumps({"id": "1", "timestamp": NOON, "type": "user", "content": "rename"}).encode() + b"\n")
    placed(chats / "abcdefgh-1" / "child-1.jsonl", json.dumps({**header, "sessionId": "child-1", "kind": "subagent"}).encode() + b"\n")
    outcome, _ = await active(catalog, probe)
    assert (outcome.human_turns, outcome.happenings) == (1, (Happening("child_spawned", "child-1", None),))
    listed = {thread.thread_id: (thread.parent_thread_id, thread.title) for thread in await catalog.list()}
    assert listed == {"abcdefgh-1": (None, "project"), "child-1": ("abcdefgh-1", "project")}


async def test_pi(tmp_path: Path) -> None:
    """Pi's sessions of version 3 are followed; older ones are not offered, and refused with the reason."""
    catalog = FileCatalog(PI, PI.roots({"PI_CODING_AGENT_DIR": str(tmp_path)}, Path("/nowhere")))
    folder = tmp_path / "sessions" / "--w--"
    path = placed(folder / "2026-11-02T12-00-00-000Z_p-1.jsonl", b'{"type":"session","version":3,"id":"p-1","cwd":"/w"}\n')
    placed(folder / "2026-11-02T12-00-00-000Z_p-2.jsonl", b'{"type":"session","id":"p-2"}\n')
    assert [(thread.thread_id, thread.title) for thread in await catalog.list()] == [("p-1", "/w")]
    with pytest.raises(CannotFollow, match="older version"):
        await catalog.link("p-2", "local")
    probe = await adopted(catalog, "p-1")
    row = {"type": "message", "id": "1", "timestamp": NOON, "message": {"role": "user", "content": "x"}}
    append(path, json.dumps(row).encode() + b"\n")
    assert (await active(catalog, probe))[0].human_turns == 1


async def test_discovery_is_newest_first(claude: FileCatalog, session: Path, tmp_path: Path) -> None:
    """All threads are listed, the newest first, with what is known of them; other files are none."""
    newer = placed(tmp_path / "projects" / "-x" / "s-2.jsonl", typed("0"))
    placed(tmp_path / "projects" / "-x" / "notes.txt")
    placed(tmp_path / "projects" / "stray.jsonl")
    os.utime(session, ns=(0, NOON_MS * 1_000_000))
    os.utime(newer, ns=(0, (NOON_MS + 1) * 1_000_000))
    first, second = await claude.list()
    assert first == Discovered("s-2", "local", str(newer), NOON_MS + 1, "-x")
    assert second.thread_id == "s-1"


async def test_nothing_is_installed(tmp_path: Path) -> None:
    """On a machine without any of the tools every catalog is there and lists nothing."""
    catalogs = installed_catalogs({}, tmp_path)
    assert [catalog.name for catalog in catalogs] == ["claude", "codex", "pi", "gemini", "opencode"]
    assert [list(await catalog.list()) for catalog in catalogs] == [[]] * 5


@pytest.mark.parametrize(
    ("index", "environment", "folder"),
    [
        (0, {}, "home/.claude/projects"),
        (0, {"CLAUDE_CONFIG_DIR": "/c"}, "/c/projects"),
        (0, {"CLAUDE_CONFIG_DIR": ""}, "home/.claude/projects"),
        (1, {}, "home/.codex/sessions"),
        (1, {"CODEX_HOME": "/c"}, "/c/sessions"),
        (2, {}, "home/.pi/agent/sessions"),
        (2, {"PI_CODING_AGENT_DIR": "/c"}, "/c/sessions"),
        (2, {"PI_CODING_AGENT_DIR": "/c", "PI_CODING_AGENT_SESSION_DIR": "/d"}, "/d"),
        (3, {}, "home/.gemini/tmp"),
        (3, {"GEMINI_CLI_HOME": "/c"}, "/c/.gemini/tmp"),
    ],
)
def test_environment(index: int, environment: dict[str, str], folder: str) -> None:
    """Each tool's own variables say where its transcripts are; an empty one says nothing."""
    catalog = installed_catalogs(environment, Path("home"))[index]
    assert isinstance(catalog, FileCatalog)
    assert catalog.roots[0] == Path(folder)


def archive(rollout: Path, tmp_path: Path) -> Path:
    target = tmp_path / "archived_sessions" / rollout.name
    target.parent.mkdir(exist_ok=True)
    return rollout.rename(target)


def compress(path: Path) -> Path:
    target = path.with_name(path.name + ".zst")
    target.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    path.unlink()
    return target


async def test_archived_rollouts_are_not_missing(codex: FileCatalog, rollout: Path, tmp_path: Path) -> None:
    """An archived rollout is followed where it went, and what was written before is found."""
    probe = await adopted(codex, "t-1")
    append(rollout, codex_row("one more"))
    archived = archive(rollout, tmp_path)
    outcome, probe = await active(codex, probe)
    assert (outcome.human_turns, outcome.restarted) == (1, None)
    assert await checked(codex, probe) == Nothing()
    archived.unlink()
    assert await checked(codex, probe) == Missing()


@pytest.mark.parametrize("is_archived", [True, False])
async def test_compressed_rollouts_are_not_missing(codex: FileCatalog, rollout: Path, tmp_path: Path, is_archived: bool) -> None:
    """A compressed rollout is there, is read to its end once, and is followed again when it is expanded."""
    probe = await adopted(codex, "t-1")
    append(rollout, codex_row("one more"))
    small = compress(archive(rollout, tmp_path) if is_archived else rollout)
    outcome, probe = await active(codex, probe)
    assert (outcome.human_turns, outcome.restarted) == (1, None)
    assert [await checked(codex, probe) for _ in range(2)] == [Nothing(), Nothing()]
    placed(rollout, zstandard.ZstdDecompressor().decompressobj().decompress(small.read_bytes()) + codex_row("later"))
    small.unlink()
    outcome, probe = await active(codex, probe)
    assert (outcome.human_turns, outcome.restarted) == (1, None)


async def test_compressed_rollouts_without_the_means(
    codex: FileCatalog, rollout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `zstandard` a compressed rollout is still not missing; adopting it says what is needed."""
    probe = await adopted(codex, "t-1")
    append(rollout, codex_row("one more"))
    compress(archive(rollout, tmp_path))
    monkeypatch.setattr(compressed, "can_expand", lambda: False)
    assert await checked(codex, probe) == Nothing()
    with pytest.raises(CannotFollow, match="zstandard"):
        await codex.link("t-1", "local")
    assert [thread.thread_id for thread in await codex.list()] == ["t-1"]
    monkeypatch.undo()
    assert (await active(codex, probe))[0].human_turns == 1
    assert isinstance(await checked(codex, await adopted(codex, "t-1")), Nothing)


async def test_another_compressed_rollout(codex: FileCatalog, rollout: Path) -> None:
    """Rule 7.7: a compressed file that is no continuation of what was read is told, and one that is damaged fails."""
    probe = await adopted(codex, "t-1")
    placed(rollout, CODEX_HEADER.replace(b"/w", b"/x") + codex_row() * 2)
    small = compress(rollout)
    assert (await active(codex, probe))[0].restarted in ("replaced", "rewritten")
    placed(small, b"(\xb5/\xfd damaged")
    assert isinstance(await checked(codex, probe), Failed)


async def test_plain_rollout_comes_first(codex: FileCatalog, rollout: Path) -> None:
    """While a rollout is being compressed it is there twice: the plain one is it."""
    placed(rollout.with_name(rollout.name + ".zst"), b"half")
    assert [thread.source for thread in await codex.list()] == [str(rollout)]
    probe = await adopted(codex, "t-1")
    append(rollout, codex_row("one more"))
    assert (await active(codex, probe))[0].human_turns == 1


async def test_codex_parents(codex: FileCatalog, rollout: Path) -> None:
    """A sub-agent's rollout names its parent, in one of two places."""
    parent = {"parent_thread_id": "t-1"}
    for name, fields in (("c-1", parent), ("c-2", {"source": {"subagent": {"thread_spawn": parent}}})):
        row = {"type": "session_meta", "payload": {"id": name, **fields}}
        placed(rollout.with_name(f"rollout-2026-11-02T12-00-01-{name}.jsonl"), json.dumps(row).encode() + b"\n")
    assert {thread.thread_id: thread.parent_thread_id for thread in await codex.list()} == {"t-1": None, "c-1": "t-1", "c-2": "t-1"}


async def test_thousand_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 adopted files of which 20 are active a check opens those 20 only, and reads only what was appended to them."""
    catalog = FileCatalog(CLAUDE, [tmp_path / "projects"])
    paths = [placed(tmp_path / "projects" / "-w" / f"s-{n}.jsonl", typed("0") * 20) for n in range(1_000)]
    probes = await asyncio.to_thread(lambda: [linked(path) for path in paths])
    assert await catalog.check(probes) == [Nothing()] * 1_000
    for path in paths[::50]:
        append(path, typed("1") + typed("2"))
    opened, really_open = set[Path](), Path.open

    def noted(path: Path, mode: str) -> object:
        opened.add(path)
        return really_open(path, mode)

    monkeypatch.setattr(Path, "open", noted)
    outcomes = await catalog.check(probes)
    assert catalog.bytes_read == 20 * len(typed("1") + typed("2"))
    assert opened == set(paths[::50])
    assert [isinstance(outcome, Activity) for outcome in outcomes] == [n % 50 == 0 for n in range(1_000)]
    assert sum(outcome.human_turns for outcome in outcomes if isinstance(outcome, Activity)) == 40
    opened.clear()
    probes = [after(probe, stored(outcome)) for probe, outcome in zip(probes, outcomes, strict=True)]
    assert await catalog.check(probes) == [Nothing()] * 1_000
    assert opened == set()


def linked(path: Path) -> Probe:
    marker = FileMarker(end_of(path)).to_json()
    return Probe(Address(f"agent:main:{path.stem}", "main"), path.stem, "local", str(path), marker, adopted_at_ms=NOON_MS)


def stored(outcome: Outcome) -> Activity | Nothing:
    assert isinstance(outcome, Activity | Nothing)
    return outcome


async def test_a_check_that_was_given_up(claude: FileCatalog, session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that hangs blocks no loop; once it is given up it ends early, and until then no other begins."""
    probe, second = await adopted(claude, "s-1"), await adopted(claude, "s-1", "agent:main:b")
    append(session, typed("1"))
    inside, go_on, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    scan = Follower.scan

    def slow(self: Follower, marker: Marker, max_bytes: int) -> Scan:
        loop.call_soon_threadsafe(inside.set)
        go_on.wait(10)
        return scan(self, marker, max_bytes)

    monkeypatch.setattr(Follower, "scan", slow)
    check = asyncio.ensure_future(claude.check([probe, second]))
    await inside.wait()
    with pytest.raises(CatalogBusy):
        await claude.check([probe])
    check.cancel()
    with pytest.raises(asyncio.CancelledError):
        await check
    go_on.set()
    monkeypatch.undo()
    outcome = None
    while outcome is None:
        with suppress(CatalogBusy):
            outcome = await checked(claude, second)
    assert isinstance(outcome, Activity)


async def test_failing_lists(claude: FileCatalog, session: Path) -> None:
    """A folder that cannot be listed is an error of the listing: what is in it is not known."""
    moved(session.parent.parent, session.parent.parent.with_name("aside"))
    placed(session.parent.parent, b"a file")
    with pytest.raises(NotADirectoryError):
        await claude.list()


async def test_odd_names(claude: FileCatalog, session: Path) -> None:
    """A file whose name is no text is left out, and hides no other."""
    (session.parent / os.fsdecode(b"\xff.jsonl")).write_bytes(typed("0"))
    assert [thread.thread_id for thread in await claude.list()] == ["s-1"]
