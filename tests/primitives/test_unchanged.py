"""A public function that changes nothing returns an Array of its own, not the ndarray or number it was given."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.sharding import SingleDeviceSharding


def here() -> SingleDeviceSharding:
    return SingleDeviceSharding(xlamini.devices()[0])


UNCHANGED: dict[str, Callable[[Any], Any]] = {
    "lax.reshape": lambda x: lax.reshape(x, (3, 3)),
    "lax.collapse": lambda x: lax.collapse(x, 0, 1),
    "lax.squeeze": lambda x: lax.squeeze(x, ()),
    "lax.expand_dims": lambda x: lax.expand_dims(x, ()),
    "lax.transpose": lambda x: lax.transpose(x, (0, 1)),
    "lax.broadcast": lambda x: lax.broadcast(x, ()),
    "lax.broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (3, 3), (0, 1)),
    "lax.broadcast_to_rank": lambda x: lax.broadcast_to_rank(x, 2),
    "lax.broadcast_like": lambda x: lax.broadcast_like(x, x),
    "lax.slice": lambda x: lax.slice(x, (0, 0), (3, 3)),
    "lax.slice_in_dim": lambda x: lax.slice_in_dim(x, 0, None),
    "lax.dynamic_slice": lambda x: lax.dynamic_slice(x, (0, 0), (3, 3)),
    "lax.concatenate": lambda x: lax.concatenate([x], 0),
    "lax.split": lambda x: lax.split(x, [3])[0],
    "lax.pad": lambda x: lax.pad(x, np.float32(0), [(0, 0, 0)] * 2),
    "lax.rev": lambda x: lax.rev(x, ()),
    "lax.tile": lambda x: lax.tile(x, (1, 1)),
    "lax.convert_element_type": lambda x: lax.convert_element_type(x, np.float32),
    "lax.bitcast_convert_type": lambda x: lax.bitcast_convert_type(x, np.float32),
    "lax.reduce_precision": lambda x: lax.reduce_precision(x, 8, 23),
    "lax.integer_pow": lambda x: lax.integer_pow(x, 1),
    "lax.reduce_sum": lambda x: lax.reduce_sum(x, ()),
    "lax.reduce_max": lambda x: lax.reduce_max(x, ()),
    "lax.optimization_barrier": lax.optimization_barrier,
    "lax.stop_gradient": lax.stop_gradient,
    "lax.with_sharding_constraint": lambda x: lax.with_sharding_constraint(x, here()),
    "numpy.squeeze": jnp.squeeze,
    "numpy.expand_dims": lambda x: jnp.expand_dims(x, ()),
    "numpy.transpose": lambda x: jnp.transpose(x, (0, 1)),
    "numpy.moveaxis": lambda x: jnp.moveaxis(x, 0, 0),
    "numpy.swapaxes": lambda x: jnp.swapaxes(x, 0, 0),
    "numpy.rollaxis": lambda x: jnp.rollaxis(x, 0, 0),
    "numpy.broadcast_to": lambda x: jnp.broadcast_to(x, (3, 3)),
    "numpy.broadcast_arrays": lambda x: jnp.broadcast_arrays(x)[0],
    "numpy.atleast_1d": jnp.atleast_1d,
    "numpy.astype": lambda x: jnp.astype(x, np.float32),
    "numpy.real": jnp.real,
    "numpy.conj": jnp.conj,
    "numpy.positive": jnp.positive,
    "numpy.clip": lambda x: jnp.clip(x),
    "numpy.roll": lambda x: jnp.roll(x, 0),
    "numpy.tile": lambda x: jnp.tile(x, 1),
    "numpy.repeat": lambda x: jnp.repeat(x, 1, axis=0),
    "numpy.concatenate": lambda x: jnp.concatenate([x]),
    "numpy.vstack": lambda x: jnp.vstack([x]),
    "numpy.block": jnp.block,
    "numpy.pad": lambda x: jnp.pad(x, 0),
    "numpy.flip": lambda x: jnp.flip(x, ()),
    "numpy.rot90": lambda x: jnp.rot90(x, 0),
    "numpy.resize": lambda x: jnp.resize(x, (3, 3)),
    "numpy.delete": lambda x: jnp.delete(x, np.zeros(0, int), 0),
    "numpy.diff": lambda x: jnp.diff(x, n=0),
    "numpy.sum": lambda x: jnp.sum(x, ()),
    "numpy.max": lambda x: jnp.max(x, ()),
    "numpy.einsum": lambda x: jnp.einsum("ij->ij", x),
    "numpy.split": lambda x: jnp.split(x, 1)[0],
    "numpy.apply_over_axes": lambda x: jnp.apply_over_axes(jnp.sum, x, ()),
    "numpy.linalg.matrix_power": lambda x: jnp.linalg.matrix_power(x, 1),
    "device_put": xlamini.device_put,
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("function", UNCHANGED.values(), ids=UNCHANGED)
def test_an_ndarray_comes_back_as_an_array(function: Callable[[Any], Any]) -> None:
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    found = function(x)
    assert isinstance(found, xlamini.Array)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, x)
    x[0, 0] = 7
    assert found[0, 0] == 0


def test_so_it_does_while_something_is_traced() -> None:
    def f(y: Any) -> Any:
        kept = lax.reshape(np.ones((2, 3), np.float32), (2, 3))
        return y + kept.at[0].set(2.0)

    np.testing.assert_array_equal(xlamini.jit(f)(1.0), [[3.0] * 3, [2.0] * 3])


def test_a_number_comes_back_as_an_array_of_its_type() -> None:
    assert xlamini.typeof(lax.reshape(2.0, ())) == xlamini.typeof(jnp.asarray(2.0))
    assert isinstance(lax.squeeze(np.float32(2), ()), xlamini.Array)


def test_an_array_comes_back_itself() -> None:
    x = jnp.ones((2, 3))
    assert lax.reshape(x, (2, 3)) is x
    assert lax.convert_element_type(x, x.dtype) is x
    assert lax.broadcast_in_dim(x, (2, 3), (0, 1)) is x


def test_a_tangent_that_holds_nothing_comes_back_as_it_is() -> None:
    nothing = np.zeros(3, xlamini.dtypes.float0)
    assert lax.reshape(nothing, (3,)) is nothing
    assert lax.reshape(nothing, (3, 1)).dtype == nothing.dtype
