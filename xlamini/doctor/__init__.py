"""Diagnosis of the installation, `python -m xlamini doctor`: which platforms work, and a fix for each problem. Private.

Each platform is started in a subprocess, so that a plugin that hangs or crashes does no harm.
With `--report` the text can be pasted into an issue: it tells nothing about whose machine it is.
The exit code is 0 if the requested platform works, else 1.
"""
from __future__ import annotations

import argparse
from collections.abc import Sequence

from xlamini.core.console import printable
from xlamini.doctor.examination import examine
from xlamini.doctor.report import report
from xlamini.doctor.sharing import for_an_issue

__all__ = ["ABOUT", "main"]

ABOUT = "What works on this machine."


def main(argv: Sequence[str] | None = None) -> int:
    """Examine the machine, print the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m xlamini doctor", description=ABOUT)
    parser.add_argument("--platform", help="the platform that must work, or several: cuda,cpu")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a platform may take to start")
    shared = "print a block for an issue, without home folders, names of the user and the host, and secrets"
    parser.add_argument("--report", action="store_true", help=shared)
    options = parser.parse_args(argv)
    found = examine(options.platform, options.timeout)
    text = report(found)
    print(printable(for_an_issue(text) if options.report else text))
    return 0 if found.healthy else 1
