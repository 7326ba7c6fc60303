"""Composites: public functions made of several operations.

Called eagerly, a composite is one compiled program and one dispatch. While tracing, its operations are inlined, so that
programs stay flat; a second call of the same kind copies the equations of the first, so that tracing stays cheap.
"""
from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from xlamini.core import Values, canonicalize_dtype, hooks, memoised, tree_leaves, tree_map, trim
from xlamini.core.caching.call_cache import EAGER
from xlamini.core.dtypes import fits, iinfo
from xlamini.core.errors.api_boundary import api_boundary, is_api_boundary
from xlamini.core.errors.frames import own_files
from xlamini.core.pytree.flattening import return_levels
from xlamini.core.tracing.state import state
from xlamini.core.wrapping import with_globals, with_own_code
from xlamini.primitives import stands_for_array
from xlamini.primitives.base.promotion import check_members
from xlamini.runtime import ArrayImpl
from xlamini.runtime.execution.dispatch_errors import Explain, guarded
from xlamini.staging.run.jit.cpp_function import explain as explain_dispatch, in_cpp
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.trace.static_args import Names, Selected

F = TypeVar("F", bound=Callable[..., Any])


def is_composite(fun: Callable[..., Any]) -> bool:
    """Whether a function is a composite: what it adds to a program depends on its arguments and on flags alone.

    It is none any more once somebody has replaced its code.
    """
    eager = getattr(getattr(fun, "__wrapped__", None), EAGER, None)
    return eager is not None and eager.__globals__ is fun.__globals__ and own_files[fun.__code__.co_filename]


def static_names(fun: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments of a composite's function that are passed unchanged."""
    return getattr(fun, EAGER).__globals__["static"]


def composite(*, static: Sequence[str] = (), ints_fit: bool = False) -> Callable[[F], F]:
    """Decorator for a function of arrays; arguments in `static` are passed unchanged, but for lists as tuples.

    With `ints_fit` the caller sees to it that ints are not beyond the dtypes of arrays beside them.
    """
    return lambda fun: _composite(fun, tuple(static), None if ints_fit else _refuse_ints)


def _composite(fun: Any, static: tuple[str, ...], check: Any) -> Any:
    call = with_globals(_call, fun=fun, static=static, check=check)
    functools.update_wrapper(with_own_code(call, f"{fun.__module__}.{fun.__qualname__}"), fun)
    setattr(fun, EAGER, call)
    return is_api_boundary(call)


def beyond_dtypes(args: Sequence[Any]) -> bool:
    """Whether an int is beyond the dtype of an array beside it, or beyond Python ints in programs.

    In a compiled call it would be an array of that dtype, wrapped around; an operation of its own gets its value.
    """
    numbers = [x for x in _with_members(args) if type(x) is int and not 0 <= x <= 1]
    return any(not fits(x, dtype) for x in numbers for dtype in (*_dtypes_of(args), canonicalize_dtype(int)))


def _are_beyond(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    return beyond_dtypes((*args, *kwargs.values()) if kwargs else args)


def _dtypes_of(args: Sequence[Any]) -> set[np.dtype]:
    return {x.dtype for x in tree_leaves(args) if isinstance(x, ArrayImpl | np.ndarray | np.generic)}


def _refuse_ints(args: Sequence[Any]) -> None:
    """OverflowError for ints beside an array whose dtype does not hold all ints of programs.

    Most functions never see such arguments, so only one that has refused them looks at the ints of each call. For C++
    an int has the signature of a weakly typed array.
    """
    if not any(map(_may_be_an_int, _with_members(args))):
        return
    limits = iinfo(canonicalize_dtype(int))
    if any(not (fits(limits.min, dtype) and fits(limits.max, dtype)) for dtype in _dtypes_of(args)):
        raise OverflowError("ints are to be compared with dtypes")


def _may_be_an_int(x: Any) -> bool:
    return type(x) is int or (type(x) is ArrayImpl and x.aval.weak_type and x.dtype.kind == "i")


def _with_members(args: Sequence[Any]) -> list[Any]:
    return [*args, *[x for arg in args if type(arg) is list or type(arg) is tuple for x in arg]]


def _numbers_beyond(fun: Any, static: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """The parameters that hold ints, if one of them is beyond a dtype; static ones are what they are."""
    named = [x for name, x in kwargs.items() if type(x) is int and name not in static]
    if kwargs and not (named or int in map(type, args)):
        return []
    given = [*zip(inspect.signature(fun).parameters, args, strict=False), *kwargs.items()]
    dynamic = {name: x for name, x in given if name not in static}
    for members in dynamic.values():
        if (type(members) is list or type(members) is tuple) and kwargs.get("dtype") is None:
            check_members(members)
    ints = [name for name, x in dynamic.items() if type(x) is int]
    return ints if beyond_dtypes(list(dynamic.values())) else []


def _dispatched(
    fun: Callable[..., Any], static_argnames: Names = None, check: Callable[[Values], None] | None = None
) -> tuple[Any, Explain]:
    """The C++ function of one of the library's own functions, and the one that explains its errors."""
    static, donate = Selected("static", fun, None, static_argnames), Selected("donate", fun, None, None)
    jitted = Jitted(fun, Options(static, donate, False, False, None, None))
    jitted.name = jitted.name.strip("_")  # messages name `where`, not the helper `_where` that computes it
    if check is not None:
        jitted.instead = lambda args, kwargs: check(jitted.options.dynamic(args, kwargs))
    return in_cpp(jitted), functools.partial(explain_dispatch, jitted)


@memoised("composite: with numbers as they are", 64)
def _with_numbers(fun: Any, static: tuple[str, ...]) -> Any:
    """The composite, with these parameters static: a program is made for each number, which may refuse it."""
    return _dispatched(fun, static)[0]


def _as_it_is(error: Exception, args: Any, kwargs: Any) -> None:
    """Explain nothing: while tracing, errors are raised unchanged."""


fun: Any = None
static: tuple[str, ...] = ()
compiled: Any = None
explain: Explain = _as_it_is
check: Callable[[Values], None] | None = None
compares: bool = False
"""Whether ints are compared with dtypes before a call: from the first call on in which one may be beyond them."""


def _call(*args: Any, **kwargs: Any) -> Any:
    """A call of a composite, in whose globals the names above are its own."""
    global compiled, explain, check, compares
    while True:
        try:
            if state.builder is not None:
                return hooks.trace_library_call(fun, args, kwargs)
            if compares and _are_beyond(args, kwargs) and (numbers := _numbers_beyond(fun, static, args, kwargs)):
                return _with_numbers(fun, (*static, *numbers))(*args, **kwargs)
            if compiled is None:  # on first use: there are hundreds of composites, and a program calls a few
                compiled, explain = _dispatched(fun, static, check)
            return compiled(*args, **kwargs)
        except Exception as error:  # in place of `api_boundary`, which would cost one more call
            return_levels(error, [*args, *kwargs.values()])
            if isinstance(error, OverflowError) and not compares and state.builder is None:
                compiled, check, compares = None, None, True
                continue
            try:
                acceptable = _acceptable(fun, static, args, kwargs)
                if acceptable is None:
                    explain(error, args, kwargs)
            except Exception as explained:
                trim(explained)
                raise
            if acceptable is None:
                trim(error)
                raise
        again = api_boundary(fun) if state.builder is not None else guarded(compiled, explain)
        return again(*acceptable.args, **acceptable.kwargs)


def _acceptable(fun: Any, static: Sequence[str], args: Any, kwargs: Any) -> inspect.BoundArguments | None:
    """The call with static lists as tuples and arrays as numbers, and objects with `__jax_array__` as arrays.

    None if nothing is to be changed.
    """
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except TypeError:
        return None
    given = bound.arguments
    new = {name: _frozen(given[name]) for name in static if not _is_hashable(given.get(name))}
    for name, value in given.items():
        if name not in static and any(map(stands_for_array, tree_leaves(value, is_leaf=stands_for_array))):
            new[name] = tree_map(_as_array, value, is_leaf=stands_for_array)
    _check_flags(fun, new)
    given.update(new)
    return bound if new else None


def _check_flags(fun: Any, given: dict[str, Any]) -> None:
    """TypeError for what is no number in the place of a bool: an empty list would count as False."""
    for name, value in given.items():
        if fun.__annotations__.get(name) == "bool" and not isinstance(value, int):
            raise TypeError(f"{fun.__name__.strip('_')}: {name} must be True or False, got {value!r}")


def _as_array(x: Any) -> Any:
    return x.__jax_array__() if stands_for_array(x) else x


def _is_hashable(x: Any) -> bool:
    if isinstance(x, tuple):
        return all(map(_is_hashable, x))
    return isinstance(x, Hashable)


def _frozen(x: Any) -> Any:
    """What can be part of a signature: of a list or an ndarray, for example of axes, a tuple; of an array, its number.

    What has no number, such as a traced value or an array of floats, stays as it is, for the function to refuse.
    """
    if isinstance(x, np.ndarray):
        return _frozen(x.tolist())
    if hasattr(type(x), "__index__") and type(x).__hash__ is None:
        with suppress(TypeError):
            return operator.index(x)
    if isinstance(x, ArrayImpl) and x.dtype == bool and not x.shape:
        return bool(x)
    return tuple(map(_frozen, x)) if isinstance(x, tuple) or _is_unhashable_sequence(x) else x


def _is_unhashable_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, Hashable)
