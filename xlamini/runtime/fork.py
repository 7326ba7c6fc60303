"""Fork: a warning in the parent, and an error in the child, which has none of XLA's threads and would wait for ever.

The child finds no signature in C++ dispatch, since the flag `forked` is part of their keys. So each call comes to
Python, where it is refused; a process that was not forked pays nothing for it.
"""

from __future__ import annotations

import os
import warnings

from xlamini.core import user_stacklevel
from xlamini.core.errors import ForkError
from xlamini.core.flags.config import forked
from xlamini.runtime.devices.clients import started_clients
from xlamini.runtime.exit_gate import pass_gate, process as process


class _Fork:
    """Whether this process was forked from one with XLA's threads, and whether it has warned of that."""

    is_forked = False
    has_warned = False


_fork = _Fork()


def bar() -> None:
    """Raise ForkError in a forked process; else wait at the gate. Called while `process.is_barred`."""
    if not _fork.is_forked:
        return pass_gate()
    raise ForkError(
        "this process was forked from one that had used a device, and has none of the threads that compute; start it "
        "with multiprocessing.get_context('spawn'), or use NumPy in it"
    )


def _warn() -> None:
    if _fork.has_warned or _fork.is_forked or not started_clients():
        return
    _fork.has_warned = True
    warnings.warn(
        "os.fork() was called. os.fork() is incompatible with multithreaded code, and XLA is multithreaded: in the "
        "child every operation raises ForkError. If the child uses xlamini, start it with multiprocessing's 'spawn'",
        RuntimeWarning,
        user_stacklevel(),
    )


def _mark_child() -> None:
    if started_clients():
        _fork.is_forked = process.is_barred = True
        forked.set_global(True)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_warn, after_in_child=_mark_child)
