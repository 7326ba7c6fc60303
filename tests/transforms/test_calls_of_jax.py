"""Calls that JAX takes: sequences in an index, types for arguments, float0, custom rules around collectives."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, random
from xlamini.experimental.checkify import all_checks, checkify

TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)
INDICES = (((0, 1), (0, 1)), ((0, 1),), (0, (0, 1)), ((0, 1), slice(1)), ([0, 1], (1, 0)), (((0, 1), (1, 2)),), ((),))


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_a_sequence_within_an_index_is_an_array(index: Any) -> None:
    x = jnp.asarray(TABLE)
    numpys = tuple(np.asarray(i, int) if isinstance(i, tuple | list) else i for i in index)
    np.testing.assert_array_equal(x[index], TABLE[numpys])
    np.testing.assert_array_equal(xlamini.jit(lambda x: x[index])(x), TABLE[numpys])
    changed = TABLE.copy()
    changed[numpys] = -1
    np.testing.assert_array_equal(x.at[index].set(-1), changed)


def test_a_sequence_of_traced_values_within_an_index() -> None:
    x = jnp.asarray(TABLE)
    assert xlamini.jit(lambda i: x[((i, 1), (0, i))])(2).tolist() == [8.0, 6.0]
    assert x[((jnp.int32(2), 1), (0, 2))].tolist() == [8.0, 6.0]
    slopes = xlamini.grad(lambda x: x[((0, 1), (0, 1))].sum())(x)
    assert slopes[0, 0] == slopes[1, 1] == 1 and slopes.sum() == 2


def test_arrays_of_float0_are_ndarrays() -> None:
    float0 = xlamini.dtypes.float0
    for made in (jnp.zeros((), float0), jnp.ones(2, float0), jnp.full(2, 1, float0), jnp.empty(2, float0),
                 jnp.zeros_like(jnp.ones(2), dtype=float0), jnp.asarray(np.zeros(2, float0))):
        assert type(made) is np.ndarray and made.dtype == float0
    tangent = jnp.zeros(3, float0)
    _, out = xlamini.jvp(lambda n, x: x * n, (jnp.arange(3), 2.0), (tangent, 1.0))
    assert out.tolist() == [0.0, 1.0, 2.0]


def test_a_type_is_an_argument_of_vmap_whose_shape_is_read() -> None:
    x, kind = jnp.ones((3, 2)), xlamini.ShapeDtypeStruct((3, 2), "float32")
    assert xlamini.vmap(lambda a, s: a * s.shape[0])(x, kind).tolist() == [[2.0, 2.0]] * 3
    assert xlamini.vmap(lambda a, s: a * s.shape[0], in_axes=(0, None))(x, kind).tolist() == [[3.0, 3.0]] * 3
    assert xlamini.vmap(lambda a, s: a * s.shape[0], in_axes=(0, -1))(x[:2], kind).tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(TypeError, match="a type without values"):
        xlamini.vmap(lambda a, s: a * s)(x, kind)


@xlamini.custom_jvp
def total(x: Any) -> Any:
    return lax.psum(jnp.sin(x), "i")


total.defjvp(lambda primals, tangents: (total(*primals), lax.psum(jnp.cos(primals[0]) * tangents[0], "i")))


def test_a_custom_rule_around_a_collective_is_not_batched() -> None:
    def plain(x: Any) -> Any:
        return lax.psum(jnp.sin(x), "i")

    def once(f: Any) -> Any:
        return lambda x: xlamini.vmap(f, axis_name="i", out_axes=None)(x)

    def weighted(f: Any) -> Any:
        return lambda x: xlamini.vmap(lambda v: f(v) * v, axis_name="i")(x).sum()

    x = jnp.arange(3.0)
    np.testing.assert_allclose(once(total)(x), np.sin(x).sum(), rtol=1e-6)
    for f, g in ((once(total), once(plain)), (weighted(total), weighted(plain))):
        np.testing.assert_allclose(xlamini.grad(f)(x), xlamini.grad(g)(x), rtol=1e-6)
        np.testing.assert_allclose(xlamini.jvp(f, (x,), (x,))[1], xlamini.jvp(g, (x,), (x,))[1], rtol=1e-6)


def test_a_tangent_that_is_batched_where_its_output_is_not() -> None:
    one = xlamini.custom_jvp(lambda x: jnp.float32(1.0))
    one.defjvp(lambda primals, tangents: (one(*primals), tangents[0] * 2))
    assert xlamini.grad(lambda x: xlamini.vmap(one)(x).sum())(jnp.arange(3.0)).tolist() == [2.0, 2.0, 2.0]


def test_checked_functions_of_numbers() -> None:
    error, _ = checkify(lambda x, i: x[i], errors=all_checks)(jnp.arange(3.0), 5)
    assert error.get().startswith("out-of-bounds indexing")
    error, _ = checkify(lambda x, i: x[i], errors=all_checks)(jnp.arange(3.0), i=5)
    assert error.get().startswith("out-of-bounds indexing")
    for f, numbers in ((lambda x, y: x / y, (1.0, 0.0)), (lambda x, y: x // y, (1, 0))):
        assert checkify(f, errors=all_checks)(*numbers)[0].get().startswith("division by zero")
    error, out = checkify(lambda n: [n * 2.0 for _ in range(n)] if n > 1 else [n], errors=all_checks)(2)
    assert error.get() is None and [float(x) for x in out] == [4.0, 4.0]


def test_the_words_of_a_key_are_no_raw_key() -> None:
    words = np.arange(2, dtype=np.uint32)
    with xlamini.legacy_prng_key("error"):
        drawn = random.normal(random.wrap_key_data(words))
        assert drawn == xlamini.jit(lambda w: random.normal(random.wrap_key_data(w)))(words)
        for use in (random.normal, random.key_data, random.key_impl, random.clone):
            with pytest.raises(ValueError, match="a raw key was passed"):
                use(words)


def test_branches_are_traced_once_outside_of_traces() -> None:
    seen = []

    def double(x: Any) -> Any:
        seen.append(x)
        return x * 2

    def same(x: Any) -> Any:
        return x

    x = jnp.float32(3)
    for _ in range(3):
        assert lax.cond(jnp.bool_(True), double, same, x) == 6 and lax.cond(False, double, same, x) == 3
    assert len(seen) == 1
    assert [float(lax.switch(i, [double, same], x)) for i in (0, 1, 0)] == [6, 3, 6] and len(seen) == 2
    assert lax.cond(True, double, same, jnp.arange(2)).tolist() == [0, 2] and len(seen) == 3


def test_a_type_whose_values_are_not_read_is_an_argument_of_a_jitted_function() -> None:
    times_length = xlamini.jit(lambda x, s: x * s["of"].shape[0])
    s, x = {"of": xlamini.ShapeDtypeStruct((3,), "float32")}, jnp.arange(2.0)
    for f in (lambda x: times_length(x, s), xlamini.jit(lambda x: times_length(x, s))):
        assert f(x).tolist() == f(x).tolist() == [0.0, 3.0]
    assert xlamini.grad(lambda x: times_length(x, s).sum())(x).tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match="a type without values"):
        times_length(s["of"], {"of": x})


def test_a_state_of_another_size_is_traced() -> None:
    state = np.arange(2, dtype=np.uint32)
    program = xlamini.make_jaxpr(lambda k: lax.rng_bit_generator(k, (3,)))(state)
    assert [a.shape for a in program.out_avals] == [(2,), (3,)]
    with pytest.raises(ValueError, match=r"key must be uint32\[4\] or uint64\[2\], got u32\[2\]"):
        lax.rng_bit_generator(state, (3,))
