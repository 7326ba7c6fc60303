"""Reverse mode for functions of any output: vjp, and linear_transpose for functions that are linear already."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.edges import edge
from xlamini.core.errors import MissingRule, ShapeError
from xlamini.core.pytree import (
    first_difference,
    flatten,
    keystr,
    register_pytree_node,
    structure,
    tree_flatten_with_path,
)
from xlamini.core.tangents import Zero, is_differentiable, is_zero, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.interpreters.linearize import Linearized, linearize
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.convert import convert
from xlamini.primitives.tangent_ops import zeros
from xlamini.transforms.arguments import ArgNames, avals_of, check_callable, name_of
from xlamini.transforms.differentiated import DiffArgs, split_aux
from xlamini.transforms.one_program import apply, as_one_program
from xlamini.transforms.reverse import as_gradients, evaluated, pull_back
from xlamini.transforms.tracing import rebuilt, trace


@edge
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()) -> Any:
    """The outputs of `fun(*primals)`, and the function from cotangents of the outputs to cotangents of the primals.

    The function is evaluated once; what the way back needs of it is kept. With `has_aux` the auxiliary data come third.

    >>> y, pullback = xlamini.vjp(xlamini.numpy.sin, 0.0)
    >>> pullback(1.0)
    (Array(1., dtype=float32, weak_type=True),)
    """
    diff = DiffArgs(fun, tuple(range(len(primals))), primals, {}, "vjp")
    traced = diff.trace()
    lin = linearize(traced.jaxpr, diff.nonzero(traced))
    outs, residuals = evaluated(lin, diff.operands(traced))
    out = rebuilt(traced.out_tree, outs)
    out_avals = traced.jaxpr.out_avals
    rule = Rule(lin, diff.tree, diff.avals, traced.out_tree, out_avals, diff.fun_name)
    if not has_aux:
        return out, VJP(rule, residuals)
    out, aux = split_aux(out, "vjp", diff.fun_name)
    return out, VJP(rule.of_output(structure(out)), residuals), aux


class Rule:
    """All of a pullback that is not an array: the linear program and the types on both its sides."""

    def __init__(
        self,
        lin: Linearized,
        in_tree: Any,
        in_avals: Sequence[ShapedArray],
        out_tree: Any,
        out_avals: Sequence[ShapedArray],
        fun_name: str,
    ):
        self.lin, self.fun_name = lin, fun_name
        self.in_tree, self.in_avals = in_tree, in_avals
        self.out_tree, self.out_avals = out_tree, out_avals

    def of_output(self, out_tree: Any) -> Rule:
        """The rule for cotangents of the first outputs alone; those of the auxiliary data are zero."""
        return Rule(self.lin, self.in_tree, self.in_avals, out_tree, self.out_avals, self.fun_name)


class VJP:
    """A pullback: given a cotangent of the output it returns those of the primals. A pytree of its residuals."""

    def __init__(self, rule: Rule, residuals: Sequence[Any]):
        self.rule, self.residuals = rule, list(residuals)

    @edge
    def __call__(self, *cotangents: Any) -> Any:
        if len(cotangents) != 1:
            raise TypeError(
                f"vjp: the pullback of {self.rule.fun_name} takes one argument, a cotangent with the structure of the "
                f"output, got {len(cotangents)}; pass a tuple for an output that is one"
            )
        rule, (out_ct,) = self.rule, cotangents
        given = _checked_cotangents(rule, out_ct)
        rest = rule.out_avals[len(given) :]
        cts = [*given, *(Zero(tangent_aval(a)) for a in rest)]

        def program(*arrays: Any) -> list[Any]:
            dense = iter(arrays[: len(arrays) - len(self.residuals)])
            every = [ct if is_zero(ct) else next(dense) for ct in cts]
            residuals = arrays[len(arrays) - len(self.residuals) :]
            return [zeros(ct.aval) if is_zero(ct) else ct for ct in pull_back(rule.lin, residuals, every)]

        dense = [ct for ct in cts if not is_zero(ct)]
        found = as_one_program(program, [*dense, *self.residuals], f"vjp_{rule.fun_name}")
        return rebuilt(rule.in_tree, as_gradients(rule.in_avals, found))

    def __repr__(self) -> str:
        kept = ", ".join(aval_of(r).str_short() for r in self.residuals)
        return f"VJP({self.rule.fun_name}, residuals=[{kept}])"


register_pytree_node(VJP, lambda v: (v.residuals, v.rule), lambda rule, residuals: VJP(rule, residuals))


class _CotangentNames(Sequence[str]):
    """Names of the leaves of a cotangent, worked out when one is asked for."""

    def __init__(self, cotangent: Any):
        self._cotangent = cotangent

    def __len__(self) -> int:
        return len(flatten(self._cotangent)[0])

    def __getitem__(self, index: Any) -> Any:
        return f"cotangent{keystr(tree_flatten_with_path(self._cotangent)[0][index][0])}"


def _checked_cotangents(rule: Rule, out_ct: Any) -> list[Any]:
    """The flat cotangents, symbolic zeros for outputs without derivative; an error where they don't fit the outputs."""
    leaves, tree = flatten(out_ct)
    avals_of(leaves, _CotangentNames(out_ct), f"the pullback of {rule.fun_name}")
    if tree != rule.out_tree:
        where = first_difference(rule.out_tree, tree, ("output", "cotangent"))
        raise TypeError(f"vjp: the cotangent must have the structure of the output of {rule.fun_name}: {where}")
    checked = []
    for i, (ct, aval) in enumerate(zip(leaves, rule.out_avals, strict=False)):
        if not is_differentiable(aval):
            checked.append(Zero(tangent_aval(aval)))
            continue
        found = aval_of(ct)
        if found.shape != aval.shape or (found.dtype != aval.dtype and not found.weak_type):
            path = keystr(tree_flatten_with_path(out_ct)[0][i][0])
            raise ShapeError(
                f"vjp: the cotangent{path} is {found.str_short(short_dtypes=False)}, but the output "
                f"of {rule.fun_name} there is "
                f"{aval.str_short(short_dtypes=False)}; they must be of one type"
            )
        checked.append(ct if found.dtype == aval.dtype else convert(ct, aval.dtype))
    return checked


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """The transpose of a function that is linear; of `primals` only the types are used.

    Returns a function from a cotangent of the output to a tuple of cotangents of the arguments.

    >>> xlamini.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, in_tree = flatten((primals, {}))
    names = ArgNames(fun, in_tree)
    avals = avals_of(leaves, names, name_of(fun))
    traced = trace(fun, in_tree, avals, None, names)
    linear = (False,) * len(traced.captured) + (True,) * len(avals)

    @edge
    def transposed(out_ct: Any) -> Any:
        cts, tree = flatten(out_ct)
        if tree != traced.out_tree:
            where = first_difference(traced.out_tree, tree, ("output", "cotangent"))
            raise TypeError(f"linear_transpose: the cotangent must have the structure of the output: {where}")
        for ct, wanted in zip(map(aval_of, cts), traced.jaxpr.out_avals, strict=True):
            if (ct.shape, ct.dtype) != (wanted.shape, wanted.dtype):
                raise TypeError(
                    f"linear_transpose: the cotangent is {ct.str_short()}, but the output is {wanted.str_short()}"
                )
        try:
            backward, nonzero = transpose(traced.jaxpr, linear, (True,) * len(cts))
        except MissingRule as error:
            raise MissingRule(f"linear_transpose: {name_of(fun)} is not linear in its arguments: {error}") from None
        found = iter(apply(backward, [*traced.captured, *cts]))
        dense = [next(found) if nz else zeros(a) for nz, a in zip(nonzero, avals, strict=True)]
        return rebuilt(flatten(primals)[1], dense)

    return transposed


