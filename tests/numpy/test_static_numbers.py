"""Static places take every whole number: an int, a number of NumPy's, an array of rank 0 of NumPy's or of ours.

The table has an expression for each static argument of a public function, and a number `n` for it. The result of an int
is the reference; what other tests say of it is right.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, nn, numpy as jnp, random

TABLE = """
2 random.randint(k, (n,), 0, 9)
2 random.choice(k, v, (n,))
2 random.choice(k, n)
1 random.choice(k, x, axis=n)
2 random.permutation(k, n)
1 random.permutation(k, x, axis=n)
2 random.split(k, n)
2 random.split(k, (n, 2))
2 random.fold_in(k, n)
2 random.orthogonal(k, n)
2 random.orthogonal(k, 2, (n,))
2 random.ball(k, n)
2 random.ball(k, 2, shape=(n,))
2 jnp.full(n, 1.0)
2 jnp.full((n, 2), 1.0)
2 jnp.zeros_like(x, shape=(n,))
2 jnp.full_like(x, 1.0, shape=n)
2 jnp.eye(n)
2 jnp.eye(2, n)
1 jnp.eye(2, k=n)
2 jnp.identity(n)
2 jnp.tri(n)
1 jnp.tri(2, k=n)
2 jnp.linspace(0, 1, n)
1 jnp.linspace(v, v, 2, axis=n)
2 jnp.logspace(0, 1, n)
2 jnp.geomspace(1, 2, n)
1 jnp.var(x, ddof=n)
2 x.reshape(n, -1)
2 jnp.reshape(x, (n, 3))
2 jnp.reshape(jnp.ones(2), n)
1 x.transpose(n, 0)
1 jnp.transpose(x, (n, 0))
1 jnp.swapaxes(x, 0, n)
1 jnp.moveaxis(x, 0, n)
1 jnp.rollaxis(x, n)
1 jnp.concatenate([x, x], axis=n)
1 jnp.stack([x, x], axis=n)
1 jnp.take(x, 0, axis=n)
1 jnp.take_along_axis(x, jnp.zeros((2, 3), int), axis=n)
2 jnp.repeat(v, n)
1 jnp.repeat(x, 2, axis=n)
2 jnp.repeat(v, jnp.array([1, 0, 1]), total_repeat_length=n)
2 jnp.tile(v, n)
2 jnp.tile(v, (n,))
1 jnp.roll(v, n)
1 jnp.roll(x, 1, axis=n)
1 jnp.rot90(x, n)
1 jnp.rot90(x, 1, (0, n))
3 jnp.bincount(iv, length=n)
3 jnp.bincount(iv, minlength=n)
2 jnp.nonzero(iv, size=n)
2 jnp.where(iv, size=n)
2 jnp.unique(iv, size=n)
2 jnp.argwhere(iv, size=n)
2 jnp.flatnonzero(iv, size=n)
2 jnp.fft.fft(v, n)
1 jnp.fft.fft(x, axis=n)
2 jnp.fft.rfft(v, n)
2 jnp.fft.irfft(v, n)
2 jnp.fft.fft2(x, (n, 2))
1 jnp.fft.fftn(x, axes=(n,))
2 jnp.fft.fftfreq(n)
1 jnp.fft.fftshift(x, axes=n)
1 jnp.trace(x, offset=n)
1 jnp.trace(x, axis1=0, axis2=n)
1 jnp.diagonal(x, n)
1 jnp.diag(x, n)
1 jnp.tril(x, n)
1 jnp.triu(x, n)
2 jnp.tril_indices(n)
1 jnp.triu_indices(2, n)
2 jnp.diag_indices(n)
1 jnp.diagflat(v, n)
1 jnp.pad(v, n)
1 jnp.pad(v, (n, 0))
1 jnp.pad(x, ((n, 0), (0, n)))
2 jnp.split(v[:2], n)
1 jnp.split(x, 1, axis=n)
2 jnp.array_split(v, n)
2 jnp.split(v, [n])
1 jnp.diff(v, n)
1 jnp.diff(x, axis=n)
1 jnp.gradient(x, axis=n)
1 jnp.tensordot(x, x.T, n)
1 jnp.tensordot(x, x, ((n,), (n,)))
2 jnp.broadcast_to(v, (n, 3))
1 jnp.apply_along_axis(jnp.sum, n, x)
1 jnp.partition(v, n)
1 jnp.argpartition(v, n)
1 jnp.percentile(x, 50, axis=n)
1 jnp.quantile(x, .5, axis=n)
1 jnp.cross(x, x, axis=n)
2 jnp.vander(v, n)
2 jnp.histogram(v, n)[0]
2 jnp.indices((n, 2))
2 jnp.unravel_index(1, (n, 3))
1 jnp.insert(v, n, 1.0)
1 jnp.delete(v, n)
1 jnp.append(x, x, axis=n)
0 jnp.compress(jnp.array([True, False]), x, axis=n)
1 jnp.round(v, n)
1 jnp.polyfit(v, v, n)
1 jnp.polyder(v, n)
1 jnp.polyint(v, n)
2 jnp.unpackbits(jnp.array([3], jnp.uint8), count=n)
1 jnp.packbits(x>0, axis=n)
1 jnp.nanquantile(x, .5, axis=n)
0 jnp.lexsort((v, v), axis=n)
3 jnp.hanning(n)
3 jnp.bartlett(n)
3 jnp.kaiser(n, 1.0)
2 jnp.linalg.matrix_power(jnp.eye(2), n)
1 jnp.linalg.norm(x, axis=n)
1 jnp.linalg.vector_norm(x, axis=n)
1 jnp.linalg.tensorinv(jnp.eye(2), n)
3 xla.nn.one_hot(iv, n)
0 xla.nn.one_hot(iv, 3, axis=n)
1 xla.nn.glu(jnp.ones((2, 2)), n)
1 xla.nn.standardize(x, n)
3 xla.ops.segment_sum(v, iv, n)
2 lax.top_k(v, n)
2 lax.iota("int32", n)
2 lax.broadcasted_iota("int32", (n, 2), 0)
1 lax.broadcasted_iota("int32", (2, 2), n)
2 lax.broadcast(v, (n,))
2 lax.broadcast_in_dim(v, (n, 3), (1,))
1 lax.broadcast_in_dim(v, (2, 3), (n,))
2 lax.reshape(x, (n, 3))
2 lax.full((n,), 1.0)
1 lax.slice(v, (n,), (3,))
1 lax.slice_in_dim(v, n, 3)
1 lax.slice_in_dim(x, 0, 1, axis=n)
2 lax.dynamic_slice(v, (0,), (n,))
2 lax.dynamic_slice_in_dim(v, 0, n)
1 lax.dynamic_index_in_dim(x, 0, n)
1 lax.concatenate([x, x], n)
1 lax.pad(v, 0.0, ((n, 0, 0),))
1 lax.transpose(x, (n, 0))
1 lax.rev(x, (n,))
0 lax.squeeze(x[None], (n,))
1 lax.expand_dims(x, (n,))
1 lax.argmax(x, n, jnp.int32)
1 lax.cumsum(x, n)
1 lax.sort(x, dimension=n)
2 lax.collapse(x, 0, n)
2 lax.split(v, (1, n))
1 lax.dot_general(x, x, (((n,), (n,)), ((), ())))
2 lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (n,), "VALID")
2 lax.reduce_window(v, 0.0, lax.add, (n,), (1,), "VALID")
1 xla.vmap(lambda y:lax.all_gather(y, "i", axis=n), axis_name="i")(x)
3 lax.scan(lambda a, _:(a+1, None), 0, None, length=n)[0]
3 lax.fori_loop(0, n, lambda i, a:a+1, 0)
2 lax.map(jnp.sin, v, batch_size=n)
1 lax.associative_scan(jnp.add, x, axis=n)
1 lax.switch(n, [lambda:0, lambda:1])
1 xla.grad(lambda a, b:a*b, argnums=n)(1.0, 2.0)
1 xla.grad(lambda a, b:a*b, argnums=(0, n))(1.0, 2.0)
1 xla.jacfwd(lambda a, b:a*b, argnums=n)(1.0, 2.0)
1 xla.jacrev(lambda a, b:a*b, argnums=n)(1.0, 2.0)
1 xla.hessian(lambda a, b:a*b, argnums=n)(1.0, 2.0)
1 xla.value_and_grad(lambda a, b:a*b, argnums=n)(1.0, 2.0)
1 xla.jit(lambda a, b:a*b, static_argnums=n)(1.0, 2)
1 xla.jit(lambda a, b:a*b, static_argnums=(n,))(1.0, 2)
1 xla.jit(lambda a, b:(a, b*2), donate_argnums=n)(1.0, jnp.ones(2))
2 xla.vmap(lambda a:a, axis_size=n)(x)
1 xla.checkpoint(lambda a, b:a*b, static_argnums=n)(1.0, 2)
2 xla.image.resize(x, (n, 3), "nearest")
2 xla.eval_shape(lambda a:a, xla.ShapeDtypeStruct((n,), "float32"))
1 xla.scipy.special.logsumexp(x, n)
1 xla.scipy.special.polygamma(n, 1.5)
2 xla.scipy.special.bernoulli(n)
2 xla.scipy.special.multigammaln(3.0, n)
2 xla.scipy.fft.dct(v, n=n)
1 xla.scipy.fft.dct(x, axis=n)
1 xla.scipy.integrate.trapezoid(x, axis=n)
2 random.normal(k, (n, 3))
2 random.uniform(k, (n, 3))
2 random.bits(k, (n, 3))
2 random.exponential(k, (n, 3))
2 random.gumbel(k, (n, 3))
2 random.laplace(k, (n, 3))
2 random.logistic(k, (n, 3))
2 random.cauchy(k, (n, 3))
2 random.rademacher(k, (n, 3))
2 random.maxwell(k, (n, 3))
2 random.gamma(k, 1.0, (n,))
2 random.beta(k, 1.0, 1.0, (n,))
2 random.poisson(k, 1.0, (n,))
2 random.bernoulli(k, 0.5, (n,))
2 random.dirichlet(k, jnp.ones(3), (n,))
2 random.t(k, 1.0, (n,))
2 random.binomial(k, 3, 0.5, (n,))
2 random.truncated_normal(k, -1.0, 1.0, (n,))
2 random.geometric(k, 0.5, (n,))
2 random.triangular(k, 0.0, 0.5, 1.0, (n,))
2 random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2), (n,))
1 jnp.sum(x, axis=n)
1 jnp.mean(x, axis=n)
1 jnp.std(x, axis=n)
1 jnp.var(x, axis=n)
1 jnp.max(x, axis=n)
1 jnp.min(x, axis=n)
1 jnp.prod(x, axis=n)
1 jnp.any(x, axis=n)
1 jnp.all(x, axis=n)
1 jnp.argmax(x, axis=n)
1 jnp.argmin(x, axis=n)
1 jnp.nansum(x, axis=n)
1 jnp.cumsum(x, axis=n)
1 jnp.median(x, axis=n)
1 jnp.ptp(x, axis=n)
1 jnp.count_nonzero(x, axis=n)
1 jnp.sort(x, axis=n)
1 jnp.argsort(x, axis=n)
1 jnp.flip(x, axis=n)
1 jnp.expand_dims(x, axis=n)
1 jnp.average(x, axis=n)
1 jnp.sum(x, axis=(0, n))
1 jnp.max(x, axis=(0, n))
1 jnp.any(x, axis=(0, n))
1 jnp.median(x, axis=(0, n))
1 nn.softmax(x, axis=n)
1 nn.log_softmax(x, axis=n)
1 nn.logsumexp(x, axis=n)
1 nn.standardize(x, axis=n)
1 x.sum(axis=n)
1 x.mean(axis=n)
1 x.argmax(axis=n)
1 x.cumsum(axis=n)
1 x.sort(axis=n)
2 jnp.zeros(n)
2 jnp.ones((n, 3))
0 jnp.squeeze(x[None], axis=n)
"""
TAKEN = {expression: int(n) for n, expression in (row.split(" ", 1) for row in TABLE.strip().splitlines())}
KINDS: dict[str, Callable[[int], Any]] = {
    "np.int64": np.int64,
    "np.uint8": np.uint8,
    "np.asarray": np.asarray,
    "jnp.asarray": jnp.asarray,
}
REFUSED = (
    "jnp.zeros(n)", "jnp.sum(x, axis=n)", "jnp.reshape(x, (n, 3))", "jnp.expand_dims(x, n)",
    "jnp.stack([x, x], axis=n)", "random.split(k, n)",
    "xlamini.vmap(jnp.sum, in_axes=n)(x)", "xlamini.grad(jnp.multiply, argnums=n)(1.0, 2.0)",
    "xlamini.jit(jnp.add, static_argnums=n)(1, 2)", "lax.iota('int32', n)",
    "lax.scan(lambda c, _: (c, None), 0, None, n)",
)


def value(expression: str, n: Any) -> Any:
    x, v, iv = jnp.arange(6.0).reshape(2, 3), jnp.arange(3.0), jnp.array([0, 1, 1])
    faces = {"jnp": jnp, "lax": lax, "nn": nn, "random": random, "xla": xlamini, "xlamini": xlamini}
    return eval(expression, {**faces, "x": x, "v": v, "iv": iv, "k": random.key(0), "n": n})


@pytest.mark.sample(12, full=4)
@pytest.mark.parametrize("expression", TAKEN)
def test_whole_numbers_of_any_type(expression: str) -> None:
    n = TAKEN[expression]
    expected = xlamini.tree.map(np.asarray, _plain(value(expression, n)))
    for kind in KINDS.values():
        found = _plain(value(expression, kind(n)))
        assert xlamini.tree.structure(found) == xlamini.tree.structure(expected)
        for got, want in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(expected), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_array_equal(got, want)


def _plain(tree: Any) -> Any:
    """Keys as their words, and types as zeros."""
    def plain(leaf: Any) -> Any:
        if isinstance(leaf, xlamini.ShapeDtypeStruct):
            return np.zeros(leaf.shape, leaf.dtype)
        return random.key_data(leaf) if jnp.issubdtype(leaf.dtype, xlamini.dtypes.prng_key) else leaf

    return xlamini.tree.map(plain, tree)


@pytest.mark.parametrize("expression", REFUSED)
def test_numbers_that_are_not_whole_are_refused(expression: str) -> None:
    for n in (0.5, np.float32(1.5), jnp.float32(0.5), "1"):
        with pytest.raises((TypeError, ValueError)):
            value(expression, n)


def test_a_trip_count_may_be_a_whole_float() -> None:
    assert lax.scan(lambda c, _: (c + 1, None), 0, None, length=6 / 2)[0] == 3  # type: ignore[arg-type]
    assert jnp.hanning(3.0).shape == (3,)  # type: ignore[arg-type]


def test_a_number_of_numpys_and_a_tuple_for_the_same_argument() -> None:
    x = jnp.ones((2, 3))
    for axis in (np.int64(1), (0, 1), np.int64(0), 1, (0, 1), np.asarray(1), (1,)):
        assert jnp.ptp(x, axis=axis).sum() == 0 and jnp.sum(x, axis=axis).sum() == 6
        assert xlamini.jit(lambda x, axis=axis: jnp.sum(x, axis=axis).sum())(x) == 6


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_static_numbers_within_a_trace(kind: Callable[[int], Any]) -> None:
    x, n = jnp.arange(6.0).reshape(2, 3), kind(1)
    inside = xlamini.jit(lambda x: (x.sum(axis=n), jnp.roll(x, 1, axis=n), nn.softmax(x, n), jnp.tile(x, (n, n))))(x)
    for got, want in zip(inside, (x.sum(1), jnp.roll(x, 1, 1), nn.softmax(x, 1), x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
