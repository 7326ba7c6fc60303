"""Derivatives in sparse arrays: grad and the like, in the data and with sparse results."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import tree_flatten, tree_leaves, tree_map
from xlamini.core.api_boundary import api_boundary
from xlamini.core.pytree import tree_unflatten
from xlamini.experimental.sparse.transform import is_sparse
from xlamini.staging import check_callable
from xlamini.transforms.derivatives import jacobian as dense_jacobian, value_and_grad as dense_gradient

Argnums = int | Sequence[int]


class Parts:
    """The arguments that are differentiated, with the data of sparse arrays in their places."""

    def __init__(self, what: str, fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any]):
        check_callable(f"sparse.{what}", fun)
        self._fun, self._args = fun, args
        self._positions = [argnums] if isinstance(argnums, int) else list(argnums)
        self._single = isinstance(argnums, int)
        chosen = [args[i] for i in self._positions]
        self.leaves, self.tree = tree_flatten(chosen, is_leaf=is_sparse)
        self.data = [x.data if is_sparse(x) else x for x in self.leaves]

    def call(self, data: Sequence[Any], **kwargs: Any) -> Any:
        """The function of these data in place of the arguments'."""
        leaves = [x.with_data(d) if is_sparse(x) else d for x, d in zip(self.leaves, data, strict=True)]
        args = list(self._args)
        for position, value in zip(self._positions, tree_unflatten(self.tree, leaves), strict=True):
            args[position] = value
        return self._fun(*args, **kwargs)

    def rebuilt(self, parts: Sequence[Any]) -> Any:
        """Derivatives in the data as derivatives in the arguments: sparse ones have the argument's indices."""
        leaves = [_as_sparse(x, d) if is_sparse(x) else d for x, d in zip(self.leaves, parts, strict=True)]
        tree = tree_unflatten(self.tree, leaves)
        return tree[0] if self._single else tuple(tree)


def _as_sparse(x: Any, block: Any) -> Any:
    """A derivative as an array like `x`, with the output's dimensions as batch dimensions in front."""
    front = block.shape[: block.ndim - x.data.ndim]
    if not front:
        return x.with_data(block)
    buffers = [jnp.broadcast_to(b, (*front, *b.shape)) for b in (getattr(x, name) for name in x.buffers[1:])]
    flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
    return type(x)((block, *buffers), shape=(*front, *x.shape), **flags)


@api_boundary
def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """`xlamini.value_and_grad`, also in sparse arguments: their gradients are sparse, with the same indices.

    >>> from xlamini.experimental.sparse import eye
    >>> value, gradient = value_and_grad(lambda m: (m @ jnp.array([1.0, 2.0])).sum())(eye(2))
    >>> value, gradient.data
    (Array(3., dtype=float32), Array([1., 2.], dtype=float32))
    """

    @api_boundary
    @functools.wraps(fun)
    def value_and_grad_of(*args: Any, **named: Any) -> tuple[Any, Any]:
        parts = Parts("value_and_grad", fun, argnums, args)
        value, gradient = dense_gradient.value_and_grad(parts.call, has_aux=has_aux, **kwargs)(parts.data, **named)
        return value, parts.rebuilt(gradient)

    return value_and_grad_of


@api_boundary
def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`xlamini.grad`, also in sparse arguments: their gradients are sparse, with the same indices.

    >>> from xlamini.experimental.sparse import eye
    >>> grad(lambda m: (m @ jnp.array([1.0, 2.0])).sum())(eye(2)).todense()
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """

    @api_boundary
    @functools.wraps(fun)
    def grad_of(*args: Any, **named: Any) -> Any:
        parts = Parts("grad", fun, argnums, args)
        out = dense_gradient.grad(parts.call, has_aux=has_aux, **kwargs)(parts.data, **named)
        return (parts.rebuilt(out[0]), out[1]) if has_aux else parts.rebuilt(out)

    return grad_of


@api_boundary
def jacfwd(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`xlamini.jacfwd`, also in sparse arguments: a block is sparse, with the output's dimensions as batch dimensions.

    >>> from xlamini.experimental.sparse import eye
    >>> jacfwd(lambda m: m @ jnp.array([1.0, 2.0]))(eye(2))
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian_of("jacfwd", dense_jacobian.jacfwd, fun, argnums, has_aux, kwargs)


@api_boundary
def jacrev(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`xlamini.jacrev`, also in sparse arguments: a block is sparse, with the output's dimensions as batch dimensions.

    >>> from xlamini.experimental.sparse import eye
    >>> jacrev(lambda m: m @ jnp.array([1.0, 2.0]))(eye(2)).data
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    return _jacobian_of("jacrev", dense_jacobian.jacrev, fun, argnums, has_aux, kwargs)


jacobian = jacrev


def _jacobian_of(
    what: str, of_dense: Any, fun: Callable[..., Any], argnums: Argnums, has_aux: bool, kwargs: dict[str, Any]
) -> Callable[..., Any]:
    @api_boundary
    @functools.wraps(fun)
    def jacobian_of(*args: Any, **named: Any) -> Any:
        parts = Parts(what, fun, argnums, args)

        def dense_result(data: Sequence[Any], **named: Any) -> Any:
            out = parts.call(data, **named)
            if any(map(is_sparse, tree_leaves(out[0] if has_aux else out, is_leaf=is_sparse))):
                raise TypeError(f"sparse.{what}: the result must be dense; return its data, or call todense()")
            return out

        out = of_dense(dense_result, has_aux=has_aux, **kwargs)(parts.data, **named)
        blocks, aux = out if has_aux else (out, None)
        count = len(parts.leaves)
        rebuilt = tree_map(parts.rebuilt, blocks, is_leaf=lambda x: type(x) is list and len(x) == count)
        return (rebuilt, aux) if has_aux else rebuilt

    return jacobian_of
