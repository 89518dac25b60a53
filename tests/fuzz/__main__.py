"""Fuzz the parsers, guided by coverage: `python -m tests.fuzz --minutes 60`. Exit code 1 if an input breaks one, with how to see it again.

It needs atheris (`pip install atheris`: wheels for Linux, Python 3.11 to 3.13), which is in no extra, since it is large and not to be had
everywhere. Each target has a process of its own; what it learns is kept in the corpus folder, from which the next run goes on.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.places import memory

ONE_INPUT_S = 20
MEMORY_MB = 1_024
INPUT_MAX = 4_096


def main() -> int:
    """Give every target its share of the time, or be the process of one."""
    arguments = _parsed()
    if arguments.run is not None:
        return _again(arguments.targets[0], Path(arguments.run))
    if arguments.inside:
        _fuzz(arguments.targets[0], arguments)
    from tests.fuzz.targets import TARGETS

    names = arguments.targets or list(TARGETS)
    broken = [name for name in names if not _fuzzed(name, arguments, 60 * arguments.minutes / len(names))]
    _say(f"broken: {', '.join(broken)}" if broken else "nothing found")
    return 1 if broken else 0


def _fuzzed(name: str, arguments: argparse.Namespace, seconds: float) -> bool:
    """Run the process of one target, and say what it came to."""
    folder = arguments.corpus / name
    _begin(name, folder)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "tests.fuzz", name, "--inside", "--corpus", str(arguments.corpus), "--minutes", str(seconds / 60)]
    with memory() as temporary:
        environment = os.environ | {"TMPDIR": temporary}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    figures = _figures(done.stderr)
    _say(f"{name}: {figures}, {time.monotonic() - began:.0f} s, {cpu:.0f} s of the processor, {len(list(folder.iterdir()))} inputs kept")
    if done.returncode:
        _say(f"{done.stdout}{done.stderr}"[-4_000:])
        for found in sorted(arguments.corpus.glob(f"{name}-*"), key=lambda path: path.stat().st_mtime)[-1:]:
            _say(f"again: python -m tests.fuzz {name} --run {found}")
    return done.returncode == 0


def _figures(text: str) -> str:
    runs = re.findall(r"Done (\d+) runs", text) or re.findall(r"#(\d+)", text)[-1:]
    covered = re.findall(r"cov: (\d+) ft: (\d+)", text)
    return f"{int(runs[-1]) if runs else 0:,} runs, {covered[-1][0] if covered else '?'} branches"


def _begin(name: str, folder: Path) -> None:
    from tests.fuzz.corpus import inputs

    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(inputs(name, 60)):
        (folder / f"begun-{number}").write_bytes(content)


def _fuzz(name: str, arguments: argparse.Namespace) -> None:
    """Never returns: the fuzzer ends the process."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["kizuki"]):
        from tests.fuzz.targets import TARGETS
    options = [f"-max_total_time={max(1, round(60 * arguments.minutes))}", f"-timeout={ONE_INPUT_S}", f"-rss_limit_mb={MEMORY_MB}"]
    prefix = f"-artifact_prefix={arguments.corpus}/{name}-"
    atheris.Setup([sys.argv[0], *options, prefix, f"-max_len={INPUT_MAX}", str(arguments.corpus / name)], TARGETS[name])
    atheris.Fuzz()


def _again(name: str, path: Path) -> int:
    from tests.fuzz.targets import TARGETS

    TARGETS[name](path.read_bytes())
    _say("nothing found")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="which ones; all of them if none is named")
    parser.add_argument("--minutes", type=float, default=10.0, help="for all of them together")
    parser.add_argument("--corpus", type=Path, default=Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "kizuki-fuzz")
    parser.add_argument("--run", help="a file with the one input to try")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
