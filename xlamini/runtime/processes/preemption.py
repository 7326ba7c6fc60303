"""Preemption: when a scheduler ends one process with SIGTERM, all processes agree on a last step."""
from __future__ import annotations

import threading
from typing import Any

from jaxlib import _jax

from xlamini.runtime.processes.group import here


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are to save their state at this step, because one of them got SIGTERM.

    All processes call it once per step with the number of the step, which increases; it is true in all of them at the
    same step. The first call installs the handler of SIGTERM, which then no longer ends the process. Without a process
    group it is false.

    >>> xlamini.multihost.reached_preemption_sync_point(0)
    False
    """
    if here.group is None:
        return False
    with _sync.lock:
        if _sync.manager is None:
            _sync.manager = _jax.create_preemption_sync_manager()
            _sync.manager.initialize(here.group.client)
    return bool(_sync.manager.reached_sync_point(step_id))


class _Sync:
    """A holder of jaxlib's manager, which there is one of in a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.manager: Any = None


_sync = _Sync()
