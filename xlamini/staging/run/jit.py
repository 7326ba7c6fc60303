"""jit: trace once per signature, compile, and run through jaxlib's C++ dispatch.

The C++ path keeps what it has seen. A call with a new signature, or one made while something is being traced, comes to
`Jitted.on_miss`: there it is run through a compiled program, or becomes a `jit` equation of the program being traced.
"""
from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import config
from xlamini.core.api_boundary import edge
from xlamini.core.avals import ShapedArray
from xlamini.core.gc_pause import paused_gc
from xlamini.core.memo import alive, register
from xlamini.core.named_axes import axes_here
from xlamini.core.provenance import is_own, user_stacklevel
from xlamini.core.pytree import flatten, flatten_from_user, unflatten
from xlamini.core.pytree.nodes import dispatch_registry
from xlamini.core.tracer import Tracer, leaked, state
from xlamini.interpreters.evaluate import evaluate
from xlamini.runtime.dispatch import CAPACITY, cached_signatures, clear_signatures, cpp_jit
from xlamini.runtime.keys import key_words
from xlamini.runtime.lifetime import explain_failure
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.call.call import jit_p
from xlamini.staging.compile.placement import Placement, asked_place, elsewhere, placement, shardings_in
from xlamini.staging.compile.program import LoweredProgram, Program
from xlamini.staging.run.call_errors import Explain, guarded
from xlamini.staging.run.jit_caches import programs, shared_caches, traces, unshare, with_refs
from xlamini.staging.run.queued_calls import QueuedCalls
from xlamini.staging.trace.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.staging.trace.ref_threading import Cells, keep_trace, store, threaded, values_of, with_cells
from xlamini.staging.trace.sharding_prefix import all_moved, as_asked, flatten_shardings
from xlamini.staging.trace.static_args import Names, Numbers, Selected, StaticArgs, check_apart, take_out
from xlamini.staging.trace.tracing import Trace, rebuilt, trace

if TYPE_CHECKING:
    from xlamini.staging.aot.stages import Lowered, Traced


class Options(NamedTuple):
    """What the user said to `jit` besides the function."""

    static: Selected
    donate: Selected
    keep_unused: bool = False
    inline: bool = False
    device: Any = None
    compiler: Any = None
    outline: bool | None = None
    in_shardings: Any = None
    out_shardings: Any = None

    def key(self) -> Hashable:
        """Equal for options that say the same."""
        selected = [(s.nums, s.names) for s in (self.static, self.donate)]
        compiler = None if self.compiler is None else tuple(self.compiler.items())
        shardings = [(tuple(leaves), tree) for leaves, tree in map(flatten, (self.in_shardings, self.out_shardings))]
        return (*selected, self.keep_unused, self.inline, self.device, compiler, self.outline, *shardings)

    def shifted(self) -> Options:
        """The same for a function with one more argument before the others."""
        return self._replace(static=self.static.shifted(), donate=self.donate.shifted())


class Call(NamedTuple):
    """One call: its static arguments, and the dynamic ones flat."""

    statics: StaticArgs
    leaves: list[Any]
    tree: Any
    names: Sequence[str]
    avals: list[ShapedArray]
    positions: list[int]
    shardings: Sequence[Any]
    """Those that the user wants the leaves in (None for any), or nothing."""


_jitted: weakref.WeakSet[Jitted] = weakref.WeakSet()


def _clear_dispatch() -> None:
    """Empty the C++ caches of all jitted functions, so that each call comes to `on_miss` again."""
    unshare()
    for jitted in alive(_jitted):
        jitted.clear_dispatch()
    clear_signatures()


register("dispatch: signatures in C++", CAPACITY, cached_signatures, _clear_dispatch)


def forget_own() -> None:
    """Clear the caches of the library's jitted functions: single operations and composites."""
    for jitted in alive(_jitted):
        if is_own(jitted.fun):
            jitted.forget()


class Jitted:
    """What `jit` keeps of a function: its options, its traces, its programs."""

    def __init__(self, fun: Callable[..., Any], options: Options):
        self.fun, self.name, self.options = fun, name_of(fun), options
        self.caches = shared_caches(fun, options.key)
        self.queued = QueuedCalls()
        self.function: Any = None
        _jitted.add(self)

    def on_miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """The outputs, and what the C++ path needs to run this signature by itself the next time."""
        return self.queued.run(args, kwargs) or with_cells(self._run, self._threading, args, kwargs)

    def _threading(self, cells: Cells, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        """Run with the refs that the function touches as values; C++ cannot do this by itself."""
        pure = cells[0].memo.get((self, cells))
        if pure is None:
            threading = Jitted(threaded(self.fun, cells), self.options.shifted())
            pure = with_refs.keep(cells[0], (self, cells), wrapped(threading))
        out, values = pure(values_of(cells), *args, **kwargs)
        store(cells, values)
        return out, None, False

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        call = self.call(args, kwargs)
        traced = self.trace(call)
        if state.builder is not None:
            return rebuilt(traced.out_tree, self._staged(traced, call)), None, False
        operands = [*traced.captured, *call.leaves]
        check_values(call.leaves, call.names, self.name)
        _refuse_leaked(traced.captured)
        where = self._placement(call, traced)
        program = self._program(call, traced, where.device)
        out = unflatten(traced.out_tree, program(operands, where.committed, call.names))
        if not self.options.static:
            self.queued.keep(call.leaves, call.tree, program, traced, call.names)
        fast = program.fast_path(traced.captured, dispatch_registry.flatten(out)[1], where.committed)
        return out, fast, False

    def _staged(self, traced: Trace, call: Call) -> Sequence[Any]:
        """The call as part of the program being traced."""
        operands = [*traced.captured, *all_moved(call.leaves, call.shardings)]
        if self.options.inline:
            outs = evaluate(traced.jaxpr, operands)
        else:
            outs = jit_p.bind(*operands, jaxpr=traced.jaxpr, name=self.name)
        return all_moved(outs, self._asked_of_outputs(traced))

    def call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Call:
        statics, dynamic, keywords = take_out(self.options.static, self.fun, args, kwargs)
        taken = {position for position, _ in statics.by_num}
        positions = [i for i in range(len(args)) if i not in taken]
        leaves, tree = flatten_from_user((tuple(dynamic), keywords))
        names = ArgNames(self.fun, tree, positions)
        avals = avals_of(leaves, names, self.name, self._or_static)
        shardings = self._asked_of_inputs(tree, avals)
        return Call(statics, leaves, tree, names, as_asked(avals, shardings), positions, shardings)

    def _asked_of_inputs(self, tree: Any, avals: Sequence[ShapedArray]) -> Sequence[Any]:
        asked = self.options.in_shardings
        return () if asked is None else flatten_shardings("in_shardings", (asked, None), tree, "args", avals)

    def _asked_of_outputs(self, traced: Trace) -> Sequence[Any]:
        asked, avals = self.options.out_shardings, traced.jaxpr.out_avals
        return () if asked is None else flatten_shardings("out_shardings", asked, traced.out_tree, "output", avals)

    @property
    def _or_static(self) -> str:
        """Further advice for an argument that is no array; the library's own functions have their static ones."""
        return "" if is_own(self.fun) else ", or mark it static with static_argnames or static_argnums"

    def trace(self, call: Call) -> Trace:
        """The trace of this signature, made once."""
        key = (call.tree, tuple(call.avals), call.statics.key, config.trace_context_key(), axes_here())
        known = self.caches.traces.get(key)
        if known is not None:
            return known._replace(names=call.names)
        if state.builder is not None:
            known = state.builder.memo.get((self, key))
        return self._new_trace(key, call) if known is None else known

    def _new_trace(self, key: Any, call: Call) -> Trace:
        def of_dynamic(*args: Any, **kwargs: Any) -> Any:
            keep_trace()
            full_args, full_kwargs = call.statics.restored(args, kwargs)
            return self.fun(*full_args, **full_kwargs)

        found = trace(of_dynamic, call.tree, call.avals, None, call.names, self.name)
        if any(type(x) is Tracer for x in found.captured):
            # Captured tracers belong to the trace that is going on; the next one captures its own.
            assert state.builder is not None
            state.builder.memo[self, key] = found
        else:
            traces.keep(self.caches, key, found._replace(names=(), builder=None))
        return found

    def _placement(self, call: Call, traced: Trace) -> Placement:
        operands, inner = [*traced.captured, *call.leaves], shardings_in(traced.jaxpr)
        outs = self._asked_of_outputs(traced)
        return placement(operands, call.names, self.name, self.options.device, call.shardings, outs, inner)

    def _program(self, call: Call, traced: Trace, device: Any) -> Program:
        key = (traced.jaxpr, device, call.tree, config.outlining.value)
        program = self.caches.programs.get(key)
        return programs.keep(self.caches, key, self.compiled(call, traced, device)) if program is None else program

    def compiled(self, call: Call, traced: Trace, device: Any) -> Program:
        """The program of this signature there."""
        return self._lower(call, traced, device).compile(self.options.compiler)

    def _lower(self, call: Call, traced: Trace, device: Any) -> LoweredProgram:
        captured = len(traced.captured)
        donated = [False] * captured + self.donated(call)
        keep_unused, outline = self.options.keep_unused, self.options.outline
        with paused_gc():
            lowered = LoweredProgram(traced.jaxpr, self.name, device, donated, keep_unused, outline)
        if lowered.unusable:
            self._warn_of_unusable(call, [i - captured for i in lowered.unusable])
        return lowered

    def _warn_of_unusable(self, call: Call, indices: Sequence[int]) -> None:
        found = ", ".join(f"{call.names[i]!r} ({call.avals[i].str_short(short_dtypes=False)})" for i in indices)
        warnings.warn(
            f"{self.name}: the memory of donated arguments is of no use, as no output has their shape and dtype: "
            f"{found}; leave them out of donate_argnums",
            UserWarning,
            user_stacklevel(),
        )

    def donated(self, call: Call) -> list[bool]:
        """Which leaves the caller gives away."""
        donate = self.options.donate
        if not donate:
            return [False] * len(call.leaves)
        args, kwargs = unflatten(call.tree, call.leaves)
        marked = tuple(
            _filled(arg, position in donate.nums) for position, arg in zip(call.positions, args, strict=True)
        )
        named = {k: _filled(v, k in donate.names) for k, v in kwargs.items()}
        return flatten((marked, named))[0]

    def explain(self, error: Exception, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Raise the typed error, if there is one, behind what C++ raised for a call with these arguments."""
        if isinstance(error, DISPATCH_ERRORS):
            call = self.call(args, kwargs)  # refuses what cannot be hashed
            names = (f"the argument {name!r} of {self.name}" for name in call.names)
            explained = explain_failure(error, zip(names, map(key_words, call.leaves), strict=True))
            if explained is not None:
                raise explained from None

    # The stages, for those who want to look.

    @edge
    def traced(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for arguments of these types (arrays, or anything with shape and dtype)."""
        from xlamini.staging.aot.stages import Known, Traced  # for those who look only

        call = self.call(args, kwargs)
        found = self.trace(call)

        def lower(where: Any) -> LoweredProgram:
            placed = self._placement(call, found).device
            return self._lower(call, found, elsewhere(where, placed, self.name))

        known = Known(found, call.tree, self.name, self.donated(call), self.options.static.names)
        return Traced(known, lower, self.options.compiler)

    @edge
    def lowered(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for arguments of these types."""
        return self.traced(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs for arguments of these types."""
        return self.traced(*args, **kwargs).out_info

    def forget(self) -> None:
        """Drop all traces and programs."""
        self.caches.traces.clear()
        self.caches.programs.clear()
        self.queued.calls.clear()
        self.clear_dispatch()

    def clear_dispatch(self) -> None:
        """Empty the C++ cache of this function."""
        function = self.function()
        if function is not None:
            function._clear_cache()


def _filled(tree: Any, value: Any) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [value] * len(leaves))


def _refuse_leaked(leaves: Sequence[Any]) -> None:
    for x in leaves:
        if type(x) is Tracer:
            raise leaked(x)


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
    donate_argnums: Numbers = None,
    donate_argnames: Names = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: dict[str, Any] | None = None,
    outline: bool | None = None,
) -> Any:
    """Compile a function with XLA; it is traced once for each signature of its arguments.

    Arguments are arrays, numbers, or containers of them. `static_argnums`/`static_argnames` are passed to Python as
    they are, must be hashable, and are part of the signature. Memory of the arguments in
    `donate_argnums`/`donate_argnames` may be used for outputs, and those arrays cannot be used afterwards.
    `in_shardings` and `out_shardings` say where arguments and outputs lie: shardings, or trees of them that are
    prefixes of the tuple of arguments without the static ones, and of the output; None leaves it to the arrays, and to
    the compiler. Inside
    another traced function the call becomes a `jit` equation, or, with `inline`, its equations. On the CPU a block of
    equations that a long program repeats, such as a layer of a model, is compiled once and called; `outline=False`
    leaves the program as it is, and `lower(...).outline_report()` says what was done.

    The result has the methods `trace`, `lower`, `eval_shape` and `clear_cache`. Usable as a decorator, with and without
    options.

    >>> xlamini.jit(lambda x: x + 1)(2)
    Array(3, dtype=int32, weak_type=True)
    """
    if fun is None:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **options)
    check_callable("jit", fun)
    static = Selected("static", fun, static_argnums, static_argnames)
    donate = Selected("donate", fun, donate_argnums, donate_argnames)
    check_apart(fun, static, donate)
    where = asked_place(device, backend)
    shardings = in_shardings, out_shardings
    options = Options(static, donate, keep_unused, inline, where, compiler_options, outline, *shardings)
    return wrapped(Jitted(fun, options))


def dispatched(fun: Callable[..., Any], static_argnames: Names = None) -> tuple[Any, Explain]:
    """For one of the library's own functions: C++'s function, and what says of its errors what lies behind them."""
    static, donate = Selected("static", fun, None, static_argnames), Selected("donate", fun, None, None)
    jitted = Jitted(fun, Options(static, donate, False, False, None, None))
    return _in_cpp(jitted), jitted.explain


def wrapped(jitted: Jitted) -> Any:
    """The C++ function, with the stages as methods."""
    static, donate, function = jitted.options.static, jitted.options.donate, _in_cpp(jitted)
    if static or donate:
        function = guarded(function, jitted.explain, donate)
    function.trace, function.lower, function.eval_shape = jitted.traced, jitted.lowered, jitted.eval_shape
    function.clear_cache = jitted.forget
    return function


def _in_cpp(jitted: Jitted) -> Any:
    static, fun = jitted.options.static, jitted.fun
    function: Any = cpp_jit(
        jitted.name,
        fun,
        jitted.on_miss,
        static_argnums=[n for n in static.nums if n >= 0],
        static_argnames=static.names,
        cache_key=jitted.caches,
    )
    jitted.function = weakref.ref(function)
    functools.update_wrapper(function, fun)
    return function
