"""Products of vectors, matrices and stacks of matrices."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence
from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.arguments import as_axis, as_operand, as_operand_beside
from xlamini.numpy.contraction import Labelled, arithmetic, ordered, product, without_ones
from xlamini.primitives import broadcast_in_dim, cast, conj, convert, moveaxis, mul, promoted_dtypes, reshape
from xlamini.primitives.base.out_sharding import summed_in_sharding
from xlamini.primitives.base.promotion import check_ranks
from xlamini.primitives.products.dot_general import check_pairs
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

_HOW = ("precision", "preferred_element_type")
_HOW_AND_WHERE = (*_HOW, "out_sharding")


@composite(static=_HOW_AND_WHERE)
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product summed over the last axis of `a` and the last but one of `b` (its only one, if it is a vector).

    With a scalar it is a multiplication. The result has dtype `preferred_element_type`, or else the promoted one, and
    is split over a mesh as `out_sharding` says, a PartitionSpec or NamedSharding. ShapeError where the summed axes
    differ in size; for stacks of matrices see `matmul`.

    >>> dot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        how = {"precision": precision, "preferred_element_type": preferred_element_type}
        return summed_in_sharding(out_sharding, dot, a, b, **how)
    a, b = as_operand_beside("dot", a, b), as_operand_beside("dot", b, a)
    left, right = aval_of(a).ndim, aval_of(b).ndim
    pairs = ((), ()) if not left or not right else ((left - 1,), (max(right - 2, 0),))
    return _contracted("dot", a, b, pairs, precision, preferred_element_type)


@composite(static=_HOW_AND_WHERE)
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The matrix product `a @ b`. Leading axes are a stack of matrices and broadcast; a vector counts as row or column.

    The result has dtype `preferred_element_type`, or else the promoted one, and is split over a mesh as `out_sharding`
    says, a PartitionSpec or NamedSharding. ValueError for a scalar, ShapeError where shapes do not fit.

    >>> matmul(jnp.ones((5, 2, 3)), jnp.ones((3, 4))).shape
    (5, 2, 4)
    """
    if out_sharding is not None:
        how = {"precision": precision, "preferred_element_type": preferred_element_type}
        return summed_in_sharding(out_sharding, matmul, a, b, **how)
    a, b = as_operand("matmul", a), as_operand("matmul", b)
    left, right = aval_of(a), aval_of(b)
    for side, aval in (("a", left), ("b", right)):
        if not aval.ndim:
            raise ValueError(f"matmul: {side} is a scalar; multiply with * instead")
    if left.ndim <= 2 and right.ndim <= 2:
        pairs = (left.ndim - 1,), (max(right.ndim - 2, 0),)
        return _contracted("matmul", a, b, pairs, precision, preferred_element_type)
    rows, columns = ("row",) * (left.ndim > 1), ("column",) * (right.ndim > 1)
    return _stacked("matmul", a, b, (*rows, "sum"), ("sum", *columns), precision, preferred_element_type)


@composite(static=_HOW)
def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The product of two flattened arrays, summed; of the complex conjugate of `a`. ShapeError where sizes differ.

    >>> vdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    a, b = (_flat(as_operand("vdot", x)) for x in (a, b))
    return _contracted("vdot", _conjugate(a), b, ((0,), (0,)), precision, preferred_element_type)


@composite(static=(*_HOW, "axis"))
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product summed over `axis` of both arrays, of the complex conjugate of `x1`; the other axes broadcast.

    ShapeError where shapes do not fit.

    >>> vecdot(jnp.ones((2, 3)), jnp.ones(3))
    Array([3., 3.], dtype=float32)
    """
    check_ranks("vecdot", (x1, x2))
    a, b = (as_operand("vecdot", x) for x in (x1, x2))
    a, b = (moveaxis(x, as_axis("vecdot", axis, aval_of(x).ndim), aval_of(x).ndim - 1) for x in (a, b))
    return _stacked("vecdot", _conjugate(a), b, ("sum",), ("sum",), precision, preferred_element_type)


@composite()
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrix times vector, for stacks of either; leading axes broadcast. ShapeError where shapes do not fit.

    >>> matvec(jnp.ones((2, 3)), jnp.ones((5, 3))).shape
    (5, 2)
    """
    a, b = _ranked("matvec", x1, 2, x2, 1)
    return _stacked("matvec", a, b, ("row", "sum"), ("sum",), None, None)


@composite()
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vector (its complex conjugate) times matrix, for stacks of either; ShapeError where shapes do not fit.

    >>> vecmat(jnp.ones((5, 2)), jnp.ones((2, 3))).shape
    (5, 3)
    """
    a, b = _ranked("vecmat", x1, 1, x2, 2)
    return _stacked("vecmat", _conjugate(a), b, ("sum",), ("sum", "column"), None, None)


@composite(static=_HOW)
def inner(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The product summed over the last axes of both; with a scalar a multiplication. ShapeError where sizes differ.

    >>> inner(jnp.ones((2, 3)), jnp.ones((4, 3))).shape
    (2, 4)
    """
    a, b = as_operand_beside("inner", a, b), as_operand_beside("inner", b, a)
    left, right = aval_of(a).ndim, aval_of(b).ndim
    pairs = ((), ()) if not left or not right else ((left - 1,), (right - 1,))
    return _contracted("inner", a, b, pairs, precision, preferred_element_type)


@composite()
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Every element of the flattened `a` (rows) times every element of the flattened `b` (columns).

    >>> outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError("outer: `out` must be None, because arrays are immutable; use the returned array")
    a, b = as_operand_beside("outer", a, b), as_operand_beside("outer", b, a)
    a, b = promoted_dtypes(_flat(a), _flat(b))
    shape = aval_of(a).size, aval_of(b).size
    return mul(broadcast_in_dim(a, shape, (0,)), broadcast_in_dim(b, shape, (1,)))


@composite(static=(*_HOW_AND_WHERE, "axes"))
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product summed over the last `axes` axes of `a` and the first of `b`, or over the pair of axes (of a, of b).

    ValueError for axes that do not exist or do not pair, ShapeError where paired axes differ in size.

    >>> tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """
    if out_sharding is not None:
        how = {"precision": precision, "preferred_element_type": preferred_element_type}
        return summed_in_sharding(out_sharding, tensordot, a, b, axes, **how)
    a, b = as_operand_beside("tensordot", a, b), as_operand_beside("tensordot", b, a)
    pairs = _paired_axes(axes, aval_of(a).ndim, aval_of(b).ndim)
    return _contracted("tensordot", a, b, pairs, precision, preferred_element_type)


@composite()
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: `a` with each element replaced by its product with all of `b`.

    >>> kron(jnp.array([1, 2]), jnp.array([1, 1]))
    Array([1, 1, 2, 2], dtype=int32)
    """
    a, b = promoted_dtypes(as_operand("kron", a), as_operand("kron", b))
    left, right = aval_of(a).shape, aval_of(b).shape
    rank = max(len(left), len(right))
    left, right = ((1,) * (rank - len(s)) + s for s in (left, right))
    blocks = tuple(n for pair in zip(left, right, strict=True) for n in pair)
    even, odd = range(0, 2 * rank, 2), range(1, 2 * rank, 2)
    spread_out = mul(broadcast_in_dim(reshape(a, left), blocks, even), broadcast_in_dim(reshape(b, right), blocks, odd))
    return reshape(spread_out, [n * m for n, m in zip(left, right, strict=True)])


# --- helpers


def _contracted(name: str, a: Any, b: Any, pairs: Any, precision: Any, dtype: Any) -> Any:
    """One `dot_general` over pairs of axes, without batch."""
    check_pairs(name, "contracting", aval_of(a), aval_of(b), *pairs)
    how, weak = arithmetic(name, [a, b], precision, dtype)
    if not pairs[0] and 0 in (aval_of(a).ndim, aval_of(b).ndim):
        return cast(mul(convert(a, how.dtype, weak), convert(b, how.dtype, weak)), how.out, weak)
    result = how.dot(a, b, (pairs, ((), ())), precision=how.precision, preferred_element_type=how.dtype)
    return cast(result, how.out, weak)


def _stacked(name: str, a: Any, b: Any, left: Any, right: Any, precision: Any, dtype: Any) -> Any:
    """The product of operands whose last axes have the labels `left` and `right`; the axes before them broadcast."""
    (a_batch, a_core), (b_batch, b_core) = _split_core(a, left), _split_core(b, right)
    sums = a_core[left.index("sum")], b_core[right.index("sum")]
    if sums[0] != sums[1]:
        axes = aval_of(a).ndim - len(left) + left.index("sum"), aval_of(b).ndim - len(right) + right.index("sum")
        check_pairs(name, "contracting", aval_of(a), aval_of(b), *((d,) for d in axes))
    try:
        batch = broadcast_shapes(a_batch, b_batch)
    except ValueError:
        raise ShapeError(
            f"{name}: the leading axes {a_batch} and {b_batch} of shapes {aval_of(a).shape} and {aval_of(b).shape} "
            "do not broadcast; sizes must be equal or 1, counted from the last"
        ) from None
    stack = tuple(range(-len(batch), 0))
    sizes: dict[Hashable, int] = dict(zip((*stack, *left, *right), (*batch, *a_core, *b_core), strict=False))
    operands = (
        Labelled(a, (*stack[len(stack) - len(a_batch) :], *left)),
        Labelled(b, (*stack[len(stack) - len(b_batch) :], *right)),
    )
    how, weak = arithmetic(name, [a, b], precision, dtype)
    kept = (*stack, *(label for label in (*left, *right) if label != "sum"))
    x, y = without_ones(operands, sizes)
    return cast(ordered(product(x, y, kept, how), kept), how.out, weak)


def _split_core(x: Any, core: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = aval_of(x).shape
    return shape[: len(shape) - len(core)], shape[len(shape) - len(core) :]


def _paired_axes(axes: Any, left: int, right: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not isinstance(axes, Sequence):
        n = operator.index(axes)
        if not 0 <= n <= min(left, right):
            raise ValueError(
                f"tensordot: axes is {n}, but the operands have ranks {left} and {right}; give at most those"
            )
        return tuple(range(left - n, left)), tuple(range(n))
    if len(axes) != 2:
        raise ValueError(f"tensordot: axes is {axes!r}; give a number, or a pair (axes of a, axes of b)")
    ours, theirs = ((ax,) if not isinstance(ax, Sequence) else ax for ax in axes)
    if len(ours) != len(theirs):
        raise ValueError(f"tensordot: {len(ours)} axes of a and {len(theirs)} of b do not pair; give as many of each")
    return tuple(as_axis("tensordot", d, left) for d in ours), tuple(as_axis("tensordot", d, right) for d in theirs)


def _ranked(name: str, x1: Any, rank1: int, x2: Any, rank2: int) -> list[Any]:
    operands = [as_operand(name, x1), as_operand(name, x2)]
    check_ranks(name, (x1, x2), (rank1, rank2))
    for which, x, rank in (("x1", operands[0], rank1), ("x2", operands[1], rank2)):
        if aval_of(x).ndim < rank:
            raise ShapeError(f"{name}: {which} needs {rank} axes at least, but its shape is {aval_of(x).shape}")
    return operands


def _flat(x: Any) -> Any:
    return reshape(x, (math.prod(aval_of(x).shape),))


def _conjugate(x: Any) -> Any:
    return conj(x) if aval_of(x).dtype.kind == "c" else x
