"""fft: the discrete Fourier transform over the last one to three dimensions, of complex or real numbers.

With w = exp(-2 pi i / n), FFT gives `y[k] = sum_j x[j] w**(jk)`, and IFFT undoes it. RFFT gives the first n // 2 + 1 of
the y of real x, in the last dimension (the others follow by symmetry); IRFFT undoes that.
"""
from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import Avals, Axis, Cost, Params, Shape, ShapedArray, ShapeError, Values, aval_of, issubdtype, literal
from xlamini.core.program.checks import NONE
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.core.sizes.expression import as_size, is_symbolic_shape
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.base.promotion import promoted_inexact
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import rem
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.complex import conj, part_dtype, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import moveaxis
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class FftType(enum.IntEnum):
    """The kind of transform: complex (FFT), its inverse (IFFT), of real numbers (RFFT), and its inverse (IRFFT).

    >>> lax.fft(jnp.array([1.0, 0.0, 0.0, 0.0]), FftType.RFFT, (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3

    @classmethod
    def parse(cls, given: Any) -> FftType:
        """A member from itself, its name in any case, or its number; ValueError for anything else."""
        try:
            return cls[given.upper()] if isinstance(given, str) else cls(given)
        except (KeyError, ValueError):
            names = ", ".join(cls.__members__)
            raise ValueError(f"fft: fft_type must be one of {names}, got {given!r}") from None


_INT32 = np.dtype("int32")
_COMPLEX = {"float32": np.dtype("complex64"), "float64": np.dtype("complex128")}


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The transform of the kind `fft_type` over the last `len(fft_lengths)` dimensions of `x`, one to three of them.

    `fft_lengths` are the sizes of these dimensions, for IRFFT those of the result. Real numbers are made complex for
    FFT, IFFT and IRFFT; RFFT wants float32 or float64. ShapeError where the lengths do not fit, TypeError for a dtype.

    >>> fft(xlamini.numpy.array([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    kind, lengths = FftType.parse(fft_type), tuple(map(as_size, fft_lengths))
    (x,) = promoted_inexact("fft", x)
    if kind is not FftType.RFFT:
        x = _as_complex(x)
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths else x


def _as_complex(x: Any) -> Any:
    dtype = aval_of(x).dtype
    return x if issubdtype(dtype, np.complexfloating) else convert(x, _COMPLEX.get(dtype.name, _COMPLEX["float32"]))


class FFT(LinearUnary):
    name = "fft"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    checks = NONE

    def shape_rule(self, x: ShapedArray, *, fft_type: FftType, fft_lengths: Shape) -> ShapedArray:
        wanted = _COMPLEX if fft_type is FftType.RFFT else [d.name for d in _COMPLEX.values()]
        if x.dtype.name not in wanted:
            allowed = " or ".join(wanted)
            raise TypeError(f"fft: {fft_type.name} is of {allowed}, got {x.str_short()}; convert it with .astype")
        outer, inner = x.shape[: x.ndim - len(fft_lengths)], x.shape[x.ndim - len(fft_lengths) :]
        self._check_lengths(x, inner, fft_type, fft_lengths)
        if fft_type is FftType.RFFT:
            shape = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
            return x.update(shape=(*outer, *shape), dtype=_COMPLEX[x.dtype.name])
        dtype = part_dtype(x.dtype) if fft_type is FftType.IRFFT else x.dtype
        return x.update(shape=(*outer, *fft_lengths), dtype=dtype)

    def _check_lengths(self, x: ShapedArray, inner: Shape, fft_type: FftType, lengths: Shape) -> None:
        if not 1 <= len(lengths) <= 3:
            raise ShapeError(
                f"fft: fft_lengths {lengths} must be of one to three dimensions; transform some after the others"
            )
        last = lengths[-1] // 2 + 1 if fft_type is FftType.IRFFT else lengths[-1]
        if inner != (*lengths[:-1], last) or any(n < 0 for n in lengths):
            raise ShapeError(
                f"fft: {fft_type.name} with fft_lengths {lengths} is of arrays whose shape ends with "
                f"{(*lengths[:-1], last)}, got {x.str_short()}; pad or slice it"
            )

    def transpose(self, ct: Any, x: Any, *, fft_type: FftType, fft_lengths: Shape) -> Values:
        if fft_type is FftType.RFFT:
            return [_transposed_rfft(ct, fft_lengths)]
        if fft_type is FftType.IRFFT:
            return [_transposed_irfft(ct, fft_lengths)]
        return [self.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]

    def batch(self, axis: Axis, operands: Any, dims: Any, *, fft_type: FftType, fft_lengths: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(moveaxis(x, dim, 0), fft_type=fft_type, fft_lengths=fft_lengths), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        out, lengths = outs[0], params["fft_lengths"]
        if 0 in (*avals[0].shape, *out.shape):
            return Form(lambda x: zeros(ShapedArray(out.shape, out.dtype)))
        is_half = platform.name == "tpu" and params["fft_type"] is FftType.IRFFT and len(lengths) == 1
        return Form(lambda x: _irfft_as_ifft(x, lengths)) if is_half else None

    def lower(self, ctx: Any, x: Any, *, fft_type: FftType, fft_lengths: Shape) -> Any:
        if is_symbolic_shape(fft_lengths):
            raise NotImplementedError(
                f"fft: the transformed dimensions have the sizes {fft_lengths}, and XLA needs numbers; export for "
                "numbers in their place"
            )
        kind = f"#stablehlo<fft_type {fft_type.name}>"
        return ctx.op("stablehlo.fft", x, fft_type=kind, fft_length=list(fft_lengths))

    def cost(self, x: ShapedArray, *, fft_type: FftType, fft_lengths: Shape) -> Cost:
        """`5 n log2(n)` operations for n complex numbers, half of it for real ones."""
        base = super().cost(x, fft_type=fft_type, fft_lengths=fft_lengths)
        n = math.prod(fft_lengths)
        outer = math.prod(x.shape[: x.ndim - len(fft_lengths)])
        flops = outer * 5 * n * math.log2(max(n, 2)) / (1 if fft_type < FftType.RFFT else 2)
        return base._replace(flops=int(flops))


fft_p: Final = FFT()


def _irfft_as_ifft(x: Any, lengths: Shape) -> Any:
    """IRFFT along one dimension for a TPU, where XLA mirrors the half spectrum first: zero padding is enough."""
    aval = aval_of(x)
    double = mul(x, literal(2, aval.dtype))
    numbers = where(_are_self_conjugate(aval, lengths[0]), x, double)
    return real(fft_p.bind(_zero_padded(numbers, lengths[0]), fft_type=FftType.IFFT, fft_lengths=lengths))


# --- transposes of the transforms with real numbers on one side


def _transposed_rfft(ct: Any, lengths: Shape) -> Any:
    """RFFT is FFT, and the first half of it: so zeros for the other half, and back.

    Along one dimension that is an IRFFT, in half of the work; along more, it would take symmetric numbers for granted.
    """
    aval = aval_of(ct)
    if len(lengths) == 1 and aval.size and lengths[0]:
        n = lengths[0]
        double = mul(conj(ct), literal(n / 2, aval.dtype))
        single = convert(mul(real(ct), literal(n, part_dtype(aval.dtype))), aval.dtype)
        numbers = where(_are_self_conjugate(aval, n), single, double)
        return fft_p.bind(numbers, fft_type=FftType.IRFFT, fft_lengths=lengths)
    return real(fft_p.bind(_zero_padded(ct, lengths[-1]), fft_type=FftType.FFT, fft_lengths=lengths))


def _zero_padded(half: Any, n: int) -> Any:
    """A half spectrum, with zeros up to its n coefficients."""
    aval = aval_of(half)
    config = [(0, 0, 0)] * (aval.ndim - 1) + [(0, n - aval.shape[-1], 0)]
    return pad(half, literal(0, aval.dtype), config)


def _transposed_irfft(ct: Any, lengths: Shape) -> Any:
    """The transpose of irfft: coefficients count twice, but for those that are their own conjugates."""
    half = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=lengths)
    aval = aval_of(half)
    if not aval.size or not math.prod(lengths):
        return zeros(aval)
    share = 1 / math.prod(lengths)
    single = _are_self_conjugate(aval, lengths[-1])
    weights = where(single, literal(share, aval.dtype), literal(2 * share, aval.dtype))
    return mul(conj(half), weights)


def _are_self_conjugate(half: ShapedArray, n: int) -> Any:
    """Which coefficients of a half spectrum are their own conjugates: that of 0 and, where n is even, of n / 2."""
    k = broadcasted_iota(_INT32, half.shape, half.ndim - 1)
    return eq(rem(k, literal(n // 2, _INT32)), literal(0, _INT32)) if n % 2 == 0 else eq(k, literal(0, _INT32))
