"""XLA's partitioner of custom calls: it asks Python how a call is divided, while it compiles a program for a mesh.

A call has the target `TARGET`, and the key of a `PartitionedCall` as its configuration. The object must live until the
program has been compiled, so the lowered program keeps it. XLA asks in a thread of its own. That thread is no home for
Python's thread-local objects, which are freed there without the interpreter's lock, so the answer is computed in a
thread of Python's.
"""
from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from jaxlib import _hlo, _jax

from xlamini.core.waits import announce
from xlamini.runtime.devices.plugins import loaded_plugin

TARGET = "CustomSPMDPartitioning"

Shardings = Sequence[Any]


class PartitionRule(Protocol):
    """How a call is divided."""

    def __call__(self, arg_shardings: Shardings, result_shardings: Shardings) -> tuple[bytes, Shardings, Shardings]:
        """From XLA's shardings: the module for one device, and the shardings of its arguments and results."""
        ...


class PartitionedCall:
    """A call that Python divides; `key` is how the program names it, `error` what `division` has raised."""

    division: PartitionRule
    key: str

    def __init__(self, division: PartitionRule):
        self.division, self.key, self.error = division, str(next(_numbers)), None
        _calls[self.key] = self

    error: BaseException | None


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="partitioner")


_numbers = itertools.count(1)
_calls: weakref.WeakValueDictionary[str, PartitionedCall] = weakref.WeakValueDictionary()
_registered: set[str] = set()
_lock = threading.Lock()


def register_partitioner() -> None:
    """Register the callbacks with XLA, and with the plugins that have been loaded, once each."""
    apis = {name: loaded_plugin(name) for name in ("cuda", "rocm", "tpu")}
    loaded = {"cpu": None, **{name: api for name, api in apis.items() if api is not None}}
    with _lock:
        for name, api in loaded.items():
            if name not in _registered:
                _jax.register_custom_call_partitioner(TARGET, _keep, _partition, _refuse, True, api)
                _registered.add(name)


def raise_failure(calls: Sequence[PartitionedCall]) -> None:
    """Raise what the user's function raised, of which XLA reports the text only."""
    failed = next((call for call in calls if call.error is not None), None)
    if failed is not None:
        error, failed.error = failed.error, None
        assert error is not None
        raise error from None


def _keep(sharding: Any, shape: Any, key: bytes) -> Any:
    """The sharding that a user of the result proposes, which Shardy does not ask about."""
    return sharding


def _refuse(arg_shapes: Any, arg_shardings: Any, shape: Any, key: bytes) -> None:
    """The sharding of the result, which Shardy infers from the rule."""
    raise NotImplementedError("custom_partitioning: shardings are propagated by the sharding_rule")


def _partition(arg_shapes: Any, arg_shardings: Shardings, shape: Any, sharding: Any, key: bytes) -> Any:
    call = _calls[key.decode()]
    several = shape.is_tuple()
    shardings = sharding.tuple_elements() if several else [sharding]
    try:
        with announce("XLA has waited for the functions of custom_partitioning"):
            module, ins, outs = _threads().submit(call.division, arg_shardings, shardings).result()
    except BaseException as error:
        call.error = error
        raise
    return module, list(ins), _hlo.HloSharding.tuple_sharding(shape, list(outs)) if several else outs[0]
