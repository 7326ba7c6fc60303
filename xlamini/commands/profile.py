"""`python -m xlamini profile script.py args...`: run a script, and say where its time went; with `-m`, a module.

The report goes to stderr when the script ends, in whatever way; the script's own exit status is kept.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence

from xlamini.commands.run import answer_jax, parser, run_program
from xlamini.inspection.timing.script import ScriptProfile


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, and print the report."""
    options = parser("profile", "Run a program, and say where its time went.").parse_args(argv)
    answer_jax()
    profile = ScriptProfile()
    try:
        with profile:
            _ = run_program(options)  # its functions have the programs by which kernels find their lines
    finally:
        sys.stdout.flush()
        print(f"\n{profile}", file=sys.stderr)
