"""A call of a jitted function, ahead of time: how it is traced, lowered and compiled. Later calls run its program."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from xlamini.core import Cell, Values, flatten, hooks, unflatten
from xlamini.core.program.mutable_values import first_holder
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.core.tracing.state import state
from xlamini.runtime.execution.executable import CompilerOptions
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.placement import AskedShardings, absent_placement, asked_shardings, elsewhere
from xlamini.staging.compile.program import Program, compile_lowered
from xlamini.staging.run.jit.call_plan import CallPlan, call_in_arrays
from xlamini.staging.run.programs import find_or_make
from xlamini.staging.trace.arguments import ArgNames
from xlamini.staging.trace.tracing import Trace, TracedCall

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted


def ahead_of_time(jitted: Jitted, args: Values, kwargs: dict[str, Any]) -> AheadOfTime:
    """A call with arguments of these types, traced."""
    plan = jitted.plan(args, kwargs)
    if not plan.has_refs:
        try:
            return AheadOfTime(jitted, plan, jitted.trace(plan))
        except RefEscaped as touched:
            if touched.builder.parent is not state.builder:
                raise
    return AheadWithRefs(jitted, plan, *jitted.ref_calls().traced(args, kwargs))


class AheadOfTime:
    """A call with arguments of certain types; the stages of compilation ask it for what comes next."""

    def __init__(self, jitted: Jitted, plan: CallPlan, traced: Trace):
        self._jitted, self._plan, self._trace = jitted, plan, traced

    @property
    def options(self) -> CompilerOptions | None:
        """The options of XLA that were given to `jit`."""
        return self._jitted.options.compiler

    def traced(self) -> TracedCall:
        """The call as it was traced: with refs, where the function reads or writes some."""
        return self._call(self._plan, self._trace)

    def lowered(self) -> TracedCall:
        """The call as it is lowered, in which a value of a user's type is the arrays that it is made of."""
        return self._call(*self._in_arrays)

    def asked(self) -> AskedShardings:
        """The shardings that were asked for."""
        outs = self._jitted.out_shardings(self._trace)
        return asked_shardings(self._plan.leaves, self._plan.in_shardings, self._trace.jaxpr, outs)

    def lower(self, where: Any) -> CompileRequest:
        """The program for the device, target or platform named; None is where a call would run it."""
        plan, traced = self._in_arrays
        asked = self.asked()
        asked = asked._replace(ins=[*[None] * len(traced.captured), *asked.ins])
        if absent := absent_placement(asked, traced.jaxpr, where):
            return self._jitted.lower(plan, traced, absent)
        placed, committed = self._jitted.placement(plan, traced)
        device = elsewhere(where, placed, self._jitted.name)
        program = self._jitted.lower(plan, traced, device)
        program.of_calls = self._jitted.program_key(plan, traced, placed) if device is placed else None
        program.committed = committed
        return program

    def compile(self, lowered: CompileRequest) -> Program:
        """The program, which later calls run too. It is an earlier call's, unless that runs in segments."""

        def make() -> Program:
            return compile_lowered(lowered, self.options)

        plan, traced = self._in_arrays
        key = lowered.of_calls
        if key is None or key != self._jitted.program_key(plan, traced, key.device):  # flags have been changed
            return make()
        program = find_or_make(self._jitted.owner, key, self._jitted.name, make)
        return program if program.executable.is_single else make()

    @functools.cached_property
    def _in_arrays(self) -> tuple[CallPlan, Trace]:
        return call_in_arrays(self._jitted.fun, self._plan, self._trace)

    def _call(self, plan: CallPlan, traced: Trace) -> TracedCall:
        jitted = self._jitted
        return TracedCall(traced, plan.tree, jitted.name, jitted.donated(plan, traced), jitted.options.static.names)


class AheadWithRefs(AheadOfTime):
    """A call of a function that takes refs, or closes over some: its program can be inspected as it is traced.

    `cells` are those of the refs that it closes over.
    """

    def __init__(self, jitted: Jitted, plan: CallPlan, of_values: Trace, cells: Sequence[Cell]):
        assert of_values.of_refs is not None
        super().__init__(jitted, plan, of_values.of_refs)
        self._cells = cells

    def traced(self) -> TracedCall:
        """The call; what boxes hold at the end, its program returns after the output."""
        traced, plan, jitted = self._trace, self._plan, self._jitted
        last, out = unflatten(traced.out_tree, traced.jaxpr.outvars)
        if self._cells and plan.has_refs:  # a function of the cells of a function of the arguments
            of_arguments, out = out
            last = [*last, *of_arguments]
        outs, out_tree = flatten(out)
        jaxpr = traced.jaxpr.replace(outvars=[*outs, *flatten(last)[0]])
        captured = [*traced.captured, *map(hooks.ref_of, self._cells)]
        names = ArgNames(jitted.fun, plan.tree, plan.positions)
        shown = traced._replace(jaxpr=jaxpr, captured=captured, out_tree=out_tree, names=names)
        donated = [False] * (len(jaxpr.invars) - len(captured))
        return TracedCall(shown, plan.tree, jitted.name, donated, jitted.options.static.names)

    def asked(self) -> NoReturn:
        """A TypeError: what a program of values returns, nobody would write to the refs."""
        cell = next(iter(self._cells), None) or first_holder(self._plan.leaves)
        raise TypeError(
            f"{self._jitted.name} uses {cell.noun}; the stages of compilation take its value, {cell.reading}, so write "
            "the function to return the new one"
        )

    def lower(self, where: Any) -> NoReturn:
        """The same error."""
        self.asked()
