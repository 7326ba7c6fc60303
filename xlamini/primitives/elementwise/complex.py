"""Complex numbers and their parts: real, imag, conj, complex.

They are linear over the real numbers, not over the complex ones. A cotangent pairs with a tangent as `real(ct * t)`,
with no conjugation: that fixes the transposes below, and makes the gradient of a real function f of x + iy equal
df/dx - i df/dy.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapedArray, aval_of
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, kind_of
from xlamini.primitives.base.elementwise import elementwise, neg
from xlamini.primitives.base.linear_map import JointlyLinear
from xlamini.runtime import Array

_WHOLE = {np.dtype("float32"): np.dtype("complex64"), np.dtype("float64"): np.dtype("complex128")}
_PART = {whole: part for part, whole in _WHOLE.items()}


def part_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex dtype; any other dtype itself."""
    return _PART.get(dtype, dtype)


class ComplexPart(JointlyLinear):
    """The real or the imaginary part."""

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        return aval.update(dtype=part_dtype(aval.dtype))


@elementwise(family=ComplexPart, hlo="stablehlo.real", accepts=COMPLEX)
def real(x: Any) -> Any:
    """The real part of a complex array.

    >>> lax.real(jnp.array(1 + 2j))
    Array(1., dtype=float32, weak_type=True)
    """


@real.transposed
def _(ct: Any, x: Any) -> Any:
    return (complex(ct, 0),)


@elementwise(family=ComplexPart, hlo="stablehlo.imag", accepts=COMPLEX)
def imag(x: Any) -> Any:
    """The imaginary part of a complex array.

    >>> lax.imag(jnp.array(1 + 2j))
    Array(2., dtype=float32, weak_type=True)
    """


@imag.transposed
def _(ct: Any, x: Any) -> Any:
    return (complex(0, neg(ct)),)


class Whole(JointlyLinear):
    """An operation that makes complex numbers, of real ones in single or double precision."""

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        return aval.update(dtype=_WHOLE.get(aval.dtype, aval.dtype))

    def _check_kind(self, aval: ShapedArray) -> None:
        super()._check_kind(aval)
        if aval.dtype not in _WHOLE and aval.dtype not in _PART:
            raise TypeError(
                f"{self.name} does not accept dtype {aval.dtype.name}: complex numbers are made of float32 or float64 "
                "(convert with .astype)"
            )


@elementwise(family=Whole, hlo="stablehlo.complex", accepts=FLOAT)
def complex(x: Any, y: Any) -> Any:
    """The complex array `x + iy`, of two arrays of dtype float32 or float64.

    >>> complex(1.0, 2.0)
    Array(1.+2.j, dtype=complex64, weak_type=True)
    """


@complex.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return real(ct), neg(imag(ct))


class Conj(Whole):
    """`input_dtype` tells a transposed equation whether the operand was real."""

    def lower(self, ctx: Any, x: Any, *, input_dtype: Any) -> Any:
        (aval,) = ctx.avals_in
        if kind_of(aval.dtype) in COMPLEX:
            return ctx.op("chlo.conj", x)
        return ctx.op("stablehlo.complex", x, ctx.constant(0, aval))


@elementwise(family=Conj, accepts=FLOAT | COMPLEX)
def conj_p(x: Any, *, input_dtype: Any) -> Any:
    """The complex conjugate, complex also for real operands."""


conj_p.name = "conj"


@conj_p.transposed
def _(ct: Any, x: Any, *, input_dtype: Any) -> Any:
    back = conj(ct)
    return (back if kind_of(input_dtype) in COMPLEX else real(back),)


def conj(x: Any) -> Array:
    """The complex conjugate of an array, elementwise; the result is complex also if x is real.

    >>> conj(1 + 2j)
    Array(1.-2.j, dtype=complex64, weak_type=True)
    """
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)
