"""The ledger's entries of jitted functions: made where a call is traced, lowered or compiled.

The first call of a function is no more than that. Only where something is missed again is the cause computed, by
`cache_misses.py`, which compares the call with earlier ones. A function of the same code as an earlier one is such a
case; what the earlier one closed over is read then, if it is still there.

A program that was lowered has a source too: enough to inspect it later, without the function or its arrays.
"""
from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core.errors import TooManyCompilationsError
from xlamini.core.errors.frames import is_own, own_files, user_line
from xlamini.core.events import TRACING, emit
from xlamini.core.flags.config import recorder, under
from xlamini.core.flags.jax_flags import explain_cache_misses
from xlamini.core.pytree import treedef_is_leaf
from xlamini.staging.compile.ledger import Cause, Compilation, Compilations, Function, add, compilations
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.programs import MOST, Seen
from xlamini.staging.trace.arguments import ArgNames
from xlamini.staging.trace.tracing import Trace, TracedCall

if TYPE_CHECKING:
    from xlamini.runtime.execution.executable import CompilerOptions
    from xlamini.staging.compile.compile_request import CompileRequest
    from xlamini.staging.run.diagnostics.recreated_functions import Variables
    from xlamini.staging.run.jit.jitted_function import Jitted

_DEEP, _MOST = 16, 1024

FIRST = Cause("first call", "", "it has not been called before")
FIRST_OF_OWN = FIRST._replace(edit="call it inside of a jitted function")
_AHEAD = Cause(
    "ahead of time",
    "",
    "it was traced before, and lowered again on demand",
    "keep what lower() or compile() returns",
)


class Before(NamedTuple):
    """The last function of a code that was jitted and traced; `variables` is None if they have not been read."""

    fun: Callable[[], Any]
    options: Options
    variables: Variables | None


last: dict[Function, Before] = {}
"""By code; not emptied with the caches, as it says that they were."""


def entry_of_trace(jitted: Jitted, key: tuple[Any, ...], plan: CallPlan) -> Compilation:
    """The entry of the ledger for a call that is traced next; `key` is that of `Jitted.trace`."""
    caches, is_own_function = jitted.caches, is_own(jitted.fun)
    function = function_of(jitted.fun, jitted.name)
    cause = FIRST_OF_OWN if is_own_function else FIRST
    if caches.traces or (not is_own_function and (caches.seen or function in last)):
        from xlamini.staging.run.diagnostics.cache_misses import cause_of_trace  # for a second miss

        cause = cause_of_trace(jitted, key, plan, function, is_own_function)
    entry = Compilation(function, cause, user_line(), is_own_function)
    emit(TRACING, jitted.name, call=entry)
    return entry


def keep_trace(
    jitted: Jitted, key: tuple[Any, ...], plan: CallPlan, entry: Compilation, captures_tracers: bool
) -> None:
    """Put the entry of a trace that is done into the ledger, and remember its key; one for an inspection is dropped."""
    caches = jitted.caches
    if recorder.value is not None:
        recorder.value.traced(caches.traces, key)
        return
    if not (caches.seen or entry.is_own):
        _remember(jitted.fun, entry.function, jitted.options)
    entry.traced = True
    plan.entries.append(add(entry))
    caches.seen[hash(key)] = Seen(threading.get_ident(), captures_tracers, entry.cause)
    if len(caches.seen) > MOST:
        del caches.seen[next(iter(caches.seen))]


def entry_of_program(jitted: Jitted, traced: Any, plan: CallPlan, device: Any) -> None:
    """Give a call that is compiled an entry, if it was traced before; TooManyCompilationsError for one too many."""
    if not plan.entries:
        from xlamini.staging.run.diagnostics.cache_misses import cause_of_program  # for a second miss

        plan.entries.append(_entry_without_trace(jitted, cause_of_program(jitted, traced, plan, device)))
    cause, most = plan.entries[-1].cause, jitted.options.max_compiles
    if most is not None and jitted.caches.compiled >= most:
        raise TooManyCompilationsError(
            f"{jitted.name} would be compiled once more, but max_compiles={most}. {cause.kind}: "
            f"{'; '.join([cause.text, *cause.also])}. To avoid it, {cause.edit or 'raise max_compiles'}"
        )


def entry_of_lowering(jitted: Jitted, plan: CallPlan) -> Compilation:
    """The entry of a program that is lowered now: that of its trace, if it was made by this call."""
    return plan.entries.pop() if plan.entries else _entry_without_trace(jitted, _AHEAD)


def compilations_of(jitted: Jitted) -> Compilations:
    """The entries of all functions with the code of this one."""
    function = function_of(jitted.fun, jitted.name)
    return compilations(lambda entry: entry.function == function)


def _entry_without_trace(jitted: Jitted, cause: Cause) -> Compilation:
    return add(Compilation(function_of(jitted.fun, jitted.name), cause, user_line(), is_own(jitted.fun)))


# --- functions, as the ledger knows them


def function_of(fun: Any, name: str) -> Function:
    """What a function is known by: the codes of it and of those that it wraps, and the place of the innermost."""
    if type(fun) is FunctionType and getattr(fun, "__wrapped__", None) is None:
        code = fun.__code__
        return Function(name, code.co_filename, code.co_firstlineno, hash((code,)))
    codes = [code for level in levels(fun) if (code := _code(level)) is not None]
    users = [code for code in codes if not own_files[code.co_filename]] or codes
    if not codes:
        return Function(name)
    return Function(name, users[-1].co_filename, users[-1].co_firstlineno, hash(tuple(codes)))


def levels(fun: Any) -> Iterator[Any]:
    """The function, and the functions that it wraps, from outside to inside."""
    for _ in range(_DEEP):
        if fun is None:
            return
        yield fun
        wraps = isinstance(fun, functools.partial)
        fun = fun.func if wraps else getattr(fun, "__wrapped__", None) or getattr(fun, "__func__", None)


def _code(level: Any) -> Any:
    return getattr(level, "__code__", None) or getattr(type(level).__call__, "__code__", None)


def weakly(value: Any) -> Callable[[], Any]:
    """A weak reference; of what has none, such as a number, a function that returns None."""
    try:
        return weakref.ref(value)
    except TypeError:
        return _nothing


def _nothing() -> None:
    """The object behind a value without weak references."""


def _remember(fun: Any, function: Function, options: Options) -> None:
    """Remember a function that was traced, as the last one of its code; of a second one also what it closes over."""
    variables = None
    if function in last or explain_cache_misses.value:
        # for a second function, or somebody who looks
        from xlamini.staging.run.diagnostics.recreated_functions import variables_of

        variables = variables_of(fun)
    last[function] = Before(weakly(fun), options, variables)
    if len(last) > _MOST:
        del last[next(iter(last))]


# --- what programs were made from


class ProgramSource:
    """The jaxpr of a program and how it was compiled; stages of compilation ask it for what comes next.

    A program owns its source, and the executable refers to it weakly, so that it lives as long as the traces do.
    """

    options: CompilerOptions | None

    def __init__(self, jitted: Jitted, plan: CallPlan, traced: Trace, lowered: CompileRequest):
        self.options, self._jaxpr = jitted.options.compiler, traced.jaxpr
        self._again, self._flags = lowered.again, lowered.flags
        self._call = plan.tree, jitted.name, jitted.donated(plan, traced), jitted.options.static.names
        self._results, self._captured = traced.out_tree, len(traced.captured)
        self._fun, self._positions, self._names = weakly(jitted.fun), plan.positions, list[str]()
        self.ledger_entry: Any = lowered.ledger_entry

    def lowered(self) -> TracedCall:
        """The call that the program was compiled for; in place of captured arrays it has their types."""
        captured = self._jaxpr.in_avals[: self._captured]
        return TracedCall(Trace(self._jaxpr, captured, self._results, self.names()), *self._call)

    @property
    def takes_arrays(self) -> bool:
        """Whether each argument is one array, and none is a tree of several."""
        return all(treedef_is_leaf(each) for part in self._call[0].children() for each in part.children())

    def names(self) -> Sequence[str]:
        """The names of the arguments; their positions once the function is gone, unless they are kept."""
        return self._names or ArgNames(self._fun() or _gone, self._call[0], self._positions)

    def keep_names(self) -> None:
        """Keep the names, as the function may go."""
        self._names = list(self.names())

    def lower(self, where: None = None) -> CompileRequest:
        """The program once more, for the devices and under the flags that it had."""
        with under(self._flags):
            return self._again()


def _gone(*args: Any, **kwargs: Any) -> None:
    """The parameters of a function that is gone."""
