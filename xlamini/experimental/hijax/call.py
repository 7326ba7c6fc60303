"""The equation of a call: the primitive `call_hi_primitive`, whose rules ask the user's object for its own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    close_over,
    flatten_axes,
    flatten_from_user,
    is_linear,
    is_zero,
    tangent_aval,
    unflatten,
)
from xlamini.core.hi_types import HiAval, as_aval
from xlamini.core.sharding.partial_sums import Sums, sums_of
from xlamini.core.sharding.propagation import Splits
from xlamini.core.state import state
from xlamini.core.structure import RewriteRule
from xlamini.core.tracer import build
from xlamini.experimental.hijax.accumulators import Accumulator
from xlamini.experimental.hijax.linear import LinearRule, linear_map
from xlamini.extend.rules import as_values
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert
from xlamini.staging import nonzero_of
from xlamini.staging.trace.arguments import LeafNames, checked_avals
from xlamini.transforms.custom.call_site import concrete_operands

if TYPE_CHECKING:
    from xlamini.experimental.hijax.primitive import VJPHiPrimitive


class HiCall(RewriteRule):
    """The param of the equation: the user's object, and the operands of the call while Python may read their values."""

    def __init__(self, primitive: VJPHiPrimitive, leaves: Values):
        self.primitive = primitive
        self.name = type(primitive).__name__
        self.in_avals = [_plain(t) for t in primitive.in_avals_flat]
        self.out_avals = [_plain(t) for t in primitive.out_avals_flat]
        self._operands = concrete_operands(leaves)

    def values(self) -> list[Any] | None:
        """The values of the operands, if a rule may read them; None once their trace is over."""
        return None if self._operands is None else self._operands()

    def args(self, leaves: Values) -> Any:
        """The arguments with these leaves."""
        return unflatten(self.primitive.in_tree, as_values(leaves))

    def outs(self, rule: str, found: Any) -> list[Any]:
        """The leaves of an output that a rule returned."""
        leaves = self.like_output(rule, found)
        return [self._typed(rule, x, a) for x, a in zip(leaves, self.out_avals, strict=True)]

    def like_output(self, rule: str, found: Any) -> list[Any]:
        """The leaves of what must have the structure of the output."""
        leaves, tree = flatten_from_user(found, is_zero)
        if tree != self.primitive.out_tree:
            raise TypeError(f"{self.name}.{rule} must return the structure {self.primitive.out_tree}, not {tree}")
        return leaves

    def _typed(self, rule: str, x: Any, aval: ShapedArray) -> Any:
        check_type(f"{self.name}.{rule} returns", aval_of(x), "its out_aval is", aval)
        return x if type(aval) is HiAval else convert(x, aval.dtype, aval.weak_type)

    def tangents(self, rule: str, found: Any) -> list[Any]:
        """The leaves of a tangent of the output."""
        leaves = self.like_output(rule, found)
        pairs = zip(leaves, map(tangent_aval, self.out_avals), strict=True)
        return [self._tangent(rule, t, aval) for t, aval in pairs]

    def _tangent(self, rule: str, t: Any, aval: ShapedArray) -> Any:
        if t is None or is_zero(t):
            return Zero(aval)
        check_type(f"{self.name}.{rule} returns a tangent", aval_of(t), "that of the output is", aval)
        return t if type(aval) is HiAval else convert(t, aval.dtype, aval.weak_type)

    def expanded(self, leaves: Values) -> list[Any]:
        """The leaves of the output, by other operations."""
        return self.outs("expand", self.primitive.expand(*self.args(leaves)))

    def __repr__(self) -> str:
        return repr(self.primitive)


def _plain(ty: Any) -> ShapedArray:
    """The aval of a type as users write it, such as a ShapeDtypeStruct."""
    aval = as_aval(ty)
    if isinstance(aval, ShapedArray):
        return aval
    return ShapedArray(tuple(aval.shape), aval.dtype, getattr(aval, "weak_type", False))


def check_type(what: str, found: ShapedArray, where: str, due: ShapedArray) -> None:
    """TypeError unless shapes and dtypes are equal."""
    if (found.shape, found.dtype) != (due.shape, due.dtype):
        raise TypeError(f"{what} {found.str_long()}, but {where} {due.str_long()}")


def checked_leaves(primitive: VJPHiPrimitive, args: Sequence[Any]) -> list[Any]:
    """The leaves of the arguments of a call; TypeError if they are not of the types `in_avals`."""
    name = type(primitive).__name__
    leaves, tree = flatten_from_user(tuple(args))
    if tree != primitive.in_tree:
        raise TypeError(f"{name}: the arguments are of the structure {tree}, but in_avals is of {primitive.in_tree}")
    names = LeafNames("args", tree)
    avals, due = checked_avals(leaves, names, name), [_plain(t) for t in primitive.in_avals_flat]
    for i, (found, expected) in enumerate(zip(avals, due, strict=True)):
        check_type(f"{name}: {names[i]} is", found, "in_avals says", expected)
    return leaves


class CallHiPrimitive(Primitive):
    """A call of a user's `VJPHiPrimitive`; its operands are the leaves of the arguments."""

    name = "call_hi_primitive"
    multiple_results = True
    traits = 0
    expands = True
    lacks: Mapping[str, str] = {"lower": "the user's rule replaces it"}

    def shape_rule(self, *avals: ShapedArray, call: HiCall) -> Avals:
        return call.out_avals

    def splits(self, avals: Avals, outs: Avals, params: Params) -> Splits:
        """As the user's `out_aval` says, whatever the operands are."""
        return Splits([a.split for a in outs])

    def sums(self, avals: Avals, outs: Avals, params: Params) -> list[Sums]:
        return list(map(sums_of, outs))

    def jvp(self, primals: Values, tangents: Values, *, call: HiCall) -> Any:
        """By the user's `jvp`; without one, by the linear map of `linearize`."""
        if not call.primitive.writes("jvp") and call.primitive.writes("linearized"):
            return self.linearize(primals, tangents, call=call)
        out, tangent = call.primitive.jvp(call.args(primals), call.args(tangents))
        return call.outs("jvp", out), call.tangents("jvp", tangent)

    def linearize(self, primals: Values, tangents: Values, *, call: HiCall) -> Any:
        """By `lin`, or `vjp_fwd`, and a linear map; from `jvp` if that alone is written."""
        user = call.primitive
        if not (user.writes("lin") or user.writes("vjp_fwd")) and user.writes("jvp"):
            return self.jvp(primals, tangents, call=call)
        nonzero, trees = nonzero_of(tangents), []

        def forward(*operands: Any) -> list[Any]:
            out, residuals = user.lin(unflatten(user.in_tree, nonzero), *call.args(operands))
            leaves, tree = flatten_from_user((residuals, call.args(operands) if keeps_primals(user) else ()))
            trees.append(tree)
            return [*call.outs("lin", out), *leaves]

        jaxpr, captured = build(forward, [aval_of(x) for x in primals], call.name, None, call.values())
        found = evaluate(close_over(jaxpr), [*captured, *primals])
        count = len(call.out_avals)
        rule = LinearRule(call, nonzero, trees[0])
        return found[:count], linear_map(rule, found[count:], tangents)

    def transpose(self, cts: Values, *operands: Any, call: HiCall) -> Values:
        accumulators = [Accumulator(x.aval) if is_linear(x) else None for x in operands]
        places = [x if a is None else a for x, a in zip(as_values(operands), accumulators, strict=True)]
        user = call.primitive
        user.transpose(unflatten(user.out_tree, as_values(cts)), *unflatten(user.in_tree, places))
        return [None if a is None else a.total for a in accumulators]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, call: HiCall) -> Any:
        user = call.primitive
        specs = [_spec(a, d) for a, d in zip(call.in_avals, dims, strict=True)]
        out, out_dims = user.batch(axis, call.args(operands), unflatten(user.in_tree, specs))
        return call.like_output("batch", out), spread_dims(user.out_tree, out_dims)

    def expand(self, *operands: Any, call: HiCall) -> list[Any]:
        return call.expanded(operands)

    def bind(self, *operands: Any, call: HiCall) -> Any:
        return call.expanded(operands) if state.builder is None else super().bind(*operands, call=call)


def keeps_primals(user: VJPHiPrimitive) -> bool:
    """Whether the linear map of a call is computed by the user's `jvp`, which takes the primals."""
    return user.writes("jvp") and not user.writes("linearized")


def _spec(aval: ShapedArray, dim: Any) -> Any:
    return aval.spec(dim) if type(aval) is HiAval and dim is not None else dim


def spread_dims(tree: Any, dims: Any) -> list[Any]:
    """One dim for each leaf, where one may stand for a whole subtree."""
    return flatten_axes("vmap", dims, tree)


call_hi_primitive_p = CallHiPrimitive()
