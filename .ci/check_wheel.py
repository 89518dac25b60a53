"""Checks a wheel: nothing but `kizuki` at the top level, and no file of the two packages left out.

Usage: check_wheel.py WHEEL SOURCE_FOLDER
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path


def main(wheel: Path, source: Path) -> int:
    names = set(zipfile.ZipFile(wheel).namelist())
    faults = [f"not below kizuki/: {name}" for name in sorted(names) if not _is_ours(name)]
    faults += [f"missing: {name}" for name in sorted(_wanted(source) - names)]
    print("\n".join(faults) if faults else f"{wheel.name}: {len(names)} files, all below kizuki/, none missing")
    return 1 if faults else 0


def _is_ours(name: str) -> bool:
    top = name.split("/", 1)[0]
    return top == "kizuki" or (top.startswith("kizuki-") and top.endswith(".dist-info"))


def _wanted(source: Path) -> set[str]:
    files = (path for folder in ("actors", "storage") for path in (source / folder).rglob("*"))
    return {f"kizuki/{path.relative_to(source).as_posix()}" for path in files if path.is_file() and "__pycache__" not in path.parts}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
