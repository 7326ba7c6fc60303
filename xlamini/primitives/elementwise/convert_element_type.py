"""Conversions: values in another dtype or at another precision, and bits read as another dtype."""
from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    ExtendedDType,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    check_user_dtype,
    iinfo,
    is_differentiable,
    is_zero,
    issubdtype,
    itemsize_bits,
    tangent_aval,
    user_stacklevel,
)
from xlamini.core.program.checks import KEEPS_NAN, NONE
from xlamini.core.program.hi_types import HiDType
from xlamini.core.sharding.facet import broadcast_dimensions, leading_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY, Groups
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, COMPLEX, EXTENDED, FLOAT, kind_of
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.primitives.base.hi_values import retyped
from xlamini.primitives.base.linear_map import JointlyLinear
from xlamini.primitives.base.linear_unary import unchanged
from xlamini.primitives.elementwise.bitcast_by_shifts import bitcast_by_shifts
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """Convert an array to another dtype.

    Floats lose their fraction in an integer dtype; complex numbers lose their imaginary part in a real one, with a
    ComplexWarning. A 64-bit dtype is narrowed, with a warning, unless x64 is on; TypeError for what is no dtype.

    >>> convert_element_type(-1.7, "int32")
    Array(-1, dtype=int32)
    """
    return unchanged(convert(operand, _requested(new_dtype, "convert_element_type")))


def _requested(new_dtype: Any, name: str) -> Any:
    if new_dtype is None:
        raise TypeError(f"{name}: new_dtype is None; name a dtype, such as 'float32'")
    return check_user_dtype(new_dtype, name)


def _linear_groups(avals: Avals, params: Params) -> Groups:
    return JOINTLY if is_differentiable(avals[0].update(dtype=params["new_dtype"])) else ()


class Convert(Elementwise):
    """Linear between floating-point types; the derivative stops at the others."""

    sharding: Sharding = broadcast_dimensions(linear=_linear_groups)
    checks = KEEPS_NAN

    def result(self, aval: ShapedArray, *, new_dtype: Any, weak_type: bool) -> ShapedArray:
        return ShapedArray(aval.shape, new_dtype, weak_type)

    def jvp(self, primals: Any, tangents: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        out = self.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
        aval = tangent_aval(aval_of(out))
        if is_zero(tangents[0]) or not is_differentiable(aval):
            return out, Zero(aval)
        return out, cast(tangents[0], new_dtype)

    def physical(self, operands: Values, avals: Avals, *, new_dtype: Any, weak_type: bool) -> Any:
        return operands[0]  # the elements of a user's dtype are converted to what they are made of, and back

    def transpose(self, ct: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        return [cast(ct, x.aval.dtype)]

    def lower(self, ctx: Any, x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
        (source,), target = ctx.avals_in, ctx.aval_out
        if source.dtype == target.dtype:
            return x
        if target.dtype == np.bool_:
            return ctx.op(
                "stablehlo.compare",
                x,
                ctx.constant(0, source),
                comparison_direction="#stablehlo<comparison_direction NE>",
            )
        if source.dtype.kind == "c" and target.dtype.kind != "c":
            real = ShapedArray(source.shape, np.zeros((), source.dtype).real.dtype)
            x = ctx.op("stablehlo.real", x, avals=[real])
        return ctx.op("stablehlo.convert", x)


@elementwise(family=Convert, accepts=ANY | EXTENDED)
def convert_element_type_p(x: Any, *, new_dtype: Any, weak_type: bool) -> Any:
    """The values of `x` in `new_dtype`."""


convert_element_type_p.name = "convert_element_type"


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` in `dtype`, or `x` itself if it is of that type already; a warning where the imaginary part is discarded."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if type(dtype) is HiDType:
        return retyped(x, dtype)
    if aval.dtype.kind == "c":
        warn_of_imaginary_part(dtype)
    return cast(x, dtype, weak_type)


def cast(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`convert` without the warning: for derivatives, as the cotangent of a real value is a real part."""
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    if type(dtype) is HiDType:
        return retyped(x, dtype)
    if isinstance(dtype, ExtendedDType) or isinstance(aval.dtype, ExtendedDType):
        return _converted_elements(x, aval.dtype, dtype)
    return convert_element_type_p.bind(x, new_dtype=np.dtype(dtype), weak_type=weak_type)


def _converted_elements(x: Any, source: Any, dtype: Any) -> Any:
    """Conversion to or from an extended dtype; ValueError unless that dtype says that its elements are converted."""
    target = dtype if isinstance(dtype, ExtendedDType) else np.dtype(dtype)
    pairs = ((source, target), (target, source))
    if not any(isinstance(own, ExtendedDType) and own.converts(other) for own, other in pairs):
        raise ValueError(
            f"convert_element_type: elements of {source} are not converted to {target}; use the functions of the "
            "library that defines the dtype"
        )
    return convert_element_type_p.bind(x, new_dtype=target, weak_type=False)


def cast_on_host(x: np.ndarray, dtype: Any) -> np.ndarray:
    """`cast` of an ndarray; of NumPy's own warning the place would be a line of the library."""
    real = x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb"
    return (np.real(x) if real else x).astype(dtype)


def number_on_host(x: np.ndarray, dtype: Any) -> np.ndarray:
    """`cast_on_host` with the values that a program gives: the nearest end of an integer's range, and 0 for NaN."""
    if x.dtype.kind not in "fc" or not issubdtype(dtype, np.integer):
        return cast_on_host(x, dtype)
    value, limits = float(np.nan_to_num(np.real(x), nan=0.0)), iinfo(dtype)
    return np.asarray(min(max(value, int(limits.min)), int(limits.max))).astype(dtype)


def warn_of_imaginary_part(dtype: Any) -> None:
    """ComplexWarning, at the user's line, where complex values become real numbers; a bool of them loses nothing."""
    if np.dtype(dtype).kind not in "cb":
        text = "Casting complex values to real discards the imaginary part; take x.real where that is meant"
        warnings.warn(text, np.exceptions.ComplexWarning, user_stacklevel())


class ReducePrecision(JointlyLinear):
    """Rounding, treated as linear, as conversions between floats are."""

    checks = NONE

    def lower(self, ctx: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        bits = {"exponent_bits": f"{exponent_bits} : i32", "mantissa_bits": f"{mantissa_bits} : i32"}
        return ctx.op("stablehlo.reduce_precision", x, **bits)


@elementwise(family=ReducePrecision, accepts=FLOAT)
def reduce_precision_p(operand: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    """The values of a narrower float."""


reduce_precision_p.name = "reduce_precision"


@reduce_precision_p.transposed
def _(ct: Any, x: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
    return (reduce_precision(ct, exponent_bits, mantissa_bits),)


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """The values that a float with so many bits can hold nearest to `operand`, in the same dtype.

    ValueError unless `exponent_bits` is from 1 to 11 and `mantissa_bits` from 0 to 52, as float64 has.

    >>> reduce_precision(1.01, 5, 2)
    Array(1., dtype=float32, weak_type=True)
    """
    exponent_bits, mantissa_bits = operator.index(exponent_bits), operator.index(mantissa_bits)
    if not 1 <= exponent_bits <= 11:
        raise ValueError(f"reduce_precision: exponent_bits must be from 1 to 11, got {exponent_bits}; float16 has 5")
    if not 0 <= mantissa_bits <= 52:
        raise ValueError(f"reduce_precision: mantissa_bits must be from 0 to 52, got {mantissa_bits}; float16 has 10")
    return reduce_precision_p.bind(operand, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


class BitcastConvertType(Primitive):
    name = "bitcast_convert_type"
    sharding: Sharding = leading_dimensions()

    def shape_rule(self, x: ShapedArray, *, new_dtype: Any) -> ShapedArray:
        if x.dtype != new_dtype and any(kind_of(d) in BOOL | COMPLEX for d in (x.dtype, new_dtype)):
            raise TypeError(
                f"bitcast_convert_type: bool and complex numbers have no bits to read as another dtype, got {x.dtype} "
                f"to {new_dtype}; use .view({str(new_dtype)!r}), or convert the values with .astype"
            )
        return ShapedArray(_bitcast_shape(x, new_dtype), new_dtype)

    def jvp(self, primals: Values, tangents: Values, *, new_dtype: Any) -> Any:
        out = self.bind(*primals, new_dtype=new_dtype)
        return out, Zero(tangent_aval(aval_of(out)))

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, new_dtype: Any) -> Any:
        (x,) = with_batch_first(operands, dims, axis.size)
        return self.bind(x, new_dtype=new_dtype), 0

    def lower(self, ctx: Any, x: Any, *, new_dtype: Any) -> Any:
        if is_symbolic_shape(ctx.avals_in[0].shape):
            old, new = itemsize_bits(ctx.avals_in[0].dtype), itemsize_bits(new_dtype)
            if old != new and min(old, new) >= 8:
                return bitcast_by_shifts(ctx, x, old, new)
        return ctx.op("stablehlo.bitcast_convert", x)


bitcast_convert_type_p: Final = BitcastConvertType()


def _bitcast_shape(x: ShapedArray, new_dtype: Any) -> tuple[int, ...]:
    """A wide element becomes a new last axis of narrow ones, and the other way round."""
    old, new = itemsize_bits(x.dtype), itemsize_bits(new_dtype)
    if old == new:
        return x.shape
    if old > new:
        return (*x.shape, old // new)
    if x.shape and x.shape[-1] * old == new:
        return x.shape[:-1]
    raise ShapeError(
        f"bitcast_convert_type: {new_dtype} has {new} bits, so the last axis of operand must have {new // old} "
        f"elements of {old} bits, but its type is {x.str_short(short_dtypes=False)}; "
        f"reshape it to (..., {new // old}) first"
    )


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """The bits of an array, read as another dtype.

    A dtype of half the width gives the result a new last axis of size 2, one of twice the width takes such an axis
    away; and so on for other widths. TypeError for bool and complex dtypes, ShapeError if the last axis does not fit.

    >>> bitcast_convert_type(1.0, "int32")
    Array(1065353216, dtype=int32)
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=_requested(new_dtype, "bitcast_convert_type"))
