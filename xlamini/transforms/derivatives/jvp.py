"""Forward mode: jvp, and linearize, which keeps the linear map for later."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini.core.api_boundary import edge
from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.errors import ShapeError
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.pytree import first_difference, flatten, register_pytree_node, treedef_children
from xlamini.core.tangents import is_differentiable, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.interpreters.jvp import jvp as jvp_of_jaxpr
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.linearize import linearize as linearize_jaxpr
from xlamini.primitives.tangent_ops import zeros
from xlamini.staging.call.higher_order import Mask
from xlamini.staging.run.program_cache import apply, transformed
from xlamini.staging.trace.tracing import rebuilt
from xlamini.transforms.derivatives.diff_args import DiffArgs
from xlamini.transforms.derivatives.pullback import evaluated


@edge
def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The outputs of `fun(*primals)` and their tangents, for tangents of the primals.

    `tangents` has the structure, shapes and dtypes of `primals` (float0 for integers). Returns `(outputs, tangents)`,
    with `has_aux` also the auxiliary data. Raises TypeError where tangents do not fit.

    >>> xlamini.jvp(xlamini.numpy.sin, (0.0,), (2.0,))
    (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    diff = _all_arguments(fun, primals, "jvp")
    given = matching_tangents("jvp", diff, tangents)
    traced = diff.trace(has_aux)
    keep = [i for i, a in enumerate(diff.avals) if is_differentiable(a)]
    operands = [*diff.operands(traced), *(given[i] for i in keep)]
    flat = transformed(_with_tangents, traced.jaxpr, (diff.nonzero(traced),), operands)
    count = len(traced.jaxpr.outvars)
    out, aux = diff.split(traced, flat[:count])
    out_tangents, _ = rebuilt(traced.out_tree, as_tangents(traced.jaxpr.out_avals, flat[count:]))
    return (out, out_tangents, aux) if has_aux else (out, out_tangents)


@edge
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The outputs of `fun(*primals)` and the linear map of its tangents there.

    The function is evaluated once; the map can be applied to many tangents. With `has_aux` the auxiliary data come
    third.

    >>> y, f_jvp = xlamini.linearize(xlamini.numpy.sin, 0.0)
    >>> f_jvp(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    diff = _all_arguments(fun, primals, "linearize")
    traced = diff.trace(has_aux)
    lin = linearize_jaxpr(traced.jaxpr, diff.nonzero(traced))
    outs, residuals = evaluated(lin, diff.operands(traced))
    out_tree = treedef_children(traced.out_tree)[0]
    out_avals = traced.jaxpr.out_avals[: out_tree.num_leaves]
    rule = LinearRule(lin, diff.tree, diff.avals, diff.names, out_tree, out_avals)
    out, aux = diff.split(traced, outs)
    return (out, LinearMap(rule, residuals), aux) if has_aux else (out, LinearMap(rule, residuals))


@dataclass(eq=False)
class LinearRule:
    """All of a linear map that is not an array: the program, and the types on both its sides."""

    lin: Linearized
    tree: Any
    avals: Sequence[ShapedArray]
    names: Sequence[str]
    out_tree: Any
    out_avals: Sequence[ShapedArray]


class LinearMap:
    """The derivative of a function at a point, as a function of tangents. It is a pytree of its residuals."""

    def __init__(self, rule: LinearRule, residuals: Sequence[Any]):
        self._rule, self._residuals = rule, list(residuals)

    @property
    def jaxpr(self) -> Any:
        """The linear program; its first inputs are the residuals."""
        return self._rule.lin.tangent

    @edge
    def __call__(self, *tangents: Any) -> Any:
        """Tangents of the outputs for tangents of the inputs."""
        rule = self._rule
        given = matching_tangents("linearize", rule, tangents)
        used = [t for t, a in zip(given, rule.avals, strict=True) if is_differentiable(a)]
        found = iter(apply(rule.lin.tangent, [*self._residuals, *used]))
        every = [next(found) if nz else None for nz in rule.lin.nonzero_out]
        dense = [
            zeros(tangent_aval(a)) if t is None and is_differentiable(a) else t
            for t, a in zip(every, rule.out_avals, strict=False)
        ]
        return rebuilt(rule.out_tree, as_tangents(rule.out_avals, dense))


register_pytree_node(LinearMap, lambda m: (m._residuals, m._rule), LinearMap)


def _all_arguments(fun: Callable[..., Any], primals: Sequence[Any], what: str) -> DiffArgs:
    if not isinstance(primals, tuple | list):
        raise TypeError(f"{what}: primals must be a tuple or list of arguments, got {type(primals).__name__}")
    return DiffArgs(fun, tuple(range(len(primals))), primals, {}, what)


def matching_tangents(what: str, sides: DiffArgs | LinearRule, tangents: Sequence[Any]) -> list[Any]:
    """The flat tangents; TypeError unless each has the type that its primal's tangent has."""
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
    wanted, dtype = tangent_aval(primal), getattr(tangent, "dtype", None)
    if wanted.dtype == float0:
        if dtype != float0:
            raise TypeError(
                f"{what}: the tangent of {name!r} must have dtype float0, as "
                f"{primal.str_short(short_dtypes=False)} has "
                f"no derivative; pass np.zeros({primal.shape}, xlamini.float0)"
            )
        return
    found = aval_of(tangent)
    if found.shape != wanted.shape:
        raise ShapeError(
            f"{what}: the tangent of {name!r} has shape {found.shape}, its primal {wanted.shape}; give it the "
            "primal's shape, for example with jnp.broadcast_to"
        )
    if found.dtype != wanted.dtype:
        raise TypeError(
            f"{what}: the tangent of {name!r} is {found.dtype}, its primal {wanted.dtype}; convert it with .astype"
        )


def _with_tangents(jaxpr: Jaxpr, nonzero: Mask, operands: Sequence[Any]) -> list[Any]:
    """The outputs of `jaxpr`, and a tangent for every one of them that can have one."""
    pushed, nonzero_out = jvp_of_jaxpr(jaxpr, nonzero)
    flat = apply(pushed, operands)
    outs, given = flat[: len(nonzero_out)], iter(flat[len(nonzero_out) :])
    return outs + [
        next(given) if nz else zeros(tangent_aval(a))
        for nz, a in zip(nonzero_out, jaxpr.out_avals, strict=True)
        if nz or is_differentiable(a)
    ]


def as_tangents(avals: Sequence[ShapedArray], dense: Sequence[Any]) -> list[Any]:
    """Tangents of outputs: the given ones, and float0 zeros where the output has no derivative."""
    given = iter([t for t in dense if t is not None])
    return [next(given) if is_differentiable(a) else np.zeros(a.shape, float0) for a in avals]


