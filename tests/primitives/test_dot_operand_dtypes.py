"""The dtypes in which products are written in StableHLO: operands of 8 and 16 bits are not widened beforehand.

Tensor cores and matrix units multiply narrow operands into a wide result several times faster than wide ones. The
operand dtypes are those of JAX's StableHLO for the same products.
"""
from __future__ import annotations

import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
from xlamini import lax

pytestmark = [pytest.mark.sample(4), pytest.mark.usefixtures("optimized")]

FLOAT8 = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
FLOATS = ("bfloat16", "float16", *(f"float8_{kind}" for kind in FLOAT8))
INTEGERS = ("int8", "uint8", "int16", "uint16")
SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32", "float64": "f64", "int32": "i32", "uint32": "ui32"}
SHORT |= {"int8": "i8", "uint8": "ui8", "int16": "i16", "uint16": "ui16"}
SHORT |= {f"float8_{kind}": f"f8{kind.upper()}" for kind in FLOAT8}

_TYPE = r"tensor<\w*x(\w+)>"
_PRODUCT = re.compile(rf"stablehlo\.(?:dot_general|convolution).*: \({_TYPE}, {_TYPE}\) -> {_TYPE}")


def written(product: Any, platform: str, *shapes: tuple[tuple[int, ...], str]) -> tuple[str, ...]:
    """The dtypes of the operands and of the result of the one product in the StableHLO text."""
    operands = [xlamini.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    text = xlamini.jit(product).trace(*operands).lower(lowering_platforms=(platform,)).as_text()
    (found,) = _PRODUCT.findall(text)
    return found


def dot(lhs: str, rhs: str, out: str | None, platform: str) -> tuple[str, ...]:
    product = lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=out)
    return written(product, platform, ((2, 3), lhs), ((3, 4), rhs))


NARROW = [
    *itertools.product(FLOATS, ("float32", "bfloat16", "float16")),
    *itertools.product(INTEGERS, ("int32", "uint32")),
]


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize("dtype, out", NARROW)
def test_narrow_operands_remain_narrow(dtype: str, out: str, platform: str) -> None:
    if (dtype, platform) == ("float8_e8m0fnu", "cpu"):
        return  # XLA would round the sum to a power of 2
    if platform == "cpu" and (dtype in INTEGERS or dtype == "bfloat16"):
        return  # test_cpu_products.py
    assert dot(dtype, dtype, out, platform) == (SHORT[dtype], SHORT[dtype], SHORT[out])
    assert dot(dtype, dtype, None, platform) == (SHORT[dtype],) * 3


@pytest.mark.parametrize("lhs, rhs", [*itertools.permutations(("bfloat16", "float16", "float8_e5m2", "int8"), 2)])
def test_operands_of_different_dtypes_meet_in_the_result_s(lhs: str, rhs: str) -> None:
    assert dot(lhs, rhs, "float32", "cuda") == ("f32", "f32", "f32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn"])
def test_convolution_and_einsum(dtype: str) -> None:
    narrow, wide = SHORT[dtype], "f32"
    convolve = lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", preferred_element_type=np.float32)
    assert written(convolve, "cuda", ((1, 2, 5), dtype), ((3, 2, 3), dtype)) == (narrow, narrow, wide)
    einsum = lambda x, y: xlamini.numpy.einsum("bij,bjk->bik", x, y, preferred_element_type=np.float32)
    assert written(einsum, "cuda", ((2, 3, 4), dtype), ((2, 4, 5), dtype)) == (narrow, narrow, wide)


@pytest.mark.parametrize("dtype, out", [*NARROW, ("bfloat16", "float64"), ("float8_e4m3fn", "float64")])
def test_values(dtype: str, out: str) -> None:
    """Products of small whole numbers are exact in every dtype; the sum of 48 of them needs the wide result."""
    rng = np.random.default_rng(0)
    low = 1 if dtype.endswith("e8m0fnu") or dtype.startswith("u") else -2
    a, b = (rng.integers(low, 3, shape) for shape in ((5, 48), (48, 7)))
    a, b = (np.where(x == 0, 1, x).astype(np.dtype(getattr(ml_dtypes, dtype, dtype))) for x in (a, b))
    with xlamini.enable_x64(True):
        found = lax.dot(a, b, preferred_element_type=out)
    assert found.dtype == out
    wanted = (a.astype(float) @ b.astype(float)).astype(out)
    np.testing.assert_array_equal(np.asarray(found, float), wanted.astype(float))
