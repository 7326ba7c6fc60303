"""The C++ function of a jitted function: what users call, with the stages of compilation as methods."""
from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from xlamini.core import Values
from xlamini.core.caching.memo import alive, register
from xlamini.core.wrapping import name_as_partial
from xlamini.runtime import key_words
from xlamini.runtime.arrays.lifetime import explain_failure
from xlamini.runtime.execution.dispatch import CAPACITY, cached_signatures, clear_signatures, cpp_jit
from xlamini.runtime.execution.dispatch_errors import guarded
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.run.jit.donation import donated_arguments
from xlamini.staging.run.programs import unshare

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted

jitted_functions: weakref.WeakSet[Jitted] = weakref.WeakSet()


def clear_dispatch() -> None:
    """Empty the C++ caches of all jitted functions, so that each call comes to `on_miss` again."""
    unshare()
    for jitted in alive(jitted_functions):
        jitted.clear_dispatch()
    clear_signatures()


register("dispatch: signatures in C++", CAPACITY, cached_signatures, clear_dispatch)


def wrapped(jitted: Jitted) -> Any:
    """The C++ function, with the stages of compilation as methods."""
    static, donate, function = jitted.options.static, jitted.options.donate, in_cpp(jitted)
    if static or donate:
        function = guarded(function, functools.partial(explain, jitted), donated_arguments(donate))
    function.trace, function.lower, function.eval_shape = jitted.traced, jitted.lowered, jitted.eval_shape
    function.clear_cache, function.compilations = jitted.forget, jitted.compilations
    function.cost, function.memory_plan = jitted.cost, jitted.memory_plan
    function.__deepcopy__ = jitted.deep_copy
    return function


def in_cpp(jitted: Jitted) -> Any:
    """The C++ function of a jitted one, which calls its `on_miss`."""
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
    jitted_functions.add(jitted)
    functools.update_wrapper(function, fun)
    if isinstance(fun, functools.partial):
        name_as_partial(function, fun)
    return function


def explain(jitted: Jitted, error: Exception, args: Values, kwargs: dict[str, Any]) -> None:
    """Raise the typed error behind an error that C++ raised for a call with these arguments, if there is one."""
    if isinstance(error, DISPATCH_ERRORS):
        plan = jitted.plan(args, kwargs)  # refuses static arguments that cannot be hashed
        names = (f"the argument {name!r} of {jitted.name}" for name in plan.names)
        explained = explain_failure(error, zip(names, map(key_words, plan.leaves), strict=True))
        if explained is not None:
            raise explained from None
