"""Diagnosis of the installation, `python -m xlamini doctor`: which platforms work, and a fix for each problem. Private.

Each platform is started in a subprocess, so that a plugin that hangs or crashes does no harm.
The exit code is 0 if the requested platform works, else 1.
"""
from __future__ import annotations

import argparse
from collections.abc import Sequence

from xlamini.core.console import printable
from xlamini.doctor.examination import examine
from xlamini.doctor.report import report

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Examine the machine, print the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m xlamini doctor", description="What works on this machine.")
    parser.add_argument("--platform", help="the platform that must work, or several: cuda,cpu")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a platform may take to start")
    options = parser.parse_args(argv)
    found = examine(options.platform, options.timeout)
    print(printable(report(found)))
    return 0 if found.healthy else 1
