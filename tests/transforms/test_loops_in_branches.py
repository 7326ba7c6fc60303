"""A loop in a branch of a mapped cond runs as long as the examples that chose it need, whatever the others hold."""

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax


def up(x):
    return lax.while_loop(lambda y: (y <= 0) | (y > 1e-6), lambda y: y * 0.1, x)


def down(x):
    return lax.while_loop(lambda y: y < -1e-6, lambda y: y * 0.1, x)


def shrunk(x):
    return lax.cond(x >= 0, up, down, x)


@pytest.mark.parametrize("numbers", [[1.0, -2.0, 3.0, -4.0], [1.0, 2.0], [-1.0, -2.0], [-3.0]])
def test_loops_that_end_on_data_of_their_own(numbers):
    right = [shrunk(jnp.float32(x)) for x in numbers]
    for f in (xlamini.vmap(shrunk), xlamini.jit(xlamini.vmap(shrunk))):
        np.testing.assert_allclose(f(jnp.array(numbers)), right, rtol=1e-6)


def test_derivatives_switches_and_nests():
    x = jnp.array([1.0, -2.0, 3.0, -4.0])
    slopes = xlamini.jvp(xlamini.vmap(shrunk), (x,), (jnp.ones(4),))[1]
    np.testing.assert_allclose(slopes, [xlamini.jvp(shrunk, (a,), (jnp.float32(1),))[1] for a in x], rtol=1e-5)
    table = jnp.stack([x, -x])
    np.testing.assert_allclose(xlamini.vmap(xlamini.vmap(shrunk))(table), [[shrunk(a) for a in row] for row in table])
    branches = [up, down, lambda x: x]
    chosen = xlamini.vmap(lambda i, x: lax.switch(i, branches, x))(jnp.array([0, 1, 2, 1]), x)
    np.testing.assert_allclose(chosen, [up(x[0]), down(x[1]), x[2], down(x[3])])


def test_no_examples():
    assert xlamini.vmap(shrunk)(jnp.zeros(0)).shape == (0,)
