"""Products in another dtype than the operands': of elements, and of matrices with block scales."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapeError, aval_of, check_user_dtype
from xlamini.primitives import broadcast_in_dim, check_operands, convert, dot_general_p, reshape
from xlamini.primitives.base.elementwise import like_dtypes
from xlamini.primitives.elementwise import arithmetic
from xlamini.primitives.products.dot_general import canonical_numbers
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike

_BFLOAT16 = check_user_dtype("bfloat16", "scaled_dot")
_MATRICES = (((1,), (0,)), ((), ()))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiplication, elementwise: `x * y`; of the operands converted to `out_dtype`, if it is given.

    >>> mul(xlamini.numpy.int8(100), xlamini.numpy.int8(100), out_dtype="int32")
    Array(10000, dtype=int32)
    """
    if out_dtype is None:
        return arithmetic.mul(x, y)
    dtype = check_user_dtype(out_dtype, "mul")
    return arithmetic.mul(*(convert(v, dtype, aval_of(v).weak_type) for v in like_dtypes((x, y))))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of two arrays of narrow numbers, each multiplied by scales that blocks of its elements share.

    A scale has its operand's shape, but for the contracted dimension, in which each scale counts for as many elements
    as the sizes say. `dimension_numbers` are those of `dot_general`, by default those of a matrix product. Operands are
    multiplied as bfloat16 numbers and summed in `preferred_element_type`, by default bfloat16, the dtype of the result.
    Raises ShapeError for scales that do not fit.

    >>> a, b = xlamini.numpy.ones((2, 32)), xlamini.numpy.ones((32, 2))
    >>> scaled_dot(a, b, lhs_scale=xlamini.numpy.full((2, 2), 0.5)).tolist()
    [[16.0, 16.0], [16.0, 16.0]]
    """
    given = [x for x in (lhs_scale, rhs_scale) if x is not None]
    check_operands("scaled_dot", [lhs, rhs, *given])
    numbers = canonical_numbers("scaled_dot", _MATRICES if dimension_numbers is None else dimension_numbers)
    dtype = _BFLOAT16 if preferred_element_type is None else check_user_dtype(preferred_element_type, "scaled_dot")
    return _scaled_dot(lhs, rhs, lhs_scale, rhs_scale, numbers=numbers, dtype=dtype)


@composite(static=("numbers", "dtype"))
def _scaled_dot(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any, *, numbers: Any, dtype: np.dtype) -> Any:
    (lhs_contract, rhs_contract), _ = numbers
    return dot_general_p.bind(
        _scaled("lhs", lhs, lhs_scale, lhs_contract),
        _scaled("rhs", rhs, rhs_scale, rhs_contract),
        dimension_numbers=numbers,
        precision=None,
        preferred_element_type=dtype,
    )


def _scaled(side: str, x: Any, scale: Any, contract: tuple[int, ...]) -> Any:
    wide = convert(x, _BFLOAT16)
    if scale is None:
        return wide
    shape, blocks = aval_of(x).shape, aval_of(scale).shape
    _check_scale(side, shape, blocks, contract)
    return arithmetic.mul(wide, convert(_repeated(scale, shape, blocks), _BFLOAT16))


def _check_scale(side: str, shape: tuple[int, ...], blocks: tuple[int, ...], contract: tuple[int, ...]) -> None:
    fits = len(shape) == len(blocks) and all(
        n % b == 0 if d in contract and b else n == b for d, (n, b) in enumerate(zip(shape, blocks, strict=True))
    )
    if not fits:
        raise ShapeError(
            f"scaled_dot: {side}_scale of shape {blocks} does not fit {side} of shape {shape}: along the contracted "
            f"dimension {', '.join(map(str, contract))} its size must divide {side}'s, along the others equal it"
        )


def _repeated(scale: Any, shape: tuple[int, ...], blocks: tuple[int, ...]) -> Any:
    """Each scale repeated for the elements of its block."""
    counts = [n // b if b else 0 for n, b in zip(shape, blocks, strict=True)]
    pairs = [n for pair in zip(blocks, counts, strict=True) for n in pair]
    return reshape(broadcast_in_dim(scale, pairs, range(0, len(pairs), 2)), shape)
