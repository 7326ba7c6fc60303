"""On the CPU, float32 convolutions are lowered with features last; the values do not depend on the order."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlamini as xm
import xlamini.numpy as jnp
from xlamini import lax

pytestmark = pytest.mark.usefixtures("optimized")

FEATURES_LAST = ("NHWC", "HWIO", "NHWC")
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 6, 5, 4)).astype(np.float32)
KERNEL = RNG.standard_normal((3, 2, 2, 6)).astype(np.float32)
OPTIONS: dict[str, Any] = {"window_strides": (2, 1), "padding": ((1, 0), (0, 2)), "feature_group_count": 2}


def _convolved(spec: tuple[str, str, str], x: Any, kernel: Any) -> Any:
    """The convolution in the order `spec` of operands with features last; the result has features last."""
    x, kernel = (jnp.einsum(f"{a}->{b}", y) for a, b, y in zip(FEATURES_LAST, spec, (x, kernel), strict=False))
    out = lax.conv_general_dilated(x, kernel, dimension_numbers=spec, **OPTIONS)
    return jnp.einsum(f"{spec[2]}->{FEATURES_LAST[2]}", out)


def _by_definition(x: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    x = np.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)))
    out = np.zeros((2, 3, 6, 6))
    for i, j in np.ndindex(3, 6):
        for g in range(2):
            window = x[:, 2 * i : 2 * i + 3, j : j + 2, 2 * g : 2 * g + 2]
            out[:, i, j, 3 * g : 3 * g + 3] = np.tensordot(window, kernel[..., 3 * g : 3 * g + 3], 3)
    return out


SPECS = [("NCHW", "OIHW", "NCHW"), ("CWNH", "HOIW", "HCWN"), FEATURES_LAST]


@pytest.mark.parametrize("spec", SPECS, ids="-".join)
def test_values_do_not_depend_on_the_order_of_dimensions(spec: tuple[str, str, str]) -> None:
    out = xm.jit(lambda x, k: _convolved(spec, x, k))(X, KERNEL)
    np.testing.assert_allclose(out, _by_definition(X, KERNEL), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spec", SPECS, ids="-".join)
def test_gradients_of_a_loop_do_not_depend_on_the_order(spec: tuple[str, str, str]) -> None:
    def loss(kernel: Any) -> Any:
        return lax.scan(lambda sum, x: (sum + (_convolved(spec, x, kernel) ** 2).sum(), None), 0.0, X[None])[0]

    direction = RNG.standard_normal(KERNEL.shape).astype(np.float32)
    out, change = _by_definition(X, KERNEL), _by_definition(X, direction)
    np.testing.assert_allclose((xm.jit(xm.grad(loss))(KERNEL) * direction).sum(), 2 * (out * change).sum(), rtol=1e-4)


def _layouts(x: Any, kernel: Any) -> set[str]:
    text = xm.jit(lambda x, k: lax.conv(x, k, (1, 1), "SAME")).lower(x, kernel).as_text()
    return set(re.findall(r"dim_numbers = (\S.*?), window", text))


def test_float32_is_lowered_with_features_last_and_integers_as_they_are() -> None:
    x, kernel = np.ones((1, 20, 4, 4), np.float32), np.ones((2, 20, 3, 3), np.float32)
    assert _layouts(x, kernel) == {"[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"}
    assert _layouts(x.astype(int), kernel.astype(int)) == {"[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"}


@pytest.mark.parametrize("letters", ["NHWX", "NHHC", "HWC"])
def test_letters_that_name_no_layout_are_a_type_error(letters: str) -> None:
    with pytest.raises(TypeError, match="conv_dimension_numbers"):
        lax.conv_dimension_numbers(X.shape, KERNEL.shape, ("NHWC", "HWIO", letters))
