"""The cotangent of a result that nobody uses stays zero, and meets no infinite derivative, as that of log at 0."""

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

log = jnp.log


def pair(x):
    return log(x), x


def custom(x):
    f = xlamini.custom_jvp(lambda a, b: (a, b))
    f.defjvp(lambda primals, tangents: (primals, tangents))
    return f(log(x), x)[1]


FUNCTIONS = {
    "barrier": lambda x: lax.optimization_barrier(pair(x))[1],
    "barrier in jit": lambda x: xlamini.jit(lambda x: lax.optimization_barrier(pair(x)))(x)[1],
    "barrier in scan": lambda x: lax.scan(lambda c, _: (lax.optimization_barrier(pair(c))[1], None), x, None, 2)[0],
    "jit": lambda x: xlamini.jit(pair)(x)[1],
    "cond": lambda x: lax.cond(x < 1, pair, pair, x)[1],
    "scan": lambda x: lax.scan(lambda c, _: (pair(c[1]), None), (x, x), None, length=3)[0][1],
    "results of a scan": lambda x: lax.scan(lambda c, _: (c, log(c)), x, None, length=3)[0],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, s: pair(s[1]), (x, x))[1],
    "checkpoint": lambda x: xlamini.checkpoint(pair)(x)[1],
    "sort": lambda x: lax.sort((x[None], log(x)[None]), num_keys=1)[0][0],
    "custom_jvp": custom,
    "composite": lambda x: lax.composite(lambda a, b: (a, b), "my.pair")(log(x), x)[1],
    "associative_scan": lambda x: lax.associative_scan(
        lambda a, b: (a[0] + b[0], a[1] + b[1]), (log(x)[None].repeat(3), x[None].repeat(3))
    )[1][0],
    "psum": lambda x: xlamini.vmap(lambda a: lax.psum(pair(a), "i")[1], axis_name="i")(x[None])[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_zero_stays_one(name):
    assert xlamini.grad(FUNCTIONS[name])(0.0) == 1.0


def test_the_second_derivative_of_a_barrier():
    square = lambda x: lax.optimization_barrier((log(x), x * x))[1]
    assert xlamini.grad(xlamini.grad(square))(0.0) == 2.0


CHOSEN = {
    "maximum": lambda x: jnp.sqrt(jnp.maximum(x, 0.0)),
    "fmax": lambda x: log(jnp.fmax(x, 0.0)),
    "minimum": lambda x: jnp.arcsin(jnp.minimum(2 - x, 1.0)),
    "clip": lambda x: jnp.arccos(jnp.clip(x, -1, 1)),
    "clip below": lambda x: jnp.arccosh(jnp.clip(x, 1, None)),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_an_operand_that_is_not_the_extremum_has_slope_0(name):
    for slope in (xlamini.grad(CHOSEN[name]), xlamini.jit(xlamini.grad(CHOSEN[name]))):
        assert slope(-2.0) == 0
    assert xlamini.grad(jnp.maximum, (0, 1))(1.0, 1.0) == (0.5, 0.5)
