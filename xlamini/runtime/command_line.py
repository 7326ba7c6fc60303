"""Commands in a pipe: `python -m xlamini rules | head` ends without a traceback when `head` has read enough."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

_CLOSED_PIPE = 128 + 13  # as a shell reports a program that SIGPIPE ended


def run_command(main: Callable[[], int | None]) -> int:
    """Run the main function of a command and return its exit code, also where the reader of its output has gone."""
    try:
        code = main() or 0
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
        return _CLOSED_PIPE
    return code


def _discard_output() -> None:
    """Send what is still buffered nowhere: Python flushes it at exit, which would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
