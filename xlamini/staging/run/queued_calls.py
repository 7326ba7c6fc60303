"""Calls that C++ cannot run by itself, as their programs wait for their turn: found again without working out all."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.config import outlining, trace_context_key
from xlamini.core.pytree import flatten, unflatten
from xlamini.core.tracer import state
from xlamini.runtime.to_device import ArrayImpl
from xlamini.staging.compile.program import Program

MAX_CALLS = 256


class Remembered(NamedTuple):
    """A call's program, what it takes first, the structure of its output, and the names of its arguments.

    `places` are the shardings of the arguments: a call is known by which objects these are.
    """

    program: Program
    captured: Sequence[Any]
    out_tree: Any
    names: Sequence[str]
    places: Sequence[Any]


class Repeated:
    """What a jitted function was called with, if its program waits for its turn, on arrays that were put somewhere."""

    def __init__(self) -> None:
        self.calls: dict[Any, Remembered] = {}

    def keep(self, leaves: Sequence[Any], tree: Any, program: Program, traced: Any, names: Sequence[str]) -> None:
        """Remember a call, if it can be found again."""
        if not program.executable.in_turn or not _are_placed(leaves):
            return
        if len(self.calls) >= MAX_CALLS:
            self.calls.clear()
        places = [x._sharding for x in leaves]
        self.calls[_key(leaves, tree)] = Remembered(program, traced.captured, traced.out_tree, names, places)

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, None, bool] | None:
        """The output of a call that is remembered, as C++ wants it; None for another one."""
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
