"""Random numbers: the bits are JAX's, keys are values like any other, and a draw is the same wherever it is made."""

from __future__ import annotations

import json
import pickle
import sys
import warnings

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.paths import GOLDEN
from xlamini import errors, random
from xlamini.core.dtypes import finfo, issubdtype, prng_key
from xlamini.core.flags.jax_flags import high_dynamic_range_gumbel, random_seed_offset

sys.path.insert(0, str(GOLDEN))

from replay import replay, summary

RECORDS = json.loads((GOLDEN / "random.json").read_text())["records"]
GROUPS = sorted({record["group"] for record in RECORDS})


@pytest.fixture(autouse=True)
def _checked():
    """Every rewrite of these tests is checked."""
    with xlamini.enable_checks(True):
        yield


@pytest.fixture
def key():
    return random.key(0)


@pytest.fixture
def keys(key):
    return random.split(key, 5)


def words(keys):
    return np.asarray(random.key_data(keys))


# --- JAX's numbers


def check_same(found, expected, call):
    """Bits are equal; functions of floats may differ in the last bits from one version of XLA to the next."""
    assert (found["shape"], found["dtype"]) == (expected["shape"], expected["dtype"]), call
    dtype = np.dtype(found["dtype"])
    rtol = 4 * float(finfo(dtype).eps) if dtype.kind not in "biu" else 0
    for part in ("first", "last"):
        np.testing.assert_allclose(found[part], expected[part], rtol=rtol, atol=rtol, err_msg=str(call))


NARROW = ("bfloat16", "float16")
AS_JAX_IF_NARROW = ("bits", "uniform")
"""Other samplers round what they draw in float32, as JAX's narrow floats are far from their distributions."""


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_values_are_those_of_jax(group):
    for record in (r for r in RECORDS if r["group"] == group):
        call = {name: record[name] for name in ("call", "seed", "args", "kwargs", "x64")}
        if call["kwargs"].get("dtype") in NARROW and call["call"] not in AS_JAX_IF_NARROW:
            wide = {**call, "kwargs": {**call["kwargs"], "dtype": "float32"}}
            np.testing.assert_array_equal(replay(xlamini, call), replay(xlamini, wide).astype(call["kwargs"]["dtype"]))
        else:
            check_same(summary(replay(xlamini, call)), record["result"], call)


def test_the_first_normal_numbers(key):
    expected = np.array([1.6226422, 2.0252647, -0.43359444], np.float32)
    np.testing.assert_array_equal(random.normal(key, (3,)), expected)


def test_the_first_split_keys():
    expected = [[1797259609, 2579123966], [928981903, 3453687069]]
    np.testing.assert_array_equal(random.split(random.PRNGKey(0)), expected)
    np.testing.assert_array_equal(words(random.split(random.key(0))), expected)


# --- keys are values


def test_a_key_prints_as_in_jax(key, keys):
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert repr(keys[:1]) == "Array((1,), dtype=key<fry>) overlaying:\n[[1797259609 2579123966]]"
    assert (key.shape, key.ndim, key.size, key.itemsize, keys.nbytes) == ((), 0, 1, 8, 40)
    assert isinstance(key, xlamini.Array)
    assert len(keys) == 5


def test_the_dtype_of_keys(key):
    assert str(key.dtype) == "key<fry>" == repr(random.key_dtype())
    assert key.dtype == random.key(1).dtype
    assert hash(key.dtype) == hash(random.key_dtype())
    assert random.key_impl(key) == random.key_impl(random.PRNGKey(0)) == "threefry2x32"
    assert issubdtype(key.dtype, prng_key)


def test_programs_show_keys_as_keys(key):
    def draw(seed):
        return random.split(random.fold_in(random.key(seed), 7))

    assert str(xlamini.make_jaxpr(draw)(3)) == (
        "{ lambda ; a:i32[]. let\n"
        "    b:key<fry>[] = random_seed[impl=fry] a\n"
        "    c:key<fry>[] = random_fold_in b 7:u32[]\n"
        "    d:key<fry>[2] = random_split[shape=(2,)] c\n"
        "  in (d,) }"
    )
    assert "random_wrap[impl=fry]" in str(xlamini.make_jaxpr(random.split)(random.PRNGKey(0)))
    assert "key<fry>[2] = random_split" in str(xlamini.make_jaxpr(random.split)(key))
    assert repr(xlamini.eval_shape(random.split, key)) == "ShapeDtypeStruct(shape=(2,), dtype=key<fry>)"


def test_keys_unpack_and_iterate(keys):
    first, second = random.split(random.key(0))
    np.testing.assert_array_equal(words(first), words(keys)[0])
    np.testing.assert_array_equal(words(second), words(keys)[1])
    np.testing.assert_array_equal([words(k) for k in keys], words(keys))


INDICES = {
    "int": 2,
    "negative": -1,
    "slice": slice(1, 4, 2),
    "new axis": None,
    "ellipsis": (Ellipsis, 0),
    "array": np.array([3, 0, 3]),
    "mask": np.array([True, False, True, False, True]),
}


@pytest.mark.parametrize("index", INDICES.values(), ids=list(INDICES))
def test_keys_are_indexed_like_their_words(keys, index):
    expected = words(keys)[(*index, slice(None)) if isinstance(index, tuple) else index]
    np.testing.assert_array_equal(words(keys[index]), expected)
    np.testing.assert_array_equal(words(xlamini.jit(lambda k: k[index])(keys)), expected)


STRUCTURE = {
    "reshape": (lambda k: k.reshape(5, 1), (5, 1, 2)),
    "transpose": (lambda k: k[:4].reshape(2, 2).T, (2, 2, 2)),
    "concatenate": (lambda k: jnp.concatenate([k, k[:2]]), (7, 2)),
    "stack": (lambda k: jnp.stack([k[0], k[1]]), (2, 2)),
    "where": (lambda k: jnp.where(jnp.arange(5) > 2, k, k[0]), (5, 2)),
    "broadcast": (lambda k: jnp.broadcast_to(k[0], (3, 4)), (3, 4, 2)),
    "take": (lambda k: jnp.take(k, jnp.array([1, 1]), axis=0), (2, 2)),
    "flip": (jnp.flip, (5, 2)),
    "repeat": (lambda k: jnp.repeat(k, 2), (10, 2)),
    "set": (lambda k: k.at[1].set(k[0]), (5, 2)),
    "permutation": (lambda k: random.permutation(k[0], k), (5, 2)),
}


@pytest.mark.parametrize("move, shape", STRUCTURE.values(), ids=list(STRUCTURE))
def test_what_moves_elements_moves_keys(keys, move, shape):
    eager = move(keys)
    assert eager.dtype == keys.dtype
    assert words(eager).shape == shape
    assert {tuple(w) for w in words(eager).reshape(-1, 2)} <= {tuple(w) for w in words(keys)}
    np.testing.assert_array_equal(words(xlamini.jit(move)(keys)), words(eager))


def test_moved_keys_are_where_they_belong(keys):
    np.testing.assert_array_equal(words(keys[:4].reshape(2, 2).T)[0, 1], words(keys)[2])
    np.testing.assert_array_equal(words(jnp.flip(keys)), words(keys)[::-1])
    np.testing.assert_array_equal(words(keys.at[1].set(keys[0]))[:2], words(keys)[[0, 0]])
    mixed = jnp.where(jnp.arange(5) > 2, keys, keys[0])
    np.testing.assert_array_equal(words(mixed), words(keys)[[0, 0, 0, 3, 4]])


def test_keys_are_equal_if_their_words_are(key, keys):
    assert bool(key == random.key(0))
    np.testing.assert_array_equal(keys == keys[3], [False, False, False, True, False])
    np.testing.assert_array_equal(keys != keys[3], [True, True, True, False, True])
    assert (key == 3) is False


@pytest.mark.full
def test_functions_of_arrays_take_keys(key, keys):
    np.testing.assert_array_equal(words(jnp.zeros_like(keys)), np.zeros((5, 2)))
    np.testing.assert_array_equal(words(jnp.ones((2,), keys.dtype)), np.ones((2, 2)))
    np.testing.assert_array_equal(words(jnp.full_like(keys[:2], keys[3])), words(keys)[[3, 3]])
    np.testing.assert_array_equal(words(xlamini.vmap(jnp.zeros_like)(keys)), np.zeros((5, 2)))
    for made in (jnp.asarray(keys), jnp.array(list(keys)), xlamini.jit(jnp.asarray)(keys)):
        np.testing.assert_array_equal(words(made), words(keys))
    assert jnp.array_equal(keys, keys) and not jnp.array_equal(keys, keys[::-1])
    np.testing.assert_array_equal(xlamini.vmap(jnp.equal, (0, None))(keys, keys[1]), [False, True, False, False, False])
    with pytest.raises(TypeError, match="elements of dtype key<fry> cannot be added"):
        jnp.sum(keys)


@pytest.mark.full
def test_a_number_of_trials_may_be_a_python_number(key):
    p = jnp.array([0.2, 0.8])
    draw = lambda k: random.multinomial(k, 20.0, p)
    np.testing.assert_array_equal(xlamini.jit(draw)(key), draw(key))


@pytest.mark.full
def test_keys_in_pytrees_cross_jit(key):
    @xlamini.jit
    def step(state):
        now, later = random.split(state["key"])
        return {"key": later, "x": state["x"] + random.normal(now, (2,))}

    state = {"key": key, "x": jnp.zeros(2)}
    for _ in range(3):
        state = step(state)
    assert step._cache_size() == 1
    expected, x = key, np.zeros(2, np.float32)
    for _ in range(3):
        now, expected = random.split(expected)
        x = x + np.asarray(random.normal(now, (2,)))
    np.testing.assert_array_equal(words(state["key"]), words(expected))
    np.testing.assert_allclose(state["x"], x, rtol=1e-6)


def test_a_key_can_be_captured(key):
    draw = xlamini.jit(lambda x: x + random.normal(key, (2,)))
    np.testing.assert_array_equal(draw(0.0), random.normal(key, (2,)))
    np.testing.assert_array_equal(draw(0.0), random.normal(key, (2,)))


@pytest.mark.full
def test_nested_jit_and_stages(key):
    inner = xlamini.jit(random.split)
    outer = xlamini.jit(lambda k: inner(inner(k)[0]))
    np.testing.assert_array_equal(words(outer(key)), words(random.split(random.split(key)[0])))
    compiled = inner.lower(xlamini.ShapeDtypeStruct((), key.dtype)).compile()
    np.testing.assert_array_equal(words(compiled(key)), words(random.split(key)))


def test_a_key_moves_pickles_and_copies(key):
    for moved in (xlamini.device_put(key), xlamini.device_get(key), pickle.loads(pickle.dumps(key)), key.copy()):
        assert moved.dtype == key.dtype
        np.testing.assert_array_equal(words(moved), words(key))
    assert key.devices() == {xlamini.devices()[0]}
    assert key.block_until_ready() is key


def test_raw_keys_work_everywhere(key):
    raw = random.PRNGKey(0)
    assert (raw.shape, raw.dtype) == ((2,), np.uint32)
    np.testing.assert_array_equal(random.normal(raw, (3,)), random.normal(key, (3,)))
    np.testing.assert_array_equal(random.fold_in(raw, 3), words(random.fold_in(key, 3)))
    np.testing.assert_array_equal(words(random.wrap_key_data(raw)), words(key))
    assert random.clone(raw).dtype == np.uint32
    assert random.clone(key).dtype == key.dtype


# --- a draw is the same under every transformation

SAMPLERS = {
    "bits": lambda k: random.bits(k, (3,)),
    "uniform": lambda k: random.uniform(k, (2, 3), minval=-1.0, maxval=2.0),
    "normal": lambda k: random.normal(k, (3,)),
    "complex normal": lambda k: random.normal(k, (3,), complex),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 1.0, (3,)),
    "lognormal": lambda k: random.lognormal(k, 0.5, (3,)),
    "randint": lambda k: random.randint(k, (4,), -3, 12),
    "permutation": lambda k: random.permutation(k, 6),
    "choice": lambda k: random.choice(k, 9, (3,)),
    "choice without replacement": lambda k: random.choice(k, jnp.arange(6.0), (3,), replace=False),
    "choice with p": lambda k: random.choice(k, 3, (4,), p=jnp.array([0.2, 0.3, 0.5])),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (4,)),
    "rademacher": lambda k: random.rademacher(k, (4,)),
    "categorical": lambda k: random.categorical(k, jnp.array([[0.0, 1.0], [2.0, 1.0]])),
    "gumbel": lambda k: random.gumbel(k, (3,)),
    "exponential": lambda k: random.exponential(k, (3,)),
    "laplace": lambda k: random.laplace(k, (3,)),
    "logistic": lambda k: random.logistic(k, (3,)),
    "cauchy": lambda k: random.cauchy(k, (3,)),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 5)),
}


@pytest.mark.sample(21)
@pytest.mark.parametrize("draw", SAMPLERS.values(), ids=list(SAMPLERS))
def test_a_draw_is_the_same_under_jit_and_vmap(key, draw):
    single = draw(key)
    np.testing.assert_allclose(xlamini.jit(draw)(key), single, rtol=1e-6, atol=1e-6)
    pair = random.split(key)
    np.testing.assert_allclose(xlamini.vmap(draw)(pair)[1], draw(pair[1]), rtol=1e-6, atol=1e-6)


def test_vmap_over_seeds_data_and_inner_axes(key, keys):
    np.testing.assert_array_equal(words(xlamini.vmap(random.key)(jnp.arange(3))), [[0, 0], [0, 1], [0, 2]])
    folded = xlamini.vmap(random.fold_in, in_axes=(None, 0))(key, jnp.arange(3))
    np.testing.assert_array_equal(words(folded)[2], words(random.fold_in(key, 2)))
    table = keys[:4].reshape(2, 2)
    found = xlamini.vmap(xlamini.vmap(random.normal), in_axes=1, out_axes=1)(table)
    np.testing.assert_array_equal(found[1, 0], random.normal(keys[2]))
    np.testing.assert_array_equal(words(xlamini.vmap(lambda k: k, out_axes=1)(table)), words(table.T))


@pytest.mark.full
def test_keys_pass_through_derivatives(key):
    def loss(scale, k):
        return jnp.sum(scale * random.normal(k, (3,)))

    expected = jnp.sum(random.normal(key, (3,)))
    np.testing.assert_allclose(xlamini.grad(loss)(2.0, key), expected, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jit(xlamini.grad(loss))(2.0, key), expected, rtol=1e-6)
    value, tangent = xlamini.jvp(lambda s: loss(s, key), (2.0,), (1.0,))
    np.testing.assert_allclose([value, tangent], [2 * expected, expected], rtol=1e-6)


@pytest.mark.full
def test_draws_are_differentiable_in_their_parameters(key):
    def mean(low):
        return jnp.mean(random.uniform(key, (1000,), minval=low, maxval=2.0))

    u = np.asarray(random.uniform(key, (1000,)))
    np.testing.assert_allclose(xlamini.grad(mean)(0.5), np.mean(1 - u), rtol=1e-4)
    slope = xlamini.grad(lambda a: random.truncated_normal(key, -a, a))(0.5)
    ahead, behind = (float(random.truncated_normal(key, -a, a)) for a in (0.501, 0.499))
    assert abs(float(slope) - (ahead - behind) / 0.002) < 1e-2


def test_per_example_noise_gradients(key, keys):
    def loss(w, k):
        return jnp.sum(jnp.square(w + random.normal(k, (2,))))

    found = xlamini.vmap(xlamini.grad(loss), in_axes=(None, 0))(jnp.ones(2), keys)
    expected = np.stack([2 * (1 + np.asarray(random.normal(k, (2,)))) for k in keys])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.full
def test_x64_is_part_of_the_signature(key):
    assert random.normal(key, (2,)).dtype == np.float32
    with xlamini.enable_x64(True):
        assert random.normal(key, (2,)).dtype == np.float64
        assert random.randint(key, (2,), 0, 9).dtype == np.int64
    assert random.normal(key, (2,)).dtype == np.float32
    with pytest.warns(UserWarning, match="64-bit dtypes are off"):
        random.exponential(key, (2,), "float64")


# --- statistical sanity

SIZE = 200_000
MOMENTS = {
    "uniform": (lambda k: random.uniform(k, (SIZE,)), 0.5, 1 / 12),
    "normal": (lambda k: random.normal(k, (SIZE,)), 0.0, 1.0),
    "exponential": (lambda k: random.exponential(k, (SIZE,)), 1.0, 1.0),
    "laplace": (lambda k: random.laplace(k, (SIZE,)), 0.0, 2.0),
    "logistic": (lambda k: random.logistic(k, (SIZE,)), 0.0, np.pi**2 / 3),
    "gumbel": (lambda k: random.gumbel(k, (SIZE,)), 0.5772157, np.pi**2 / 6),
    "rademacher": (lambda k: random.rademacher(k, (SIZE,)), 0.0, 1.0),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (SIZE,)), 0.3, 0.21),
    "randint": (lambda k: random.randint(k, (SIZE,), 0, 10), 4.5, 8.25),
    "uint8": (lambda k: random.randint(k, (SIZE,), 0, 256, "uint8"), 127.5, (256**2 - 1) / 12),
}


@pytest.mark.parametrize("draw, mean, variance", MOMENTS.values(), ids=list(MOMENTS))
def test_moments(draw, mean, variance):
    drawn = np.asarray(draw(random.key(7))).astype(np.float64)
    assert abs(drawn.mean() - mean) < 5 * np.sqrt(variance / SIZE)
    assert abs(drawn.var() / variance - 1) < 0.03


@pytest.mark.full
def test_frequencies(key):
    p = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    for drawn in (
        random.choice(key, 4, (SIZE,), p=p),
        random.categorical(key, jnp.log(p), shape=(SIZE,)),
        random.categorical(key, jnp.log(p), shape=(SIZE,), mode="high"),
    ):
        counts = np.bincount(np.asarray(drawn), minlength=4)
        np.testing.assert_allclose(counts / SIZE, p, atol=0.006)


def test_weights_that_are_no_floats(key):
    weights = np.array([2, 0, 1, 0])
    for replace in (True, False):
        expected = random.choice(key, 4, (2,), replace, jnp.array(weights, "float32"))
        for p in (jnp.array(weights), weights):
            np.testing.assert_array_equal(random.choice(key, 4, (2,), replace, p), expected)
    drawn = random.choice(key, 4, (50,), p=jnp.array([True, False, False, True]))
    assert set(np.asarray(drawn).tolist()) == {0, 3}


@pytest.mark.full
def test_a_permutation_has_each_element_once(key):
    for size in (0, 1, 7, 2000):
        np.testing.assert_array_equal(np.sort(random.permutation(key, size)), np.arange(size))
    table = np.arange(12).reshape(3, 4)
    shuffled = np.asarray(random.permutation(key, table, axis=1, independent=True))
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), table)


@pytest.mark.full
def test_draws_stay_in_their_range(key):
    drawn = np.asarray(random.uniform(key, (10_000,), "bfloat16", -1.0, 1.0)).astype(np.float32)
    assert drawn.min() >= -1
    assert drawn.max() < 1
    bounded = np.asarray(random.truncated_normal(key, -0.5, 0.25, (10_000,)))
    assert bounded.min() > -0.5
    assert bounded.max() < 0.25
    np.testing.assert_array_equal(random.randint(key, (3,), 5, 5), 5)
    np.testing.assert_array_equal(random.randint(key, (3,), jnp.int32(300), jnp.int32(400), "uint8"), 255)
    low = random.randint(key, (3,), jnp.array([0, 10, 20]), jnp.array([1, 11, 21]))
    np.testing.assert_array_equal(low, [0, 10, 20])


# --- no noise, no waste


@pytest.mark.full
def test_no_draw_warns(key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for draw in SAMPLERS.values():
            draw(key)


# --- the barrier that keeps a key from being computed again in each loop that draws from it


def test_a_barrier_changes_nothing():
    barrier = xlamini.lax.optimization_barrier
    np.testing.assert_array_equal(barrier({"a": jnp.arange(3)})["a"], [0, 1, 2])
    np.testing.assert_allclose(xlamini.grad(lambda x: barrier((x * x, 1.0))[0])(3.0), 6.0)
    np.testing.assert_allclose(xlamini.jvp(lambda x: barrier((x, x))[1] * 2, (3.0,), (1.0,)), [6.0, 2.0])
    np.testing.assert_array_equal(xlamini.vmap(lambda x: barrier((x, 1))[0])(jnp.arange(3)), [0, 1, 2])


def test_split_keys_are_computed_once(key):
    program = xlamini.jit(lambda k: [random.uniform(part) for part in random.split(k)])
    assert program.lower(key).as_text().count("optimization_barrier") == 1


# --- ranges and flags


@pytest.mark.full
def test_ranges_up_to_the_ends_of_a_dtype() -> None:
    key = random.key(0)
    whole = np.asarray(random.randint(key, (4000,), -(2**31), 2**31)).astype(float)
    assert whole.min() < -2.1e9 and whole.max() > 2.1e9 and abs(whole.mean()) < 1e8
    unsigned = np.asarray(random.randint(key, (4000,), 0, 2**32, "uint32")).astype(float)
    assert unsigned.max() > 4.2e9 and abs(unsigned.mean() - 2**31) < 1e8
    floats = random.randint(key, (4000,), 0, jnp.float32(5))
    assert set(np.asarray(floats).tolist()) == {0, 1, 2, 3, 4}
    with xlamini.enable_x64(True):
        assert int(random.randint(key, (9,), 0, 2**40).max()) > 2**38


def test_the_offset_is_added_to_seeds():
    # Values recorded from JAX 0.10.2.
    with random_seed_offset(5):
        assert random.key_data(random.key(1)).tolist() == random.key_data(random.key(np.int32(1))).tolist() == [0, 6]
        assert xlamini.jit(random.PRNGKey)(3).tolist() == [0, 8]
    with random_seed_offset(-5):
        assert random.PRNGKey(3).tolist() == random.PRNGKey(jnp.uint32(3)).tolist() == [0, 2**32 - 2]
    assert xlamini.jit(random.PRNGKey)(3).tolist() == [0, 3]


@pytest.mark.full
def test_high_dynamic_range_is_the_default_mode_of_gumbel():
    # Values recorded from JAX 0.10.2.
    key, low, high = random.key(0), [2.9233725, 3.8326178, -0.09689324], [-1.0818486, -1.3463638, 0.906579]
    draw = xlamini.jit(lambda key: random.gumbel(key, (3,)))
    np.testing.assert_allclose([draw(key), random.gumbel(key, (3,))], [low, low], rtol=1e-5)
    with high_dynamic_range_gumbel(True):
        np.testing.assert_allclose([draw(key), random.gumbel(key, (3,))], [high, high], rtol=1e-5)
        np.testing.assert_allclose(random.gumbel(key, (3,), mode="low"), low, rtol=1e-5)


def test_keys_are_close_to_those_they_are_equal_to() -> None:
    key = random.key(0)
    keys = random.split(key, 3)
    np.testing.assert_array_equal(jnp.isclose(keys, keys[1]), [False, True, False])
    for close in (jnp.allclose, xlamini.jit(jnp.allclose)):
        assert close(key, random.key(0)) and not close(key, keys[0])
    for other in (1.0, jnp.zeros(2, "uint32"), random.key(0, impl="rbg")):
        with pytest.raises(errors.TypePromotionError, match="key<fry> promotes with no other dtype"):
            jnp.allclose(key, other)
