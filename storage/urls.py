"""URLs of databases. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def is_postgres(url: str) -> bool:
    """Whether the URL is one of a PostgreSQL server."""
    scheme, separator, _ = url.partition("://")
    return bool(separator) and scheme in ("postgresql", "postgres")


def without_password(url: str) -> str:
    """The URL as it may be shown; what is none is given as it is."""
    if not is_postgres(url):
        return url
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    return urlunsplit(("postgresql", f"{user.partition(':')[0]}@{place}" if user else place, parts.path, "", ""))
