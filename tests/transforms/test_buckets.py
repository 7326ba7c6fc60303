"""Buckets of sizes: padded programs give the numbers of the arrays without padding, or are refused with a line."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.errors import InconclusiveDimensionOperation, PaddingError, ShapeError

FUNCTIONS: dict[str, Any] = {
    "sort": jnp.sort,
    "argsort, descending": lambda x: jnp.argsort(-x),
    "sums from the back": lambda x: jnp.cumsum(x[::-1]),
    "cumulative maxima from the back": lambda x: lax.cummax(x, reverse=True),
    "scan": lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c * a), 0.0, x),
    "scan from the back": lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c * a), 0.0, x, reverse=True),
    "median": jnp.median,
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "std": lambda x: x.std(),
    "argmin": jnp.argmin,
    "prod": jnp.prod,
    "products, flat": lambda x: jnp.outer(x, x).reshape(-1),
    "products, transposed and flat": lambda x: jnp.outer(x, x[1:]).T.reshape(-1, 1).sum(1),
    "joined": lambda x: jnp.concatenate([x, x * 2, x[:1]]),
    "split": lambda x: jnp.split(jnp.concatenate([x, x]), 2),
    "the last two": lambda x: x[-2:],
    "roll": lambda x: jnp.roll(x, 1),
    "softmax": jax.nn.softmax,
    "logsumexp": jax.nn.logsumexp,
    "sum of logarithms": lambda x: jnp.log(x * x).sum(),
    "divisions": lambda x: (1 / x) @ x,
    "gradient of a sort": jax.grad(lambda x: jnp.sum(jnp.sort(x) ** 2 * jnp.arange(x.shape[0]))),
    "gradient of a scan": jax.grad(lambda x: lax.scan(lambda c, a: (jnp.sin(c * a) + a, c), 0.0, x)[0]),
    "gradient of a checkpoint": jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sum(jnp.sin(y)))(x).sum()),
    "hessian": lambda x: jax.hessian(lambda y: jnp.sum(y**3) * y[-1])(x),
    "random numbers": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "rows of random numbers": lambda x: x + jax.random.normal(jax.random.key(0), (3, x.shape[0])),
    "pad": lambda x: jnp.pad(x, (2, 3), constant_values=7.0),
    "an element from the end set": lambda x: x.at[-1].add(5.0),
    "sums of segments": lambda x: jax.ops.segment_sum(x, (x > 0).astype("int32"), 2),
    "out of bounds": lambda x: jnp.take(x, jnp.array([0, 1, 50])),
    "clipped": lambda x: jnp.take(x, jnp.array([0, 1, 50]), mode="clip"),
    "a window at the end": lambda x: lax.dynamic_slice(x, (50,), (2,)),
    "while": lambda x: lax.while_loop(lambda c: c[1] < x.shape[0], lambda c: (c[0] + x[c[1]], c[1] + 1), (0.0, 0)),
    "cond": lambda x: lax.cond(x[0] > 0, lambda: x.sum(), lambda: x.max()),
    "top_k": lambda x: lax.top_k(x, 2),
    "unique": lambda x: jnp.unique(x, size=4),
    "nonzero": lambda x: jnp.nonzero(x > 0, size=3),
    "histogram": lambda x: jnp.histogram(x, 4, (-1, 1)),
    "an inner part set": lambda x: x.at[1:].set(0.0),
    "written into a longer array": lambda x: lax.dynamic_update_slice(jnp.arange(16.0), x, (3,)),
    "written at the end": lambda x: lax.dynamic_update_slice(jnp.arange(16.0), x, (14,)),
    "a part of a table": lambda x: lax.dynamic_slice(jnp.arange(20.0), (15,), x.shape),
    "gradient of a part of a table": lambda x: jax.grad(
        lambda t: (lax.dynamic_slice(t, (15,), x.shape) * x).sum()
    )(jnp.arange(20.0)),
    "gradient of a roll": jax.grad(lambda x: (jnp.roll(x, 1) * jnp.arange(x.shape[0])).sum()),
    "gradient of every second": jax.grad(lambda x: (x[::2] ** 2).sum()),
    "gradient of elements set": jax.grad(lambda x: (x.at[jnp.array([0, 0])].set(2.0) * x).sum()),
    "padded to 16": lambda x: jnp.pad(x, (0, 16 - x.shape[0])),
    "padded in front to 16": lambda x: jnp.pad(x, (16 - x.shape[0], 0), constant_values=3.0),
    "joined to 16": lambda x: jnp.concatenate([x, jnp.full(16 - x.shape[0], 7.0)]),
    "the longest loop of all lanes": lambda x: jax.vmap(
        lambda d: lax.while_loop(lambda t: t < 1, lambda t: t + jnp.abs(d), 0.0)
    )(x + jnp.sign(x)),
    "top_k of NaN": lambda x: lax.top_k((x - x) / (x - x), 1),
    "keys": lambda x: jax.random.key_data(jax.random.split(jax.random.key(0), x.shape[0])),
    "a key for each": lambda x: jax.vmap(lambda k, a: a + jax.random.normal(k))(
        jax.random.split(jax.random.key(0), x.shape[0]), x
    ),
    "largest of pairs": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"),
    "largest around": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME"),
    "sums of pairs, general": lambda x: lax.reduce(
        (x, x * 2), (0.0, 0.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (0,)
    ),
    "flat": lambda x: x[:, None].reshape(x.size),
    "full convolution": lambda x: jnp.convolve(x, jnp.array([1.0, 2.0, 3.0])),
    "in batches of two": lambda x: lax.map(lambda a: a * 2, x, batch_size=2),
    "inverses": lambda x: jnp.linalg.inv(x[:, None, None] * jnp.ones((2, 2)) + 3 * jnp.eye(2)),
    "convolution": lambda x: lax.conv(x[None, None], jnp.array([[[1.0, 2.0, 3.0]]]), (1,), "SAME"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_are_those_without_padding(name):
    """Infinite padding too: `1 / x` and `log(x)` of zeros."""
    fun, rng = FUNCTIONS[name], np.random.default_rng(1)
    padded = jax.jit(fun, buckets={"n": [8, 16]}, shapes_specs="n")
    for n in (5, 8, 13, 2, 1):
        if n == 1 and name in ("top_k", "the last two", "a window at the end", "products, transposed and flat"):
            continue
        x = jnp.asarray(rng.normal(size=n), "float32")
        for found, expected in zip(*(jax.tree.leaves(f(x)) for f in (padded, fun)), strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def _loss(weights, tokens, targets):
    """A causal transformer's layer."""
    x = weights["table"][tokens]
    q, k, v = (x @ weights[name] for name in "qkv")
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1],) * 2, bool)), q @ k.swapaxes(1, 2) / 3.0, -jnp.inf)
    h = x + jax.nn.softmax(scores) @ v
    h = (h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5)
    logits = jax.nn.log_softmax(h @ weights["table"].T)
    return -jnp.mean(jnp.take_along_axis(logits, targets[..., None], -1))


def _step(weights, tokens, targets):
    loss, grads = jax.value_and_grad(_loss)(weights, tokens, targets)
    return jax.tree.map(lambda w, g: w - 0.05 * g, weights, grads), loss


@pytest.mark.slow
def test_a_hundred_lengths_of_a_training_step():
    rng = np.random.default_rng(0)
    shapes = {"table": (11, 8), "q": (8, 8), "k": (8, 8), "v": (8, 8)}
    weights = exact = {name: jnp.asarray(rng.normal(size=s), "float32") for name, s in shapes.items()}
    step = jax.jit(_step, buckets={"t": "pow2"}, shapes_specs=(None, "_, t", "_, t"))
    for length in rng.integers(2, 129, 100):
        tokens, targets = rng.integers(0, 11, (2, 2, length))
        weights, loss = step(weights, tokens, targets)
        exact, expected = _step(exact, tokens, targets)
        np.testing.assert_allclose(loss, expected, rtol=1e-6 * 4)
    assert len(step.compilations()) <= 8
    for found, wanted in zip(jax.tree.leaves(weights), jax.tree.leaves(exact), strict=True):
        np.testing.assert_allclose(found, wanted, atol=2e-5)


INDICES = lax.GatherDimensionNumbers((), (0,), (0,))


@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize(("dtype", "index"), [("uint8", 100), ("int8", 100), ("uint8", 250), ("uint32", 2**32 - 1)])
def test_indices_of_any_width(dtype, index, mode):
    """The size of the data need not fit in the dtype of an index."""

    def taken(x, i):
        return lax.gather(x, i, INDICES, (1,), mode=mode)

    x, i = np.arange(300.0, dtype="float32"), np.array([[index]], dtype)
    padded = jax.jit(taken, buckets={"n": [512]}, shapes_specs=("n", None))
    np.testing.assert_array_equal(padded(x, i), taken(x, i))


def test_updates_beyond_the_data_are_dropped():
    def summed(i):
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        return lax.scatter_add(jnp.zeros(256), i, jnp.ones(i.shape[0]), numbers)

    indices = np.full((3, 1), 7, np.uint8)
    np.testing.assert_array_equal(jax.jit(summed, buckets={"n": 8}, shapes_specs="n, 1")(indices), summed(indices))


def test_starts_that_int32_does_not_hold():
    def last_two(x, start):
        return lax.dynamic_slice(x, (start,), (2,)), lax.dynamic_update_slice(x, jnp.ones(2), (start,))

    x, start = jnp.arange(5.0), jnp.uint32(2**32 - 1)
    padded = jax.jit(last_two, buckets={"n": 8}, shapes_specs=("n", None))
    for found, expected in zip(padded(x, start), last_two(x, start), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_types_stay():
    double = jax.jit(lambda x: x * jnp.ones(x.shape, "bfloat16"), buckets={"n": 8}, shapes_specs="n")
    assert double(jnp.broadcast_to(1.5, (5,))).dtype == "bfloat16"
    same = jax.jit(lambda x: x, buckets={"n": 8}, shapes_specs="n")
    assert same(jnp.broadcast_to(1.5, (5,))).weak_type
    keys = jax.random.split(jax.random.key(0), 5)
    np.testing.assert_array_equal(jax.random.key_data(same(keys)), jax.random.key_data(keys))


@pytest.mark.parametrize("sizes", ["pow2", [8]])
def test_no_element(sizes):
    both = jax.jit(lambda x, y: (x.sum(), y.sum()), buckets={"n": sizes, "m": 8}, shapes_specs=("n", "m"))
    assert [float(total) for total in both(np.ones(0), np.ones(5))] == [0, 5]


def test_matrices_of_a_padded_stack():
    stack = np.random.default_rng(0).normal(size=(5, 3, 3)).astype("float32")
    stack = stack @ stack.swapaxes(1, 2) + np.eye(3, dtype="float32")
    for fun in (jnp.linalg.eigvalsh, jnp.linalg.det, lambda x: jnp.linalg.solve(x, x[:, :, :1]), jnp.linalg.svd):
        padded = jax.jit(fun, buckets={"n": 8}, shapes_specs="n, 3, 3")
        for found, expected in zip(*(jax.tree.leaves(f(stack)) for f in (padded, fun)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_call_while_another_function_is_traced():
    """The function closes over a tracer, which its arguments do not show."""
    outer = jax.jit(lambda w: jax.jit(lambda x: x * w, buckets={"n": 8}, shapes_specs="n")(jnp.arange(3.0)))
    np.testing.assert_array_equal(outer(2.0), [0, 2, 4])


def test_padding_has_no_nan_to_find():
    ratio = jax.jit(lambda x: x / x, buckets={"n": 8}, shapes_specs="n")
    with jax.debug_nans(True):
        np.testing.assert_array_equal(ratio(jnp.arange(1.0, 6.0)), np.ones(5))


def test_a_size_is_printed_as_a_number(capsys):
    def show(x):
        jax.debug.print("n = {}, {size}", x.shape[0], size=2 * x.shape[0])
        return x

    jax.jit(show, buckets={"n": 8}, shapes_specs="n")(np.ones(5)).block_until_ready()
    jax.effects_barrier()
    assert capsys.readouterr().out == "n = 5, 10\n"


def test_a_method():
    class Scale:
        @functools.partial(jax.jit, buckets={"n": 8}, shapes_specs=(None, "n"))
        def total(self, x):
            return 2 * x.sum()

    jax.tree_util.register_pytree_node(Scale, lambda s: ((), None), lambda *_: Scale())
    assert Scale().total(np.ones(5)) == 10
    assert repr(Scale.total) == "<jit of total in buckets of n: 8>"
    assert jax.jit(lambda x: x, buckets={"n": 8}, shapes_specs="n").eval_shape(np.ones(5, "float32")).shape == (5,)


@pytest.mark.parametrize("static", [{"static_argnames": ("how", "count")}, {"static_argnums": (0, 2)}])
def test_static_arguments(static):
    """A program for each value of them, and not for each size."""

    def reduced(how, x, count=2):
        return getattr(jnp, how)(jnp.sort(x)[-count:])

    padded = jax.jit(reduced, buckets={"n": [8]}, shapes_specs=("n",), **static)
    before = len(padded.compilations())  # of a function of the same code
    for n in (3, 5, 8):
        x = np.random.default_rng(n).normal(size=n).astype("float32")
        assert padded("sum", x) == pytest.approx(np.sort(x)[-2:].sum(), rel=1e-6)
        assert padded("max", x, count=1) == padded("max", x, 1) == x.max()
    assert padded.trace("max", x[:5], 2).jaxpr.in_avals[0].shape == (8,)
    assert padded.eval_shape("max", x, 2).shape == ()
    assert len(padded.compilations()) == before + 2


def test_two_symbols():
    @jax.jit
    def plain(x, y):
        return (x @ y).reshape(-1), x.sum(), jnp.concatenate([x, x]).T

    padded = jax.jit(plain, buckets={"b": 4, "n": "pow2"}, shapes_specs=("b, n", "n, _"))
    rng = np.random.default_rng(0)
    for b, n in ((3, 5), (4, 6), (7, 1)):
        args = rng.normal(size=(b, n)).astype("float32"), rng.normal(size=(n, 3)).astype("float32")
        for found, expected in zip(padded(*args), plain(*args), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_inside_of_other_transformations_it_is_the_function():
    double = jax.jit(lambda x: (x * x).sum(), buckets={"n": "pow2"}, shapes_specs="n")
    np.testing.assert_array_equal(jax.grad(double)(jnp.arange(5.0)), 2 * np.arange(5.0))
    np.testing.assert_array_equal(jax.vmap(double)(jnp.ones((2, 3))), [3.0, 3.0])


def test_compilations_are_listed_and_limited():
    total = jax.jit(lambda x: x.sum(), buckets={"n": [4, 8]}, shapes_specs="n")
    for n in (3, 4, 2, 5, 8):
        assert total(np.ones(n, "float32")) == n
    assert len(total.compilations()) == 2


def test_the_padded_program_is_shown():
    total = jax.jit(lambda x, y: x.sum() + y, buckets={"n": "pow2"}, shapes_specs=("n", None))
    assert str(total.trace(np.ones(5, "float32"), 2.0).jaxpr.in_avals[0]) == "float32[8]"
    assert "%arg0: tensor<8xf32>" in total.lower(np.ones(5, "float32"), 2.0).as_text()


def test_padded_equations_have_the_lines_of_the_user():
    total = jax.jit(lambda x: jnp.sort(x).sum(), buckets={"n": "pow2"}, shapes_specs="n")
    places = [eqn.provenance.source for eqn in total.trace(np.ones(5, "float32")).jaxpr.eqns]
    assert places
    assert all(place.file == __file__ for place in places)


def test_a_kernel_in_a_bucket():
    """A valid convolution of rooms would have too few results."""
    full = jax.jit(lambda x, k: jnp.convolve(x, k), buckets={"n": 8, "k": 4}, shapes_specs=("n", "k"))
    for n, k in ((5, 3), (9, 2), (7, 4), (2, 3)):
        x, y = np.arange(1.0, n + 1, dtype="float32"), np.ones(k, "float32")
        np.testing.assert_allclose(full(x, y), np.convolve(x, y))
    valid = jax.jit(lambda x, k: jnp.convolve(x, k, "valid"), buckets={"k": 4}, shapes_specs=("_", "k"))
    x = np.arange(11.0, dtype="float32")
    np.testing.assert_allclose(valid(x, np.ones(3, "float32")), np.convolve(x, np.ones(3), "valid"))


def test_a_scan_has_as_many_steps_as_there_are_data():
    seen = []

    def last(x):
        def step(c, a):
            jax.debug.callback(lambda a: seen.append(float(a)), a, ordered=True)
            return c + a, None

        return lax.scan(step, 0.0, x)[0]

    assert jax.jit(last, buckets={"n": [8]}, shapes_specs="n")(np.arange(1.0, 6.0, dtype="float32")) == 15
    jax.effects_barrier()
    assert seen == [1, 2, 3, 4, 5]


def test_a_size_that_shrinks_has_the_room_of_the_least():
    few = jax.jit(lambda x: jnp.ones(8 // x.shape[0]), buckets={"n": 4}, shapes_specs="n")
    assert few(np.ones(3)).shape == (2,)
    sizes = {"n": 4, "m": 4}
    both = jax.jit(lambda x, y: jnp.ones(16 - x.shape[0] * y.shape[0]), buckets=sizes, shapes_specs=("n", "m"))
    with pytest.raises(PaddingError, match=r"the size -m\*n \+ 16 may shrink as one of its symbols grows, so that its"):
        both(np.ones(3), np.ones(2))


def test_what_padding_would_change_is_refused():
    values = jax.jit(jnp.linalg.eigvalsh, buckets={"n": "pow2"}, shapes_specs="n, n")
    with pytest.raises(PaddingError, match=r"eigh of f32\[n,n\] at .*cannot be computed in buckets: the padding would"):
        values(jnp.eye(5))


def test_a_question_that_a_bucket_does_not_answer():
    asks = jax.jit(lambda x: x if x.shape[0] > 6 else x * 2, buckets={"n": 8}, shapes_specs="n")
    text = "n > 6 is not the same for all sizes of the bucket, n from 2 to 8; give buckets that end where it changes"
    with pytest.raises(InconclusiveDimensionOperation, match=text):
        asks(np.ones(5))


def test_mistakes():
    def of(buckets=None, specs="n"):
        return jax.jit(lambda x, y: x.sum() + y.sum(), buckets=buckets or {"n": [4, 8]}, shapes_specs=specs)

    with pytest.raises(ShapeError, match="the size n is 9, but its largest bucket is 8; add a larger one"):
        of()(np.ones(9), np.ones(9))
    with pytest.raises(ShapeError, match=r"y.shape\[0\] must be n, which is 3 \(n = 3 by x.shape\[0\]\), but it is 4"):
        of()(np.ones(3), np.ones(4))
    with pytest.raises(ShapeError, match=r"x.shape\[1\] must be 3, but it is 2"):
        jax.jit(lambda x: x, buckets={"n": 4}, shapes_specs="n, 3")(np.ones((5, 2)))
    with pytest.raises(ValueError, match="shapes_specs has the symbol m, which has no buckets; add it to buckets"):
        of(specs="m")(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match=r'buckets has n, but shapes_specs gives no argument a size of that name; say'):
        jax.jit(lambda x: x, buckets={"n": 4})(np.ones(3))
    with pytest.raises(ValueError, match=r'the buckets of n must be "pow2", a number for its multiples, or a list'):
        of({"n": "pow3"})
    with pytest.raises(TypeError, match=r'buckets must be a dict such as \{"n": "pow2"\}, got'):
        of("pow2")
    with pytest.raises(ValueError, match="buckets and out_shardings cannot be given together, as arguments are padded"):
        jax.jit(lambda x: x, buckets={"n": 4}, shapes_specs="n", out_shardings=jnp.ones(1).sharding)
    power = jax.jit(lambda p, x: x**p, buckets={"n": 4}, shapes_specs=("n",), static_argnums=0)
    with pytest.raises(ValueError, match="static argument 'p' of <lambda> is of type list, which cannot be hashed"):
        power([2], np.ones(3))
    with pytest.raises(ShapeError, match=r"x.shape\[1\] must be 5, but it is 3"):
        jax.jit(lambda p, x: x, buckets={"n": 4}, shapes_specs=("n, 5",), static_argnums=0)(2, np.ones((3, 3)))
