"""Calls of jitted functions with refs, among the arguments or touched inside: a function of their values runs.

The final value of a ref that was written takes the memory of its value. A value that somebody holds, who has read it,
is copied first; a ref that is only read stays as it is. C++ cannot run such a call by itself.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from xlamini.core import Avals, Cell, Jaxpr, Tracer, Values, flatten, hooks, once, subjaxprs, unflatten
from xlamini.core.program.ref_cells import FREED, RefEscaped, Taken
from xlamini.core.program.ref_types import AbstractRef, RefVariable
from xlamini.core.pytree import structure
from xlamini.core.tracing.state import state
from xlamini.interpreters.discharge import discharge, read_by, without_idle_reads, written
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
        self.of_cells: dict[Cells, InPlace] = {}
        """The functions of the values of refs that it closes over."""

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
        except (RefEscaped, _NoneTouched):  # it touches others, or with these arguments none
            self._touched = ()
            return None

    def with_arguments(self, args: Values, kwargs: dict[str, Any], flat: Any = None) -> Missed:
        """A call with refs among the arguments, which `flat` are as leaves and treedef, if the caller has them."""
        in_place = self._of_opened()
        refs = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs), flat)
        opened, named = refs.tree
        return in_place.run(refs.cells, refs.nodes, opened, named, refs.passed()), None, False

    def _of_opened(self) -> InPlace:
        """The function of the values of the refs among its arguments."""
        if self._of_arguments is None:
            self._of_arguments = InPlace(self._jitted, _of_arguments(self._jitted.fun), self._jitted.options)
        return self._of_arguments

    def with_touched(self, touched: RefEscaped, args: Values, kwargs: dict[str, Any]) -> Missed:
        """A call of the function, which touches this ref and maybe others."""
        return run_with_refs(with_touched((), touched), self._with_cells, args, kwargs)

    def _with_cells(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> Missed:
        nodes, in_place = _nodes_of(cells), self._in_place(cells)
        out = in_place.run(cells, nodes, (nodes, *args), kwargs, nullcontext())
        self._touched = list(map(weakref.ref, cells))
        return out, None, False

    def _in_place(self, cells: Cells) -> InPlace:
        """The function of the values of these cells."""
        jitted, known = self._jitted, self.of_cells.get(cells)
        if known is not None:
            return known
        options, ins = jitted.options.shifted(), jitted.options.in_shardings
        if isinstance(ins, tuple | list):
            options = options._replace(in_shardings=(None, *ins))
        return with_refs.keep(self, cells, InPlace(jitted, _of_cells(jitted.fun, cells), options, len(cells)))

    def traced(self, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        """The trace of a call, and the cells of the refs that the function closes over."""
        refs = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs))
        if not refs.cells:
            return self._traced(args, kwargs)
        with refs.passed():
            return self._of_opened().jitted.ref_calls()._traced(*refs.tree)

    def _traced(self, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        try:
            return self._jitted.trace(self._jitted.plan(args, kwargs)), ()
        except RefEscaped as touched:
            return run_with_refs(with_touched((), touched), self._traced_with_cells, args, kwargs)

    def _traced_with_cells(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        jitted = self._in_place(cells).jitted
        return jitted.trace(jitted.plan((_nodes_of(cells), *args), kwargs)), cells

    def _cells_of_last_call(self) -> Cells | None:
        cells = tuple(found for reference in self._touched if (found := reference()) is not None)
        is_usable = len(cells) == len(self._touched) and all(c.owner is None and c.value is not FREED for c in cells)
        return cells if is_usable else None


class _NoneTouched(Exception):
    """A function that closes over refs uses none of them with these arguments, so it is called as others are."""


class InPlace:
    """A jitted function of the values of refs, which returns the values that they were given, and its output.

    It is traced as a function of the refs, and its program is that of their values (interpreters/discharge.py). What is
    no array, such as a box, is a value in the trace too.
    """

    def __init__(self, caller: Jitted, fun: Callable[..., Any], options: Any, cells: int = 0):
        self._num_cells = cells
        outs = options.out_shardings
        self.jitted = type(caller)(fun, options._replace(out_shardings=outs and (None, (None, outs))))
        self.jitted.in_place = self
        self._function = wrapped(self.jitted)
        self._is_nested = caller.in_place is not None
        self._takes: bool | None = None
        """Whether its program takes the memory of refs; None before the first trace."""

    def run(
        self,
        cells: Sequence[Cell],
        nodes: Sequence[RefArgument],
        args: Values,
        kwargs: dict[str, Any],
        passed: AbstractContextManager[None],
    ) -> Any:
        """The output for arguments in which the nodes stand for refs, after the refs were given their new values."""
        token = Taken()
        try:
            with passed:
                finals, (last, out) = self._called(token, cells, nodes, args, kwargs)
            for cell, of_ref, of_other in zip(cells, finals, last, strict=False):
                if of_ref is not None:
                    cell.write(of_ref)
                elif of_other is not None:
                    cell.write(*of_other)
            return (finals[len(cells) :], out) if self._is_nested else out
        finally:
            for cell, node in zip(cells, nodes, strict=True):
                if type(cell) is Cell and cell.value is token:
                    cell.value = node.value

    def _called(
        self, token: Taken, cells: Sequence[Cell], nodes: Sequence[RefArgument], args: Values, kwargs: dict[str, Any]
    ) -> Any:
        """What the function returns.

        A thread that reads a ref after its value was found to be held by nobody waits until the token is gone. Within
        a transformation the call may run at once, and again when the transformation threads the ref.
        """
        if self._takes is None:
            self._trace(args, kwargs)
        own = 2 if state.builder is None else 0
        if self._takes and own:
            own = 1
            for cell in cells:
                if type(cell) is Cell:
                    cell.value = token
        pairs = enumerate(zip(cells, nodes, strict=True))
        held = [i for i, (cell, node) in pairs if type(cell) is Cell and is_held(node.value, own)]
        if held:
            self._copy_held(held, nodes, args, kwargs)
        return self._function(*args, **kwargs)

    def _copy_held(
        self, held: Sequence[int], nodes: Sequence[RefArgument], args: Values, kwargs: dict[str, Any]
    ) -> None:
        """Copy the values that somebody holds and the function replaces."""
        plan, traced = self._trace(args, kwargs)
        donated = [True] * len(plan.leaves) if traced is None else self.donated(plan, traced)
        of_leaves = _nodes(plan)
        for i in held:
            if donated[of_leaves[i].value]:
                nodes[i].value = copy_of(nodes[i].value)

    def _trace(self, args: Values, kwargs: dict[str, Any]) -> tuple[CallPlan, Trace | None]:
        """The plan and the trace of a call; None if it closes over other refs, and is traced with those."""
        plan = self.jitted.plan(args, kwargs)
        try:
            return plan, self.jitted.trace(plan)
        except RefEscaped:
            self._takes = False
            return plan, None

    def types(self, plan: CallPlan) -> Avals:
        """The types of the leaves in the trace."""
        types = list(plan.avals)
        for node in _nodes(plan):
            if _is_ref(node):
                types[node.value] = AbstractRef(types[node.value])
        return types

    def discharged(self, plan: CallPlan, traced: Trace) -> Trace:
        """The trace of the values, which returns a new value, or None, for each node, and what the function does."""
        leaves = traced.jaxpr.invars[len(traced.captured) :]
        own = _nodes(plan)[: self._num_cells]
        if own and all(map(_is_ref, own)) and read_by(traced.jaxpr).isdisjoint([leaves[n.value] for n in own]):
            raise _NoneTouched
        kept = set(written(traced.jaxpr))
        finals = [0 if _is_ref(node) and leaves[node.value] in kept else None for node in _nodes(plan)]
        outs = unflatten(traced.out_tree, [0] * traced.out_tree.num_leaves)
        of_refs = traced._replace(jaxpr=without_idle_reads(traced.jaxpr), names=(), builder=None)
        of_values = discharge(traced.jaxpr)
        self._takes = bool(kept) and not _may_fail(of_values)
        return traced._replace(jaxpr=of_values, out_tree=structure((finals, outs)), of_refs=of_refs)

    def donated(self, plan: CallPlan, traced: Trace) -> list[bool]:
        """For each leaf of the arguments, whether it is the value of a ref that is given another one.

        A program with effects, or that calls code outside, may fail after it took the memory, so it takes none.
        """
        finals, _ = unflatten(traced.out_tree, [0] * traced.out_tree.num_leaves)
        donated = [False] * len(plan.leaves)
        for node, new in zip(_nodes(plan), finals, strict=True):
            if new is not None:
                donated[node.value] = not is_extended(plan.avals[node.value])
        return donated if any(donated) and not _may_fail(traced.jaxpr) else [False] * len(plan.leaves)


def _nodes_of(cells: Cells) -> list[RefArgument]:
    return [RefArgument(type(cell), cell.read()) for cell in cells]


@once
def _may_fail(jaxpr: Jaxpr) -> bool:
    """Whether a program has effects, or calls code outside."""
    return bool(jaxpr.effects) or any(
        eqn.primitive.checks.opaque or any(map(_may_fail, subjaxprs(eqn))) for eqn in jaxpr.eqns
    )


def _nodes(plan: CallPlan) -> list[RefArgument]:
    """The nodes in the arguments of a call, with the numbers of their leaves in place of the values."""
    nodes = flatten(unflatten(plan.tree, range(len(plan.leaves))), is_ref_argument)[0]
    return [node for node in nodes if is_ref_argument(node)]


def _is_ref(node: RefArgument) -> bool:
    """Whether a node stands for a ref, not for a box or a value of a user's type."""
    return node.kind is Cell or node.kind is hooks.ref_of


def _of_arguments(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arguments in which nodes stand for refs."""
    of_values = pure(fun)

    @functools.wraps(fun)
    def of_nodes(*args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        nodes = [x for x in flatten((args, kwargs), is_ref_argument)[0] if is_ref_argument(x)]
        for node in nodes:
            node.value = _as_held(node.value)
        given = [node.value for node in nodes]
        out, last = of_values(*args, **kwargs)
        return _changed(given, last), out

    return of_nodes


def _of_cells(fun: Callable[..., Any], cells: Cells) -> Callable[..., Any]:
    """The function of nodes that stand for the cells, and of its own arguments."""
    of_values = threaded(fun, cells)

    @functools.wraps(of_values)
    def of_nodes(nodes: Sequence[RefArgument], /, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        given = [_as_held(node.value) for node in nodes]
        out, last = of_values(given, *args, **kwargs)
        return _changed(given, last), out

    del of_nodes.__wrapped__  # type: ignore[attr-defined]
    return of_nodes


def _as_held(value: Any) -> Any:
    """A traced value as its cell holds it: a ref of the program, or the value."""
    return RefVariable(value) if type(value) is Tracer and type(value.aval) is AbstractRef else value


def _changed(given: Sequence[Any], last: Sequence[Any]) -> list[Any]:
    """The final values of what is no ref of the program, each in a tuple; None for what was only read."""
    return [None if new is old else (new,) for old, new in zip(given, last, strict=True)]
