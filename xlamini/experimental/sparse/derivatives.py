"""Derivatives in sparse arrays: grad and the like, in the data and with sparse results."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.core import tree_flatten, tree_leaves, tree_map
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree import tree_unflatten
from xlamini.experimental.sparse.transform import is_sparse
from xlamini.staging import check_callable, replaced
from xlamini.transforms.derivatives import jacobian as dense_jacobian, value_and_grad as dense_gradient

if TYPE_CHECKING:
    from xlamini.core.pytree.nodes import PyTreeDef


Argnums = int | Sequence[int]


class Data(NamedTuple):
    """The data of the arguments, or derivatives in them; of a class of its own, as outputs may be lists and tuples."""

    leaves: list[Any]


class SparseParts:
    """The arguments that are differentiated, with the data of sparse arrays in their places."""

    leaves: list[Any]
    tree: PyTreeDef

    def __init__(self, what: str, fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any]):
        check_callable(f"sparse.{what}", fun)
        self._fun, self._args = fun, args
        self._positions = [argnums] if isinstance(argnums, int) else list(argnums)
        self._single = isinstance(argnums, int)
        chosen = [args[i] for i in self._positions]
        self.leaves, self.tree = tree_flatten(chosen, is_leaf=is_sparse)
        self.data: Data = Data([x.data if is_sparse(x) else x for x in self.leaves])

    def call(self, data: Data, **kwargs: Any) -> Any:
        """The function of these data in place of the arguments'."""
        leaves = [x.with_data(d) if is_sparse(x) else d for x, d in zip(self.leaves, data.leaves, strict=True)]
        args = replaced(self._args, self._positions, tree_unflatten(self.tree, leaves))
        return self._fun(*args, **kwargs)

    def rebuilt(self, parts: Data) -> Any:
        """Derivatives in the data as derivatives in the arguments: sparse ones have the argument's indices."""
        leaves = [_as_sparse(x, d) if is_sparse(x) else d for x, d in zip(self.leaves, parts.leaves, strict=True)]
        tree = tree_unflatten(self.tree, leaves)
        return tree[0] if self._single else tuple(tree)


def _as_sparse(x: Any, block: Any) -> Any:
    """A derivative as an array like `x`, with the output's dimensions as batch dimensions in front."""
    front = block.shape[: block.ndim - x.data.ndim]
    if not front:
        return x.with_data(block)
    buffers = [jnp.broadcast_to(b, (*front, *b.shape)) for b in x.tree_flatten()[0][1:]]
    return x.with_buffers((block, *buffers), (*front, *x.shape))


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

    def rebuilt(parts: SparseParts, out: Any) -> Any:
        return out[0], parts.rebuilt(out[1])

    return _derivative("value_and_grad", dense_gradient.value_and_grad, fun, argnums, has_aux, kwargs, rebuilt)


@api_boundary
def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, **kwargs: Any) -> Callable[..., Any]:
    """`xlamini.grad`, also in sparse arguments: their gradients are sparse, with the same indices.

    >>> from xlamini.experimental.sparse import eye
    >>> grad(lambda m: (m @ jnp.array([1.0, 2.0])).sum())(eye(2)).todense()
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """

    def rebuilt(parts: SparseParts, out: Any) -> Any:
        return (parts.rebuilt(out[0]), out[1]) if has_aux else parts.rebuilt(out)

    return _derivative("grad", dense_gradient.grad, fun, argnums, has_aux, kwargs, rebuilt)


def _derivative(
    what: str,
    of_dense: Any,
    fun: Callable[..., Any],
    argnums: Argnums,
    has_aux: bool,
    kwargs: dict[str, Any],
    rebuilt: Callable[[SparseParts, Any], Any],
) -> Callable[..., Any]:
    """A derivative in the data, made by `of_dense`, whose result `rebuilt` turns into sparse arrays."""

    @api_boundary
    @functools.wraps(fun)
    def derivative_of(*args: Any, **named: Any) -> Any:
        parts = SparseParts(what, fun, argnums, args)
        return rebuilt(parts, of_dense(parts.call, has_aux=has_aux, **kwargs)(parts.data, **named))

    return derivative_of


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
    @functools.wraps(fun)
    def with_dense_result(*args: Any, **named: Any) -> Any:
        out = fun(*args, **named)
        if any(map(is_sparse, tree_leaves(out[0] if has_aux else out, is_leaf=is_sparse))):
            raise TypeError(f"sparse.{what}: the result must be dense; return its data, or call todense()")
        return out

    def rebuilt(parts: SparseParts, out: Any) -> Any:
        blocks, aux = out if has_aux else (out, None)
        jacobians = tree_map(parts.rebuilt, blocks, is_leaf=lambda x: type(x) is Data)
        return (jacobians, aux) if has_aux else jacobians

    return _derivative(what, of_dense, with_dense_result, argnums, has_aux, kwargs, rebuilt)
