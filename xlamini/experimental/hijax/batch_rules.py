"""What rules `batch` of users call, and a primitive whose user says only which dimension of the output is the batch."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlamini.core import Axis, Zero, flatten_from_user, is_zero, tree_map, unflatten
from xlamini.core.program.hi_types import as_aval, as_written
from xlamini.experimental.hijax.derived_rules import dense, results_of
from xlamini.experimental.hijax.hi_call import dims_of_leaves
from xlamini.experimental.hijax.operation import Operation
from xlamini.extend.rules import as_values
from xlamini.extend.tangents import instantiated
from xlamini.interpreters.batch import batched_aval
from xlamini.primitives import move_batch_dim, sum_over
from xlamini.transforms.axes import unbatched_aval
from xlamini.transforms.custom.accumulators import ValAccum
from xlamini.transforms.vmap import vmap


def vmap_rule(axis_data: Axis, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    """`vmap(f, in_axes, out_axes)` over the axis that a rule `batch` was given.

    Arguments and results may have symbolic zeros, so that `f` may be a rule for tangents or cotangents.

    >>> from xlamini.experimental.hijax import HiPrim
    >>> class Total(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), xlamini.typeof(1.0), {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x.sum()
    ...     def batch(self, axis_data, args, dims):
    ...         return vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
    >>> xlamini.vmap(lambda x: Total(xlamini.typeof(x))(x))(jnp.ones((2, 3)))
    Array([3., 3.], dtype=float32)
    """
    mapped = _over(axis_data, f, in_axes, out_axes)

    def batched(*args: Any) -> Any:
        found = mapped(*_zeros_by(unbatched_aval, axis_data, in_axes, args))
        return _zeros_by(lambda aval, dim, _: batched_aval(aval, axis_data, dim), axis_data, out_axes, found)

    return batched


def _over(axis: Axis, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
    return vmap(f, in_axes, out_axes, axis_name=axis.name, axis_size=axis.size)


def _zeros_by(change: Callable[..., Any], axis: Axis, dims: Any, tree: Any) -> Any:
    """The tree with symbolic zeros of changed types: one example of a batch, or the batch of an example."""
    one = lambda dim, x: Zero(change(x.aval, dim, axis.size)) if is_zero(x) else x  # noqa: E731
    below = lambda dim, part: tree_map(lambda x: one(dim, x), part, is_leaf=is_zero)  # noqa: E731
    return tree_map(below, dims, tree, is_leaf=lambda x: x is None)


def unmap_avals(axis_data: Axis, avals: Any, dims: Any) -> Any:
    """The types of batches, from those of one example; `dims` says where each batch is, None for no batch.

    >>> from xlamini.experimental.hijax import HiPrim
    >>> class Same(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x
    ...     def batch(self, axis_data, args, dims):
    ...         print(*unmap_avals(axis_data, self.in_avals, dims))
    ...         return Same(xlamini.typeof(args[0]))(*args), dims[0]
    >>> xlamini.vmap(lambda x: Same(xlamini.typeof(x))(x), in_axes=1)(jnp.ones((2, 3))).shape
    float32[2,3]
    (3, 2)
    """
    leaves, tree = flatten_from_user(avals)
    pairs = zip(leaves, dims_of_leaves(tree, dims), strict=True)
    return unflatten(tree, [as_written(batched_aval(as_aval(t), axis_data, d)) for t, d in pairs])


def bdims_at_front(axis_data: Axis, args: Any, dims: Any) -> Any:
    """The arguments of a rule `batch` with every batch at 0; an argument without one is repeated.

    >>> from xlamini.experimental.hijax import HiPrim
    >>> class Twice(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return 2 * x
    ...     def batch(self, axis_data, args, dims):
    ...         (x,) = bdims_at_front(axis_data, args, dims)
    ...         return Twice(xlamini.typeof(x))(x), 0
    >>> xlamini.vmap(lambda x: Twice(xlamini.typeof(x))(x), in_axes=1)(jnp.ones((2, 3))).shape
    (3, 2)
    """
    leaves, tree = flatten_from_user(args)
    pairs = zip(leaves, dims_of_leaves(tree, dims), strict=True)
    return unflatten(tree, as_values([move_batch_dim(x, axis_data.size, d, 0) for x, d in pairs]))


class BatchedOperation(Operation):
    """The primitive of a batch: each rule is that of one example, mapped."""

    axis: Axis
    dims: tuple[Any, ...]
    out_dim: Any
    primitive: Operation
    params: dict[str, Any]

    def __init__(self, primitive: Operation, axis: Axis, dims: Any, out_dim: Any):
        self.primitive, self.axis, self.dims, self.out_dim = primitive, axis, tuple(dims), out_dim
        self.in_avals: tuple[Any, ...] = unmap_avals(axis, primitive.in_avals, self.dims)
        self.out_aval: Any = unmap_avals(axis, primitive.out_aval, out_dim)
        self.params = {"primitive": primitive, "axis": axis, "dims": _hashable(dims), "out_dim": _hashable(out_dim)}
        super().__init__()
        self.dims, self.out_dim = tuple(dims), out_dim

    def _check_rules(self) -> None:
        """The class writes all rules; those of the primitive have been checked."""

    def writes(self, rule: str) -> bool:  # type: ignore[override]
        """Whether the user writes this rule."""
        return self.primitive.writes(rule) or rule in ("batch_dim_rule", "batch")

    def _map(self, fun: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
        return _over(self.axis, fun, in_axes, out_axes)

    def expand(self, *args: Any) -> Any:
        return self._map(self.primitive.expand, self.dims, self.out_dim)(*args)

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        return self._forward(functools.partial(self.primitive.vjp_fwd, nzs_in), args)

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        return self._forward(functools.partial(self.primitive.lin, nzs_in), primals)

    def _forward(self, rule: Callable[..., Any], args: Any) -> Any:
        def paired(*args: Any) -> Any:
            out, residuals, _, structured = results_of(rule(*args))
            return out, (residuals, structured)

        return self._map(paired, self.dims, (self.out_dim, 0))(*args)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        outgrad = dense(outgrad)
        cts = self._map(self._cotangents, (0, self.out_dim), 0)(res, outgrad)
        return tuple(_moved(ct, dim) for ct, dim in zip(cts, self.dims, strict=True))

    def _cotangents(self, res: Any, outgrad: Any) -> Any:
        user = self.primitive
        accumulators = [ValAccum(as_aval(t)) for t in user.in_avals_flat]
        kept, structured = res
        user.vjp_bwd(kept, *structured, outgrad, *unflatten(user.in_tree, accumulators))
        return unflatten(user.in_tree, [instantiated(a.val) for a in accumulators])

    def jvp(self, primals: Any, tangents: Any) -> Any:
        tangents = dense(tuple(tangents))
        rule = lambda primals, tangents: dense(self.primitive.jvp(primals, tangents))  # noqa: E731
        return self._map(rule, (self.dims, self.dims), (self.out_dim, self.out_dim))(tuple(primals), tangents)

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        tangents = dense(tuple(tangents))
        rule = lambda res, tangents: dense(self.primitive.linearized(res[0], *res[1], *tangents))  # noqa: E731
        return self._map(rule, (0, self.dims), self.out_dim)(residuals, tangents)

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """A batch of batches, the new one in front."""
        return BatchedOperation(self, axis_data, dims, 0)(*args), 0


def _moved(ct: Any, dim: Any) -> Any:
    """Cotangents with the batch at 0 for an argument with another dim, or with none: then their sum."""
    leaves, tree = flatten_from_user(ct)
    pairs = zip(leaves, dims_of_leaves(tree, dim), strict=True)
    return unflatten(tree, [sum_over(x, (0,)) if d is None else move_batch_dim(x, 0, 0, d) for x, d in pairs])


def _hashable(dims: Any) -> Any:
    leaves, tree = flatten_from_user(dims, lambda x: x is None)
    return tuple(leaves), tree
