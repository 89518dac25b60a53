"""Who may ask: under which names, from which pages, with which token; and what every answer says to a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kizuki.actors import Gateway, ManualClock
from kizuki.actors.hosting.http.app import http_app
from kizuki.actors.hosting.http.guard import SAFE_HEADERS, cookie_of
from kizuki.actors.hosting.http.page_files import FILES
from tests.hosting.cast import MAIN
from tests.hosting.http.asking import HERE, TOKEN, Api, asking, session

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest_asyncio.fixture
async def guarded(gateway: Gateway, clock: ManualClock) -> AsyncIterator[Api]:
    """The application with a token, reached by a name of its own."""
    async with asking(http_app(gateway, token=TOKEN, names=["Box.example"], clock=clock)) as api:
        yield api


NO_PORTS = ["[::1]evil.example", "127.0.0.1:80@evil.example", "localhost:1, evil.example", "127.0.0.1:x", "[localhost]", "me@127.0.0.1"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7435", "127.0.0.1.evil.example", "", "box.example", *NO_PORTS])
@pytest.mark.parametrize("path", ["/", "/openapi.json", "/api/events", "/login"])
async def test_rebinding(api: Api, host: str, path: str) -> None:
    """A page whose own name was made to mean this address (DNS rebinding) is refused, wherever it asks."""
    response = await api.client.get(path, headers={"host": host})
    assert (response.status_code, response.json()["reason"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:7435", "192.0.2.7", "box.EXAMPLE:80"])
async def test_own_names(guarded: Api, host: str) -> None:
    """Addresses, localhost and the names that were allowed are ours, whatever the port."""
    assert (await guarded.client.get("/api/events", headers=BEARER | {"host": host})).status_code == 200


FORMS = [
    {"content-type": "application/x-www-form-urlencoded"},
    {"content-type": "text/plain"},
    {"content-type": "multipart/form-data; boundary=x"},
    {},
    {"content-type": "text/plain; application/json"},
]


@pytest.mark.parametrize("headers", FORMS)
async def test_a_form_post(api: Api, gateway: Gateway, headers: dict[str, str]) -> None:
    """What a form of any page can send is refused for its type alone, and does nothing."""
    response = await api.client.post(session(MAIN, "watch"), content=b'{"target": "agent:main:x"}', headers=headers)
    assert (response.status_code, response.json()["reason"]) == (415, "not_json")
    assert await gateway.watches(MAIN) == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
    ],
)
async def test_a_page_of_another_origin(api: Api, gateway: Gateway, headers: dict[str, str]) -> None:
    """A post by a page of another origin is refused even if it says that it is JSON; so is one of another port of this machine."""
    response = await api.client.post(session(MAIN, "watch"), json={"target": "agent:main:x"}, headers=headers)
    assert (response.status_code, response.json()["reason"]) == (403, "other_origin")
    assert await gateway.watches(MAIN) == []


async def test_a_link_from_elsewhere(api: Api) -> None:
    """A link on another page leads to the page, but such a page cannot put it into a frame or load what it answers."""
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert (await api.client.get("/", headers=link)).status_code == 200
    for kind in ({"sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, {"sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}):
        assert (await api.client.get("/api/events", headers=link | kind)).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": f"Bearer {TOKEN}x"},
        {"authorization": f"Basic {TOKEN}"},
        {"authorization": "Bearer"},
        {"cookie": f"kizuki={TOKEN}"},
        {"cookie": "kizuki=ü".encode("latin-1").decode("latin-1")},
        {"cookie": f"kizuki={cookie_of('another token')}"},
    ],
)
async def test_a_missing_token(guarded: Api, headers: dict[str, str]) -> None:
    """Without the token nothing of the database is told or changed: not one path below /api answers otherwise."""
    sent = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    for method, path in (
        ("GET", "/api/events"),
        ("GET", "/api/stream"),
        ("PUT", session(MAIN)),
        ("GET", "/api/live/overview"),
        ("GET", "/api/x"),
    ):
        response = await guarded.client.request(method, path, content=b"{}", headers={b"content-type": b"application/json", **sent})
        assert (response.status_code, response.json()["reason"]) == (401, "wrong_token")
        assert response.headers["www-authenticate"] == "Bearer"


async def test_logging_in(guarded: Api) -> None:
    """Who shows the token once gets a cookie that no script can read and no other site can use; it goes with the logout."""
    assert await guarded.refused("/login", content={"token": "wrong"}) == (401, "wrong_token")
    assert await guarded.refused("/login", content={"token": 5}) == (400, "invalid_argument")
    assert (await guarded.client.get("/api/events")).status_code == 401
    response = await guarded.client.post("/login", json={"token": TOKEN})
    cookie = response.headers["set-cookie"]
    assert response.status_code == 204
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert TOKEN not in cookie
    assert (await guarded.client.get("/api/events")).status_code == 200
    await guarded.client.delete("/login")
    assert (await guarded.client.get("/api/events")).status_code == 401


OURS = f"kizuki={cookie_of(TOKEN)}"


@pytest.mark.parametrize(
    "cookies",
    [['seen={"a": 1}; ' + OURS], ["a b=c; x[1]=2; =; ;" + OURS], [f"kizuki=old; {OURS}", ""], [f"{OURS}; kizuki=old"], ["a=b", OURS]],
)
async def test_cookies_of_other_servers(guarded: Api, cookies: list[str]) -> None:
    """Cookies that other servers of this machine have set, in order or not, do not hide ours from us."""
    headers = [(b"cookie", cookie.encode()) for cookie in cookies]
    assert (await guarded.client.get("/api/events", headers=headers)).status_code == 200


async def test_logging_in_without_need(api: Api) -> None:
    """Where there is no token the page is let in as it is."""
    assert await api.tell("/login", token="") is None
    assert await api.get("/api/events") == {"events": []}


async def test_safe_headers(guarded: Api) -> None:
    """Every answer, refusals too, says: nothing inline or from elsewhere, in no frame, kept by nobody, for no other origin."""
    for path, headers in (("/", {}), ("/openapi.json", {}), ("/api/events", {}), ("/api/events", BEARER), ("/x", {"host": "evil.example"})):
        response = await guarded.client.get(path, headers=headers)
        assert {name for name in SAFE_HEADERS if name.lower() not in response.headers} == set()
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not [name for name in response.headers if name.startswith("access-control")]
    preflight = await guarded.client.options(
        "/api/events", headers={"origin": "https://evil.example", "access-control-request-method": "GET"}
    )
    assert preflight.status_code == 403


async def test_the_page(guarded: Api) -> None:
    """The page's files are served without a token, with their types, each from a fixed list; nothing else of the disk is."""
    assert (await guarded.client.get("/")).headers["content-type"] == "text/html; charset=utf-8"
    for name, file in FILES.items():
        response = await guarded.client.get("/" if name == "index.html" else f"/{name}")
        assert (response.status_code, response.content, response.headers["content-type"]) == (200, file.content, file.media_type)
        again = await guarded.client.get(response.request.url, headers={"if-none-match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    for path in ("/index.html", "/__init__.py", "/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd"):
        response = await guarded.client.get(f"{HERE}{path}", headers=BEARER)
        assert response.status_code == 404
