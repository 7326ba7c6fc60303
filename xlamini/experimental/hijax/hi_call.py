"""One call of a user's operation: the user's object, and his rules' arguments and results as flat lists of leaves."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import (
    Avals,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    flatten_axes,
    flatten_from_user,
    is_differentiable,
    is_zero,
    tangent_aval,
    unflatten,
)
from xlamini.core.caching.structure import RewriteRule
from xlamini.core.program.hi_types import HiAval, as_aval, fits
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import Sums, sums_of
from xlamini.core.sharding.propagation import Splits
from xlamini.extend.rules import as_values
from xlamini.primitives import convert
from xlamini.staging.trace.arguments import LeafNames, checked_avals
from xlamini.transforms.custom.call_site import concrete_operands


class HiCall(RewriteRule):
    """The param of the equation: the user's object, and the operands of the call while Python may read their values."""

    def __init__(self, primitive: Any, leaves: Values):
        self.primitive = primitive
        self.name: str = type(primitive).__name__
        self.in_avals: list[ShapedArray] = [as_aval(t) for t in primitive.in_avals_flat]
        self.out_avals: list[ShapedArray] = [as_aval(t) for t in primitive.out_avals_flat]
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

    def differentiated(self, nonzero: Sequence[Any]) -> list[bool]:
        """Which outputs have a tangent: a rule says so, by a bool or a tree of them, and the type allows it."""
        masks = [flatten_axes("nzs_out", each, self.primitive.out_tree) for each in nonzero]
        return [any(nzs) and is_differentiable(a) for *nzs, a in zip(*masks, self.out_avals, strict=True)]

    def expanded(self, leaves: Values) -> list[Any]:
        """The leaves of the output, by other operations."""
        return self.outs("expand", self.primitive.expand(*self.args(leaves)))

    def __repr__(self) -> str:
        return repr(self.primitive)


def _splits(avals: Avals, outs: Avals, params: Params) -> Splits:
    return Splits([a.explicit_sharding for a in outs])


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    return list(map(sums_of, outs))


class OfUsersTypes(Primitive):
    """A primitive whose results are split as the types say that the user gave, whatever the operands are."""

    sharding: Sharding = Sharding(splits=_splits, sums=_sums)


def check_type(what: str, found: ShapedArray, where: str, due: ShapedArray) -> None:
    """TypeError unless shapes and dtypes are equal."""
    if not fits(found, due):
        raise TypeError(f"{what} {found.str_long()}, but {where} {due.str_long()}")


def checked_leaves(primitive: Any, args: Sequence[Any]) -> list[Any]:
    """The leaves of the arguments of a call; TypeError if they are not of the types `in_avals`."""
    name = type(primitive).__name__
    leaves, tree = flatten_from_user(tuple(args))
    if tree != primitive.in_tree:
        raise TypeError(f"{name}: the arguments are of the structure {tree}, but in_avals is of {primitive.in_tree}")
    names = LeafNames("args", tree)
    avals, due = checked_avals(leaves, names, name), [as_aval(t) for t in primitive.in_avals_flat]
    for i, (found, expected) in enumerate(zip(avals, due, strict=True)):
        check_type(f"{name}: {names[i]} is", found, "in_avals says", expected)
    return leaves


def dims_of_leaves(tree: Any, dims: Any) -> list[Any]:
    """One dim for each leaf, where one may stand for a whole subtree."""
    return flatten_axes("vmap", dims, tree)
