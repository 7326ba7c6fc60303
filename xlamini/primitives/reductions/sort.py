"""sort: several arrays put in the order of the first ones.

On accelerators the comparator makes zeros and NaNs one, so that nothing is sorted beside the operands, and a GPU's
library recognises the comparison. On the CPU comparators see integers only (`ordering.sort_keys`); long rows are sorted
without comparisons (digit_sort.py). In shorter ones a key of at most 32 bits is packed into one 64-bit integer with its
place: XLA sorts plain integers several times faster than anything with a comparator of its own, and the sorted places
say where every operand's elements go.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.program.avals import as_dimension
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.dtype_kinds import ANY, COMPLEX, INTEGER, UNSIGNED, kind_of
from xlamini.primitives.elementwise.arithmetic import sub
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or, shift_left
from xlamini.primitives.elementwise.comparison import eq_to, lt_to
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.cpu.loops.digit_sort import fits_digits, sorted_by_digits
from xlamini.primitives.forms.cpu.loops.whole_bytes import has_part_bytes, in_whole_bytes
from xlamini.primitives.reductions.ordering import ordered_values, sort_keys
from xlamini.primitives.reductions.reductions import check_kind
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.reorder import permuted

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


PACKED_ABOVE = 32
"""Shorter axes are not worth the packing."""

_INDEX, _PACKED = np.dtype(np.int32), np.dtype(np.int64)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sort along a dimension; several arrays are put in the order of the first `num_keys` of them, as a tuple.

    0.0 and -0.0 are equal, NaNs come last, complex numbers go by real part, then imaginary part. Raises ShapeError
    where shapes differ or the dimension does not exist, ValueError for a `num_keys` that is no number of operands.

    >>> sort((xlamini.numpy.array([3, 1, 2]), xlamini.numpy.array([0, 1, 2])))
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    operands = list(operand) if isinstance(operand, list | tuple) else [operand]
    if not operands:
        raise TypeError("sort: there is no operand; give one array, or a tuple with one at least")
    ndim = aval_of(operands[0]).ndim
    sorted_ = sort_p.bind(
        *operands,
        dimension=as_dimension(dimension, ndim),
        is_stable=bool(is_stable),
        num_keys=operator.index(num_keys),
    )
    return tuple(sorted_) if isinstance(operand, list | tuple) else sorted_[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Any, Any]:
    """`keys` sorted, and `values` in the same order.

    >>> sort_key_val(xlamini.numpy.array([3, 1, 2]), xlamini.numpy.array([0, 1, 2]))[1]
    Array([1, 2, 0], dtype=int32)
    """
    return sort((keys, values), dimension, is_stable, 1)


class Sort(Primitive):
    name = "sort"
    multiple_results = True
    sharding: Sharding = same_dimensions(whole="dimension")
    checks = NO_NEW_NAN

    def shape_rule(self, *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> list[ShapedArray]:
        first = avals[0]
        if any(a.shape != first.shape for a in avals):
            found = ", ".join(a.str_short() for a in avals)
            raise ShapeError(f"sort: the operands must share one shape, got {found}")
        if not 0 <= dimension < first.ndim:
            fix = f"it takes 0 to {first.ndim - 1}" if first.ndim else "a scalar cannot be sorted"
            raise ShapeError(f"sort: dimension {dimension} does not fit {first.str_short()}; {fix}")
        if not 1 <= num_keys <= len(avals):
            raise ValueError(
                f"sort: num_keys is {num_keys}, but there are {len(avals)} operands; give 1 to {len(avals)}"
            )
        for key in avals[:num_keys]:
            check_kind("sort", key, ANY)
        return list(avals)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        aval = aval_of(primals[0])
        axis = params["dimension"]
        places = iota_p.bind(dtype=_INDEX, shape=aval.shape, dimension=axis)
        *outs, order = self.bind(*primals, places, **params)
        return outs, [
            Zero(tangent_aval(aval_of(out))) if is_zero(t) else permuted(t, order, axis)
            for out, t in zip(outs, tangents, strict=True)
        ]

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> NoReturn:
        raise AssertionError("sort is not linear; its derivative is a gather")

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, dimension: int, **params: Any
    ) -> Any:
        operands = with_batch_first(operands, dims, axis.size)
        return self.bind(*operands, dimension=dimension + 1, **params), [0] * len(operands)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        if has_part_bytes(avals):
            return Form(partial(in_whole_bytes, partial(self.bind, **params)))
        return _form_on_cpu(avals, **params) if platform.name == "cpu" else None

    def lower(self, ctx: Any, *operands: Any, dimension: int, is_stable: bool, num_keys: int) -> list[Any]:
        scalars = [ShapedArray((), a.dtype) for a in ctx.avals_in for _ in range(2)]
        body = ctx.scalar_region(
            scalars,
            lambda *xs: [ctx.inline(_comparator, *xs[: 2 * num_keys], avals=scalars[: 2 * num_keys])],
        )
        types = [ctx.mlir.type(a) for a in ctx.avals_in]
        return ctx.many("stablehlo.sort", operands, types, [body], dimension=f"{dimension} : i64", is_stable=is_stable)

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        comparisons = avals[0].size * max(avals[0].shape[params["dimension"]] - 1, 0).bit_length()
        return Cost(comparisons, 2 * sum(a.nbytes for a in avals))


sort_p: Final = Sort()


# --- helpers


def _form_on_cpu(avals: Avals, *, dimension: int, is_stable: bool, num_keys: int) -> Form | None:
    keys = avals[:num_keys]
    if fits_digits(keys, dimension):
        return Form(partial(sorted_by_digits, axis=dimension, num_keys=num_keys))
    of_integers = all(kind_of(key.dtype) in INTEGER for key in keys)
    if of_integers and len(avals) == 1:
        return None
    if num_keys == 1 and _fits_packing(*keys) and keys[0].shape[dimension] > PACKED_ABOVE:
        return Form(partial(_sorted_packed, axis=dimension))
    how = {"dimension": dimension, "is_stable": is_stable}
    return None if of_integers else Form(partial(_sorted_by_integers, num_keys, **how))


def _fits_packing(key: ShapedArray) -> bool:
    return key.dtype.itemsize <= 4 and kind_of(key.dtype) is not COMPLEX


def _sorted_packed(*operands: Any, axis: int) -> list[Any]:
    """Sort all operands by the first: its keys are sorted with their indices packed into the lower half."""
    (key,) = sort_keys(operands[0])
    shape = aval_of(key).shape
    places = iota_p.bind(dtype=_PACKED, shape=shape, dimension=axis)
    signed = convert(key, _PACKED)
    if kind_of(aval_of(key).dtype) is UNSIGNED:
        signed = sub(signed, literal(2**31, _PACKED))
    packed = bitwise_or(shift_left(signed, literal(32, _PACKED)), places)
    (packed,) = sort_p.bind(packed, dimension=axis, is_stable=True, num_keys=1)
    order = convert(bitwise_and(packed, literal(2**32 - 1, _PACKED)), _INDEX)
    return [permuted(x, order, axis) for x in operands]


def _sorted_by_integers(num_keys: int, *operands: Any, **how: Any) -> list[Any]:
    """Sort all operands by integers in the order of the first ones, which come along."""
    keys = [key for x in operands[:num_keys] for key in sort_keys(x)]
    return sort_p.bind(*keys, *operands, num_keys=len(keys), **how)[len(keys) :]


def _comparator(*pairs: Any) -> Any:
    """Whether the first members of pairs of keys come first."""
    firsts, seconds = ([v for x in side for v in ordered_values(x)] for side in (pairs[::2], pairs[1::2]))
    return _precedes(*(value for pair in zip(firsts, seconds, strict=True) for value in pair))


def _precedes(*pairs: Any) -> Any:
    """The first pair that differs decides."""
    x, y, *rest = pairs
    if not rest:
        return lt_to(x, y)
    return bitwise_or(lt_to(x, y), bitwise_and(eq_to(x, y), _precedes(*rest)))
