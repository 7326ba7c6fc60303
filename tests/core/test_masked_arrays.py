"""Masked arrays are refused wherever an array is taken, since their masks would be lost."""

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn

M = np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0], dtype=np.float32)
ONE = jnp.ones(3)
PLACE = xlamini.NamedSharding(xlamini.make_mesh((1,), ("x",)), xlamini.P())


class Likeness:
    """An object that NumPy makes a masked array of."""

    def __array__(self, dtype=None, copy=None):
        return M


PLACES = {
    "an object's array": lambda: jnp.asarray(Likeness()),
    "local data": lambda: xlamini.make_array_from_process_local_data(PLACE, M),
    "function": lambda: jnp.sum(M),
    "lax": lambda: lax.add(ONE, M),
    "operator": lambda: ONE + M,
    "operator of NumPy": lambda: M + ONE,
    "asarray": lambda: jnp.asarray(M),
    "array with a dtype": lambda: jnp.array(M, "int32"),
    "nested list": lambda: jnp.array([M, M]),
    "nested list with a dtype": lambda: jnp.array([M, M], "int32"),
    "device_put": lambda: xlamini.device_put(M),
    "device_put, several": lambda: xlamini.device_put([M], xlamini.devices()[1]),
    "jit": lambda: xlamini.jit(lambda x: x + 1)(M),
    "captured": lambda: xlamini.jit(lambda x: x + M)(ONE),
    "output": lambda: xlamini.jit(lambda x: M)(1.0),
    "tree": lambda: xlamini.jit(lambda tree: tree["x"] + 1)({"x": M}),
    "lower": lambda: xlamini.jit(jnp.sin).lower(M),
    "compiled": lambda: xlamini.jit(jnp.sin).lower(ONE).compile()(M),
    "eval_shape": lambda: xlamini.eval_shape(jnp.sin, M),
    "grad": lambda: xlamini.grad(lambda x: (x * x).sum())(M),
    "tangent": lambda: xlamini.jvp(jnp.sin, (ONE,), (M,)),
    "cotangent": lambda: xlamini.vjp(jnp.sin, ONE)[1](M),
    "linearize": lambda: xlamini.linearize(jnp.sin, M),
    "vmap": lambda: xlamini.vmap(jnp.sin)(M),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), 0.0, M),
    "while_loop": lambda: lax.while_loop(lambda x: x[0] < 5, lambda x: x + 1, M),
    "cond": lambda: lax.cond(True, lambda x: x, lambda x: x, M),
    "index": lambda: ONE[np.ma.array([0, 1], mask=[0, 1])],
    "update": lambda: ONE.at[:].set(M),
    "reshape": lambda: jnp.reshape(M, (3, 1)),
    "concatenate": lambda: jnp.concatenate([M, ONE]),
    "full": lambda: jnp.full((3,), M),
    "nn": lambda: nn.softmax(M),
    "random": lambda: xlamini.random.choice(xlamini.random.key(0), M),
    "ref": lambda: xlamini.new_ref(M),
    "the masked number": lambda: jnp.sin(np.ma.masked),
    "without a mask": lambda: jnp.sum(np.ma.array([1.0, 2.0])),
    "dlpack": lambda: jnp.from_dlpack(M),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_masked_array_is_refused(place):
    with pytest.raises(ValueError, match=r"masked arrays .* x\.filled\(value\)"):
        PLACES[place]()


def test_a_masked_array_after_one_that_is_not():
    f = xlamini.jit(lambda x: x + 1)
    for _ in range(3):
        f(np.ones(3, np.float32))
    with pytest.raises(ValueError, match="masked arrays"):
        f(M)

    class Own(np.ndarray):
        pass
    assert (f(np.ones(3, np.float32).view(Own)) == 2).all()


def test_a_callback_that_returns_a_masked_array():
    with pytest.raises(Exception, match="masked arrays"):
        xlamini.pure_callback(lambda x: M, ONE, ONE)
