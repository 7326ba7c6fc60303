"""`python -m xlamini profile script.py args...`: run a script, and say where its time went; with `-m`, a module.

The report goes to stderr when the script ends, in whatever way, and comes after what the script does at exit. The
script's own exit status is kept. With `--steps` it comes before, after so many calls of one function. With `--read` no
script is run, and the report of a trace from files goes to stdout.
"""
from __future__ import annotations

import argparse
import atexit
import os
import sys
from collections.abc import Sequence

from xlamini.commands.run import answer_jax, parser, run_program
from xlamini.core import LoadError
from xlamini.inspection.page import checked_path
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script.budget import MOST_CALLS
from xlamini.inspection.timing.script.profile import RECORDED_SECONDS, ScriptProfile
from xlamini.runtime.profiler.api import read_trace

ABOUT = "Run a program, and say where its time went."


def main(argv: Sequence[str] | None = None) -> int:
    """Run a script or a module as Python would, and print the report; the exit code, unless the script has its own."""
    command = parser("profile", ABOUT, instead="read")
    command.add_argument("--read", metavar="FOLDER", help="report on the trace in a folder or file, also one of JAX")
    command.add_argument("--seconds", type=float, default=RECORDED_SECONDS, metavar="N",
        help=f"record kernels for N seconds from the first compilation on (%(default)g), or {MOST_CALLS} calls")
    command.add_argument("--steps", type=int, metavar="N",
        help="report when a jitted function has run N times, and then let the script go on; a call takes 10 us more")
    command.add_argument("-o", dest="page", metavar="PAGE.html",
        help="write the report as a page too, with a timeline and a flame graph; with .json, what is on it")
    options = command.parse_args(argv)
    _check(command, options)
    if options.read is not None:
        return _read(command, options)
    answer_jax()
    inspects = str(options.page).endswith(".html")
    profile = ScriptProfile(options.seconds, options.steps, lambda found: _report(found, options.page), inspects)
    atexit.register(_end, profile)  # which comes after the script's own handlers, as they are registered later
    profile.__enter__()
    run_program(options)
    return 0


def _end(profile: ScriptProfile) -> None:
    try:
        profile.end()
    except KeyboardInterrupt:  # a second one: nobody wants to wait for the report
        print("The report was interrupted.", file=sys.stderr)


def _report(profile: ScriptProfile, page: str | None) -> None:
    """Print the report of a script, and write its page."""
    sys.stdout.flush()
    print(f"\n{profile}", file=sys.stderr, flush=True)
    if page is not None:
        _save(profile, page)


def _read(command: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    """Print the report of a trace in files, and write its page; the exit code."""
    try:
        report = read_trace(options.read)
    except (OSError, LoadError) as error:
        command.error(str(error))
    print(report)
    return 0 if options.page is None or _save(report, options.page) else 1


def _check(command: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse no steps or seconds, and a page of another ending, before the script runs."""
    if options.steps is not None and options.steps < 1:
        command.error(f"--steps must be 1 or more, got {options.steps}")
    if not options.seconds > 0:
        command.error(f"--seconds must be more than 0, got {options.seconds:g}")
    try:
        options.page = options.page and os.path.abspath(checked_path(options.page))  # the script may change the folder
    except ValueError as error:
        command.error(str(error))


def _save(profile: ScriptProfile | TimeReport, page: str) -> bool:
    """Write the page, if that is possible: a script keeps its own exit status."""
    try:
        profile.save(page, say=lambda text: print(f"profile: {text}", file=sys.stderr, flush=True))
    except OSError as error:
        print(f"The page was not written: {error}", file=sys.stderr)
        return False
    print(f"\nThe page is {page}", file=sys.stderr)
    return True
