"""The library that computes a program's convolutions on the CPU: the choice, what XLA makes of it, and the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.primitives.windows.cpu_compiler import prefers_eigen
from xlamini.runtime.versions import EIGEN_CONVOLUTIONS

LAYOUT = ("NHWC", "HWIO", "NHWC")
RNG = np.random.default_rng(0)


def conv(x: Any, kernel: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUT, **options)


def kernel_gradient(x: Any, kernel: Any) -> Any:
    return jax.grad(lambda k: (conv(x, k) ** 2).sum())(kernel)


def operands(images: int, side: int, features: int, outputs: int, dtype: str = "float32") -> list[Any]:
    shapes = (images, side, side, features), (3, 3, features, outputs)
    return [jnp.asarray(RNG.integers(-3, 4, shape).astype(dtype)) for shape in shapes]


MANY, FEW, LONE = operands(8, 28, 96, 96), operands(1, 64, 3, 8), operands(1, 28, 64, 64)


@pytest.mark.parametrize(
    ("function", "given", "expected"),
    [
        (conv, MANY, True),
        (kernel_gradient, MANY, True),
        (lambda x, k: lax.fori_loop(0, 2, lambda i, y: jnp.tanh(conv(y, k)), x), MANY, True),
        (lambda x, k: conv(conv(x, k), k[..., :64]), MANY, True),
        (lambda x, k: lax.conv(jnp.ones((1, 32, 9, 9, 9)), jnp.ones((32, 32, 3, 3, 3)), (1, 1, 1), "SAME"), FEW, True),
        (conv, FEW, False),
        (kernel_gradient, LONE, False),
        (lambda x, k: conv(x, k[..., :3]), LONE, False),
        (lambda x, k: x @ k[0, 0], MANY, False),
        (lambda x, k: conv(x, k[:1, :1]), MANY, False),
    ],
)
def test_many_features_and_gradients_of_kernels_suit_eigen(
    function: Callable[..., Any], given: list[Any], expected: bool
) -> None:
    assert prefers_eigen(jax.make_jaxpr(function)(*given).jaxpr) == expected


@pytest.mark.parametrize("dtype", ["int8", "int32", "float64"])
def test_a_program_with_a_dtype_that_eigen_lacks_stays_with_ynnpack(dtype: str) -> None:
    def both(x: Any, kernel: Any) -> Any:
        return conv(x, kernel), conv(x.astype(dtype), kernel.astype(dtype), preferred_element_type=dtype)

    with jax.enable_x64(True):
        assert not prefers_eigen(jax.make_jaxpr(both)(*MANY).jaxpr)


@pytest.mark.skipif(not EIGEN_CONVOLUTIONS, reason="XLA's default is not known on this system")
@pytest.mark.parametrize(("function", "given"), [(conv, MANY), (kernel_gradient, MANY)])
def test_what_suits_eigen_is_compiled_so_and_has_the_same_values(function: Callable[..., Any], given: Any) -> None:
    """Whole numbers, whose sums both libraries give exactly."""
    (option, without), *_ = EIGEN_CONVOLUTIONS.items()
    with_ynnpack = {option: f"{without},LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"}
    ours, theirs = (jax.jit(function, compiler_options=o).lower(*given).compile() for o in (None, with_ynnpack))
    assert "__ynn_fusion" not in ours.as_text()
    assert "__ynn_fusion" in theirs.as_text()
    np.testing.assert_array_equal(ours(*given), theirs(*given))


@pytest.mark.skipif(not EIGEN_CONVOLUTIONS, reason="XLA's default is not known on this system")
def test_products_and_sums_beside_a_convolution_stay_with_ynnpack() -> None:
    def function(x: Any, kernel: Any) -> Any:
        y = conv(x, kernel)
        return y, jnp.tanh(x.reshape(-1, 96)) @ kernel[0, 0]

    compiled = jax.jit(function).lower(*MANY).compile().as_text()
    entry = compiled[compiled.index("ENTRY") :]
    assert " convolution(" in entry
    assert entry.count("__ynn_fusion") == 1
