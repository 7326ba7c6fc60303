"""closure_convert: the values that a function closes over, and may be differentiated in, become arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.api_boundary import edge
from xlamini.core.pytree import first_difference, flatten_from_user
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import Tracer
from xlamini.staging.call.higher_order import chosen, inverse, merged
from xlamini.staging.run.program_cache import apply
from xlamini.staging.trace.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.staging.trace.tracing import Trace, rebuilt, trace


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function like `fun` that takes what `fun` closes over after its own arguments, and a list of these values.

    The values are tracers of floats: those in which somebody may want a derivative, which a rule (of `custom_vjp`, say)
    gives for arguments alone. All others stay closed over. `fun` is traced for arguments of the types of
    `example_args`, so Python control flow in it cannot depend on their values.

    Calling the result with arguments of another structure, shape or dtype is a TypeError.

    >>> def slope(a):
    ...     converted, values = closure_convert(lambda x: a * x, 1.0)
    ...     return converted(5.0, *values)
    >>> xlamini.grad(slope)(2.0)
    Array(5., dtype=float32, weak_type=True)
    """
    check_callable("closure_convert", fun)
    leaves, in_tree = flatten_from_user((example_args, {}))
    names = ArgNames(fun, in_tree)
    avals = avals_of(leaves, names, name_of(fun))
    traced = trace(fun, in_tree, avals, None, names)
    hoisted = [type(x) is Tracer and is_differentiable(x.aval) for x in traced.captured]
    values = chosen(traced.captured, hoisted)
    kept = chosen(traced.captured, inverse(hoisted))
    count = len(example_args)

    @edge
    def converted(*args: Any) -> Any:
        given = args[len(args) - len(values) :] if values else ()
        own = _checked(fun, in_tree, args[: len(args) - len(given)], traced, count)
        outs = apply(traced.jaxpr, [*merged(hoisted, given, kept), *own])
        return rebuilt(traced.out_tree, outs)

    converted.__name__ = name_of(fun)
    return converted, values


def _checked(fun: Callable[..., Any], in_tree: Any, args: Sequence[Any], traced: Trace, count: int) -> list[Any]:
    """The leaves of the arguments; TypeError unless they are of the types of the example's."""
    leaves, tree = flatten_from_user((tuple(args), {}))
    if tree != in_tree:
        where = first_difference(in_tree, tree, ("example_args", "args"))
        raise TypeError(
            f"closure_convert: the converted {name_of(fun)} takes {count} arguments of the structure of example_args, "
            f"and then {len(traced.captured)} values at most that it closed over: {where}"
        )
    avals = avals_of(leaves, traced.names, name_of(fun))
    check_values(leaves, traced.names, name_of(fun))
    for i, (found, wanted) in enumerate(zip(avals, traced.jaxpr.in_avals[len(traced.captured) :], strict=True)):
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"closure_convert: the argument {traced.names[i]!r} of the converted {name_of(fun)} is "
                f"{found.str_short(short_dtypes=False)}, but in example_args {wanted.str_short(short_dtypes=False)}; "
                "convert the function for arguments of this type"
            )
    return leaves
