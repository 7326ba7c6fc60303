"""`python -m xlamini COMMAND`.

`doctor` says what works on this machine, `explain` what an error means, `rules` lists primitives and their rules,
`inspect` shows how a function becomes kernels, `run` runs a program written for JAX, `profile` says where a program's
time went, and `jax-wheel` makes a package `jax` that is xlamini.
"""
from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from xlamini.runtime.command_line import run_command

COMMANDS = {
    "doctor": "xlamini.doctor",
    "explain": "xlamini.commands.explain",
    "rules": "xlamini.rules",
    "inspect": "xlamini.commands.inspect",
    "run": "xlamini.commands.run",
    "profile": "xlamini.commands.profile",
    "jax-wheel": "xlamini.commands.jax_wheel",
}


def main(argv: Sequence[str]) -> int:
    """Run a command; its exit code, 2 where there is none."""
    command = argv[0] if argv else ""
    if command not in COMMANDS:
        print(f"usage: python -m xlamini {{{','.join(COMMANDS)}}} [options]", file=sys.stderr)
        return 0 if command in ("-h", "--help") else 2
    return importlib.import_module(COMMANDS[command]).main(argv[1:]) or 0


if __name__ == "__main__":
    sys.exit(run_command(lambda: main(sys.argv[1:])))
