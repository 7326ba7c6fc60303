"""A cache for calls that C++ dispatch does not run: of programs in segments, with Python functions, or one at a time.

The key is the argument types and the ids of shardings, which an entry keeps alive.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import OwnedMemo, Values, aval_of, flatten, float0
from xlamini.core.flags.compile_flags import compile_key
from xlamini.core.flags.config import default_device, trace_context_key
from xlamini.core.flags.jax_flags import debug_infs, debug_nans
from xlamini.core.program.avals import SCALAR_TYPES
from xlamini.core.tracing.state import state
from xlamini.runtime import ArrayImpl
from xlamini.runtime.arrays.layout import order_of, use
from xlamini.staging.compile.program import BoundProgram
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.trace.static_args import Selected, take_out

_PLAIN = {ArrayImpl, np.ndarray, *SCALAR_TYPES}
"""The types of arguments whose calls are remembered."""

python_calls: Final = OwnedMemo("program: calls that Python runs", 256, "calls")


class PythonCalls:
    """The calls of one jitted function that Python runs, with arrays and numbers for all but static arguments."""

    def __init__(self, static: Selected) -> None:
        self.static = static
        self.calls: dict[Any, tuple[BoundProgram, Sequence[Any]]] = {}
        """Each with the shardings whose ids are in its key."""

    def add(self, plan: CallPlan, bound: BoundProgram) -> None:
        """Remember a call, unless an argument is of another type, or a captured value is one of dtype float0."""
        if not _are_plain(plan.leaves) or any(aval_of(x).dtype == float0 for x in bound.captured):
            return
        shardings = [x._sharding for x in plan.leaves if type(x) is ArrayImpl]
        placed = bound._replace(captured=bound.program.constants(bound.captured))
        statics = None if plan.statics is None else plan.statics.key
        python_calls.keep(self, _key(plan.leaves, plan.tree, statics), (placed, shardings))

    def run(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, None, bool] | None:
        """The output of a cached call, in the form that C++ expects; None for a cache miss."""
        if state.builder is not None:
            return None
        statics = None
        if self.static:
            taken, args, kwargs = take_out(self.static, args, kwargs)
            statics = taken.key
        leaves, tree = flatten((tuple(args), kwargs))
        cached = self._found(leaves, tree, statics) if _are_plain(leaves) else None
        if cached is None:
            return None
        return cached[0](leaves), None, False

    def _found(self, leaves: Values, tree: Any, statics: Any) -> tuple[BoundProgram, Sequence[Any]] | None:
        try:
            return self.calls.get(_key(leaves, tree, statics))
        except TypeError:  # what cannot be hashed, or is no array, as planning the call will say
            return None


def _are_plain(leaves: Values) -> bool:
    return set(map(type, leaves)) <= _PLAIN


def _key(leaves: Values, tree: Any, statics: Any) -> Any:
    flags = trace_context_key(), compile_key(), default_device.value, debug_nans.value, debug_infs.value
    return tree, statics, flags, tuple(map(_signature, leaves))


def _signature(x: Any) -> Any:
    if type(x) is not ArrayImpl:
        return aval_of(x)
    return x.aval, id(x._sharding), x._committed, order_of(x) if use.any_other else None
