"""Programs whose devices exchange data while they run on a CPU: one at a time.

A collective blocks a thread of XLA's pool for each device, until all devices have come to it. With two such programs on
their way, the devices of both could take all threads between them and wait for ever for those that found none. More
threads make that rarer, and every call slower. So a program waits here, before it starts, until the one before it has
ended.
"""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from jaxlib import _jax

_COLLECTIVES = (b"all-reduce", b"all-gather", b"all-to-all", b"collective-", b"reduce-scatter", b"ragged-all")

_lock = threading.Lock()


class _Before:
    """The token of the last program that started, which is ready when that has ended."""

    token: Any = None


@contextmanager
def turn() -> Iterator[None]:
    """The block runs when no such program does; it leaves none running, but for the one of `_Before.token`."""
    with _lock:
        if _Before.token is not None:
            with suppress(_jax.JaxRuntimeError):  # which whoever reads its results is told
                _Before.token.block_until_ready()
            _Before.token = None
        yield


def run_in_turn(loaded: Any, arrays: Sequence[Any]) -> Any:
    """Start a program, when the one before it has ended."""
    with turn():
        results = loaded.execute_sharded(arrays, with_tokens=True)
        _Before.token = results.consume_token()
    return results


def exchanges_data(loaded: Any) -> bool:
    """Whether there are collectives in a compiled program."""
    modules = [m.as_serialized_hlo_module_proto() for m in loaded.hlo_modules()]
    return any(word in module for module in modules for word in _COLLECTIVES)
