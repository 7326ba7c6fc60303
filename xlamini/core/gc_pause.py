"""No garbage collection while programs are built.

Tracing, rewriting and lowering make many objects that all stay alive. Python's collector goes through them again and
again and finds nothing; for a large program that takes as long as the work itself.
"""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Keep the cyclic collector from running inside; nested uses and a collector that is off already are fine."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
