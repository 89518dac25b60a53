"""The live page's files: package data, read once, and served under their names from a fixed list."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER: Final = "page"
INDEX: Final = "index.html"
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
"""By the ending of a file's name; a file of any other kind is not served."""


class PageFile(NamedTuple):
    """One file as it is sent."""

    content: bytes
    media_type: str
    etag: str


def page_routes() -> list[Route]:
    """A route for each file, and the page itself at the root. What is not in the list cannot be asked for."""
    return [Route("/" if name == INDEX else f"/{name}", _Served(file).answer, methods=["GET"]) for name, file in FILES.items()]


class _Served:
    def __init__(self, file: PageFile) -> None:
        self._file = file

    async def answer(self, request: Request) -> Response:
        """The file, or word that the browser has it already. It is asked about each time, for a new version may have been installed."""
        headers = {"ETag": self._file.etag, "Cache-Control": "no-cache"}
        if self._file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self._file.content, headers=headers, media_type=self._file.media_type)


def _read_files() -> Mapping[str, PageFile]:
    folder = files(__package__).joinpath(FOLDER)
    found = {}
    for item in sorted(folder.iterdir(), key=lambda each: each.name):
        media_type = TYPES.get(item.name.rpartition(".")[2])
        if media_type is not None:
            content = item.read_bytes()
            found[item.name] = PageFile(content, media_type, f'"{blake2b(content, digest_size=12).hexdigest()}"')
    return found


FILES: Final = _read_files()
"""Read when this module is imported, which is before any loop runs that reading would hold up."""
