"""custom_vjp functions that sum over a mapped axis: the result is equal for all examples, and stays unbatched."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, numpy as jnp, vmap


def ruled(f: Any, fwd: Any, bwd: Any) -> Any:
    made = xlamini.custom_vjp(f)
    made.defvjp(fwd, bwd)
    return made


COUNT = jnp.arange(3.0)


def _total(x: Any) -> Any:
    return lax.psum(x, "i")


FORWARD = {
    "times the residual": ruled(_total, lambda x: (_total(x), x), lambda r, g: (g * r,)),
    "no residual": ruled(_total, lambda x: (_total(x), None), lambda _, g: (g,)),
    "a sum of shares": ruled(_total, lambda x: (_total(x), None), lambda _, g: (_total(g),)),
}
GRADIENTS = {"times the residual": [0.0, 1.0, 2.0], "no residual": [1.0, 1.0, 1.0], "a sum of shares": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize("name", FORWARD)
def test_a_sum_over_the_mapped_axis_is_not_batched(name: str) -> None:
    f = FORWARD[name]
    for g in (f, jit(f), xlamini.checkpoint(f)):
        shared = vmap(g, axis_name="i", out_axes=None)
        assert shared(COUNT) == 3.0
        np.testing.assert_allclose(grad(shared)(COUNT), GRADIENTS[name])
        every = grad(lambda x, g=g: vmap(g, axis_name="i")(x).sum())(COUNT)
        np.testing.assert_allclose(every, 3 * np.array(GRADIENTS[name]))


def test_a_sum_of_what_all_examples_share() -> None:
    f = FORWARD["times the residual"]
    twice = vmap(lambda x: f(f(x)), axis_name="i", out_axes=None)
    assert twice(COUNT) == 9.0
    np.testing.assert_allclose(grad(twice)(COUNT), [0.0, 3.0, 6.0])  # as in JAX
