"""A random generator of a user: the same numbers eagerly, under jit and vmap, in loops; arrays of keys of any shape."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import checkpoint, extend, jit, lax, numpy as jnp, random, vmap
from xlamini.primitives.random.generators import ALGORITHMS, GENERATORS

STEP = np.uint32(747796405)


def mixed(x: Any) -> Any:
    x = x * STEP + np.uint32(2891336453)
    return ((x >> ((x >> 28) + 4)) ^ x) * np.uint32(277803737)


def counted(key: Any, shape: Any) -> Any:
    return mixed(key[0] + mixed(jnp.arange(int(np.prod(shape)), dtype=jnp.uint32) + key[1])).reshape(shape)


def bits(key: Any, width: int, shape: Any) -> Any:
    if width == 64:
        return (bits(key, 32, shape).astype("uint64") << 32) | bits(key + 1, 32, shape)
    return counted(key, shape).astype(f"uint{width}")


FUNCTIONS: dict[str, Any] = {
    "seed": lambda number: jnp.array([number & 0xFFFF, number >> 16]).astype(jnp.uint32),
    "split": lambda key, shape: counted(key, (*shape, 2)),
    "fold_in": lambda key, data: key.at[0].set(mixed(key[0] ^ mixed(data))),
    "bits": bits,
}


@pytest.fixture
def kind() -> Iterator[Any]:
    dtype = extend.define_key_impl("test_pcg", "tpcg", 2, **FUNCTIONS)
    yield dtype
    del GENERATORS["test_pcg"], ALGORITHMS[dtype.generator]


@pytest.mark.full
def test_keys(kind: Any) -> None:
    key = random.key(0x12345, impl="test_pcg")
    assert (key.dtype, random.key_impl(key), str(kind)) == (kind, "test_pcg", "key<tpcg>")
    np.testing.assert_array_equal(random.key_data(key), [0x2345, 1])
    np.testing.assert_array_equal(random.key_data(jit(lambda: random.key(0x12345, impl=kind))()), [0x2345, 1])
    keys = vmap(lambda seed: random.key(seed, impl=kind))(jnp.arange(3))
    np.testing.assert_array_equal(random.key_data(keys), [[0, 0], [1, 0], [2, 0]])
    assert random.split(key, (2, 3)).shape == (2, 3)
    np.testing.assert_array_equal(random.key_data(random.split(key, 3)), FUNCTIONS["split"](random.key_data(key), (3,)))


DRAWS: dict[str, Any] = {
    "normal": lambda k: random.normal(k, (4,)),
    "bits": lambda k: random.bits(k, (3,), "uint8"),
    "gamma": lambda k: random.gamma(k, 2.0),
    "permutation": lambda k: random.permutation(k, 6),
    "folded": lambda k: random.uniform(random.fold_in(k, 7)),
    "loop": lambda k: lax.scan(lambda c, i: (random.fold_in(c, i), random.uniform(c)), k, jnp.arange(3))[1],
    "choice": lambda k: lax.cond(random.bernoulli(k), lambda q: random.normal(q), lambda q: 0.0, random.split(k)[0]),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_the_same_in_all_compositions(kind: Any, name: str) -> None:
    draw, keys = DRAWS[name], random.split(random.key(5, impl=kind), 4)
    eager = np.stack([draw(k) for k in keys])
    assert len(np.unique(eager)) > 1
    for found in (vmap(draw)(keys), jit(vmap(draw))(keys), np.stack([jit(draw)(k) for k in keys]),
                  vmap(checkpoint(draw))(keys)):  # fmt: skip
        np.testing.assert_allclose(found, eager, rtol=1e-6)


def test_no_keys_and_wide_bits(kind: Any) -> None:
    key = random.key(5, impl=kind)
    assert vmap(random.uniform)(random.split(key, 0)).shape == (0,)
    with xlamini.enable_x64(True):
        drawn = random.bits(key, (50,), "uint64")
        assert drawn.dtype == np.uint64 and int(drawn.max()) > 2**60
        np.testing.assert_array_equal(random.key_data(random.key(2**33 + 1, impl=kind)), [1, 2**17])


def test_the_mean_of_many(kind: Any) -> None:
    many = random.uniform(random.key(1, impl=kind), (20_000,))
    np.testing.assert_allclose([many.mean(), many.var()], [0.5, 1 / 12], atol=0.01)


def test_bad_implementations(kind: Any) -> None:
    with pytest.raises(ValueError, match="there is a generator 'rbg' already; choose another name"):
        extend.define_key_impl("rbg", "r", 2, **FUNCTIONS)
    with pytest.raises(ValueError, match="words must be 1 or more, got 0"):
        extend.define_key_impl("none", "n", 0, **FUNCTIONS)
    wrong = extend.define_key_impl("test_wrong", "w", 2, **{**FUNCTIONS, "bits": lambda key, width, shape: key})
    try:
        with pytest.raises(TypeError, match=r"bits of a key implementation must return uint32\[4\], got uint32\[2\]"):
            random.bits(random.key(0, impl=wrong), (4,))
    finally:
        del GENERATORS["test_wrong"], ALGORITHMS[wrong.generator]
