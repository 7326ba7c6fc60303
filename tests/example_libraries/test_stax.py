"""Layers beside recorded values of JAX, NumPy, and their own shapes; composition; errors by their text."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlamini import grad, jit, numpy as jnp, random, tree
from xlamini.example_libraries import stax

pytestmark = pytest.mark.sample(4)

KEY = random.PRNGKey(0)


def images(*shape: int) -> Any:
    return jnp.sin(jnp.arange(float(np.prod(shape)))).reshape(shape)


def test_a_convolutional_network_has_the_params_and_outputs_of_jax() -> None:
    """Recorded from JAX 0.10.2."""
    init, apply = stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"), stax.BatchNorm(), stax.Relu, stax.MaxPool((2, 2), strides=(2, 2)),
        stax.AvgPool((2, 2)), stax.FanOut(2), stax.parallel(stax.Identity, stax.Tanh), stax.FanInSum, stax.Flatten,
        stax.Dense(3), stax.LogSoftmax,
    )  # fmt: skip
    shape, params = init(KEY, (2, 6, 6, 3))
    (W, b), norm, *_, (V, c), _ = params
    assert shape == (2, 3) and len(params) == 11 and params[6] == [(), ()]
    np.testing.assert_allclose([W.ravel()[0], abs(W).sum()], [0.0384341, 15.96247], rtol=1e-5)
    np.testing.assert_allclose(b.ravel()[0], -1.335625e-6, rtol=1e-4)
    np.testing.assert_allclose([V.ravel()[0], c[0]], [0.6332414, 0.0048582], rtol=1e-4)
    assert b.shape == (1, 1, 1, 4) and [x.tolist() for x in norm] == [4 * [0.0], 4 * [1.0]]
    out = jit(apply)(params, images(2, 6, 6, 3))
    np.testing.assert_allclose(
        out, [[-0.369375, -1.568159, -2.298537], [-0.29378, -1.564694, -3.09208]], atol=2e-4
    )


@pytest.mark.full
def test_random_layers_have_the_outputs_of_jax() -> None:
    """Recorded from JAX 0.10.2."""
    init, apply = stax.serial(
        stax.ConvTranspose(4, (3, 3), strides=(2, 2)), stax.SumPool((2, 2)), stax.FanOut(2),
        stax.parallel(stax.Softplus, stax.serial(stax.Gelu, stax.Elu)), stax.FanInConcat(), stax.Dropout(0.5),
        stax.Sigmoid, stax.Softmax, stax.Selu, stax.LeakyRelu, stax.Exp,
        stax.shape_dependent(lambda shape: stax.Dense(shape[-1] // 2)),
    )  # fmt: skip
    shape, params = init(random.PRNGKey(1), (2, 3, 3, 3))
    out = apply(params, images(2, 3, 3, 3), rng=random.PRNGKey(3))
    assert shape == out.shape == (2, 6, 6, 4)
    np.testing.assert_allclose(out.sum(), -53.240635, rtol=1e-4)
    np.testing.assert_allclose(out.ravel()[:4], [-0.309102, 1.507603, -1.21429, -0.770716], atol=1e-4)


LAYERS = {
    "Conv": (stax.Conv(2, (3, 3)), (2, 5, 5, 3), (2, 3, 3, 2)),
    "Conv padded": (stax.Conv(2, (3, 3), (2, 1), ((1, 1), (0, 2))), (2, 5, 5, 3), (2, 3, 5, 2)),
    "ConvTranspose": (stax.ConvTranspose(2, (3, 3), (2, 2), "SAME"), (2, 5, 5, 3), (2, 10, 10, 2)),
    "Conv1DTranspose": (stax.Conv1DTranspose(2, (3,), (2,)), (4, 5, 3), (4, 11, 2)),
    "GeneralConv": (stax.GeneralConv(("NCHW", "OIHW", "NHWC"), 2, (2, 2)), (1, 3, 4, 4), (1, 3, 3, 2)),
    "GeneralConvTranspose": (
        stax.GeneralConvTranspose(("NCHW", "OIHW", "NHWC"), 2, (2, 2), (2, 2)), (1, 3, 4, 4), (1, 8, 8, 2)
    ),
    "Dense": (stax.Dense(3), (7, 2), (7, 3)),
    "MaxPool": (stax.MaxPool((2, 2), spec="NCHW"), (2, 3, 5, 5), (2, 3, 4, 4)),
    "AvgPool": (stax.AvgPool((2, 2), (2, 2), "SAME"), (2, 5, 5, 3), (2, 3, 3, 3)),
    "Flatten": (stax.Flatten, (2, 5, 5, 3), (2, 75)),
    "BatchNorm": (stax.BatchNorm(axis=(0, 2)), (2, 3, 5), (2, 3, 5)),
    "empty": (stax.serial(), (2, 3), (2, 3)),
}  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("layer, given, expected", LAYERS.values(), ids=LAYERS)
def test_shapes(layer: Any, given: Any, expected: Any) -> None:
    """The shape that init_fun states is that of the outputs, also for a batch of any size; there is a gradient."""
    init, apply = layer
    shape, params = init(KEY, given)
    assert shape == expected == apply(params, images(*given)).shape
    assert init(KEY, (-1, *given[1:]))[0] == (-1, *expected[1:])
    slopes = grad(lambda params: (apply(params, images(*given)) ** 2).sum())(params)
    assert all(np.isfinite(x).all() and x.any() for x in tree.leaves(slopes))


def test_pools_are_those_of_numpy() -> None:
    x = images(1, 4, 4, 2)
    tiles = np.asarray(x).reshape(1, 2, 2, 2, 2, 2)
    for pool, reduce in ((stax.MaxPool, np.max), (stax.SumPool, np.sum), (stax.AvgPool, np.mean)):
        out = pool((2, 2), (2, 2))[1]((), x)
        np.testing.assert_allclose(out, reduce(tiles, (2, 4)), rtol=1e-6, atol=1e-6)  # sums have another order
    padded = stax.AvgPool((2, 2), padding="SAME")[1]((), jnp.ones((1, 3, 3, 1)))
    np.testing.assert_array_equal(padded, np.ones((1, 3, 3, 1)))


@pytest.mark.full
def test_batches_are_normalized() -> None:
    x = images(6, 3)
    init, apply = stax.BatchNorm(axis=0)
    out = apply(init(KEY, x.shape)[1], x)
    np.testing.assert_allclose(out, (x - np.mean(x, 0)) / np.sqrt(np.var(x, 0) + 1e-5), atol=1e-5)
    init, apply = stax.BatchNorm(axis=0, center=False)
    beta, gamma = init(KEY, x.shape)[1]
    assert beta == () and gamma.tolist() == [1, 1, 1]
    np.testing.assert_allclose(apply((beta, 2 * gamma), x), 2 * out, atol=1e-5)


def test_dropout_keeps_the_mean() -> None:
    apply = stax.Dropout(0.8)[1]
    out = apply((), jnp.ones(1000), rng=KEY)
    assert set(np.unique(out)) == {0.0, np.float32(1.25)} and abs(out.mean() - 1) < 0.1
    assert stax.Dropout(0.8, mode="test")[1]((), 3.0) == 3.0
    with pytest.raises(ValueError, match=r"Dropout: a random key is needed; call apply_fun\(params, inputs, rng=key\)"):
        apply((), jnp.ones(2))


def test_composition() -> None:
    assert stax.FanInConcat(-2)[0](KEY, [(1, 2, 3), (1, 4, 3)])[0] == (1, 6, 3)
    assert stax.FanOut(3)[1]((), 1.0) == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="parallel: 1 layers take as many inputs, got 2 shapes"):
        stax.parallel(stax.Dense(2))[0](KEY, [(1, 2), (1, 2)])
