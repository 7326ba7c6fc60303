"""Arrays joined to one."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import ShapeError, check_user_dtype, result_type
from xlamini.numpy.arguments import as_axis, as_operand, as_operand_beside, as_rows, refuse_out
from xlamini.numpy.shapes import atleast_1d, atleast_2d, atleast_3d, moveaxis, ravel
from xlamini.primitives import expand_dims, in_dtype
from xlamini.primitives.base.promotion import check_members
from xlamini.primitives.shape.concatenate import concatenate as _concatenate
from xlamini.primitives.shape.joined_rows import merged_rows
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.vmap import vmap
from xlamini.typing import ArrayLike, DTypeLike


@composite(static=("axis", "dtype"))
def concatenate(arrays: Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Join arrays along an existing axis, or flattened first, if it is None.

    They have the same shape but for that axis (ShapeError), and are brought to one dtype. ValueError for no array at
    all.

    >>> concatenate([xlamini.numpy.ones(1), xlamini.numpy.zeros(2)])
    Array([1., 0., 0.], dtype=float32)
    """
    operands = _prepared("concatenate", arrays, None if axis is not None else ravel, dtype)
    return _joined("concatenate", operands, 0 if axis is None else axis)


def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis: the array API's name of `concatenate`.

    >>> jnp.concat([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    return concatenate(arrays, axis)


@composite(static=("axis", "dtype"))
def stack(arrays: Sequence[ArrayLike], axis: int = 0, out: None = None, dtype: DTypeLike | None = None) -> Array:
    """Arrays of one shape, joined along a new axis; ShapeError where their shapes differ.

    >>> stack([xlamini.numpy.zeros(2), xlamini.numpy.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    refuse_out("stack", out)
    operands = _prepared("stack", arrays, None, dtype)
    if not isinstance(operands, list):
        return moveaxis(operands, 0, as_axis("stack", axis, operands.ndim))
    shapes = [x.shape for x in operands]
    if len(set(shapes)) > 1:
        raise ShapeError(f"stack: the arrays must have one shape, got {_listed(shapes)}; concatenate may be meant")
    new = as_axis("stack", axis, len(shapes[0]) + 1)
    return _concatenate([expand_dims(x, (new,)) for x in operands], new)


@composite(static=("dtype",))
def vstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the first axis; those of one dimension are rows.

    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    return _joined("vstack", _prepared("vstack", tup, atleast_2d, dtype), 0)


@composite(static=("dtype",))
def hstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the second axis; those of one dimension along their only one.

    >>> jnp.hstack([jnp.arange(2), jnp.arange(2)])
    Array([0, 1, 0, 1], dtype=int32)
    """
    operands = _prepared("hstack", tup, atleast_1d, dtype)
    rank = operands[0].ndim if isinstance(operands, list) else operands.ndim - 1
    return _joined("hstack", operands, 0 if rank == 1 else 1)


@composite(static=("dtype",))
def dstack(tup: Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis, which they get if they have none.

    >>> jnp.dstack([jnp.ones(3), jnp.ones(3)]).shape
    (1, 3, 2)
    """
    return _joined("dstack", _prepared("dstack", tup, atleast_3d, dtype), 2)


@composite()
def column_stack(tup: Sequence[ArrayLike]) -> Array:
    """Arrays joined along the second axis; those of one dimension are columns.

    >>> column_stack([xlamini.numpy.arange(2), xlamini.numpy.arange(2)])
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    return _joined("column_stack", _prepared("column_stack", tup, _as_columns, None), 1)


def _as_columns(x: Any) -> Any:
    return x if x.ndim >= 2 else expand_dims(atleast_1d(x), (1,))


@composite(static=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` joined to `arr` along an axis; both are flattened first, if it is None.

    >>> jnp.append(jnp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    x = as_operand("append", arr)
    return concatenate([x, as_operand_beside("append", values, x)], axis)


def block(arrays: Any) -> Array:
    """An array assembled from blocks: nested lists of arrays, the innermost joined along the last axis.

    >>> block([[xlamini.numpy.ones((1, 1)), xlamini.numpy.zeros((1, 2))]])
    Array([[1., 0., 0.]], dtype=float32)
    """
    depth, ndim = _depth_and_rank(arrays)
    rank = max(depth, ndim)

    def joined(part: Any, level: int) -> Any:
        if not isinstance(part, list):
            x = as_operand("block", part)
            return expand_dims(x, range(rank - x.ndim)) if x.ndim < rank else x
        check_members(part)
        return concatenate([joined(p, level + 1) for p in part], axis=rank - depth + level)

    return joined(arrays, 0)


def _depth_and_rank(arrays: Any) -> tuple[int, int]:
    """The depth of the nested lists, and the highest rank among the arrays."""
    if not isinstance(arrays, list):
        return 0, as_operand("block", arrays).ndim
    if not arrays:
        raise ValueError("block: one of the lists is empty")
    found = [_depth_and_rank(part) for part in arrays]
    if len({depth for depth, _ in found}) > 1:
        raise ValueError("block: the lists are not equally deep")
    return found[0][0] + 1, max(rank for _, rank in found)


def _prepared(name: str, arrays: Any, change: Callable[[Any], Any] | None, dtype: Any) -> Any:
    """The changed arrays in one dtype: a list, or one array with them as rows, which stay together for speed."""
    rows = as_rows(name, arrays)
    if rows is None:
        if dtype is None:
            check_members(arrays)
        operands = [as_operand(name, x) for x in arrays]
        return _in_one_dtype(name, operands if change is None else list(map(change, operands)), dtype)
    return _in_one_dtype(name, [rows if change is None else vmap(change)(rows)], dtype)[0]


def _in_one_dtype(name: str, operands: Sequence[Any], dtype: Any) -> list[Any]:
    if dtype is not None:
        wanted, weak = check_user_dtype(dtype, name), False
    else:
        wanted, weak = result_type(*operands, return_weak_type_flag=True)
    return [in_dtype(x, wanted, weak) for x in operands]


def _joined(name: str, operands: Any, axis: int) -> Any:
    if not isinstance(operands, list):
        return merged_rows(operands, as_axis(name, axis, operands.ndim - 1))
    shapes = [x.shape for x in operands]
    if len({len(s) for s in shapes}) > 1:
        raise ShapeError(f"{name}: the arrays have different numbers of dimensions: {_listed(shapes)}; use expand_dims")
    along = as_axis(name, axis, len(shapes[0]))
    if len({s[:along] + s[along + 1 :] for s in shapes}) > 1:
        raise ShapeError(f"{name}: the shapes differ in axes other than {along}: {_listed(shapes)}; make them equal")
    return _concatenate(operands, along)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    shown = ", ".join(map(str, shapes[:6]))
    return shown if len(shapes) <= 6 else f"{shown} and {len(shapes) - 6} more"
