"""A cache for calls that bypass C++ dispatch because their programs run one at a time.

The key is the ids of the argument types and shardings: types are interned, and an entry keeps its shardings alive.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import OwnedMemo, Values, flatten, unflatten
from xlamini.core.compile_flags import compile_key
from xlamini.core.config import trace_context_key
from xlamini.core.state import state
from xlamini.runtime import ArrayImpl
from xlamini.staging.compile.program import Program

queued_calls = OwnedMemo("program: queued calls", 256, "calls")


class QueuedCall(NamedTuple):
    """A program with its captured values, the structure of its output, and the names and shardings of its arguments."""

    program: Program
    captured: Values
    out_tree: Any
    names: Sequence[str]
    shardings: Sequence[Any]


class QueuedCalls:
    """The calls of one jitted function whose programs wait for the one before to end, all arguments committed."""

    def __init__(self) -> None:
        self.calls: dict[Any, QueuedCall] = {}

    def add(self, leaves: Values, tree: Any, program: Program, traced: Any, names: Sequence[str]) -> None:
        """Remember a call, unless an argument is uncommitted or no Array."""
        if not _are_committed(leaves):
            return
        shardings = [x._sharding for x in leaves]
        call = QueuedCall(program, traced.captured, traced.out_tree, names, shardings)
        queued_calls.keep(self, _key(leaves, tree), call)

    def run(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, None, bool] | None:
        """The output of a cached call, in the form that C++ expects; None for a cache miss."""
        if state.builder is not None:
            return None
        leaves, tree = flatten((args, kwargs))
        cached = self.calls.get(_key(leaves, tree)) if _are_committed(leaves) else None
        if cached is None:
            return None
        outs = cached.program([*cached.captured, *leaves], True, cached.names)
        return unflatten(cached.out_tree, outs), None, False


def _are_committed(leaves: Values) -> bool:
    return all(type(x) is ArrayImpl and x._committed for x in leaves)


def _key(leaves: Values, tree: Any) -> Any:
    return tree, trace_context_key(), compile_key(), tuple([(id(x.aval), id(x._sharding)) for x in leaves])
