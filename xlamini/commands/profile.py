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
from xlamini.inspection.page import checked_path
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script import RECORDED_SECONDS, ScriptProfile
from xlamini.runtime.profiler.api import read_trace

ABOUT = "Run a program, and say where its time went."


def main(argv: Sequence[str] | None = None) -> None:
    """Run a script or a module as Python would, and print the report."""
    command = parser("profile", ABOUT, instead="read")
    command.add_argument("--read", metavar="FOLDER", help="report on the trace in a folder or file, also one of JAX")
    command.add_argument("--seconds", type=float, default=RECORDED_SECONDS, metavar="N",
        help="record kernels for N seconds from the first compilation on (%(default)g); each run takes a kilobyte")
    command.add_argument("-o", dest="page", metavar="PAGE.html",
        help="write the report as a page too, with a timeline and a flame graph; with .json, what is on it")
    options = command.parse_args(argv)
    _check(command, options.page)
    if options.read is not None:
        return _read(command, options)
    answer_jax()
    profile, process = ScriptProfile(options.seconds), os.getpid()
    try:
        with profile:
            _ = run_program(options)  # its functions have the programs by which kernels find their lines
    finally:
        if os.getpid() == process:  # and not in a child that the script has forked
            sys.stdout.flush()
            print(f"\n{profile}", file=sys.stderr)
            if options.page is not None:
                _save(profile, options.page)


def _read(command: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Print the report of a trace in files, and write its page."""
    try:
        report = read_trace(options.read)
    except (OSError, LoadError) as error:
        command.error(str(error))
    print(report)
    if options.page is not None:
        _save(report, options.page)


def _check(command: argparse.ArgumentParser, page: str | None) -> None:
    """Refuse a page of another ending before the script runs."""
    try:
        _ = page and checked_path(page)
    except ValueError as error:
        command.error(str(error))


def _save(profile: ScriptProfile | TimeReport, page: str) -> None:
    """Write the page; a file that cannot be written leaves the script's own exit status."""
    try:
        profile.save(page)
    except OSError as error:
        print(f"The page was not written: {error}", file=sys.stderr)
    else:
        print(f"\nThe page is {page}", file=sys.stderr)
