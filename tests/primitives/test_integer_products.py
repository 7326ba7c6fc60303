"""Convolutions of integers as a GPU computes them, beside XLA's for the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax
from xlamini.primitives.windows.convolution import conv_general_dilated_p
from xlamini.primitives.windows.integer_products import windows_times_kernel

NHWC = ("NHWC", "HWIO", "NHWC")
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 5, 6), (4, 3, 2, 3), {"window_strides": (1, 1), "padding": "SAME"}),
    "strides and dilations": (
        (2, 2, 7, 8),
        (3, 2, 3, 2),
        {"window_strides": (2, 1), "padding": ((1, 2), (-1, 1)), "lhs_dilation": (1, 2), "rhs_dilation": (2, 3)},
    ),
    "groups of features": (
        (2, 6, 5), (9, 2, 3), {"window_strides": (1,), "padding": "VALID", "feature_group_count": 3},
    ),
    "groups of the batch": (
        (6, 2, 5), (9, 2, 3), {"window_strides": (1,), "padding": "VALID", "batch_group_count": 3},
    ),
    "features last": (
        (2, 5, 6, 4), (2, 3, 4, 3), {"window_strides": (1, 2), "padding": "SAME", "dimension_numbers": NHWC},
    ),
    "no space": ((2, 3), (4, 3), {"window_strides": (), "padding": ()}),
    "a window that fits nowhere": ((2, 3, 1), (4, 3, 2), {"window_strides": (1,), "padding": "VALID"}),
}


@pytest.mark.parametrize("dtype, wanted", [("int32", None), ("uint8", None), ("int8", "int32"), ("int64", None)])
@pytest.mark.parametrize("case", CASES)
def test_as_the_cpu_does(case: str, dtype: str, wanted: str | None) -> None:
    shape, kernel_shape, params = CASES[case]
    rng = np.random.default_rng(0)
    with xlamini.enable_x64(True):
        x, kernel = (rng.integers(-100, 100, s).astype(dtype) for s in (shape, kernel_shape))
        (eqn,) = xlamini.make_jaxpr(
            lambda x, k: lax.conv_general_dilated(x, k, **params, preferred_element_type=wanted)
        )(x, kernel).eqns
        found = windows_times_kernel(conv_general_dilated_p.bind, eqn.params, x, kernel)
        expected = conv_general_dilated_p.bind(x, kernel, **eqn.params)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_a_gpu_gets_products_of_matrices() -> None:
    x = xlamini.ShapeDtypeStruct((2, 3, 5, 6), "int32")
    lowered = xlamini.jit(lambda x: lax.conv(x, x[:, :, :2, :2], (1, 1), "SAME")).trace(x)
    text = lowered.lower(lowering_platforms=("cuda",)).as_text()
    assert "dot_general" in text and "convolution" not in text
