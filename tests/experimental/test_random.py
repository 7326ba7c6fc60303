"""Generators with a state: the numbers are those of xlamini.random for its keys, and as JAX 0.10.2 draws them."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, random
from xlamini.experimental.random import StatefulPRNG, stateful_rng


def data(key: Any) -> list[Any]:
    return random.key_data(key).tolist()


@pytest.mark.full
def test_numbers_are_those_of_jax() -> None:
    """Recorded from JAX 0.10.2."""
    rng = stateful_rng(3)
    assert [data(rng.key()), data(rng.key())] == [[3716834203, 3481239269], [1946498123, 2217676430]]
    assert data(rng.key(3))[0] == [773467837, 1767599272] and data(rng.key((2, 1)))[1] == [[2338066268, 2086325090]]
    np.testing.assert_allclose(rng.uniform(size=3), [0.9475907, 0.99920857, 0.62976694], rtol=1e-6)
    np.testing.assert_allclose(rng.uniform(1, jnp.array([2.0, 3.0])), [1.3644112, 1.7540324], rtol=1e-6)
    np.testing.assert_allclose(rng.normal(1, 2, size=(2,)), [-0.76659155, 7.2986636], rtol=1e-5)
    assert rng.integers(10, size=(4,)).tolist() == [8, 0, 4, 3]
    assert rng.integers(5, 10, size=4).tolist() == [5, 9, 5, 8]
    assert rng.integers(5, jnp.array([10, 20])).tolist() == [5, 12]
    np.testing.assert_allclose(rng.random((2,)), [0.18134677, 0.88460755], rtol=1e-6)


@pytest.mark.full
def test_a_draw_uses_the_key_of_its_number() -> None:
    rng, key = stateful_rng(7), random.key(7)
    drawn = [rng.normal(), rng.uniform(), rng.random(dtype="float16"), rng.integers(9, dtype="int8")]
    keys = [random.fold_in(key, i) for i in range(4)]
    assert drawn[0] == random.normal(keys[0]) and drawn[1] == random.uniform(keys[1])
    assert drawn[2] == random.uniform(keys[2], dtype="float16") and drawn[3] == random.randint(keys[3], (), 0, 9)
    assert [x.dtype.name for x in drawn] == ["float32", "float32", "float16", "int8"]
    children = rng.spawn(2)
    assert [data(c._base_key) for c in children] == data(random.split(random.fold_in(key, 4), 2))
    assert children[0].uniform() != children[1].uniform()


@pytest.mark.full
def test_the_state_goes_on_under_transformations() -> None:
    expected = [
        float(random.uniform(random.fold_in(random.key(5), i))) for i in range(6)
    ]
    rng = stateful_rng(5)
    passed, closed_over = xlamini.jit(lambda r: r.uniform()), xlamini.jit(lambda: rng.uniform())
    got = [passed(rng), closed_over(), passed(rng)]
    got += list(lax.scan(lambda c, _: (c, rng.uniform()), None, length=3)[1])
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert rng._counter[...] == 6 and len(xlamini.tree.leaves(rng)) == 2


@pytest.mark.full
def test_a_split_generator_is_mapped_over() -> None:
    split = stateful_rng(1).split(3)
    keys = random.split(random.fold_in(random.key(1), 0), 3)
    expected = [float(random.uniform(random.fold_in(k, 0))) for k in keys]
    drawn = xlamini.vmap(lambda x, rng: x + rng.uniform())(jnp.zeros(3), split)
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)
    assert split._counter[...].tolist() == [1, 1, 1]
    assert stateful_rng(1).split((2, 2))._base_key.shape == (2, 2)


def test_errors() -> None:
    rng = stateful_rng(0)
    with pytest.raises(ValueError, match=r"the generator was split into \(2,\); map over it with vmap"):
        rng.split(2).uniform()
    with pytest.raises(TypeError, match="seed must be given in a traced function"):
        xlamini.jit(lambda: stateful_rng().uniform())()
    with pytest.raises(ValueError, match="mutable array references cannot be returned"):
        xlamini.jit(lambda r: r)(rng)
    assert isinstance(stateful_rng(), StatefulPRNG) and str(stateful_rng(2, impl="rbg").key().dtype) == "key<rbg>"
