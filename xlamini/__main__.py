"""`python -m xlamini COMMAND` runs a command of `COMMANDS`; without one it prints what each is for."""
from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from xlamini.runtime.command_line import run_command

COMMANDS = {
    "doctor": "xlamini.doctor",
    "explain": "xlamini.commands.explain",
    "rules": "xlamini.commands.rules",
    "inspect": "xlamini.commands.inspect",
    "run": "xlamini.commands.run",
    "profile": "xlamini.commands.profile",
    "jax-wheel": "xlamini.commands.jax_wheel",
}


def main(argv: Sequence[str]) -> int:
    """Run a command; its exit code, 2 where there is none."""
    command = argv[0] if argv else ""
    if command not in COMMANDS:
        print(_usage(), file=sys.stderr)
        return 0 if command in ("-h", "--help") else 2
    return importlib.import_module(COMMANDS[command]).main(argv[1:]) or 0


def _usage() -> str:
    """The commands, each with what its own help says of it."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:{width}}  {importlib.import_module(module).ABOUT}" for name, module in COMMANDS.items()]
    return "\n".join([f"usage: python -m xlamini {{{','.join(COMMANDS)}}} [options]", "", *lines])


if __name__ == "__main__":
    sys.exit(run_command(lambda: main(sys.argv[1:])))
