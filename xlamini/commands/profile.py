"""`python -m xlamini profile script.py args...`: run a script, and say where its time went; with `-m`, a module.

The report goes to stderr when the script ends, in whatever way; the script's own exit status is kept. With `--read` no
script is run, and the report of a trace from files goes to stdout.
"""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from xlamini.commands.run import answer_jax, parser, run_program
from xlamini.core import LoadError
from xlamini.inspection.timing.script import RECORDED_SECONDS, ScriptProfile
from xlamini.runtime.profiler.api import read_trace

ABOUT = "Run a program, and say where its time went."


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, and print the report."""
    command = parser("profile", ABOUT, instead="read")
    command.add_argument("--read", metavar="FOLDER", help="report on the trace in a folder or file, also one of JAX")
    command.add_argument("--seconds", type=float, default=RECORDED_SECONDS, metavar="N",
        help="record kernels for N seconds from the first compilation on (%(default)g); each run takes a kilobyte")
    options = command.parse_args(argv)
    if options.read is not None:
        return _read(command, options.read)
    answer_jax()
    profile, process = ScriptProfile(options.seconds), os.getpid()
    try:
        with profile:
            _ = run_program(options)  # its functions have the programs by which kernels find their lines
    finally:
        if os.getpid() == process:  # and not in a child that the script has forked
            sys.stdout.flush()
            print(f"\n{profile}", file=sys.stderr)


def _read(command: argparse.ArgumentParser, where: str) -> None:
    """Print the report of a trace in files."""
    try:
        print(read_trace(where))
    except (OSError, LoadError) as error:
        command.error(str(error))
