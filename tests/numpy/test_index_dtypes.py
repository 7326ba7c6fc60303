"""Indices of every integer dtype, also of those that do not hold the size of the axis or a negative bound."""

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
SIZE = 300
X = np.arange(SIZE, dtype=np.float32)
TABLE = np.arange(2.0 * SIZE, dtype=np.float32).reshape(SIZE, 2)


def updated(i):
    x = X.copy()
    x[i] = -1
    return x


def added(i):
    x = X.copy()
    np.add.at(x, np.clip(i, 0, SIZE - 1), 1)
    return x


def scattered(i):
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter_add(jnp.asarray(X), i[:, None], jnp.ones(len(i)), numbers, mode="clip")


def gathered(i):
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(jnp.asarray(X), i[:, None], numbers, (1,), mode="clip")


def repeated(i):
    return np.repeat(np.arange(len(i)), np.maximum(i, 0))[:200]


FUNCTIONS = {
    "index": (lambda i: jnp.asarray(X)[i], lambda i: X[i]),
    "update": (lambda i: jnp.asarray(X).at[i].set(-1), updated),
    "take": (lambda i: jnp.take(X, i), lambda i: X[i]),
    "take rows": (lambda i: jnp.take(TABLE, i, 0), lambda i: TABLE[i]),
    "take clip": (lambda i: jnp.take(X, i, mode="clip"), lambda i: np.take(X, i, mode="clip")),
    "take wrap": (lambda i: jnp.take(X, i, mode="wrap"), lambda i: np.take(X, i, mode="wrap")),
    "take_along_axis": (lambda i: jnp.take_along_axis(X, i, 0), lambda i: X[i]),
    "take_along_axis clip": (lambda i: jnp.take_along_axis(X, i, 0, "clip"), lambda i: X[i]),
    "put": (lambda i: jnp.put(X, i, -1, inplace=False), updated),
    "put wrap": (lambda i: jnp.put(X, i, -1, "wrap", inplace=False), updated),
    "put_along_axis": (lambda i: jnp.put_along_axis(X, i, -1, 0, inplace=False), updated),
    "insert": (lambda i: jnp.insert(X, i[:1], -1), lambda i: np.insert(X, i[:1], -1)),
    "insert a number": (lambda i: jnp.insert(X, i[-1], -1), lambda i: np.insert(X, i[-1], -1)),
    "unravel_index": (lambda i: jnp.unravel_index(i, (20, 15)), lambda i: np.unravel_index(i % SIZE, (20, 15))),
    "ravel_multi_index clip": (
        lambda i: jnp.ravel_multi_index((i, i), (SIZE, 2 * SIZE), "clip"),
        lambda i: np.ravel_multi_index((i, i), (SIZE, 2 * SIZE), "clip"),
    ),
    "ravel_multi_index wrap": (
        lambda i: jnp.ravel_multi_index((i, i), (7, SIZE), "wrap"),
        lambda i: np.ravel_multi_index((i, i), (7, SIZE), "wrap"),
    ),
    "index_take": (lambda i: lax.index_take(jnp.asarray(X), (i,), (0,)), lambda i: np.take(X, i, mode="wrap")),
    "gather": (gathered, lambda i: np.take(X, i, mode="clip")),
    "scatter_add": (scattered, added),
    "repeat": (lambda i: jnp.repeat(np.arange(len(i)), jnp.maximum(i, 0), total_repeat_length=200), repeated),
    "one_hot": (lambda i: xlamini.nn.one_hot(i, SIZE), lambda i: i[:, None] == np.arange(SIZE)),
    "dynamic_slice": (lambda i: lax.dynamic_slice(X, (i[-1],), (1,)), lambda i: X[i[-1:]]),
}


def numbers(dtype, function):
    """Some places on the axis; negative ones only where they count from the end."""
    limits = np.iinfo(dtype)
    found = [0, 1, 5, 100, 120, 127, 250, 299] + [-2, -100, -128] * (function != "take clip")
    return np.array([n for n in found if limits.min <= n <= limits.max], dtype)


@pytest.mark.sample(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_places_of_every_integer_dtype(function, dtype):
    run, reference = FUNCTIONS[function]
    places = numbers(dtype, function)
    right = reference(places.astype(np.int64))
    for found in (run(jnp.asarray(places)), xlamini.jit(run)(places)):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(right))
    if not isinstance(right, tuple):
        mapped = xlamini.vmap(run)(jnp.asarray(places)[None])
        np.testing.assert_array_equal(mapped[0], right)


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_unsigned_places_are_not_the_last_one(dtype):
    rows, columns = jnp.unravel_index(jnp.array([0, 5, 200], dtype), (3, 4))
    assert (rows.tolist(), columns.tolist()) == ([0, 1, 2], [0, 1, 3])
    rows, columns = jnp.take_along_axis(X, jnp.array([0, 255], "uint8"), 0)
    assert (rows, columns) == (0, 255)


def test_gradients_of_narrow_places():
    places = jnp.array([3, 255], "uint8")
    slopes = xlamini.grad(lambda x: jnp.take_along_axis(x, places, 0, "clip").sum())(jnp.asarray(X))
    np.testing.assert_array_equal(np.flatnonzero(slopes), [3, 255])
