"""LSTM layers beside a loop in NumPy and recorded values of JAX, with gradients, compiled and batched."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from xlamini import enable_x64, grad, jit, numpy as jnp, random, vmap
from xlamini.errors import ShapeError
from xlamini.experimental import rnn
from xlamini.test_util import check_grads

pytestmark = pytest.mark.sample(4)

INPUTS, HIDDEN, LAYERS = 3, 2, 2
LENGTHS = np.array([4, 2], "int32")
directions = pytest.mark.parametrize("bidirectional", [False, True])


def arguments(bidirectional: bool) -> tuple[Any, ...]:
    count, states = rnn.get_num_params_in_lstm(INPUTS, HIDDEN, LAYERS, bidirectional), LAYERS * (1 + bidirectional)
    steps = np.arange(states * 2 * HIDDEN) * 0.3
    x = np.cos(np.arange(24) * 0.7).reshape(2, 4, 3)
    h, c = (f(steps).reshape(states, 2, HIDDEN) for f in (np.sin, np.cos))
    return tuple(jnp.asarray(a, "float32") for a in (x, h, c, np.sin(np.arange(count)) * 0.5))


def in_numpy(x: Any, h: Any, c: Any, weights: Any, bidirectional: bool) -> Any:
    """Each sequence, layer, direction and step on its own."""
    unpacked = rnn.unpack_lstm_weights(weights, INPUTS, HIDDEN, LAYERS, bidirectional)
    W_ih, W_hh, b_ih, b_hh = ({i: np.asarray(w, float) for i, w in kind.items()} for kind in unpacked)
    count = 1 + bidirectional
    out, h, c = np.zeros((2, 4, HIDDEN * count)), np.array(h, float), np.array(c, float)
    for b, length in enumerate(LENGTHS):
        sequence = np.asarray(x, float)[b, :length]
        for layer in range(LAYERS):
            ys = np.zeros((length, HIDDEN * count))
            for d in range(count):
                k = layer * count + d
                for t in range(length)[:: 1 - 2 * d]:
                    i, f, g, o = np.split(W_ih[k] @ sequence[t] + b_ih[k] + W_hh[k] @ h[k, b] + b_hh[k], 4)
                    c[k, b] = expit(f) * c[k, b] + expit(i) * np.tanh(g)
                    h[k, b] = ys[t, d * HIDDEN : (d + 1) * HIDDEN] = expit(o) * np.tanh(c[k, b])
            sequence = ys
        out[b, :length] = sequence
    return out, h, c


@pytest.mark.full
@directions
def test_values_are_those_of_a_loop(bidirectional: bool) -> None:
    given = arguments(bidirectional)
    found = rnn.lstm(*given, LENGTHS, INPUTS, HIDDEN, LAYERS, 0.0, bidirectional)
    for actual, expected in zip(found, in_numpy(*given, bidirectional), strict=True):
        np.testing.assert_allclose(actual, expected, atol=2e-6)


@directions
def test_values_are_those_of_jax(bidirectional: bool) -> None:
    """Recorded from JAX 0.10.2's `lstm_ref`: the outputs at the first step, and the last state of the last layer."""
    x, h, c, weights = arguments(bidirectional)
    unpacked = rnn.unpack_lstm_weights(weights, INPUTS, HIDDEN, LAYERS, bidirectional)
    y, h_n, c_n = rnn.lstm_ref(x, h, c, *unpacked, LENGTHS, INPUTS, HIDDEN, LAYERS, 0.0, bidirectional)
    first, last_h, last_c = {
        False: ([0.0707694, -0.2989092], [-0.3192781, -0.1602760], [-0.5458592, -0.2830292]),
        True: (
            [-0.1683132, 0.0212861, 0.0969683, -0.2861154], [0.0801097, -0.2418103], [0.2062579, -0.6636681]
        ),
    }[bidirectional]  # fmt: skip
    np.testing.assert_allclose(y[0, 0], first, atol=2e-6)
    np.testing.assert_allclose(h_n[-1, 1], last_h, atol=2e-6)
    np.testing.assert_allclose(c_n[-1, 1], last_c, atol=2e-6)


def test_initial_weights_are_those_of_jax() -> None:
    weights = rnn.init_lstm_weight(random.key(0), INPUTS, HIDDEN, LAYERS, True)
    np.testing.assert_allclose(weights[:4], [0.63309675, 0.67681414, -0.23717566, -0.04430949], rtol=1e-6)
    assert weights.shape == (240,) and abs(weights).max() <= HIDDEN**-0.5


def test_weights_are_packed_as_in_cudnn() -> None:
    count = rnn.get_num_params_in_lstm(INPUTS, HIDDEN, LAYERS, True)
    unpacked = rnn.unpack_lstm_weights(jnp.arange(count), INPUTS, HIDDEN, LAYERS, True)
    firsts = [[int(w[layer].ravel()[0]) for layer in range(4)] for w in unpacked]
    assert firsts == [[0, 40, 80, 128], [24, 64, 112, 160], [176, 192, 208, 224], [184, 200, 216, 232]]
    swapped = rnn.swap_lstm_gates(jnp.arange(48), 3, 1, 1, True)
    assert swapped.tolist() == [
        0, 1, 2, 3, 4, 5, 9, 10, 11, 6, 7, 8, 12, 13, 15, 14, 16, 17, 18, 19, 20, 21, 25, 26, 27, 22, 23, 24, 28, 29,
        31, 30, 32, 33, 35, 34, 36, 37, 39, 38, 40, 41, 43, 42, 44, 45, 47, 46,
    ]  # fmt: skip


@pytest.mark.slow
def test_gradients_and_batches() -> None:
    def total(x: Any, weights: Any) -> Any:
        y, h_n, c_n = rnn.lstm(x, h, c, weights, LENGTHS, INPUTS, HIDDEN, LAYERS, bidirectional=True)
        return (y**2).sum() + (h_n * c_n).sum()

    with enable_x64(True):
        x, h, c, weights = (a.astype("float64") for a in arguments(True))
        check_grads(total, (x, weights), order=1, rtol=1e-5)
        xs = jnp.stack([x, 2 * x])
        slopes = jit(vmap(grad(total), (0, None)))(xs, weights)
        summed = grad(lambda xs: vmap(jit(total), (0, None))(xs, weights).sum())(xs)
    np.testing.assert_allclose(slopes, summed, rtol=1e-6)
    np.testing.assert_allclose(slopes[0, 1, 2:], 0)  # behind the end of the shorter sequence


@pytest.mark.parametrize("changes, error, text", [
    ({"dropout": 0.5}, ValueError, "dropout 0.5 is not supported"),
    ({"weights": jnp.zeros(3)}, ShapeError, r"weights must have the shape \(104,\), got \(3,\)"),
    ({"x": jnp.zeros((2, 4, 5))}, ShapeError, r"x must have the shape \(batch, time, 3\), got \(2, 4, 5\)"),
    ({"c_0": jnp.zeros((2, 3, 2))}, ShapeError, r"c_0 must have the shape \(2, 2, 2\), got \(2, 3, 2\)"),
    ({"seq_lengths": jnp.zeros(3)}, ShapeError, r"seq_lengths must have the shape \(2,\), got \(3,\)"),
])  # fmt: skip
def test_errors(changes: dict[str, Any], error: type[Exception], text: str) -> None:
    given = dict(zip(("x", "h_0", "c_0", "weights"), arguments(False), strict=True))
    options = {"input_size": INPUTS, "hidden_size": HIDDEN, "num_layers": LAYERS}
    with pytest.raises(error, match=text):
        rnn.lstm(**{**given, "seq_lengths": jnp.asarray(LENGTHS), **options, **changes})
