"""Operations on values in kernels for GPUs: the fast tanh, and the product of matrices."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError, aval_of
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL
from xlamini.primitives.products.dot_algorithm import DotAlgorithmPreset
from xlamini.primitives.products.dot_general import dot_general
from xlamini.runtime import Array


class ApproxTanh(Elementwise):
    """An instruction of the GPU in its kernels; elsewhere tanh."""

    def lower(self, ctx: Any, x: Any) -> Any:
        fast = getattr(ctx, "approx_tanh", None)
        return super().lower(ctx, x) if fast is None else fast(x)


@elementwise(family=ApproxTanh, hlo="stablehlo.tanh", accepts=FLOAT, flops=TRANSCENDENTAL)
def approx_tanh(x: Any) -> Any:
    """Hyperbolic tangent, elementwise, by the instruction of GPUs, which is right to about 11 bits.

    >>> approx_tanh(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@approx_tanh.derivative
def _(x: Any, *, out: Any) -> Any:
    return 1 - out * out


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Array:
    """The product of two matrices, summed in float32, or int32 for integers.

    Args:
      a, b: matrices.
      trans_a, trans_b: whether to take the transpose of the matrix.
      allow_tf32: whether float32s may be rounded to tf32, which tensor cores multiply; instead of `precision`.
      precision: as in `lax.dot_general`.

    Raises ShapeError for other operands than matrices, ValueError for both a precision and `allow_tf32`.

    >>> dot(jnp.ones((2, 3)), jnp.ones((2, 3)), trans_b=True)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    for x in (a, b):
        if aval_of(x).ndim != 2:
            raise ShapeError(f"dot takes two matrices, got {aval_of(x).str_short(short_dtypes=False)}")
    if allow_tf32 is not None and precision is not None:
        raise ValueError("dot: give allow_tf32 or precision, not both")
    numbers = ((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())
    total = "float32" if aval_of(a).dtype.kind not in "iu" else "int32"
    return dot_general(
        a, b, numbers, precision=_precision(a, allow_tf32, precision), preferred_element_type=_wider(a, total)
    )


def _wider(a: Any, total: str) -> Any:
    return "float64" if aval_of(a).dtype.name == "float64" else total


def _precision(a: Any, allow_tf32: bool | None, precision: Any) -> Any:
    if allow_tf32 is None or aval_of(a).dtype.name != "float32":
        return precision
    return DotAlgorithmPreset.TF32_TF32_F32 if allow_tf32 else DotAlgorithmPreset.F32_F32_F32
