"""Calls of jitted functions with refs, among the arguments or touched inside: a function of their values runs.

The final value of a ref that was written takes the memory of its value. A value that somebody holds, who has read it,
is copied first; a ref that is only read stays as it is. C++ cannot run such a call by itself.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core import Cell, Values, flatten, unflatten
from xlamini.core.program.ref_cells import FREED, RefEscaped
from xlamini.core.tracing.state import state
from xlamini.interpreters.physical import is_extended
from xlamini.runtime.arrays.lifetime import is_held
from xlamini.runtime.arrays.to_device import copy_of
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.programs import with_refs
from xlamini.staging.trace.arguments import has_refs
from xlamini.staging.trace.ref_arguments import OpenedRefs, RefArgument, is_ref_argument, pure
from xlamini.staging.trace.ref_threading import Cells, run_with_refs, threaded, with_touched

if TYPE_CHECKING:
    from xlamini.staging.run.jit.call_plan import CallPlan
    from xlamini.staging.run.jit.jitted_function import Jitted
    from xlamini.staging.trace.tracing import Trace

Missed = tuple[Any, None, bool]
"""The output of a call, in the form that C++ expects."""


class RefCalls:
    """The calls of one jitted function with refs; the refs that it touched last are touched again, as a rule."""

    def __init__(self, jitted: Jitted):
        self._jitted = jitted
        self._of_arguments: InPlace | None = None
        self._touched: Sequence[weakref.ref[Cell]] = ()

    def run(self, args: Values, kwargs: dict[str, Any]) -> Missed | None:
        """A call like an earlier one; None if there was none like it."""
        if self._of_arguments is not None:
            flat = flatten((args, kwargs))
            if has_refs(flat[0]):
                return self.with_arguments(args, kwargs, flat)
        cells = self._cells_of_last_call() if self._touched and state.builder is None else None
        if not cells:
            return None
        try:
            return self._with_cells(cells, args, kwargs)
        except RefEscaped:  # it touches others
            self._touched = ()
            return None

    def with_arguments(self, args: Values, kwargs: dict[str, Any], flat: Any = None) -> Missed:
        """A call with refs among the arguments, which `flat` are as leaves and treedef, if the caller has them."""
        if self._of_arguments is None:
            self._of_arguments = InPlace(self._jitted, _of_arguments(self._jitted.fun), self._jitted.options)
        refs = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs), flat)
        with refs.passed():
            return self._of_arguments.run(refs.cells, refs.nodes, *refs.tree), None, False

    def with_touched(self, touched: RefEscaped, args: Values, kwargs: dict[str, Any]) -> Missed:
        """A call of the function, which touches this ref and maybe others."""
        return run_with_refs(with_touched((), touched), self._with_cells, args, kwargs)

    def _with_cells(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> Missed:
        jitted = self._jitted
        in_place = cells[0].memo.get((jitted, cells))
        if in_place is None:
            made = InPlace(jitted, _of_cells(jitted.fun, cells), jitted.options.shifted())
            in_place = with_refs.keep(cells[0], (jitted, cells), made)
        nodes = [RefArgument(Cell, cell.read()) for cell in cells]
        out = in_place.run(cells, nodes, (nodes, *args), kwargs)
        self._touched = list(map(weakref.ref, cells))
        return out, None, False

    def _cells_of_last_call(self) -> Cells | None:
        cells = tuple(found for reference in self._touched if (found := reference()) is not None)
        is_usable = len(cells) == len(self._touched) and all(c.owner is None and c.value is not FREED for c in cells)
        return cells if is_usable else None


class InPlace:
    """A jitted function of the values of refs, which returns the values that they were given, and its output."""

    def __init__(self, caller: Jitted, fun: Callable[..., Any], options: Any):
        outs = options.out_shardings
        self._jitted = type(caller)(fun, options._replace(out_shardings=outs and (None, outs)))
        self._jitted.in_place = self
        self._function = wrapped(self._jitted)
        self._depth: int = 1 if caller.in_place is None else caller.in_place._depth + 1

    def run(self, cells: Sequence[Cell], nodes: Sequence[RefArgument], args: Values, kwargs: dict[str, Any]) -> Any:
        """The output for arguments in which the nodes stand for refs, after the refs were given their new values."""
        held = [node for node in nodes if is_held(node.value, _OWN)]
        if held and state.builder is None:
            self._copy_held(held, nodes, args, kwargs)
        last, out = self._function(*args, **kwargs)
        for cell, value in zip(cells, last, strict=True):
            if value is not None:
                cell.write(value)
        return out

    def _copy_held(
        self, held: Sequence[RefArgument], nodes: Sequence[RefArgument], args: Values, kwargs: dict[str, Any]
    ) -> None:
        """Copy the values that somebody holds and the function replaces."""
        plan = self._jitted.plan(args, kwargs)
        try:
            donated = self.donated(plan, self._jitted.trace(plan))
        except RefEscaped:  # it closes over others too, and is traced with those
            donated = [True] * len(plan.leaves)
        for node, i in zip(nodes, _leaves_of_nodes(plan), strict=False):
            if node in held and donated[i]:
                node.value = copy_of(node.value)

    def donated(self, plan: CallPlan, traced: Trace) -> list[bool]:
        """For each leaf of the arguments, whether it is the value of a ref that is given another one.

        A program with effects may raise an error after it took the memory, so it takes none.
        """
        out, last = unflatten(traced.out_tree, range(traced.out_tree.num_leaves)), list[Any]()
        donated = [False] * len(plan.leaves)
        for _ in range(self._depth):
            of_level, out = out
            last += of_level
        for i, new in zip(_leaves_of_nodes(plan), last, strict=True):
            if type(i) is int and new is not None and not (is_extended(plan.avals[i]) or traced.jaxpr.effects):
                donated[i] = True
        return donated


_OWN = 3
"""The references to the value of a ref in a call: those of its cell, of its node, and of the call that counts."""


def _leaves_of_nodes(plan: CallPlan) -> list[Any]:
    """For each node that stands for a ref the number of its leaf; for one of several leaves a tree of them."""
    nodes = flatten(unflatten(plan.tree, range(len(plan.leaves))), is_ref_argument)[0]
    return [node.value for node in nodes if is_ref_argument(node)]


def _of_arguments(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arguments in which nodes stand for refs."""
    of_values = pure(fun)

    @functools.wraps(fun)
    def of_nodes(*args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        given = [x.value for x in flatten((args, kwargs), is_ref_argument)[0] if is_ref_argument(x)]
        out, last = of_values(*args, **kwargs)
        return _changed(given, last), out

    return of_nodes


def _of_cells(fun: Callable[..., Any], cells: Cells) -> Callable[..., Any]:
    """The function of nodes that stand for the cells, and of its own arguments."""
    of_values = threaded(fun, cells)

    @functools.wraps(of_values)
    def of_nodes(nodes: Sequence[RefArgument], /, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        given = [node.value for node in nodes]
        out, last = of_values(given, *args, **kwargs)
        return _changed(given, last), out

    del of_nodes.__wrapped__  # type: ignore[attr-defined]
    return of_nodes


def _changed(given: Sequence[Any], last: Sequence[Any]) -> list[Any]:
    """The final values, None for that of a ref that was only read."""
    return [None if new is old else new for old, new in zip(given, last, strict=True)]
