"""jit: trace once per signature, compile, and run through jaxlib's C++ dispatch.

C++ dispatch caches the signatures that it has seen. A cache miss, or a call made while tracing, comes to
`Jitted.on_miss`. There it runs as a compiled program, or becomes a `jit` equation of the program being traced.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Hashable
from typing import Any

from xlamini.core import Tracer, Values, paused_gc
from xlamini.core.caching.structure import Structure, executable_key
from xlamini.core.events import PREPARED, Phase
from xlamini.core.flags import config
from xlamini.core.flags.compile_flags import compile_key
from xlamini.core.flags.jax_flags import debug_infs, debug_key_reuse, debug_nans, debug_purity
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder
from xlamini.runtime.arrays.transfer_guards import is_guarded
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.placement import Placement, orders_of_call, placement, requested_by
from xlamini.staging.compile.program import BoundProgram, Program, compile_lowered
from xlamini.staging.run.diagnostics.large_captures import warn_of_large_captures
from xlamini.staging.run.jit.call_plan import CallPlan, call_in_arrays, plan_call, with_values_for_types
from xlamini.staging.run.jit.calls_without_cpp import PythonCalls
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.donation import donated_leaves, warn_of_unusable
from xlamini.staging.run.jit.entries import (
    ProgramSource,
    entry_of_lowering,
    entry_of_program,
    entry_of_trace,
    keep_trace,
)
from xlamini.staging.run.jit.in_place import InPlace
from xlamini.staging.run.jit.inspectable import Inspectable
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.nested_call import while_tracing
from xlamini.staging.run.jit.ref_calls import RefCalls
from xlamini.staging.run.programs import ProgramKey, SharedCaches, find_or_make, shared, shared_caches, traces
from xlamini.staging.trace.arguments import check_values, name_of, refuse_leaked
from xlamini.staging.trace.hi_arguments import with_values
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.sharding_prefix import flatten_shardings, in_spaces, spaces_of
from xlamini.staging.trace.tracing import Trace, of_dynamic, trace


class Jitted(Inspectable):
    """A jitted function: its options, its traces and its programs."""

    donates: bool
    shares_programs: bool
    fun: Callable[..., Any]
    name: str
    options: Options

    def __init__(self, fun: Callable[..., Any], options: Options):
        self.fun, self.name, self.options = fun, name_of(fun), options
        self.caches: SharedCaches = shared_caches(fun, options.key)
        self.donates, self.shares_programs = bool(options.donate), False
        """Whether functions of its name and structure run its programs: it is made anew in each call."""
        self.in_python: PythonCalls = PythonCalls(options.static)
        self.function: Any = None
        self.with_refs: RefCalls | None = None
        """Its calls with refs, once there was one."""
        self.in_place: InPlace | None = None
        """Of a function of refs' values: whose memory it takes."""
        self.instead: Callable[[Values, dict[str, Any]], Callable[..., Any] | None] | None = None
        """Asked at a new signature, with its arguments: it may raise, or return a function to be called."""

    def on_miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """The outputs, and the fast path by which C++ runs this signature from now on."""
        other = self.instead(args, kwargs) if self.instead is not None else None
        if other is not None:
            return other(*args, **kwargs), None, False
        if self.with_refs is not None and (found := self.with_refs.run(args, kwargs)) is not None:
            return found
        cached = self.in_python.run(args, kwargs) if self.in_python.calls else None
        if cached is not None:
            return cached
        try:
            return self._run(args, kwargs)
        except RefEscaped as touched:
            return self.ref_calls().with_touched(touched, args, kwargs)

    def deep_copy(self, memo: dict[int, Any]) -> Any:
        """The jitted function itself, as a function is copied; that of a bound method is bound to the object's copy."""
        fun = copy.deepcopy(self.fun, memo)
        return self.function() if fun is self.fun else wrapped(Jitted(fun, self.options))

    def _run(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        plan = self.plan(args, kwargs)
        if plan.has_refs:
            return self.ref_calls().with_arguments(args, kwargs)
        traced = self.trace(plan)
        if ShapeDtypeStruct in map(type, plan.leaves) and (given := with_values_for_types(args, kwargs, plan, traced)):
            return self.function()(*given[0], **given[1]), None, False
        if state.builder is not None:
            return while_tracing(self, traced, plan, args, kwargs), None, False
        check_values(plan.leaves, plan.names, self.name)
        return self._run_lowered(plan, *call_in_arrays(self.fun, plan, traced))

    def traced_call(self, args: Values, kwargs: dict[str, Any]) -> Any:
        """The output of a call that is part of a program."""
        plan = self.plan(args, kwargs)
        return while_tracing(self, self.trace(plan), plan, args, kwargs)

    def ref_calls(self) -> RefCalls:
        """Its calls with refs."""
        if self.with_refs is None:
            self.with_refs = RefCalls(self)
        return self.with_refs

    def _run_lowered(self, given: CallPlan, plan: CallPlan, traced: Trace) -> tuple[Any, Any, bool]:
        refuse_leaked(traced.captured)
        where = self.placement(plan, traced)
        key = self.program_key(plan, traced, where.device)
        program = find_or_make(self.owner, key, self.name, lambda: self.compiled(plan, traced, where.device))
        captured = program.constants(traced.captured) if traced.captured and is_guarded() else traced.captured
        bound = BoundProgram(program, captured, traced.out_tree, plan.names, where.committed)
        in_cpp = program.runs_in_cpp and program.takes_as_they_lie([*captured, *plan.leaves])
        if debug_nans.value or debug_infs.value or debug_key_reuse.value or traced.outside:
            from xlamini.staging.run.diagnostics.bad_values import debugged  # for those who look only

            return with_values(debugged(self.fun, traced.jaxpr, bound, plan.leaves)), None, False
        out = bound(plan.leaves)
        if plan is not given:
            return with_values(out), None, False
        if in_cpp and not (plan.statics is not None and plan.statics.are_ambiguous):
            return out, bound.in_cpp(plan.leaves, out), False
        self.in_python.add(plan, bound)
        return out, None, False

    def plan(self, args: Values, kwargs: dict[str, Any]) -> CallPlan:
        """The plan of a call with these arguments."""
        return plan_call(self.fun, self.name, self.options, args, kwargs)

    def out_shardings(self, traced: Trace) -> Values:
        """The sharding asked for each output, None for any; empty if nothing was asked."""
        if (asked := self.options.out_shardings) is None:
            return ()
        return flatten_shardings("out_shardings", asked, traced.out_tree, "output", traced.jaxpr.out_avals)

    def trace(self, plan: CallPlan) -> Trace:
        """The trace of this signature, made once."""
        key = plan.trace_key()
        cached = self.caches.traces.get(key)
        if cached is not None:
            if cached.outside:
                from xlamini.staging.run.diagnostics.purity_check import warn_of_changes  # for those who look only

                warn_of_changes(self.name, cached.outside)
            return cached._replace(names=plan.names)
        if state.builder is not None:
            cached = state.builder.memo.get((self, key))
        return self._new_trace(key, plan) if cached is None else cached

    def _new_trace(self, key: Any, plan: CallPlan) -> Trace:
        entry, fun = entry_of_trace(self, key, plan), functools.partial(of_dynamic, self.fun, plan.statics)
        types = plan.avals if self.in_place is None else self.in_place.types(plan)
        kind = BodyBuilder if self.in_place is None else Builder  # a program of values has no refs of others
        traced = trace(fun, plan.tree, types, None, plan.names, self.name, kind=kind, call=entry)
        if self.in_place is not None:
            traced = self.in_place.discharged(plan, traced)
        captures_tracers = any(type(x) is Tracer for x in traced.captured)
        keep_trace(self, key, plan, entry, captures_tracers)
        if shardings := self.out_shardings(traced):
            traced = traced._replace(jaxpr=in_spaces(traced.jaxpr, spaces_of(shardings)))
        if debug_purity.value:
            from xlamini.staging.run.diagnostics.purity_check import with_values_outside  # for those who look only

            traced = with_values_outside(traced, self.fun, plan.statics)
        if captures_tracers:
            # Captured tracers belong to the enclosing trace; the next one captures its own.
            assert state.builder is not None
            state.builder.memo[self, key] = traced
        else:
            own = traced.of_its_own()
            kept = traces.keep(self.caches, key, own._replace(names=(), builder=None))
            if kept.jaxpr is not traced.jaxpr:  # another thread was faster
                return kept._replace(names=plan.names)
            if state.builder is None:  # an enclosing trace knows by identity that it captures an array too
                return own
        return traced

    def placement(self, plan: CallPlan, traced: Trace) -> Placement:
        """The devices of a call."""
        requested = requested_by(traced.jaxpr)
        if self.options.device is not None:
            requested = requested._replace(device=self.options.device)
        outs = self.out_shardings(traced)
        if plan.in_shardings or outs:
            requested = requested._replace(ins=plan.in_shardings, outs=outs)
        return placement([*traced.captured, *plan.leaves], plan.names, self.name, requested)

    def program_key(self, plan: CallPlan, traced: Trace, device: Any) -> ProgramKey:
        """What the program of a call depends on."""
        donated = tuple(self.donated(plan, traced)) if self.donates or self.in_place else ()
        flags = compile_key(), donated, config.trace_context_key()
        return ProgramKey(self.structure(traced), device, *flags, orders_of_call(self.options, plan, traced))

    def structure(self, traced: Trace) -> Hashable:
        """What stands for a trace in keys of programs; in those that are shared it keeps no jaxpr alive."""
        return (self.name, executable_key(traced.jaxpr)) if self.shares_programs else Structure(traced.jaxpr)

    @property
    def owner(self) -> SharedCaches:
        """Who keeps its programs."""
        return shared if self.shares_programs else self.caches

    def compiled(self, plan: CallPlan, traced: Trace, device: Any) -> Program:
        """The program of this signature, compiled for a device or a mesh."""
        entry_of_program(self, traced, plan, device)
        program = compile_lowered(self.lower(plan, traced, device, in_segments=True), self.options.compiler)
        self.caches.compiled += 1
        return program

    def lower(self, plan: CallPlan, traced: Trace, device: Any, in_segments: bool = False) -> CompileRequest:
        """The program of this signature, lowered for a device or a mesh."""
        captured, options, entry = len(traced.captured), self.options, entry_of_lowering(self, plan)
        donated = [False] * captured + self.donated(plan, traced) if self.donates or self.in_place else ()
        with paused_gc(), Phase(PREPARED, self.name, call=entry):
            how = options.keep_unused, options.outline, in_segments, orders_of_call(options, plan, traced)
            lowered = CompileRequest(traced.jaxpr, self.name, device, donated, *how)
        lowered.ledger_entry = entry
        lowered.source = None if self.shares_programs else ProgramSource(self, plan, traced, lowered)
        if captured:
            warn_of_large_captures(self.name, traced.jaxpr, traced.captured)
        if lowered.unusable:
            warn_of_unusable(self.name, plan, [i - captured for i in lowered.unusable])
        return lowered

    def donated(self, plan: CallPlan, traced: Trace) -> list[bool]:
        """For each leaf, whether the caller donates it, or it is the value of a ref that is given another one."""
        donated = [False] * len(plan.leaves)
        if debug_nans.value or debug_infs.value:
            return donated
        if self.donates:
            donated = donated_leaves(self.options.donate, plan)
        return donated if self.in_place is None else list(map(max, donated, self.in_place.donated(plan, traced)))

    def forget(self) -> None:
        """Drop all traces and programs."""
        self.caches.traces.clear()
        self.caches.programs.clear()
        self.in_python.calls.clear()
        self.clear_dispatch()

    def clear_dispatch(self) -> None:
        """Empty the C++ cache of this function."""
        function = self.function()
        if function is not None:
            function._clear_cache()
