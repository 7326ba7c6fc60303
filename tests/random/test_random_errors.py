"""Random numbers: what a wrong call is told."""

from __future__ import annotations

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import random


@pytest.fixture
def key():
    return random.key(0)


ERRORS = {
    "batch of keys": (
        lambda k: random.normal(random.split(k, 3), (2,)),
        ValueError,
        r"normal takes a single key, but was given an array of keys of shape \(3,\); use vmap",
    ),
    "batch of raw keys": (
        lambda k: random.split(random.split(random.PRNGKey(0))),
        ValueError,
        r"split takes a single key, but was given an array of keys of shape \(2,\); use vmap",
    ),
    "no key": (lambda k: random.normal([0, 0], (2,)), TypeError, r"normal: a key is needed, got \["),
    "None": (lambda k: random.split(None), TypeError, "split: a key is needed, got None"),
    "floats": (
        lambda k: random.uniform(jnp.zeros(2)),
        TypeError,
        r"uniform: a key is needed, or the words of one, uint32\[2\]; got float32\[2\]. Make a key "
        r"with random.key\(0\)",
    ),
    "negative split": (
        lambda k: random.split(k, -1),
        ValueError,
        r"split: shape must not have negative sizes, got \(-1,\)",
    ),
    "negative size": (lambda k: random.normal(k, (2, -1)), ValueError, "normal: shape must not have negative sizes"),
    "fractional size": (lambda k: random.bits(k, (2.5,)), TypeError, "bits: shape must be an int or a tuple of ints"),
    "traced size": (
        lambda k: xlamini.jit(lambda n: random.normal(k, (n,)))(3),
        TypeError,
        "normal: shape must be an int or a tuple of ints known while tracing",
    ),
    "integer dtype": (
        lambda k: random.uniform(k, (2,), "int32"),
        ValueError,
        "uniform: dtype must be a float dtype such as 'float32', got int32",
    ),
    "signed bits": (
        lambda k: random.bits(k, (2,), "int32"),
        ValueError,
        "bits: dtype must be an unsigned integer dtype",
    ),
    "float randint": (
        lambda k: random.randint(k, (2,), 0, 5, "float32"),
        TypeError,
        "randint: dtype must be an integer dtype such as 'int32', got float32",
    ),
    "randint bounds": (
        lambda k: random.randint(k, (4,), jnp.array([0, 1]), 3),
        ValueError,
        r"randint: the parameters do not broadcast to shape \(4,\): minval has shape \(2,\)",
    ),
    "uniform bounds": (
        lambda k: random.uniform(k, (2, 3), minval=jnp.zeros(4)),
        ValueError,
        r"uniform: the parameters do not broadcast to shape \(2, 3\): minval has shape \(4,\)",
    ),
    "truncated bounds": (
        lambda k: random.truncated_normal(k, jnp.zeros(2), jnp.ones(3)),
        ValueError,
        "truncated_normal: the parameters do not broadcast to each other",
    ),
    "huge seed": (lambda k: random.key(2**64), OverflowError, "key: the seed 18446744073709551616 does not fit"),
    "float seed": (lambda k: random.key(1.5), TypeError, "key: the seed must be an integer, got 1.5"),
    "array of seeds": (
        lambda k: random.key(jnp.arange(3)),
        TypeError,
        r"key: the seed must be a scalar, got shape \(3,\); use vmap\(random.key\)\(seeds\)",
    ),
    "unknown generator": (
        lambda k: random.key(0, impl="foo"),
        ValueError,
        "there is no random generator 'foo'; there are 'threefry2x32', 'rbg', 'unsafe_rbg'",
    ),
    "negative data": (lambda k: random.fold_in(k, -1), OverflowError, "fold_in: -1 does not fit into uint32"),
    "large data": (lambda k: random.fold_in(k, 2**32), OverflowError, "fold_in: 4294967296 does not fit"),
    "array of data": (lambda k: random.fold_in(k, np.arange(3)), TypeError, "fold_in: data must be a scalar"),
    "words of wrong length": (
        lambda k: random.wrap_key_data(jnp.zeros(3, "uint32")),
        TypeError,
        r"wrap_key_data: a key is needed, or the words of one, uint32\[2\]; got uint32\[3\]",
    ),
    "bernoulli of ints": (lambda k: random.bernoulli(k, 5), TypeError, "bernoulli: p must be a float"),
    "bernoulli mode": (lambda k: random.bernoulli(k, 0.5, mode="x"), ValueError, "bernoulli: mode must be 'low'"),
    "nothing to choose": (lambda k: random.choice(k, 0), ValueError, "choice: there is nothing to draw from"),
    "too many choices": (
        lambda k: random.choice(k, 3, (5,), replace=False),
        ValueError,
        "choice: 5 draws from 3 elements need replace=True",
    ),
    "wrong p": (
        lambda k: random.choice(k, 5, (2,), p=jnp.ones(3)),
        ValueError,
        r"choice: p must have shape \(5,\), a probability for each element, got \(3,\)",
    ),
    "permutation axis": (lambda k: random.permutation(k, jnp.arange(3), axis=2), ValueError, "permutation: axis 2"),
    "permutation of a float": (lambda k: random.permutation(k, 1.5), TypeError, "permutation: x must be an integer"),
    "categorical axis": (lambda k: random.categorical(k, jnp.zeros((3, 4)), axis=5), ValueError, "axis 5"),
    "categorical shape": (
        lambda k: random.categorical(k, jnp.zeros((3, 4)), shape=(2,)),
        ValueError,
        r"categorical: shape \(2,\) must end with \(3,\)",
    ),
    "too few categories": (
        lambda k: random.categorical(k, jnp.zeros(4), shape=(9,), replace=False),
        ValueError,
        "asks for more draws than the 4 categories",
    ),
    "arithmetic": (lambda k: k + 1, TypeError, "unsupported operand"),
    "arithmetic with arrays": (lambda k: jnp.zeros(3) + k, ValueError, "dtype key<fry> promotes with no other dtype"),
    "traced arithmetic": (lambda k: xlamini.jit(lambda x: x + 1)(k), ValueError, "dtype key<fry> promotes with no"),
    "to NumPy": (lambda k: np.asarray(k), TypeError, r"random.key_data\(keys\) gives its words"),
    "truth": (bool, TypeError, "a key has no truth value"),
    "hash": (hash, TypeError, "unhashable type: 'PRNGKeyArray'"),
    "length": (len, TypeError, "a single key has no axis to count"),
    "iteration": (list, TypeError, "iteration over a 0-d array"),
    "index": (lambda k: random.split(k)[2], IndexError, "index 2 is out of bounds for axis 0 with size 2"),
    "gradient": (
        lambda k: xlamini.grad(random.normal)(k),
        TypeError,
        r"grad requires real- or complex-valued inputs, but 'key' of normal is key<fry>\[\]",
    ),
    "sharding": (lambda k: random.normal(k, out_sharding=1), TypeError, "normal: out_sharding must be a Part.*, got 1"),
}


@pytest.mark.parametrize("mistake, kind, message", ERRORS.values(), ids=list(ERRORS))
def test_mistakes_are_explained(key, mistake, kind, message):
    with pytest.raises(kind, match=message):
        mistake(key)
