"""ragged_dot: a product in which each group, a run of one dimension, has a matrix of its own.

The ragged dimension of the left operand is in groups, one after the other, of the sizes given. TPUs and GPUs
have kernels that multiply each row by its own matrix (nn/kernels/grouped_matmul.py). Elsewhere each group's part of it
is spread along a new dimension, with zeros for the other groups; what remains is one dense product.
"""
from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    Avals,
    ShapedArray,
    ShapeError,
    api_boundary_methods,
    aval_of,
    check_user_dtype,
    hooks,
    issubdtype,
)
from xlamini.core.dtypes.table import HALVES, bfloat16
from xlamini.core.program.form import FusedOperation, Platform
from xlamini.core.sizes.expression import is_less
from xlamini.primitives import (
    bitwise_and,
    broadcast_in_dim,
    broadcasted_iota,
    check_operands,
    convert,
    dot_general_p,
    in_sharding,
    le,
    lt,
    moveaxis,
    sub,
    where,
)
from xlamini.primitives.base.precision import PrecisionLike, canonical_precision
from xlamini.primitives.products.dot_general import DotDimensionNumbers, canonical_numbers
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.primitives.shape.shape import broadcast
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.fused_call import fused_call
from xlamini.typing import ArrayLike, DTypeLike


class RaggedDotDimensionNumbers:
    """The dimensions of a ragged product.

    Args:
      dot_dimension_numbers: those of `dot_general`.
      lhs_ragged_dimensions: the one dimension of the left operand that is in groups: a free, a contracting, or a batch
        dimension.
      rhs_group_dimensions: the one dimension of the right operand that counts the groups, if the ragged one is free;
        none otherwise.

    >>> groups = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    >>> rows, weights = jnp.ones((4, 2)), jnp.stack([jnp.ones((2, 3)), jnp.zeros((2, 3))])
    >>> lax.ragged_dot_general(rows, weights, jnp.array([3, 1]), groups)[:, 0]
    Array([2., 2., 2., 0.], dtype=float32)
    """

    dot_dimension_numbers: DotDimensionNumbers

    def __init__(
        self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]
    ) -> None:
        self.dot_dimension_numbers = canonical_numbers("RaggedDotDimensionNumbers", dot_dimension_numbers)
        self.lhs_ragged_dimensions: tuple[int, ...] = tuple(map(operator.index, lhs_ragged_dimensions))
        self.rhs_group_dimensions: tuple[int, ...] = tuple(map(operator.index, rhs_group_dimensions))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"RaggedDotDimensionNumbers({shown})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))


api_boundary_methods(RaggedDotDimensionNumbers)
_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of the rows of `lhs`, in groups, with a matrix for each group.

    Args:
      lhs: of shape (m, k).
      rhs: of shape (g, k, n), a matrix for each group.
      group_sizes: of shape (g,), how many rows each group has; rows that are left over give zeros.
      precision: as in `dot_general`.
      preferred_element_type: the dtype in which products are summed, and of the result.
      group_offset: must be None.
      out_sharding: how the result is split over a mesh: a PartitionSpec or NamedSharding.

    On a TPU, and for bfloat16 and float16 on a newer NVIDIA GPU, a kernel multiplies each row by its own matrix if
    there are many rows. Elsewhere the product is a dense one, with zeros for all other groups.

    Raises:
      ShapeError: the shapes don't fit.
      TypeError: the sizes of groups are no integers.

    >>> ragged_dot(xlamini.numpy.ones((3, 1)), xlamini.numpy.array([[[2.0]], [[5.0]]]), xlamini.numpy.array([1, 2]))
    Array([[2.],
           [5.],
           [5.]], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """A product as of `dot_general`, with one dimension of `lhs` in groups.

    If it is free, `rhs` has a dimension for the groups, and each part of `lhs` is multiplied with its own part of it.
    If it is contracted, the result has a first dimension for the groups: each is summed alone. If it is a batch
    dimension the groups make no difference. `group_sizes` has a size for each group, or as many for each index of the
    batch.

    Raises ShapeError where shapes don't fit the numbers, TypeError if the sizes are no integers.

    >>> numbers = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> ones = xlamini.numpy.ones((3, 1))
    >>> ragged_dot_general(ones, ones, xlamini.numpy.array([1, 2]), numbers).tolist()
    [[[1.0]], [[2.0]]]
    """
    if out_sharding is not None:
        options = ragged_dot_dimension_numbers, precision, preferred_element_type, group_offset
        return in_sharding(out_sharding, ragged_dot_general, lhs, rhs, group_sizes, *options)
    check_operands("ragged_dot", (lhs, rhs, group_sizes))
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):
        found = type(ragged_dot_dimension_numbers).__name__
        raise TypeError(f"ragged_dot: the dimension numbers must be RaggedDotDimensionNumbers, got {found}")
    if group_offset is not None:
        raise NotImplementedError("ragged_dot: group_offset must be None; slice rhs and group_sizes instead")
    if not issubdtype(aval_of(group_sizes).dtype, np.integer):
        raise TypeError(f"ragged_dot: group_sizes must be integers, got {aval_of(group_sizes).dtype}; use .astype")
    dtype = preferred_element_type
    params = _Product(
        canonical_precision(precision, "ragged_dot"), dtype if dtype is None else check_user_dtype(dtype, "ragged_dot")
    )
    _check_groups(aval_of(lhs).shape, aval_of(rhs).shape, aval_of(group_sizes).shape, ragged_dot_dimension_numbers)
    how = RaggedDot(ragged_dot_dimension_numbers, params)
    call = _fused if how.may_have_kernels(*map(aval_of, (lhs, rhs, group_sizes))) else _dense
    return call(lhs, rhs, group_sizes, how=how)


class _Product(NamedTuple):
    precision: Any
    preferred_element_type: Any

    def __call__(self, lhs: Any, rhs: Any, numbers: DotDimensionNumbers) -> Any:
        return dot_general_p.bind(lhs, rhs, dimension_numbers=numbers, **self._asdict())


_ACROSS = RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), (0,), (0,))
_BY_GROUPS = RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
_TILE = 256
"""The rows that a kernel takes at once."""


@dataclass(frozen=True)
class RaggedDot(FusedOperation):
    """The operation of a product in groups.

    There are kernels for rows times matrices, with the summed dimension first or last (`_ACROSS`), and for the sum over
    the rows of each group, which is the derivative by the matrices.
    """

    numbers: RaggedDotDimensionNumbers
    product: _Product

    name = "ragged_dot"

    def may_have_kernels(self, lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray) -> bool:
        """Whether a kernel may compute it, and has much less to multiply than the dense product of all groups."""
        usual = lhs.dtype in HALVES or (lhs.dtype == np.float32 and self.product.precision is None)
        alike = lhs.dtype == rhs.dtype and self.product.preferred_element_type in (None, lhs.dtype)
        if self.numbers not in (_MATRICES, _ACROSS, _BY_GROUPS) or sizes.ndim != 1 or not (usual and alike):
            return False
        tiles, groups = -(-lhs.shape[0] // _TILE), sizes.shape[0]
        return 0 not in (*lhs.shape, *rhs.shape) and is_less(3 * (tiles + groups), 2 * tiles * groups)

    def program(self, lhs: Any, rhs: Any, sizes: Any) -> list[Any]:
        """The product as a dense one."""
        return [_densely(lhs, rhs, sizes, self.numbers, self.product)]

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The product by a kernel that skips other groups' rows."""
        dtype = avals[0].dtype
        rounds = dtype == np.float16 and self.product.precision is not None  # a TPU does, to bfloat16
        if dtype not in HALVES if platform.is_gpu else rounds:
            return None
        grouped, targets = map(hooks.library_kernels, ("grouped_matmul", "targets"))
        side = 1024 if dtype == bfloat16 else 512  # what a TPU's fast memory holds, where float16 is float32
        how = grouped.Grouped(dtype, self.numbers == _ACROSS, (_TILE, side, side), targets.walk_on(platform))
        product = grouped.grouped_outer if self.numbers == _BY_GROUPS else grouped.grouped_matmul
        return lambda *operands: [product(how, *operands)]

    def times(self, numbers: RaggedDotDimensionNumbers, lhs: Any, rhs: Any, sizes: Any) -> Any:
        """Another product in the same groups."""
        return _fused(lhs, rhs, sizes, how=RaggedDot(numbers, self.product))


@composite(static=("how",))
def _fused(lhs: Any, rhs: Any, group_sizes: Any, *, how: RaggedDot) -> Any:
    return _in_groups(how, lhs, rhs, group_sizes)


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _in_groups(how: RaggedDot, lhs: Any, rhs: Any, sizes: Any) -> Any:
    return fused_call(lhs, rhs, sizes, operation=how)[0]


def _kept(how: RaggedDot, lhs: Any, rhs: Any, sizes: Any) -> Any:
    return _in_groups(how, lhs, rhs, sizes), (lhs, rhs, sizes)


def _derivative(how: RaggedDot, kept: Any, ct: Any) -> tuple[Any, Any, None]:
    lhs, rhs, sizes = kept
    if how.numbers == _BY_GROUPS:
        return how.times(_ACROSS, rhs, ct, sizes), how.times(_MATRICES, lhs, ct, sizes), None
    back, sides = (_MATRICES, (ct, lhs)) if how.numbers == _ACROSS else (_ACROSS, (lhs, ct))
    return how.times(back, ct, rhs, sizes), how.times(_BY_GROUPS, *sides, sizes), None


def _pushed(how: RaggedDot, primals: Any, tangents: Any) -> Any:
    (lhs, rhs, sizes), (of_lhs, of_rhs, _) = primals, tangents
    slope = how.times(how.numbers, of_lhs, rhs, sizes) + how.times(how.numbers, lhs, of_rhs, sizes)
    return _in_groups(how, *primals), slope


_in_groups.defvjp(_kept, _derivative)
_in_groups.defjvp(_pushed)


@composite(static=("how",))
def _dense(lhs: Any, rhs: Any, group_sizes: Any, *, how: RaggedDot) -> Any:
    return _densely(lhs, rhs, group_sizes, how.numbers, how.product)


def _densely(
    lhs: Any, rhs: Any, group_sizes: Any, numbers: RaggedDotDimensionNumbers, product: _Product
) -> Any:
    (contract, rhs_contract), (batch, rhs_batch) = numbers.dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    if ragged in batch:
        return product(lhs, rhs, numbers.dot_dimension_numbers)
    apart = _apart(lhs, group_sizes, ragged, batch)
    contract, batch = (tuple(d + 1 for d in dims) for dims in (contract, batch))
    if ragged + 1 in contract:
        out = product(apart, rhs, ((contract, rhs_contract), (batch, rhs_batch)))
        return moveaxis(out, len(batch), 0)
    (group,) = numbers.rhs_group_dimensions
    return product(apart, rhs, (((0, *contract), (group, *rhs_contract)), (batch, rhs_batch)))


def _apart(x: Any, group_sizes: Any, ragged: int, batch: tuple[int, ...]) -> Any:
    """The array once for each group, along a new first dimension, with zeros in place of the others' elements."""
    if aval_of(group_sizes).dtype.itemsize < 4:
        group_sizes = convert(group_sizes, np.int32)
    shape, sizes = aval_of(x).shape, aval_of(group_sizes)
    ends = cumsum(group_sizes, sizes.ndim - 1)
    every = (sizes.shape[-1], *shape)
    places = (0, *(d + 1 for d in batch[: sizes.ndim - 1]))
    bounds = [moveaxis(v, sizes.ndim - 1, 0) for v in (sub(ends, group_sizes), ends)]
    first, last = (broadcast_in_dim(v, every, places) for v in bounds)
    position = broadcasted_iota(sizes.dtype, every, ragged + 1)
    inside = bitwise_and(le(first, position), lt(position, last))
    return where(inside, broadcast(x, every[:1]), 0)


def _check_groups(
    lhs: tuple[int, ...], rhs: tuple[int, ...], sizes: tuple[int, ...], numbers: RaggedDotDimensionNumbers
) -> None:
    (contract, _), (batch, _) = numbers.dot_dimension_numbers
    ragged, group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(ragged) != 1 or not 0 <= ragged[0] < len(lhs):
        raise ShapeError(f"ragged_dot: lhs_ragged_dimensions must name one dimension of lhs {lhs}, got {ragged}")
    free = ragged[0] not in contract and ragged[0] not in batch
    if len(group) != free or any(not 0 <= d < len(rhs) for d in group):
        raise ShapeError(
            f"ragged_dot: rhs_group_dimensions is {group}, but must name "
            f"{'one dimension of rhs' if free else 'no dimension, as the ragged one is not free'}"
        )
    leading = tuple(lhs[d] for d in batch)
    if sizes[:-1] not in ((), leading) or not sizes or any(rhs[d] != sizes[-1] for d in group):
        count = rhs[group[0]] if group else "g"
        raise ShapeError(
            f"ragged_dot: group_sizes has shape {sizes}, but must have a size for each group, ({count},)"
            f"{f' or {(*leading, count)}' if leading else ''}"
        )
