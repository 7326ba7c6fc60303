"""A jitted function of the values of refs, which gives a ref that it writes the new value in the memory of the old one.

A value that somebody holds, who has read it, is copied first; a ref that is only read stays as it is. C++ cannot run
such a call by itself.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from xlamini.core import Avals, Cell, Jaxpr, Values, flatten, hooks, once, subjaxprs, unflatten
from xlamini.core.program.ref_cells import RefEscaped, Taken
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.pytree import structure
from xlamini.core.tracing.state import state
from xlamini.interpreters.discharge import discharge, read_by, without_idle_reads, written
from xlamini.interpreters.physical import is_extended
from xlamini.runtime.arrays.lifetime import is_held
from xlamini.runtime.arrays.to_device import copy_of
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.trace.ref_arguments import RefArgument, is_ref_argument

if TYPE_CHECKING:
    from xlamini.staging.run.jit.call_plan import CallPlan
    from xlamini.staging.run.jit.jitted_function import Jitted
    from xlamini.staging.trace.tracing import Trace


class NoneTouched(Exception):
    """A function that closes over refs uses none of them with these arguments, so it is called as others are."""


class InPlace:
    """A jitted function of the values of refs, which returns the values that they were given, and its output.

    It is traced as a function of the refs, and its program is that of their values (interpreters/discharge.py). What is
    no array, such as a box, is a value in the trace too.
    """

    def __init__(self, caller: Jitted, fun: Callable[..., Any], options: Any, cells: int = 0):
        self._num_cells = cells
        outs = options.out_shardings
        self.jitted: Jitted = type(caller)(fun, options._replace(out_shardings=outs and (None, (None, outs))))
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
        """The output for arguments in which the nodes replace refs, after the refs were given their new values."""
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
            raise NoneTouched
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
    """Whether a node replaces a ref, not for a box or a value of a user's type."""
    return node.kind is Cell or node.kind is hooks.ref_of
