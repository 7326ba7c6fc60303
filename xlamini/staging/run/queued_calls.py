"""A cache for calls that bypass C++ dispatch because their programs run one at a time.

The key is the ids of the arguments' types and shardings.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.config import outlining, trace_context_key
from xlamini.core.memo import OwnedMemo
from xlamini.core.pytree import flatten, unflatten
from xlamini.core.tracer import state
from xlamini.runtime.to_device import ArrayImpl
from xlamini.staging.compile.program import Program

queued_calls = OwnedMemo("program: queued calls", 256, "calls")


class QueuedCall(NamedTuple):
    """A call's program, what it takes first, the structure of its output, and the names of its arguments.

    `places` are the shardings of the arguments: a call is known by which objects these are.
    """

    program: Program
    captured: Sequence[Any]
    out_tree: Any
    names: Sequence[str]
    places: Sequence[Any]


class QueuedCalls:
    """The calls of one jitted function whose program runs in a queue, on arrays that were put somewhere."""

    def __init__(self) -> None:
        self.calls: dict[Any, QueuedCall] = {}

    def keep(self, leaves: Sequence[Any], tree: Any, program: Program, traced: Any, names: Sequence[str]) -> None:
        """Add a call, if it can be found again."""
        if not program.executable.runs_alone or not _are_placed(leaves):
            return
        places = [x._sharding for x in leaves]
        call = QueuedCall(program, traced.captured, traced.out_tree, names, places)
        queued_calls.keep(self, _key(leaves, tree), call)

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, None, bool] | None:
        """The output of a call that is in the cache, as C++ wants it; None for another one."""
        if not self.calls or state.builder is not None:
            return None
        leaves, tree = flatten((args, kwargs))
        found = self.calls.get(_key(leaves, tree)) if _are_placed(leaves) else None
        if found is None:
            return None
        outs = found.program([*found.captured, *leaves], True, found.names)
        return unflatten(found.out_tree, outs), None, False


def _are_placed(leaves: Sequence[Any]) -> bool:
    return all(type(x) is ArrayImpl and x._committed for x in leaves)


def _key(leaves: Sequence[Any], tree: Any) -> Any:
    """Types and shardings by their ids: types are interned, shardings are kept."""
    return tree, trace_context_key(), outlining.value, tuple([(id(x.aval), id(x._sharding)) for x in leaves])
