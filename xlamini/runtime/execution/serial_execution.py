"""Serial execution of CPU programs with collectives: one program at a time.

A collective blocks a thread of XLA's pool for each device until all devices have reached it. If two such programs run
at once, their devices may occupy all threads and wait for ever for devices that found none. A larger pool makes the
deadlock rarer, and every call slower. So a program waits here, before it starts, until the previous one has ended.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from jaxlib import _jax

from xlamini.core.waits import take

_COLLECTIVES = (b"all-reduce", b"all-gather", b"all-to-all", b"collective-", b"reduce-scatter", b"ragged-all")

_lock = threading.Lock()


class _Previous:
    """The token of the last program started; it is ready when that program has ended."""

    token: Any = None


@contextmanager
def exclusive() -> Iterator[None]:
    """A context manager: the block runs while no such program does; it may leave one running, as `_Previous.token`."""
    take(_lock, "a program with collectives has waited for those of other threads to end")
    try:
        if _Previous.token is not None:
            with suppress(_jax.JaxRuntimeError):  # raised to whoever reads its results
                _Previous.token.block_until_ready()
            _Previous.token = None
        yield
    finally:
        _lock.release()


def run_alone(loaded: Any, arrays: Sequence[Any]) -> Any:
    """Start a program after the previous one has ended."""
    with exclusive():
        results = loaded.execute_sharded(arrays, with_tokens=True)
        _Previous.token = results.consume_token()
    return results


def exchanges_data(loaded: Any) -> bool:
    """Whether a compiled program contains collectives."""
    modules = [m.as_serialized_hlo_module_proto() for m in loaded.hlo_modules()]
    return any(word in module for module in modules for word in _COLLECTIVES)
