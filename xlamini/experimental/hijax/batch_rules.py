"""A primitive of a user mapped over an axis, where he says only which dimension of the output is the batch."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlamini.core import Axis, flatten_from_user, is_zero, tree_map, unflatten
from xlamini.core.hi_types import as_aval, as_written
from xlamini.experimental.hijax.accumulators import ValAccum
from xlamini.experimental.hijax.hi_call import spread_dims
from xlamini.experimental.hijax.operation import Operation
from xlamini.extend.tangents import instantiated
from xlamini.interpreters.batch import batched_aval
from xlamini.primitives import move_batch_dim, sum_over
from xlamini.transforms.vmap import vmap


class Batched(Operation):
    """The primitive of a batch: each rule is that of one example, mapped."""

    def __init__(self, primitive: Operation, axis: Axis, dims: Any, out_dim: Any):
        self.primitive, self.axis, self.dims, self.out_dim = primitive, axis, tuple(dims), out_dim
        self.in_avals = _batch_types(primitive.in_avals, self.dims, axis)
        self.out_aval = _batch_types(primitive.out_aval, out_dim, axis)
        self.params = {"primitive": primitive, "axis": axis, "dims": _hashable(dims), "out_dim": _hashable(out_dim)}
        super().__init__()
        self.dims, self.out_dim = tuple(dims), out_dim

    def _check_rules(self) -> None:
        """The class writes all rules; those of the primitive have been checked."""

    def writes(self, rule: str) -> bool:  # type: ignore[override]
        """Whether the user writes this rule."""
        return self.primitive.writes(rule) or rule in ("batch_dim_rule", "batch")

    def _map(self, fun: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
        return vmap(fun, in_axes, out_axes, axis_name=self.axis.name, axis_size=self.axis.size)

    def expand(self, *args: Any) -> Any:
        return self._map(self.primitive.expand, self.dims, self.out_dim)(*args)

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        return self._map(functools.partial(self.primitive.vjp_fwd, nzs_in), self.dims, (self.out_dim, 0))(*args)

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        return self._map(functools.partial(self.primitive.lin, nzs_in), self.dims, (self.out_dim, 0))(*primals)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        outgrad = tree_map(instantiated, outgrad, is_leaf=is_zero)
        cts = self._map(self._cotangents, (0, self.out_dim), 0)(res, outgrad)
        return tuple(_moved(ct, dim) for ct, dim in zip(cts, self.dims, strict=True))

    def _cotangents(self, res: Any, outgrad: Any) -> Any:
        user = self.primitive
        accumulators = [ValAccum(as_aval(t)) for t in user.in_avals_flat]
        user.vjp_bwd(res, outgrad, *unflatten(user.in_tree, accumulators))
        return unflatten(user.in_tree, [instantiated(a.total) for a in accumulators])

    def jvp(self, primals: Any, tangents: Any) -> Any:
        tangents = tree_map(instantiated, tuple(tangents), is_leaf=is_zero)
        rule = lambda primals, tangents: _dense(self.primitive.jvp(primals, tangents))  # noqa: E731
        return self._map(rule, (self.dims, self.dims), (self.out_dim, self.out_dim))(tuple(primals), tangents)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        tangents = tree_map(instantiated, tuple(tangents), is_leaf=is_zero)
        rule = lambda res, tangents: _dense(self.primitive.linearized(res, *tangents))  # noqa: E731
        return self._map(rule, (0, self.dims), self.out_dim)(residuals, tangents)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """A batch of batches, the new one in front."""
        return Batched(self, axis_data, dims, 0)(*args), 0


def _dense(found: Any) -> Any:
    return tree_map(instantiated, found, is_leaf=is_zero)


def _moved(ct: Any, dim: Any) -> Any:
    """Cotangents with the batch at 0 for an argument with another dim, or with none: then their sum."""
    leaves, tree = flatten_from_user(ct)
    pairs = zip(leaves, spread_dims(tree, dim), strict=True)
    return unflatten(tree, [sum_over(x, (0,)) if d is None else move_batch_dim(x, 0, 0, d) for x, d in pairs])


def _batch_types(types: Any, dims: Any, axis: Axis) -> Any:
    """The types of a batch, from those of one example."""
    leaves, tree = flatten_from_user(types)
    pairs = zip(leaves, spread_dims(tree, dims), strict=True)
    return unflatten(tree, [as_written(batched_aval(as_aval(t), axis, d)) for t, d in pairs])


def _hashable(dims: Any) -> Any:
    leaves, tree = flatten_from_user(dims, lambda x: x is None)
    return tuple(leaves), tree
