"""linear_transpose: the transpose of a function that is linear."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Jaxpr, MissingRule, first_difference, flatten, flatten_from_user
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.hi_types import fits
from xlamini.core.program.tangents import NonlinearError
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import zeros
from xlamini.staging import ArgNames, LeafNames, Trace, avals_of, check_callable, name_of, rebuilt
from xlamini.staging.run.eager.program_cache import apply
from xlamini.staging.trace.tracing import kind_of_trace, trace
from xlamini.transforms.derivatives.linearity import nonlinear_part


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """The transpose of a linear function; only the types of `primals` are used.

    Returns a function from a cotangent of the output to a tuple of cotangents of the arguments.

    >>> xlamini.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, in_tree = flatten_from_user((primals, {}))
    names, fun_name = ArgNames(fun, in_tree), name_of(fun)
    avals = avals_of(leaves, names, fun_name)
    traced = trace(fun, in_tree, avals, None, names, reuse_equal=True, kind=kind_of_trace()).of_its_own()
    linear = (False,) * len(traced.captured) + (True,) * len(avals)

    @api_boundary
    def transposed(out_ct: Any) -> Any:
        cts = _cotangents_of_linear(traced, fun_name, out_ct)
        try:
            backward, nonzero = transpose(traced.jaxpr, linear, (True,) * len(cts))
        except (MissingRule, NonlinearError) as error:
            raise _not_linear(traced.jaxpr, linear, fun_name, error) from None
        outs = iter(apply(backward, [*traced.captured, *cts]))
        dense = [next(outs) if nz else zeros(a) for nz, a in zip(nonzero, avals, strict=True)]
        return rebuilt(flatten(primals)[1], dense)

    return transposed


def _cotangents_of_linear(traced: Trace, fun_name: str, out_ct: Any) -> list[Any]:
    """The flat cotangents; TypeError unless they have the types of the outputs."""
    cts, tree = flatten_from_user(out_ct)
    names = LeafNames("cotangent", tree)
    avals = avals_of(cts, names, f"the transpose of {fun_name}")
    if tree != traced.out_tree:
        where = first_difference(traced.out_tree, tree, ("output", "cotangent"))
        raise TypeError(f"linear_transpose: the cotangent must have the structure of the output of {fun_name}: {where}")
    for i, (ct, expected) in enumerate(zip(avals, traced.jaxpr.out_avals, strict=True)):
        if not fits(ct, expected):
            raise TypeError(
                f"linear_transpose: {names[i]} is {ct.str_long()}, but that output is "
                f"{expected.str_long()} for {fun_name}; they must be of one type"
            )
    return cts


def _not_linear(jaxpr: Jaxpr, linear: Sequence[bool], fun_name: str, error: Exception) -> Exception:
    """The error that names the nonlinear operation: one without a transpose rule, or the one in `error`."""
    problem = nonlinear_part(jaxpr, linear) or str(error)
    return (MissingRule if isinstance(error, MissingRule) else TypeError)(
        f"linear_transpose: {fun_name} is not linear in its arguments: {problem}; for the derivative of a function "
        "that is not linear use vjp"
    )
