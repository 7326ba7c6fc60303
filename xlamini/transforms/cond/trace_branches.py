"""Tracing of the branches of cond, switch and platform_dependent: functions with one list of operands and result types.

Every branch is traced for the operands' types. The captured values of all branches form one list, which every branch
takes before the operands. All branches must return the same types; a result is weakly typed if it is in the first
branch, which is that of `cond` for false, as in JAX.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import (
    Avals,
    Jaxpr,
    ShapedArray,
    Tracer,
    Values,
    Var,
    aval_of,
    example_of,
    first_difference,
    flatten_call,
    keystr,
    tree_flatten_with_path,
)
from xlamini.core.errors.frames import is_own
from xlamini.core.program.hi_types import fits
from xlamini.core.program.named_axes import divergent_along
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.tracing.body import BodyBuilder
from xlamini.staging import LeafNames, Trace, checked_avals, name_of
from xlamini.staging.trace.arguments import brief
from xlamini.staging.trace.trace_cache import body_trace
from xlamini.staging.trace.tracing import trace

SHOWN = 4
"""How many differing leaves an error lists."""

Functions = Mapping[str, Callable[..., Any]]
"""Branches by their names in error messages: `true_fun`, `branches[0]`."""


class Branches(NamedTuple):
    """Jaxprs that all take the captured values and then the leaves of the operands."""

    jaxprs: tuple[Jaxpr, ...]
    operands: list[Any]
    out_tree: Any


def check_branches(what: str, functions: Functions) -> None:
    """TypeError for a branch that cannot be called."""
    for label, fun in functions.items():
        if not callable(fun):
            raise TypeError(
                f"{what}: {label} must be a function, got {brief(fun)} of type {type(fun).__name__}; to return an "
                "existing value, pass a lambda that returns it"
            )


def trace_branches(what: str, functions: Functions, operands: Values, choice: Any = None) -> Branches:
    """Trace every function for these operands, which are pytrees; TypeError if what they return differs.

    Where the scalar `choice` varies along axes of a mesh, the branches may not have collectives along these.
    """
    with divergent_along(() if choice is None else aval_of(choice).vma):
        return _traced(what, functions, operands)


def _traced(what: str, functions: Functions, operands: Values) -> Branches:
    leaves, in_tree = flatten_call((tuple(operands), {}))
    names = LeafNames("operands", flatten_call(tuple(operands))[1])
    avals = checked_avals(leaves, names, what)
    by_id: dict[int, Trace] = {}
    traces: dict[str, Trace] = {}
    for label, fun in functions.items():
        if id(fun) not in by_id:
            by_id[id(fun)] = _trace(what, label, fun, operands, in_tree, avals)
        traces[label] = by_id[id(fun)]
    _check_agreement(what, functions, traces)
    every = list(traces.values())
    jaxprs, captured = with_common_captured([t.jaxpr for t in every], [t.captured for t in every])
    return Branches(jaxprs, [*captured, *leaves], every[0].out_tree)


def with_common_captured(
    jaxprs: Sequence[Jaxpr], captured: Sequence[Sequence[Any]]
) -> tuple[tuple[Jaxpr, ...], list[Any]]:
    """The jaxprs with the captured values of all as leading inputs, in place of their own; and these values."""
    if not any(captured):
        return tuple(jaxprs), []
    values = {_identity(x): x for own in captured for x in own}
    avals = [aval_of(x) for x in values.values()]
    places = {key: i for i, key in enumerate(values)}
    widened = []
    for jaxpr, own in zip(jaxprs, captured, strict=True):
        widened.append(widen_inputs(jaxpr, avals, [places[_identity(x)] for x in own]))
    return tuple(widened), list(values.values())


def widen_inputs(jaxpr: Jaxpr, avals: Avals, places: Sequence[int]) -> Jaxpr:
    """The jaxpr with leading inputs of these types; its own leading inputs are at `places` among them."""
    if list(places) == list(range(len(avals))):
        return jaxpr
    leading = [Var(aval) for aval in avals]
    for place, var in zip(places, jaxpr.invars, strict=False):
        leading[place] = var
    return jaxpr.replace(invars=[*leading, *jaxpr.invars[len(places) :]])


def joined_avals(jaxprs: Sequence[Jaxpr]) -> list[ShapedArray]:
    """The output types of branches: weak as in the first of them; varying or sharded if so in any."""
    return list(map(_joined, zip(*[j.out_avals for j in jaxprs], strict=True)))


def _joined(avals: Avals) -> ShapedArray:
    vma = frozenset().union(*[a.vma for a in avals])
    split = next((a.explicit_sharding for a in avals if a.explicit_sharding is not None), None)
    return avals[0].varying(vma).with_sharding(split)


def forwarded_inputs(jaxprs: Sequence[Jaxpr]) -> list[int | None]:
    """For each output the index of the input that all jaxprs return there, or None."""
    return [_common(column) for column in zip(*map(_sources, jaxprs), strict=True)]


def _common(places: Sequence[int | None]) -> int | None:
    return places[0] if len(set(places)) == 1 else None


def _sources(jaxpr: Jaxpr) -> list[int | None]:
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    return [places.get(atom) if isinstance(atom, Var) else None for atom in jaxpr.outvars]


def _identity(value: Any) -> Any:
    return value.variable if type(value) is Tracer else id(value)


def _trace(
    what: str, label: str, fun: Any, operands: Values, in_tree: Any, avals: Avals
) -> Trace:
    anew = functools.partial(trace, fun, in_tree, avals, reuse_equal=True, kind=BodyBuilder)
    try:
        return body_trace(what, fun, in_tree, avals, anew)
    except TypeError:
        _check_call(what, label, fun, operands)
        raise


def _check_call(what: str, label: str, fun: Any, operands: Values) -> None:
    """TypeError if the signature of the function does not accept the operands."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*operands)
    except TypeError as error:
        count = f"{len(operands)} operand{'s' if len(operands) != 1 else ''}"
        raise TypeError(
            f"{what}: {label}, {_described(fun)}, has the parameters {signature} but is called with {count} ({error}); "
            "all branches take the operands that come after them in the call"
        ) from None


def _check_agreement(what: str, functions: Functions, traces: Mapping[str, Trace]) -> None:
    first, *others = traces
    for other in others:
        a, b = traces[first], traces[other]
        where = first_difference(a.out_tree, b.out_tree, (f"the output of {first}", f"that of {other}"))
        if where is not None:
            raise TypeError(
                f"{what} branch outputs must have the same pytree structure, but {where}\n"
                f"{_who(functions, first, other)}; make both return the same structure"
            )
        _check_types(what, functions, (first, other), traces)


def _check_types(what: str, functions: Functions, labels: tuple[str, str], traces: Mapping[str, Trace]) -> None:
    first, other = labels
    tree, avals, others = traces[first].out_tree, traces[first].jaxpr.out_avals, traces[other].jaxpr.out_avals
    wrong = [i for i, (a, b) in enumerate(zip(avals, others, strict=True)) if not same_type(a, b)]
    if not wrong:
        return
    paths, _ = tree_flatten_with_path(example_of(tree))
    lines = [
        f"  output{keystr(paths[i][0])} is {avals[i].str_long()} from {first}, {others[i].str_long()} from {other}"
        for i in wrong
    ]
    if len(lines) > SHOWN:
        lines[SHOWN:] = [f"  and {len(lines) - SHOWN} more"]
    listed = "\n".join(lines)
    raise TypeError(
        f"{what} branches must have equal output types but they differ:\n{listed}\n{_who(functions, first, other)}; "
        f"{_fix(avals[wrong[0]], others[wrong[0]], other)}"
    )


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two types are equal up to weak typing, and up to a split that only one of them has."""
    if a is b:
        return True
    if not fits(a, b) or a.memory_space is not b.memory_space:
        return False
    if sums_of(a).unreduced != sums_of(b).unreduced:
        return False
    return a.explicit_sharding is b.explicit_sharding or None in (a.explicit_sharding, b.explicit_sharding)


def _fix(expected: ShapedArray, actual: ShapedArray, label: str) -> str:
    if expected.memory_space is not actual.memory_space:
        return f"move one of them, such as with device_put(x, memory.{expected.memory_space}) in {label}"
    if (expected.shape, expected.dtype) == (actual.shape, actual.dtype):
        return f"reshard one of them, with xlamini.reshard(x, {expected.explicit_sharding}) in {label}"
    if expected.shape == actual.shape:
        return f"convert one of them, such as with .astype('{expected.dtype.name}') in {label}"
    return f"bring one of them into the other's shape, such as with jnp.broadcast_to(x, {expected.shape}) in {label}"


def _who(functions: Functions, *labels: str) -> str:
    return ", ".join(f"{label} is {_described(functions[label])}" for label in labels)


def _described(fun: Any) -> str:
    """The name of a function and, for user code, its file and line."""
    code = None if is_own(fun) else getattr(inspect.unwrap(fun), "__code__", None)
    return name_of(fun) + (f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else "")
