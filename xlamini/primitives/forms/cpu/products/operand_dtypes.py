"""Products on the CPU in the forms for which XLA's backend has fast code: int8 into int32, bfloat16 into float32.

XLA multiplies other narrow numbers in loops over scalars, or as wide ones. Here they become these two and a cast.
Integers wrap, so a sum modulo 2**32 tells the one modulo 2**8. A uint8 is an int8 and 128, whose share in the product
is a sum of the other operand. Both forms need the left operand's contracted dimension last. So does float64, whose
product with the columns of the left operand, such as `x.T @ y`, takes twice the time of one with its rows.

Processors without matrix units for bfloat16 (AMX) multiply it 1.6 times as slowly as float32, so there operands that
are read often are cast.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from xlamini.core import Avals, Shape, ShapedArray, aval_of, itemsize_bits, literal
from xlamini.core.program.form import Platform
from xlamini.primitives.base.dtype_kinds import INTEGER, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.bitwise import bitwise_xor
from xlamini.primitives.elementwise.convert_element_type import cast
from xlamini.primitives.forms.parts import noinline
from xlamini.primitives.placement.optimization_barrier import optimization_barrier_p
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis, reshape, sum_over, transpose
from xlamini.runtime.devices.processor import has_bfloat16_units

Numbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]
"""Contracting dimensions of both operands, then their batch dimensions."""

Product = Callable[[Callable[..., Any], Any, Any], Any]
"""The form of a product: a function of `dot_general`'s `bind` and the operands.

In programs of several devices none makes rows or matrices of an operand: each device would get all of it.
"""

_BFLOAT16, _FLOAT32, _FLOAT64 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32), np.dtype(np.float64)
_UINT8, _INT8, _INT32 = np.dtype(np.uint8), np.dtype(np.int8), np.dtype(np.int32)
_BYTES = {"int8", "uint8", "int4", "uint4"}
_MOST_TERMS = 2**15 - 1
"""Sums of so many products of bytes fit int32."""

_MOST_DIRECT = {_INT32: math.inf, _FLOAT32: math.inf, _FLOAT64: 2**20}
"""The multiplications up to which a product reads columns itself; making rows of them takes 60 ms to compile."""

_REUSE = 4
"""How often at least a product reads a number; with fewer the sums that uint8 needs take as long as the product."""

_REUSE_OF_CASTS = 40
"""From here on a product of bfloat16 without units for it takes longer than casts of operands and one of float32."""


class FastProduct(NamedTuple):
    """A product of operands of one dtype into another, with the left operand's rows made first or not."""

    narrow: np.dtype
    wide: np.dtype
    makes_rows: bool


def form_of_dtypes(platform: Platform, avals: Avals, out: ShapedArray, numbers: Numbers) -> Product | None:
    """None where XLA's own form of the product is as fast."""
    (lhs, rhs), (contract, batch) = avals, numbers
    if not out.size or any(len(c) + len(b) == x.ndim for x, c, b in zip((lhs, rhs), contract, batch, strict=True)):
        return None
    terms = math.prod(lhs.shape[d] for d in contract[0])
    dtypes = _fast_dtypes(lhs, rhs, out, terms)
    if dtypes is None:
        return None
    pays = out.size * terms > _MOST_DIRECT.get(dtypes[0], 0)
    makes_rows = pays and _is_turned(lhs, contract[0], batch[0]) and not platform.spans_devices
    fast = FastProduct(*dtypes, makes_rows)
    if not makes_rows and (lhs.dtype, rhs.dtype, out.dtype) == (fast.narrow, fast.narrow, fast.wide):
        return None
    return functools.partial(_product, fast, out, numbers)


# --- helpers


def _fast_dtypes(lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray, terms: int) -> tuple[np.dtype, np.dtype] | None:
    """The dtypes to multiply and to sum in."""
    dtypes, bits = {lhs.dtype, rhs.dtype}, itemsize_bits(out.dtype)
    multiplied, read = out.size * terms, lhs.size + rhs.size
    if dtypes == {_FLOAT64} == {out.dtype}:
        return _FLOAT64, _FLOAT64
    if dtypes == {_BFLOAT16}:
        casts = multiplied > _REUSE_OF_CASTS * read and not has_bfloat16_units()
        return (_FLOAT32 if casts else _BFLOAT16, _FLOAT32) if out.dtype in (_BFLOAT16, _FLOAT32) else None
    if any(kind_of(d) not in INTEGER for d in (*dtypes, out.dtype)):
        return None
    if {d.name for d in dtypes} <= _BYTES and (bits <= 32 or terms <= _MOST_TERMS):
        return None if multiplied < _REUSE * read and any(_shifts(lhs, rhs, out)) else (_INT8, _INT32)
    return (_INT32, _INT32) if bits < 32 and max(map(itemsize_bits, dtypes)) <= 32 else None


def _shifts(lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray) -> tuple[bool, bool]:
    """Which operand's bytes are multiplied less 128: a uint8, but where the sum's lowest 8 bits are the result."""
    wide = itemsize_bits(out.dtype) > 8
    return wide and lhs.dtype == _UINT8, wide and rhs.dtype == _UINT8


def _is_turned(lhs: ShapedArray, contract: Shape, batch: Shape) -> bool:
    """Whether it is columns of matrices that are summed over; in other orders XLA transposes the operand itself."""
    return batch == tuple(range(lhs.ndim - 2)) and contract == (lhs.ndim - 2,)


def _product(fast: FastProduct, out: ShapedArray, numbers: Numbers, bind: Callable[..., Any], x: Any, y: Any) -> Any:
    contract, batch = numbers
    shifts = _shifts(aval_of(x), aval_of(y), out) if fast.narrow == _INT8 else (False, False)
    left, right = (_signed(a) if shift else cast(a, fast.narrow) for a, shift in zip((x, y), shifts, strict=True))
    rows, columns = (_rows(left), (aval_of(left).ndim - 1,)) if fast.makes_rows else (left, contract[0])
    if fast.narrow == _INT8:  # of which XLA would read columns if they come from a transposition, one by one
        (rows,) = optimization_barrier_p.bind(rows)
    total = bind(rows, right, dimension_numbers=((columns, contract[1]), batch), preferred_element_type=fast.wide)
    if shifts[0]:
        total = add(total, _share(y, contract[1], batch[1], aval_of(total), last=True))
    if shifts[1]:
        total = add(total, _share(left, contract[0], batch[0], aval_of(total), last=False))
    return cast(total, out.dtype)


def _rows(x: Any) -> Any:
    """The last two dimensions exchanged; a flat array on the way, or XLA exchanges them in the array's layout only."""
    *batch, columns, rows = aval_of(x).shape
    flat = noinline(lambda a: reshape(moveaxis(a, len(batch) + 1, len(batch)), (aval_of(a).size,)), x)
    return reshape(flat, (*batch, rows, columns))


def _signed(x: Any) -> Any:
    """The bytes less 128."""
    return cast(bitwise_xor(x, literal(128, _UINT8)), _INT8)


def _share(x: Any, contract: Shape, batch: Shape, product: ShapedArray, last: bool) -> Any:
    """128 times the sums of one operand, in the place of its free dimensions in the product."""
    sums = mul(sum_over(cast(x, _INT32), contract), literal(128, _INT32))
    kept = [d for d in range(aval_of(x).ndim) if d not in contract]
    free = [d for d in kept if d not in batch]
    start = product.ndim - len(free) if last else len(batch)
    places = (*range(len(batch)), *range(start, start + len(free)))
    return broadcast_in_dim(transpose(sums, [kept.index(d) for d in (*batch, *free)]), product.shape, places)
