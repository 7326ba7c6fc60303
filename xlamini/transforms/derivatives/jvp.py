"""Forward mode: jvp, and linearize, which returns the linear map of tangents as a function."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np

from xlamini.core import (
    Avals,
    Jaxpr,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    first_difference,
    flatten,
    float0,
    is_differentiable,
    register_pytree_node,
    tangent_aval,
    treedef_children,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.hi_types import fits
from xlamini.interpreters.jvp import jvp as jvp_of_jaxpr
from xlamini.interpreters.linearize import Linearized, linearize as linearize_jaxpr
from xlamini.primitives import zeros
from xlamini.staging import Mask, chosen, rebuilt, transformed
from xlamini.staging.run.eager.program_cache import apply
from xlamini.transforms.derivatives.diff_args import DiffArgs
from xlamini.transforms.derivatives.pullback import evaluated, nonzero_outputs

R = TypeVar("R")
A = TypeVar("A")


@overload
def jvp(
    fun: Callable[..., R], primals: Values, tangents: Values, has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]], primals: Values, tangents: Values, has_aux: Literal[True]
) -> tuple[R, R, A]: ...
@overload
def jvp(fun: Callable[..., Any], primals: Values, tangents: Values, has_aux: bool) -> Any: ...
@api_boundary
def jvp(fun: Callable[..., Any], primals: Values, tangents: Values, has_aux: bool = False) -> Any:
    """The outputs of `fun(*primals)` and their tangents, for tangents of the primals.

    `tangents` has the structure, shapes and dtypes of `primals` (float0 for integers). Returns `(outputs, tangents)`,
    with `has_aux` also the auxiliary data. Raises TypeError for tangents of another structure or type.

    >>> xlamini.jvp(xlamini.numpy.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    diff = _all_arguments(fun, primals, "jvp")
    if isinstance(primals, list) != isinstance(tangents, list):
        raise TypeError(
            f"jvp: primals are a {type(primals).__name__} and tangents a {type(tangents).__name__}; make both tuples"
        )
    flat_tangents = matching_tangents("jvp", diff, tangents)
    traced = diff.trace(has_aux)
    used = [t for t, a in zip(flat_tangents, diff.avals, strict=True) if is_differentiable(a)]
    operands = [*diff.operands(traced), *used]
    flat = transformed(_with_tangents, traced.jaxpr, (diff.nonzero(traced),), operands)
    count = len(traced.jaxpr.outvars)
    out, aux = diff.split(traced, flat[:count])
    out_tangents, _ = rebuilt(traced.out_tree, as_tangents(traced.jaxpr.out_avals, flat[count:]))
    return (out, out_tangents, aux) if has_aux else (out, out_tangents)


@overload
def linearize(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False, in_nzs: Any = None
) -> tuple[R, LinearMap[R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True], in_nzs: Any = None
) -> tuple[R, LinearMap[R], A]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool, in_nzs: Any = None) -> Any: ...
@api_boundary
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, in_nzs: Any = None) -> Any:
    """The outputs of `fun(*primals)`, and its derivative at `primals` as a linear function of tangents.

    The function is evaluated once; the linear function can be applied to many tangents. With `has_aux` the auxiliary
    data come third. `in_nzs` is a bool, or a tuple of them for the arguments (and of tuples for containers): one with
    False is a constant, whose tangent is not read. `out_nzs` of the linear function tells which outputs then depend on
    the others.

    >>> y, f_jvp = xlamini.linearize(xlamini.numpy.sin, 0.0)
    >>> f_jvp(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    diff = _all_arguments(fun, primals, "linearize")
    traced = diff.trace(has_aux)
    lin = linearize_jaxpr(traced.jaxpr, diff.nonzero(traced, in_nzs))
    outs, residuals = evaluated(lin, diff.operands(traced))
    out_tree, nonzero = treedef_children(traced.out_tree)[0], diff.with_tangents(in_nzs)
    out_avals = traced.jaxpr.out_avals[: out_tree.num_leaves]
    rule = LinearRule(lin, diff.tree, diff.avals, nonzero, diff.names, out_tree, out_avals)
    out, aux = diff.split(traced, outs)
    return (out, LinearMap(rule, residuals), aux) if has_aux else (out, LinearMap(rule, residuals))


@dataclass(eq=False)
class LinearRule:
    """The static part of a linear map: the linear program, and the types of its inputs and outputs."""

    lin: Linearized
    tree: Any
    avals: Avals
    nonzero: Mask
    names: Sequence[str]
    out_tree: Any
    out_avals: Avals


class LinearMap(Generic[R]):
    """The derivative of a function at a point, as a function of tangents. It is a pytree of its residuals."""

    def __init__(self, rule: LinearRule, residuals: Values):
        self._rule, self._residuals = rule, list(residuals)

    @property
    def jaxpr(self) -> Any:
        """The linear program; its first inputs are the residuals."""
        return self._rule.lin.tangent

    @property
    def out_nzs(self) -> Any:
        """Which outputs have a tangent where the arguments of `in_nzs` have one: bools, in the output's structure."""
        return nonzero_outputs(self._rule.lin, self._rule.out_tree)

    @api_boundary
    def __call__(self, *tangents: Any) -> R:
        """Tangents of the outputs for tangents of the inputs."""
        rule = self._rule
        flat_tangents = matching_tangents("linearize", rule, tangents)
        used = chosen(flat_tangents, rule.nonzero)
        outs = iter(apply(rule.lin.tangent, [*self._residuals, *used]))
        every = [next(outs) if nz else None for nz in rule.lin.nonzero_out]
        dense = [
            zeros(tangent_aval(a)) if t is None and is_differentiable(a) else t
            for t, a in zip(every, rule.out_avals, strict=False)
        ]
        return rebuilt(rule.out_tree, as_tangents(rule.out_avals, dense))


register_pytree_node(LinearMap, lambda m: (m._residuals, m._rule), LinearMap)


def _all_arguments(fun: Callable[..., Any], primals: Values, what: str) -> DiffArgs:
    if not isinstance(primals, tuple | list):
        raise TypeError(f"{what}: primals must be a tuple or list of arguments, got {type(primals).__name__}")
    return DiffArgs(fun, tuple(range(len(primals))), primals, {}, what)


def matching_tangents(what: str, sides: DiffArgs | LinearRule, tangents: Values) -> list[Any]:
    """The flat tangents; TypeError unless each has the tangent type of its primal."""
    if not isinstance(tangents, tuple | list):
        raise TypeError(f"{what}: tangents must be a tuple or list, one for each primal, got {type(tangents).__name__}")
    leaves, tree = flatten(tuple(tangents))
    if tree != sides.tree:
        where = first_difference(sides.tree, tree, ("primals", "tangents"))
        raise TypeError(f"{what}: tangents must have the structure of the primals: {where}")
    for i, (t, primal) in enumerate(zip(leaves, sides.avals, strict=True)):
        _check_tangent(what, sides.names[i], t, primal)
    return leaves


def _check_tangent(what: str, name: str, tangent: Any, primal: ShapedArray) -> None:
    expected, dtype = tangent_aval(primal), getattr(tangent, "dtype", None)
    if expected.dtype == float0:
        if dtype != float0:
            raise TypeError(
                f"{what}: the tangent of {name!r} must have dtype float0, as "
                f"{primal.str_short(short_dtypes=False)} has "
                f"no derivative; pass np.zeros({primal.shape}, xlamini.float0)"
            )
        return
    actual = aval_of(tangent)
    if actual.shape != expected.shape:
        raise ShapeError(
            f"{what}: the tangent of {name!r} has shape {actual.shape}, its primal {expected.shape}; give it the "
            "primal's shape, for example with jnp.broadcast_to"
        )
    if not fits(actual, expected):
        raise TypeError(
            f"{what}: the tangent of {name!r} is {actual.dtype}, its primal {expected.dtype}; convert it with .astype"
        )


def _with_tangents(jaxpr: Jaxpr, nonzero: Mask, operands: Values) -> list[Any]:
    """The outputs of `jaxpr`, and the dense tangents of its differentiable outputs."""
    pushed, nonzero_out = jvp_of_jaxpr(jaxpr, nonzero)
    flat = apply(pushed, operands)
    outs, given = flat[: len(nonzero_out)], iter(flat[len(nonzero_out) :])
    return outs + [
        next(given) if nz else zeros(tangent_aval(a))
        for nz, a in zip(nonzero_out, jaxpr.out_avals, strict=True)
        if nz or is_differentiable(a)
    ]


def as_tangents(avals: Avals, dense: Values) -> list[Any]:
    """A tangent for every output: the dense ones, and float0 zeros for outputs that are not differentiable."""
    given = iter([t for t in dense if t is not None])
    return [next(given) if is_differentiable(a) else np.zeros(a.shape, float0) for a in avals]
