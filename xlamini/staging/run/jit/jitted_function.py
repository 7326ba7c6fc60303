"""jit: trace once per signature, compile, and run through jaxlib's C++ dispatch.

C++ dispatch caches the signatures that it has seen. A cache miss, or a call made while tracing, comes to
`Jitted.on_miss`. There it runs as a compiled program, or becomes a `jit` equation of the program being traced.
"""
from __future__ import annotations

import copy
import functools
import weakref
from collections.abc import Callable
from typing import Any

from xlamini.core import Tracer, Values, flatten_from_user, paused_gc, unflatten
from xlamini.core.caching.memo import alive, register
from xlamini.core.caching.structure import Structure
from xlamini.core.errors.frames import is_own
from xlamini.core.events import PREPARED, Phase
from xlamini.core.flags import config
from xlamini.core.flags.compile_flags import compile_key
from xlamini.core.flags.jax_flags import debug_infs, debug_key_reuse, debug_nans, debug_purity
from xlamini.core.program.jaxpr import is_expanded
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.core.tracing.state import state
from xlamini.runtime.arrays.transfer_guards import is_guarded
from xlamini.runtime.execution.dispatch import CAPACITY, cached_signatures, clear_signatures
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.pipeline import expanded
from xlamini.staging.compile.placement import Placement, orders_of_call, placement, requested_by
from xlamini.staging.compile.program import Program, compile_lowered
from xlamini.staging.run.diagnostics.large_captures import warn_of_large_captures
from xlamini.staging.run.jit.call_plan import CallPlan, with_values_for_types
from xlamini.staging.run.jit.calls_without_cpp import PythonCalls
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.donation import donated_leaves, warn_of_unusable
from xlamini.staging.run.jit.entries import entry_of_lowering, entry_of_program, entry_of_trace, keep_trace
from xlamini.staging.run.jit.hi_calls import plan_in_arrays, takes_or_returns_values, trace_in_arrays
from xlamini.staging.run.jit.inspectable import Inspectable
from xlamini.staging.run.jit.jit_caches import ProgramKey, program_once, shared_caches, traces, unshare, with_refs
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.nested_call import while_tracing
from xlamini.staging.trace.arguments import ArgNames, avals_of, check_values, has_refs, name_of, refuse_leaked
from xlamini.staging.trace.hi_arguments import with_values
from xlamini.staging.trace.ref_arguments import pure, run_with_values
from xlamini.staging.trace.ref_threading import Cells, run_with_refs, store, threaded, values_of, with_touched
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.sharding_prefix import flatten_shardings, in_spaces, resharded_avals, spaces_of
from xlamini.staging.trace.static_args import check_hashable, take_out
from xlamini.staging.trace.tracing import Trace, of_dynamic, trace

jitted_functions: weakref.WeakSet[Jitted] = weakref.WeakSet()


def _clear_dispatch() -> None:
    """Empty the C++ caches of all jitted functions, so that each call comes to `on_miss` again."""
    unshare()
    for jitted in alive(jitted_functions):
        jitted.clear_dispatch()
    clear_signatures()


register("dispatch: signatures in C++", CAPACITY, cached_signatures, _clear_dispatch)


class Jitted(Inspectable):
    """A jitted function: its options, its traces and its programs."""

    def __init__(self, fun: Callable[..., Any], options: Options):
        self.fun, self.name, self.options = fun, name_of(fun), options
        self.caches = shared_caches(fun, options.key)
        self.takes_static, self.donates = bool(options.static), bool(options.donate)
        self.in_python = PythonCalls(options.static)
        self.function: Any = None
        self.check: Callable[[Values], None] | None = None
        """Called with the arguments of a new signature, but for static ones: it may raise."""
        jitted_functions.add(self)

    def on_miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """The outputs, and the fast path by which C++ runs this signature from now on."""
        if self.check is not None:
            self.check(self.options.dynamic(args, kwargs))
        cached = self.in_python.run(args, kwargs) if self.in_python.calls else None
        if cached is not None:
            return cached
        try:
            return self._run(args, kwargs)
        except RefEscaped as touched:
            cells = with_touched((), touched)
        return run_with_refs(cells, self._with_ref_args, args, kwargs)

    def deep_copy(self, memo: dict[int, Any]) -> Any:
        """The jitted function itself, as a function is copied; that of a bound method is bound to the object's copy."""
        fun = copy.deepcopy(self.fun, memo)
        return self.function() if fun is self.fun else wrapped(Jitted(fun, self.options))

    def _with_ref_args(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Run with the values of the touched refs as further arguments and results; C++ cannot do this by itself."""
        threading = cells[0].memo.get((self, cells))
        if threading is None:
            jitted = Jitted(threaded(self.fun, cells), self.options.shifted())
            threading = with_refs.keep(cells[0], (self, cells), wrapped(jitted))
        out, values = threading(values_of(cells), *args, **kwargs)
        store(cells, values)
        return out, None, False

    @functools.cached_property
    def of_values(self) -> Any:
        """The jitted function of opened arguments, which returns the final values of the refs among them besides."""
        outs = self.options.out_shardings
        return wrapped(Jitted(pure(self.fun), self.options._replace(out_shardings=outs and (outs, None))))

    def _run(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        plan = self.plan(args, kwargs)
        if plan.has_refs:
            return run_with_values(f"{self.name} for jit", self.of_values, args, kwargs), None, False
        traced = self.trace(plan)
        if ShapeDtypeStruct in map(type, plan.leaves) and (given := with_values_for_types(args, kwargs, plan, traced)):
            return self.function()(*given[0], **given[1]), None, False
        if state.builder is not None:
            return while_tracing(self, traced, plan, args, kwargs), None, False
        check_values(plan.leaves, plan.names, self.name)
        given = plan
        plan, traced = self.lower_hi_values(given, traced)
        refuse_leaked(traced.captured)
        where = self.placement(plan, traced)
        program = self._program(plan, traced, where.device)
        operands = [*(program.constants(traced.captured) if is_guarded() else traced.captured), *plan.leaves]
        in_cpp = program.runs_in_cpp and program.takes_as_they_lie(operands)
        if debug_nans.value or debug_infs.value or debug_key_reuse.value or traced.outside:
            from xlamini.staging.run.eager.debug_run import debugged  # for those who look only

            outs = debugged(self, traced, plan, lambda: program(operands, where.committed, plan.names))
            return with_values(unflatten(traced.out_tree, outs)), None, False
        outs = program(operands, where.committed, plan.names)
        out = unflatten(traced.out_tree, outs)
        if plan is not given:
            return with_values(out), None, False
        fast_path = None
        if in_cpp and not (plan.statics is not None and plan.statics.are_ambiguous):
            out_tree = dispatch_registry.flatten(out)[1]
            fast_path = program.fast_path(traced.captured, plan.leaves, out_tree, where.committed)
        else:
            self.in_python.add(plan, traced, program, where.committed)
        return out, fast_path, False

    def lower_hi_values(self, plan: CallPlan, traced: Trace) -> tuple[CallPlan, Trace]:
        """A call and its trace, as they are lowered: with the arrays that values of users' types are made of."""
        if is_expanded(traced.jaxpr) or not takes_or_returns_values(traced):
            return plan, expanded(traced)
        plan = plan_in_arrays(plan, self.fun)
        return plan, trace_in_arrays(traced, plan.names)

    def plan(self, args: Values, kwargs: dict[str, Any]) -> CallPlan:
        """The plan of a call with these arguments."""
        statics, positions, dynamic, keywords = None, None, args, kwargs
        if self.takes_static:
            statics, dynamic, keywords = take_out(self.options.static, args, kwargs)
            check_hashable(self.fun, statics)
            taken = {position for position, _ in statics.by_num}
            positions = [i for i in range(len(args)) if i not in taken]
        leaves, tree = flatten_from_user((tuple(dynamic), keywords))
        if has_refs(leaves):
            return CallPlan(leaves, tree, (), (), statics, positions, (), [], True)
        names = ArgNames(self.fun, tree, positions)
        avals, asked = avals_of(leaves, names, self.name, self._or_static), self.options.in_shardings
        if asked is None:
            return CallPlan(leaves, tree, names, avals, statics, positions, (), [])
        shardings = flatten_shardings("in_shardings", (asked, None), tree, "args", avals)
        return CallPlan(leaves, tree, names, resharded_avals(avals, shardings), statics, positions, shardings, [])

    def out_shardings(self, traced: Trace) -> Values:
        """The sharding asked for each output, None for any; empty if nothing was asked."""
        if (asked := self.options.out_shardings) is None:
            return ()
        return flatten_shardings("out_shardings", asked, traced.out_tree, "output", traced.jaxpr.out_avals)

    @property
    def _or_static(self) -> str:
        """Further advice for an argument that is no array; the library's own functions have their static ones."""
        return "" if is_own(self.fun) else ", or mark it static with static_argnames or static_argnums"

    def key(self, plan: CallPlan) -> tuple:
        """What a trace depends on."""
        statics = None if plan.statics is None else plan.statics.key
        return (plan.tree, tuple(plan.avals), statics, config.trace_context_key(), state.axes)

    def trace(self, plan: CallPlan) -> Trace:
        """The trace of this signature, made once."""
        key = self.key(plan)
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
        traced = trace(fun, plan.tree, plan.avals, None, plan.names, self.name, call=entry)
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

    def _program(self, plan: CallPlan, traced: Trace, device: Any) -> Program:
        key = self.program_key(plan, traced, device)
        return program_once(self.caches, key, self.name, lambda: self.compiled(plan, traced, device))

    def program_key(self, plan: CallPlan, traced: Trace, device: Any) -> ProgramKey:
        """What the program of a call depends on."""
        donated = tuple(self.donated(plan)) if self.donates else ()
        flags = compile_key(), donated, config.trace_context_key()
        return ProgramKey(Structure(traced.jaxpr), device, *flags, orders_of_call(self.options, plan, traced))

    def compiled(self, plan: CallPlan, traced: Trace, device: Any) -> Program:
        """The program of this signature, compiled for a device or a mesh."""
        entry_of_program(self, traced, plan, device)
        program = compile_lowered(self.lower(plan, traced, device, in_segments=True), self.options.compiler)
        self.caches.compiled += 1
        return program

    def lower(self, plan: CallPlan, traced: Trace, device: Any, in_segments: bool = False) -> CompileRequest:
        """The program of this signature, lowered for a device or a mesh."""
        captured, options, entry = len(traced.captured), self.options, entry_of_lowering(self, plan)
        donated = [False] * captured + self.donated(plan)
        with paused_gc(), Phase(PREPARED, self.name, call=entry):
            how = options.keep_unused, options.outline, in_segments, orders_of_call(options, plan, traced)
            lowered = CompileRequest(traced.jaxpr, self.name, device, donated, *how)
        lowered.ledger_entry = entry
        if captured:
            warn_of_large_captures(self.name, traced.jaxpr, traced.captured)
        if lowered.unusable:
            warn_of_unusable(self.name, plan, [i - captured for i in lowered.unusable])
        return lowered

    def donated(self, plan: CallPlan) -> list[bool]:
        """For each leaf, whether the caller donates it."""
        if not self.donates or (debug_nans.value or debug_infs.value):
            return [False] * len(plan.leaves)
        return donated_leaves(self.options.donate, plan)

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
