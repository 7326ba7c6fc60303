"""Gradients of a convolution's kernel: values, and which array slides over which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax


def random_window(rng: np.random.Generator) -> dict[str, Any]:
    """Strides, dilations and padding for a space of one or two dimensions."""
    rank = int(rng.integers(1, 3))
    names = {"window_strides": 3, "lhs_dilation": 4, "rhs_dilation": 3}
    window: dict[str, Any] = {name: rng.integers(1, end, rank).tolist() for name, end in names.items()}
    return window | {"padding": rng.integers(0, 4, (rank, 2)).tolist()}


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 30))])
def test_the_kernels_gradient_is_that_of_each_of_its_numbers(seed: int) -> None:
    """A convolution is linear in its kernel, so a derivative is the cotangent times the result of a unit kernel."""
    rng = np.random.default_rng(seed)
    window = random_window(rng)
    rank = len(window["padding"])
    x = jnp.asarray(rng.standard_normal((2, 3, *rng.integers(4, 7, rank)), np.float32))
    units = jnp.eye(4 * 3 * 2**rank, dtype=np.float32).reshape(-1, 4, 3, *[2] * rank)

    def conv(kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, **window)

    out, back = jax.vjp(conv, units[0])
    cotangent = jnp.asarray(rng.standard_normal(out.shape, np.float32))
    expected = [float((conv(unit) * cotangent).sum()) for unit in units]
    np.testing.assert_allclose(np.ravel(back(cotangent)[0]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("stride", "padding"), [(1, "VALID"), (2, "SAME"), (2, "VALID"), (3, "SAME"), (3, "VALID")])
def test_no_kernel_is_larger_than_what_it_slides_over(stride: int, padding: str) -> None:
    """The gradient of a transposed convolution took XLA's CPU backend a hundred times as long as the convolution."""
    x, kernel = jnp.ones((2, 8, 8, 4)), jnp.ones((4, 4, 4, 3))

    def loss(kernel: Any) -> Any:
        return (lax.conv_transpose(x, kernel, (stride, stride), padding) ** 2).sum()

    eqns = jax.make_jaxpr(jax.grad(loss))(kernel).eqns
    backward = [e for e in eqns if e.primitive.name == "conv_general_dilated"][-1]
    specs = backward.params["dimension_numbers"]
    holes = backward.params["lhs_dilation"], backward.params["rhs_dilation"]
    operand, window = (
        [(v.aval.shape[d] - 1) * hole + 1 for d, hole in zip(spec[2:], dilation, strict=True)]
        for v, spec, dilation in zip(backward.invars, specs, holes, strict=False)
    )
    assert window <= operand
    assert set(backward.params["lhs_dilation"]) == {1}
    assert eqns[-1].primitive.name == "rev"


def test_the_second_derivative_of_a_transposed_convolution() -> None:
    """Finite differences of the gradient, along one direction."""
    rng, step = np.random.default_rng(0), 1e-5

    def loss(kernel: Any) -> Any:
        return jnp.sin(lax.conv_transpose(x, kernel, (2, 2), "SAME")).sum()

    with jax.enable_x64(True):
        x, kernel, direction = (
            jnp.asarray(rng.standard_normal(shape)) for shape in ((1, 4, 4, 2), *[(3, 3, 2, 2)] * 2)
        )
        ahead, behind = (jax.grad(loss)(kernel + sign * step * direction) for sign in (1, -1))
        tangent = jax.jvp(jax.grad(loss), (kernel,), (direction,))[1]
        np.testing.assert_allclose(tangent, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-6)
