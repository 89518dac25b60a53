"""What the command `kizuki` starts with: a person waits for a hook's answer, so that one goes without the rest of the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run a hook, or the command line."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"] and not {"-h", "--help"} & set(arguments):
        from .hook import run_hook

        run_hook(arguments[1:])
    from .cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
