"""What a node answers, to whom, and what it never touches: real requests to a real server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kizuki.actors.hosting.node.app import node_app
from kizuki.actors.upstream.catalog import Catalog
from kizuki.actors.upstream.files.catalog import FileCatalog
from kizuki.actors.upstream.formats.formats import CLAUDE, GEMINI
from kizuki.actors.upstream.opencode.catalog import OpenCodeCatalog
from kizuki.actors.upstream.remote.wire import NO_THREAD, PROBES_MAX, REQUEST_BYTES_MAX
from tests.hosting.nodes import BOX, NOON_MS, TOKEN, append, row, serving

Post = Callable[..., httpx.Response]

JSON = {"Content-Type": "application/json"}
AUTHORIZED = {**JSON, "Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "projects"


@pytest.fixture
def session(root: Path) -> Path:
    return append(root / "-w" / "s-1.jsonl", row("0", "a secret"))


@pytest.fixture
def url(root: Path, tmp_path: Path) -> Iterator[str]:
    catalogs: list[Catalog] = [
        FileCatalog(CLAUDE, [root]),
        FileCatalog(GEMINI, [tmp_path / "gemini"]),
        OpenCodeCatalog(tmp_path / "opencode.db"),
    ]
    with serving(node_app(catalogs, BOX, TOKEN, names=["box.example"], timeout_s=0.5)) as url:
        yield url


@pytest.fixture
def post(url: str) -> Iterator[Post]:
    """Asks the node a question, as somebody who may."""
    with httpx.Client(base_url=url, trust_env=False) as client:

        def ask(question: str, body: object = None, *, catalog: str = "claude", host: str = BOX, **options: Any) -> httpx.Response:
            content = options.pop("content", None) or json.dumps({} if body is None else body).encode()
            headers = options.pop("headers", AUTHORIZED)
            return client.post(f"/v1/hosts/{host}/catalogs/{catalog}/{question}", content=content, headers=headers, **options)

        yield ask


def probe(post: Post, source: object = None, thread: str = "s-1", **fields: object) -> dict[str, object]:
    """A probe as a gateway that has adopted the thread s-1 sends it, but for what is named."""
    start = post("end", {"thread": "s-1"}).json()
    given = {"sessionKey": "agent:main:a", "agentId": "main", "adoptedAtMs": NOON_MS, "ownDigests": [], "accountedIds": []}
    return given | {"thread": thread, "source": str(source or start["source"]), "marker": start["marker"]} | fields


def read(post: Post, *probes: dict[str, object], catalog: str = "claude") -> list[dict[str, Any]]:
    answered = post("read", {"probes": probes}, catalog=catalog)
    assert answered.status_code == 200, answered.text
    outcomes: list[dict[str, Any]] = answered.json()["outcomes"]
    return outcomes


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer", f"Bearer {TOKEN[:-1]}", "Bearer \xe9"]
)
def test_token(post: Post, session: Path, given: str | None) -> None:
    """Without the very token there is no answer, and what is said of the refusal holds neither token."""
    headers = httpx.Headers(JSON if given is None else {**JSON, "Authorization": given.encode("latin-1")})  # type: ignore[arg-type]
    refused = post("threads", {"limit": 10}, headers=headers)
    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert TOKEN not in refused.text
    assert "s-1" not in refused.text


def test_no_token(root: Path, session: Path) -> None:
    """A node that was started without a token asks for none."""
    with serving(node_app([FileCatalog(CLAUDE, [root])], BOX, None)) as url:
        answered = httpx.post(f"{url}/v1/hosts/box/catalogs/claude/threads", json={"limit": 1}, trust_env=False)
    assert [thread["thread"] for thread in answered.json()["threads"]] == ["s-1"]


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("127.0.0.1:9", 200),
        ("localhost", 200),
        ("LocalHost:8000", 200),
        ("[::1]:8000", 200),
        ("192.0.2.7", 200),
        ("box.example:7433", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:80", 421),
        ("[evil.example]", 421),
        ("", 421),
    ],
)
def test_host_header(post: Post, name: str, status: int) -> None:
    """A node answers under an address, as localhost, or under a name that was allowed: a page that was rebound to it has another."""
    assert post("threads", {"limit": 1}, headers={**AUTHORIZED, "Host": name}).status_code == status


def test_what_a_page_can_send_unasked(post: Post) -> None:
    """What a browser sends to other origins without asking first is refused: forms and plain text."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert post("threads", {"limit": 1}, headers={**AUTHORIZED, "Content-Type": kind}).status_code == 415


def test_wrong_questions(post: Post, session: Path) -> None:
    """What is no question is answered by an error that never says that a thread is not there."""
    wrong = [
        (post("threads", {"limit": 10}, host="other"), 421),
        (post("threads", {"limit": 10}, catalog="nothing"), 404),
        (post("write", {}), 404),
        (post("threads", {}), 400),
        (post("threads", {"limit": 0}), 400),
        (post("threads", {"limit": 501}), 400),
        (post("threads", {"limit": True}), 400),
        (post("threads", {"limit": 10, "after": 7}), 400),
        (post("end", {"thread": 7}), 400),
        (post("read", {"probes": 7}), 400),
        (post("read", {"probes": [7]}), 400),
        (post("read", {"probes": [probe(post, ownDigests=[["1"]])]}), 400),
        (post("read", {"probes": [probe(post, accountedIds=[1])]}), 400),
        (post("read", {"probes": [probe(post)] * (PROBES_MAX + 1)}), 400),
        (post("read", content=b"{"), 400),
        (post("read", content=b"[]"), 400),
        (post("read", content=b"[" * 100_000), 400),
        (post("read", content=b" " * (REQUEST_BYTES_MAX + 1)), 413),
    ]
    assert [answered.status_code for answered, _ in wrong] == [status for _, status in wrong]
    assert not any(answered.json().get("reason") for answered, _ in wrong)


def test_only_questions(url: str) -> None:
    """Nothing but a POST is answered."""
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        asked = httpx.request(method, f"{url}/v1/hosts/box/catalogs/claude/threads", headers=AUTHORIZED, trust_env=False)
        assert asked.status_code == 405


def test_thread_that_is_not_there(post: Post, session: Path) -> None:
    """Rule 7.6: that a node has looked and there is no such thread is said by a reason, not by the status alone."""
    answered = post("end", {"thread": "s-2"})
    assert (answered.status_code, answered.json()["reason"]) == (404, NO_THREAD)


def test_ids_are_no_paths(post: Post, root: Path, session: Path, tmp_path: Path) -> None:
    """A thread is looked up by its id: no id leads out of the folders."""
    outside = append(tmp_path / "outside.jsonl", row("0"))
    for name in ("../outside", "../../outside", str(outside), str(outside.with_suffix("")), "-w/s-1", ".", "", "s-1\0"):
        assert post("end", {"thread": name}).status_code == 404


def test_sources_are_not_believed(post: Post, root: Path, session: Path, tmp_path: Path) -> None:
    """A source that is outside of the folders, leads out of them, or is another thread's is not looked at, and nothing is said of it."""
    outside = append(tmp_path / "s-1.jsonl", row("0"))
    other = append(root / "-w" / "s-2.jsonl", row("0"))
    asked, link = probe(post), root / "-linked"
    link.symlink_to(tmp_path, target_is_directory=True)
    above, through = f"{root}/../s-1.jsonl", root / "-w" / ".." / ".." / "s-1.jsonl"
    sources = [outside, above, through, link / "s-1.jsonl", other, "s-1.jsonl", "/etc/passwd", "\0"]
    probes = [{**asked, "source": str(source)} for source in sources]
    outcomes = read(post, *probes)
    assert [outcome["type"] for outcome in outcomes] == ["failed"] * len(sources)
    assert len({outcome["reason"] for outcome in outcomes}) == 1
    outside.unlink()
    assert read(post, *probes) == outcomes


def test_links_that_lead_out(post: Post, root: Path, session: Path, tmp_path: Path) -> None:
    """A transcript that lies elsewhere is neither listed nor begun with, though a link in the folders leads to it."""
    (root / "-w" / "s-3.jsonl").symlink_to(append(tmp_path / "elsewhere.jsonl", row("0")))
    assert [thread["thread"] for thread in post("threads", {"limit": 10}).json()["threads"]] == ["s-1"]
    assert post("end", {"thread": "s-3"}).json()["reason"] == NO_THREAD


def test_ids_inside_of_transcripts(post: Post, tmp_path: Path) -> None:
    """Where the id stands in the transcript it is read there: a source and an id that do not belong together give nothing."""
    chats = tmp_path / "gemini" / "project" / "chats"
    header = json.dumps({"sessionId": "g-1", "kind": "main"}).encode() + b"\n"
    source = append(chats / "session-1.jsonl", header)
    append(tmp_path / "secret.jsonl", b"")
    start = post("end", {"thread": "g-1"}, catalog="gemini").json()
    asked = {"sessionKey": "agent:main:a", "agentId": "main", "adoptedAtMs": NOON_MS, "ownDigests": [], "accountedIds": [], **start}
    good, bad = read(post, {**asked, "thread": "g-1"}, {**asked, "thread": "../../.."}, catalog="gemini")
    assert (start["source"], good["type"], bad["type"]) == (str(source), "nothing", "failed")
    assert "secret" not in json.dumps(bad)


def test_other_databases(post: Post, tmp_path: Path) -> None:
    """Of OpenCode only the database of this machine is opened, whatever a probe names."""
    asked = {"sessionKey": "agent:main:a", "agentId": "main", "adoptedAtMs": NOON_MS, "ownDigests": [], "accountedIds": []}
    probes = [{**asked, "thread": "t", "source": str(tmp_path / name), "marker": {}} for name in ("other.db", "opencode.db")]
    other, own = read(post, *probes, catalog="opencode")
    assert (other["type"], own["type"]) == ("failed", "missing")


def test_wrong_markers(post: Post, session: Path) -> None:
    """A marker that is none fails alone, and none makes a node read more than it is to read."""
    good = probe(post)
    marker: Any = good["marker"]
    wrong = [
        {"file": {**marker["file"], **change}, "children": []}
        for change in ({"head_bytes": 1 << 60}, {"head_bytes": 4_096}, {"position": -5}, {"inode": "1"})
    ]
    outcomes = read(post, *({**good, "marker": each} for each in [{}, *wrong]), good)
    assert [outcome["type"] for outcome in outcomes] == ["failed"] * 5 + ["nothing"]


def test_texts_stay(post: Post, session: Path) -> None:
    """Of what was said nothing is in any answer."""
    asked = probe(post)
    append(session, row("1", "another secret"))
    (outcome,) = read(post, asked)
    listed = post("threads", {"limit": 10}).json()
    assert (outcome["humanTurns"], outcome["occurredAtMs"]) == (1, NOON_MS)
    assert "secret" not in json.dumps([outcome, listed, asked])


def test_pages(post: Post, root: Path) -> None:
    """Threads come in pages that are cut by id: what is there all the time is listed once, whatever comes, goes and grows between pages."""
    stay = [append(root / "-w" / f"s-{number:03}.jsonl", row("0")) for number in range(120)]
    listed: list[str] = []
    after = None
    for page in range(100):
        answered = post("threads", {"limit": 7, "after": after}).json()
        assert len(answered["threads"]) <= 7
        listed += [thread["thread"] for thread in answered["threads"]]
        after = answered["next"]
        if after is None:
            break
        append(root / "-w" / f"a-{page:03}.jsonl", row("0"))
        os.utime(stay[page * 5 % 120], ns=(0, page))
    assert [name for name in listed if name.startswith("s-")] == [path.stem for path in stay]


def test_hung_file_system(post: Post, root: Path, session: Path) -> None:
    """A read that hangs gives an error in time, for itself and for who asks next, and says nothing of the thread."""
    asked = probe(post)
    kept = session.rename(root / "kept")
    os.mkfifo(session)
    try:
        assert [post("read", {"probes": [asked]}).status_code for _ in range(2)] == [503, 503]
        assert post("threads", {"limit": 1}).status_code == 200
    finally:
        with session.open("wb"):  # lets the thread that reads it end
            session.unlink()
        kept.rename(session)
    for _ in range(200):
        answered = post("read", {"probes": [asked]})
        if answered.status_code == 200:
            break
    assert answered.json() == {"outcomes": [{"type": "nothing"}]}


def test_catalog_that_fails(post: Post, root: Path, tmp_path: Path) -> None:
    """A catalog that cannot look gives an error, not an empty list."""
    root.write_bytes(b"a file in the folder's place")
    answered = post("threads", {"limit": 1})
    assert (answered.status_code, "NotADirectoryError" in answered.json()["error"]) == (503, True)
