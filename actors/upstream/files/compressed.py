"""Reading compressed transcripts. Needs `zstandard`, the extra `codex`: without it they can be told to be there, and no more."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SUFFIX = ".zst"
EXPANDED_BYTES_MAX = 1024 * 1024 * 1024
_PIECE_BYTES = 256 * 1024


def can_expand() -> bool:
    """Whether `zstandard` is installed."""
    return importlib.util.find_spec("zstandard") is not None


@contextmanager
def expanded(path: Path) -> Iterator[Path]:
    """A plain copy of a compressed file, which is gone afterwards. Raises `OSError`, also for what is damaged or too large."""
    with tempfile.TemporaryDirectory(prefix="kizuki-") as folder:
        plain = Path(folder) / path.with_suffix("").name
        _expand(path, plain)
        yield plain


def _expand(path: Path, plain: Path) -> None:
    import zstandard

    size = 0
    with path.open("rb") as source, plain.open("wb") as target:
        try:
            for piece in zstandard.ZstdDecompressor().read_to_iter(source, write_size=_PIECE_BYTES):
                size += len(piece)
                if size > EXPANDED_BYTES_MAX:
                    raise OSError(f"{path.name} is larger than {EXPANDED_BYTES_MAX} bytes when it is expanded")
                target.write(piece)
        except zstandard.ZstdError as error:
            raise OSError(f"{path.name} is damaged: {error}") from error
