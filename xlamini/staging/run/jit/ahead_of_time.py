"""A call of a jitted function, ahead of time: how it is traced, lowered and compiled. Later calls run its program."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from xlamini.core.program.mutable_values import first_holder
from xlamini.runtime.execution.executable import CompilerOptions
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.placement import AskedShardings, absent_placement, asked_shardings, elsewhere
from xlamini.staging.compile.program import Program, compile_lowered
from xlamini.staging.run.jit.call_plan import CallPlan, call_in_arrays
from xlamini.staging.run.programs import find_or_make
from xlamini.staging.trace.tracing import Trace, TracedCall

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted


class AheadOfTime:
    """A call with arguments of certain types; the stages of compilation ask it for what comes next."""

    def __init__(self, jitted: Jitted, plan: CallPlan):
        if plan.has_refs:
            raise TypeError(
                f"{jitted.name}: an argument is {first_holder(plan.leaves).noun}; the stages of compilation take its "
                f"value, {first_holder(plan.leaves).reading}, so write the function to return the new one"
            )
        self._jitted, self._plan, self._trace = jitted, plan, jitted.trace(plan)

    @property
    def options(self) -> CompilerOptions | None:
        """The options of XLA that were given to `jit`."""
        return self._jitted.options.compiler

    def traced(self) -> TracedCall:
        """The call as it was traced."""
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
